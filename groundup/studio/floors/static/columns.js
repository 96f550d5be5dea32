// The four columns of a function: one below the other in the document, their lines at the same heights.

import { html, replace } from "/static/common/draw.js";
import { part, row } from "/static/floors/code.js";

const SIGNS = { new: ["+", "new"], changed: ["~", "changed"], gone: ["−", "gone"] };
const FROM = { Python: "in Python", C: "in C", kernel: "as a CUDA kernel" };

/** Draw the columns. chosen: called with a stage and a rung; tab: the stage that is shown where there are tabs. */
export function showColumns(node, { stages, rows }, titles, chosen) {
  const height = 4 + rows.work.length + rows.calls.length;
  replace(node, stages.map((stage, k) => html("section", { class: "cell", id: `column-${k}`, "data-floor": stage.name, "aria-label": titles[k], style: { gridRow: `span ${height}` } },
    html("div", {}, html("h3", {}, titles[k]), stage.rungs.length ? rungs(stage, titles[k], chosen) : null),
    ...block(stage, k, "work", rows.work), ...block(stage, k, "calls", rows.calls),
    html("div", {}, stage.parts.filter((_, i) => i !== stage.work && i !== stage.calls).map(part)))));
}

/** The tabs, of which the arrow keys choose another. */
export function showTabs(node, columns, titles, wide, at) {
  node.hidden = wide;
  const select = (k, focus) => {
    showTabs(node, columns, titles, wide, k);
    if (focus) node.children[k].focus();
  };
  replace(node, titles.map((title, k) => html("button", { type: "button", role: "tab", id: `tab-${k}`, "aria-selected": String(k === at), "aria-controls": `column-${k}`, tabindex: k === at ? 0 : -1, onclick: () => select(k) }, title)));
  node.onkeydown = (event) => {
    const to = { ArrowRight: (at + 1) % titles.length, ArrowLeft: (at + titles.length - 1) % titles.length, Home: 0, End: titles.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    select(to, true);
  };
  [...columns.children].forEach((column, k) => {
    column.hidden = !wide && k !== at;
    if (wide) column.removeAttribute("role");
    else column.setAttribute("role", "tabpanel");
  });
  columns.dataset.tab = String(at);
}

function rungs({ rungs: all, rung, name }, title, chosen) {
  return html("label", { class: "field" }, "Rung, slowest first", html("select", { "aria-label": `Rung of ${title}`, onchange: (event) => chosen(name, event.target.value) },
    all.map((each) => html("option", { value: each, selected: each === rung }, each))));
}

/** A text with its head, or what stands in its place. */
function block(stage, k, role, rows) {
  const text = stage.parts[stage[role]];
  const others = rows.length > 0;
  if (!text) return [html("p", { class: "quiet head" }, role === "work" ? "This stage has one way only." : others ? "What stands above is called itself." : ""), ...rows.map((each) => line(each[k], null))];
  const says = role === "calls" ? `${text.name}, in Python, is what you call. It leads to what stands above.` : `${text.name}, ${FROM[text.language]}, does the work.`;
  const lines = text.said.map((i) => text.lines[i]);
  return [html("div", { class: "head" }, html("p", {}, says), html("p", { class: "quiet" }, text.place),
    lines.length ? html("details", {}, html("summary", {}, text.language === "C" ? "Its comment" : "Its docstring"), html("code", {}, lines.map((each) => row(each)))) : null),
  ...rows.map((each) => line(each[k], text))];
}

/** The cell of a row: a line, or several of a declaration, and how it differs from the stage before. */
function line([numbers, change], text) {
  const [sign, word] = SIGNS[change] ?? [" ", ""];
  return html("code", { class: `row-${change || "same"}${numbers.length ? "" : " gap"}` }, html("span", { class: "sign", role: word ? "img" : null, "aria-label": word || null }, sign),
    html("span", {}, numbers.map((i) => row(text.lines[i]))));
}
