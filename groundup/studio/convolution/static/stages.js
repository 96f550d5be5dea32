// The same number by each stage's own function, and that function's text.

import { get } from "/static/common/api.js";
import { html, number, replace } from "/static/common/draw.js";
import { part } from "/static/floors/code.js";

const functions = new Map(); // room and name -> the answer of the page Floors

/** The table of the stages, and a sentence whether they agree. found: the studio's answer */
export function showStages(place, { stages, allowed, function: called }) {
  if (!called) {
    replace(place("verdict"), "This number is no function's: it is one addition, or is passed on.");
    replace(place("stages"));
    return;
  }
  const values = stages.filter(({ state }) => state === "ready").map(({ value }) => value);
  const strange = values.filter((value) => value === null).length; // NaN and infinity arrive as null
  const apart = strange && strange < values.length ? Infinity : Math.max(...values) - Math.min(...values);
  const words = values.length < 2 ? "The stages are being prepared." : apart <= allowed ?
    `${values.length} stages computed it from this window alone. They agree: at most ${number(apart, 2)} apart, where rounding explains ${number(allowed, 2)}.` :
    `The stages differ by ${number(apart, 2)}, where rounding explains ${number(allowed, 2)}.`;
  replace(place("verdict"), words);
  const head = ["Stage", `${called[1]} of this window`, "Time"];
  replace(place("stages"), html("table", {}, html("thead", {}, html("tr", {}, head.map((each, i) => html("th", { scope: "col", class: i ? "number" : null }, each)))),
    html("tbody", {}, stages.map(({ title, state, why, value, seconds }) => html("tr", {}, html("th", { scope: "row" }, title), state === "ready" ?
      [html("td", { class: "number" }, number(value, 9)), html("td", { class: "number" }, seconds < 1e-3 ? `${number(1e6 * seconds)} µs` : `${number(1e3 * seconds)} ms`)] :
      html("td", { colspan: 2, class: "quiet" }, state === "warming" ? "is being prepared …" : why))))));
}

/** The text of a function, [room, name], on every stage. */
export async function showCode(node, called) {
  if (String(called) === node.dataset.of) return;
  node.dataset.of = String(called);
  if (!called) return replace(node);
  const [room, name] = called;
  const of = `${room} ${name}`;
  if (!functions.has(of)) functions.set(of, get("/api/floors/function", { room, name }));
  const { stages } = await functions.get(of);
  if (node.dataset.of !== String(called)) return;
  replace(node, stages.map(({ name: stage, parts }) => html("div", { class: "cell", "data-floor": stage }, html("h3", {}, `Stage ${stage[5]}`), parts.map(part))));
}
