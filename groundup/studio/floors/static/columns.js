// The four columns of a function: one below the other in the document, their lines at the same heights.

import { html, replace } from "/static/common/draw.js";
import { part, row } from "/static/floors/code.js";

const SIGNS = { new: "+", changed: "~", gone: "−" };
const WORK = { Python: " in Python", C: " in C", kernel: " as a CUDA kernel" };

/** Draw the columns. titles: of the stages; chosen: called with the number of a stage and a rung. */
export function showColumns(node, { stages, rows }, titles, chosen) {
  const height = 4 + rows.work.length + rows.calls.length;
  replace(node, stages.map((stage, k) => html("section", { class: "cell", id: `column-${k}`, "data-floor": stage.name, "aria-label": titles[k], style: { gridRow: `span ${height}` } },
    html("div", {}, html("h3", {}, titles[k]), stage.rungs.length ? rungs(stage, k, titles[k], chosen) : null),
    block(stage, k, "work", rows.work), block(stage, k, "calls", rows.calls),
    html("div", {}, stage.parts.filter((_, i) => i !== stage.work && i !== stage.calls).map(part)))));
}

/** One column after the other: tabs, of which the arrow keys choose another. wide: all columns, without tabs. */
export function showTabs(node, columns, titles, wide, at) {
  const select = (k) => { showTabs(node, columns, titles, wide, k); node.children[k].focus(); };
  node.hidden = wide;
  replace(node, titles.map((title, k) => html("button", { type: "button", role: "tab", "aria-selected": String(k === at), "aria-controls": `column-${k}`, tabindex: k === at ? 0 : -1, onclick: () => select(k) }, title)));
  node.onkeydown = (event) => {
    const last = titles.length - 1;
    const to = { ArrowRight: at === last ? 0 : at + 1, ArrowLeft: at === 0 ? last : at - 1, Home: 0, End: last }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    select(to);
  };
  columns.dataset.tab = String(at);
  for (const [k, column] of [...columns.children].entries()) {
    column.hidden = !wide && k !== at;
    column.setAttribute("role", wide ? "region" : "tabpanel");
  }
}

function rungs({ rungs: all, rung }, k, title, chosen) {
  return html("label", { class: "field" }, "Rung, slowest first", html("select", { "aria-label": `Rung of ${title}`, onchange: (event) => chosen(k, event.target.value) },
    all.map((each) => html("option", { value: each, selected: each === rung }, each))));
}

/** What does the work, or what calls that: its head, and its lines, which are as many as in the other columns. */
function block(stage, k, role, rows) {
  const text = stage.parts[stage[role]];
  if (!text) return [html("p", { class: "head quiet" }, rows.length ? "This is the function that you call." : ""), rows.map(() => html("code", { class: "gap" }))];
  const says = role === "work" ? ["The work: ", WORK[text.language]] : ["You call ", ", which leads to what stands above"];
  const explained = html("details", {}, html("summary", {}, text.language === "C" ? "Its comment" : "Its docstring"), html("code", {}, text.said.map((i) => row(text.lines[i]))));
  return [html("div", { class: "head" }, html("p", {}, says[0], html("b", {}, text.name), says[1]), html("p", { class: "quiet" }, text.place), text.said.length ? explained : null),
    rows.map((each) => line(...each[k], text))];
}

/** A line, or several of a declaration, with how it differs from the stage before. */
function line(numbers, change, text) {
  const sign = SIGNS[change] ? html("span", { class: "sign", role: "img", "aria-label": change }, SIGNS[change]) : html("span", {});
  return html("code", { class: `${change || "same"} ${numbers.length ? "" : "gap"}` }, sign, html("span", {}, numbers.map((i, at) => row(text.lines[i], at ? 8 : 24))));
}
