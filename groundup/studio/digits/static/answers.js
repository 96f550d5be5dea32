// The answer as ten bars, and the answers of the stages in a table.

import { html, number, replace } from "/static/common/draw.js";

/** A probability for people: "97.3 %"; never "100.0 %" for what is less than 1. */
export function percent(share) {
  const text = (100 * share).toFixed(1);
  if (text === "100.0" && share < 1) return "> 99.9 %";
  return text === "0.0" && share > 0 ? "< 0.1 %" : `${text} %`;
}

/** The index of the largest number, the first of equals. */
export function winnerOf(values) {
  return values.indexOf(Math.max(...values));
}

const LEAST = 6; // powers of ten below 1 that a logarithmic bar shows

/** A bar for each class. probabilities: null before the first drawing; logarithmic: a sixth of the bar for each power of ten */
export function showBars(node, classes, probabilities, logarithmic = false) {
  const winner = probabilities ? winnerOf(probabilities) : -1;
  replace(node, html("ol", { class: "bars" }, ...classes.map((name, i) => {
    const share = probabilities ? probabilities[i] : 0;
    const length = logarithmic ? Math.max(0, 1 + Math.log10(share) / LEAST) : share;
    const said = logarithmic ? `${number(100 * share, 2)} %` : percent(share);
    const bar = html("span", { class: "bar", "aria-hidden": "true" }, html("span", { style: { width: `${100 * length}%` } }));
    return html("li", { class: i === winner ? "winner" : null },
      html("b", {}, name), bar, html("span", { class: "number" }, probabilities ? said : ""));
  })));
}

/**
 * A row for each floor. floors: as server.floors() gives them; answers: Map from a stage's number to its answer
 */
export function showFloors(body, floors, answers, classes) {
  const reference = answers.get(2) ?? [...answers.values()][0];
  replace(body, ...floors.map((floor) => {
    const answer = answers.get(floor.number);
    const title = html("th", { scope: "row" }, floor.title);
    if (floor.state !== "ready") {
      const words = floor.state === "warming" ? "is being prepared in the background …" : floor.why;
      return html("tr", {}, title, html("td", { colspan: 4, class: "quiet" }, words));
    }
    if (!answer) return html("tr", {}, title, html("td", { colspan: 4, class: "quiet" }, "ready"));
    const winner = winnerOf(answer.probabilities);
    const apart = answer === reference ? "–" : number(difference(answer, reference), 2);
    return html("tr", {}, title, html("td", {}, html("b", {}, classes[winner])),
      html("td", { class: "number" }, percent(answer.probabilities[winner])),
      html("td", { class: "number" }, duration(answer.seconds)),
      html("td", { class: "number" }, apart));
  }));
}

/** How far the stages are apart, in a sentence: the largest difference of any probability between any two of them. */
export function apartInWords(answers) {
  const all = [...answers.values()];
  if (all.length < 2) return "";
  let largest = 0;
  for (const one of all) for (const other of all) largest = Math.max(largest, difference(one, other));
  const words = largest === 0 ? "not at all apart" : `at most ${number(largest, 2)} apart`;
  return `${all.length} stages have answered. Their probabilities are ${words}. The time is that of one image, from the `
    + "pixels to the probabilities.";
}

/** The largest difference between two answers' probabilities. */
function difference(one, other) {
  return Math.max(...one.probabilities.map((each, i) => Math.abs(each - other.probabilities[i])));
}

function duration(seconds) {
  const [value, unit] = seconds < 1e-3 ? [1e6 * seconds, "µs"] : seconds < 1 ? [1e3 * seconds, "ms"] : [seconds, "s"];
  return `${number(value, 3)} ${unit}`;
}
