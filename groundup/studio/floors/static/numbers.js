// What a call on every stage gave, and the recorded times.

import { html, number, replace } from "/static/common/draw.js";

const MOST = 12; // numbers of a result that are shown

/** The answer of a run: the input, the results of each stage beside each other, and whether they agree. */
export function showRun(place, { inputs, stages }) {
  const ready = stages.filter(({ state }) => state === "ready");
  const warming = stages.some(({ state }) => state === "warming");
  const all = ready.flatMap(({ results }) => results);
  const [worst] = [...all].sort((one, other) => other.apart / other.allowed - one.apart / one.allowed);
  const agree = all.every(({ apart, allowed }) => apart <= allowed);
  const words = !worst ? "The stages are being prepared …" : !agree ? `The stages differ by ${number(worst.apart, 2)}, where rounding explains ${number(worst.allowed, 2)}.` :
    `${ready.length} stages agree: ${worst.apart ? `at most ${number(worst.apart, 2)} from stage 2, where rounding explains ${number(worst.allowed, 2)}` : "their numbers are equal, bit for bit"}.`;
  replace(place("verdict"), words, warming && worst ? " The others are being prepared …" : "");
  const names = ready[0]?.results ?? [];
  replace(place("numbers"),
    html("div", { class: "inputs" }, inputs.map(({ name, shape, values }) => html("pre", { tabindex: 0, "aria-label": `Input ${name}` }, `${name} ${shape.length ? `(${shape.join(", ")})` : ""}\n${inRows(values, shape)}`))),
    html("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Results" }, html("table", {},
      html("thead", {}, html("tr", {}, html("th", { scope: "col" }, "Result"), stages.map(({ title }) => html("th", { scope: "col", class: "number" }, title)))),
      html("tbody", {}, names.flatMap((result, r) => rowsOf(result, stages.map((stage) => stage.results?.[r]))),
        html("tr", {}, html("th", { scope: "row" }, "this call took, on this machine"), stages.map((stage) => html("td", { class: "number" }, said(stage))))))));
}

function said({ state, why, seconds, emulated }) {
  if (state !== "ready") return state === "warming" ? "is being prepared …" : why;
  return `${seconds < 1e-3 ? `${number(1e6 * seconds)} µs` : `${number(1e3 * seconds)} ms`}${emulated ? ", emulated: no GPU's time" : ""}`;
}

/** A row for each number of a result. */
function rowsOf({ name, shape, values }, stages) {
  const shown = values.slice(0, MOST).map((_, i) => html("tr", {}, html("th", { scope: "row" }, `${name} ${place(i, shape)}`),
    stages.map((each) => html("td", { class: "number" }, each ? number(each.values[i], 8) : ""))));
  const rest = values.length - MOST;
  return rest > 0 ? [...shown, html("tr", {}, html("td", { colspan: 5, class: "quiet" }, `and ${rest} more of ${name || "it"}, compared as these are`))] : shown;
}

/** The index of the i-th number of an array, "(0, 2)". */
function place(i, shape) {
  if (!shape.length) return "";
  const index = [...shape].reverse().map((extent) => { const at = i % extent; i = Math.floor(i / extent); return at; });
  return `(${index.reverse().join(", ")})`;
}

function inRows(values, shape) {
  const across = shape.at(-1) ?? 1;
  const texts = values.map((each) => number(each, 4));
  const wide = Math.max(...texts.map((each) => each.length));
  return texts.map((each, i) => each.padStart(wide) + ((i + 1) % across ? " " : "\n")).join("").trimEnd();
}

/** The recorded times: bars of one case on one machine, each ten times as long a time a step further. */
export function showSpeeds(node, speeds) {
  const alone = speeds.some(({ bars }) => bars.some(({ stage }) => stage.startsWith("stage4")));
  replace(node, speeds.map(group),
    speeds.length ? null : html("p", {}, "No time of this function is recorded. ", html("code", {}, "groundup bench"), " measures the operations on your machine."),
    speeds.length && !alone ? html("p", {}, "Stage 4 is not among them: it was not measured on a GPU in this case, and emulated times say nothing about one.") : null);
}

function group({ title, case: what, file, bars }) {
  const source = html("p", { class: "quiet" }, `Recorded: ${title}. docs/benchmarks/${file}`);
  if (bars.length === 1) return html("div", {}, html("p", {}, `${bars[0].label} takes ${bars[0].time} for ${what}, on another machine, so it is no bar beside others.`), source);
  const times = bars.map(({ seconds }) => Math.log10(seconds));
  const from = Math.floor(Math.min(...times) - 0.1);
  const decades = Math.ceil(Math.max(...times)) - from;
  return html("figure", {}, html("figcaption", {}, `${what}. The shorter the faster; each line stands for ten times the time of the one before.`),
    html("ul", { class: "bars", style: { "--decade": "" } }, bars.map(({ label, stage, time, compared }, i) => html("li", {}, html("span", {}, label),
      html("span", { class: "track", style: { backgroundSize: `${100 / decades}% 100%` } }, html("span", { class: "bar", "data-floor": stage, style: { width: `${100 * (times[i] - from) / decades}%` } })),
      html("span", {}, html("b", {}, time), compared ? `, ${compared}` : "")))), source);
}
