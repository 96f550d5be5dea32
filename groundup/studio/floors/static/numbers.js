// What a call on every stage gave, and the recorded times.

import { html, number, replace } from "/static/common/draw.js";

const MOST = 9; // numbers of a result that are shown

/** The answer of a run: the input, the results of each stage beside each other, and whether they agree. */
export function showRun(place, { inputs, stages }) {
  const ready = stages.filter(({ state }) => state === "ready");
  const results = ready.flatMap((each) => each.results);
  const [worst] = results.sort((one, other) => other.apart / other.allowed - one.apart / one.allowed);
  replace(place("verdict"), verdict(ready.length, worst), worst && stages.some(({ state }) => state === "warming") ? " The others are being prepared …" : "");
  const cells = (cell) => stages.map((stage) => html("td", { class: "number" }, cell(stage)));
  replace(place("numbers"),
    html("div", { class: "row" }, inputs.map(({ name, shape, values }) => html("pre", {}, `${name}${at(shape, shape)}\n${inRows(values, shape)}`))),
    html("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Results" }, html("table", {},
      html("thead", {}, html("tr", {}, html("th", { scope: "col" }, "Result"), stages.map(({ title }) => html("th", { scope: "col", class: "number" }, title)))),
      html("tbody", {}, (ready[0]?.results ?? []).flatMap(({ name, shape, values }, r) => [
        ...values.slice(0, MOST).map((_, i) => html("tr", {}, html("th", { scope: "row" }, name + at(index(i, shape), shape)), cells((stage) => number(stage.results?.[r].values[i], 8).replace("NaN", "")))),
        values.length > MOST ? html("tr", {}, html("td", { colspan: 5, class: "quiet" }, `and ${values.length - MOST} more, compared as well`)) : null,
      ]), html("tr", {}, html("th", { scope: "row" }, "Time of this call, here"), cells(took))))));
}

function verdict(count, worst) {
  if (!worst) return "The stages are being prepared …";
  if (!worst.apart) return `${count} stages give equal numbers, bit for bit.`;
  const apart = `${number(worst.apart, 2)} from stage 2's numbers, where rounding explains ${number(worst.allowed, 2)}`;
  return worst.apart <= worst.allowed ? `${count} stages agree: at most ${apart}.` : `A stage is wrong: ${apart}.`;
}

function took({ state, why, seconds, emulated }) {
  if (state !== "ready") return state === "warming" ? "is being prepared …" : why;
  return `${seconds < 1e-3 ? `${number(1e6 * seconds)} µs` : `${number(1e3 * seconds)} ms`}${emulated ? ", emulated: no GPU's time" : ""}`;
}

const at = (numbers, shape) => (shape.length ? ` (${numbers.join(", ")})` : "");

/** The index of the i-th number of an array. */
function index(i, shape) {
  return shape.map((extent, axis) => Math.floor(i / shape.slice(axis + 1).reduce((all, each) => all * each, 1)) % extent);
}

function inRows(values, shape) {
  const texts = values.map((each) => number(each, 4));
  const wide = Math.max(...texts.map(({ length }) => length));
  return texts.map((each, i) => each.padStart(wide) + ((i + 1) % (shape.at(-1) ?? 1) ? " " : "\n")).join("").trimEnd();
}

/** The recorded times: a bar for each of one case on one machine. */
export function showSpeeds(node, speeds) {
  const measured = speeds.some(({ bars }) => bars.at(-1).stage.startsWith("stage4"));
  const words = measured ? "" : speeds.length ? "Stage 4 is not among them: no GPU was measured in this case, and emulated times say nothing about one." :
    "No time of this function is recorded.";
  replace(node, speeds.map(group), words && html("p", {}, words));
}

function group({ title, case: what, file, bars }) {
  const source = html("p", { class: "quiet" }, `Recorded on ${title}: docs/benchmarks/${file}`);
  if (bars.length === 1) return [html("p", {}, `${bars[0].label} takes ${bars[0].time} for ${what}, on another machine, so it is no bar beside the others.`), source];
  const times = bars.map(({ seconds }) => Math.log10(seconds));
  const from = Math.floor(Math.min(...times) - 0.1);
  const decades = Math.ceil(Math.max(...times)) - from;
  return html("figure", {}, html("figcaption", {}, `${what}, on ${title.split(" · ")[0]}. The shorter the faster; each line is ten times the time of the one before.`),
    html("ul", { class: "bars" }, bars.map(({ label, stage, time, compared }, i) => html("li", {}, html("span", {}, label),
      html("span", { class: "track", style: { backgroundSize: `${100 / decades}% 100%` } }, html("span", { "data-floor": stage, style: { width: `${100 * (times[i] - from) / decades}%` } })),
      html("span", {}, html("b", {}, time), compared && `, ${compared}`)))), source);
}
