// The variables of the selected thread after a step, and their values in the whole warp.

import { html } from "/static/common/draw.js";
import { shown } from "/static/kernel/requests.js";

/** A table: name, value in the thread, values in the warp. */
export function variablesTable(walk, step, thread) {
  const lane = thread - walk.first;
  const variables = walk.variables(step, lane);
  if (variables.length === 0) return html("p", { class: "quiet" }, "This thread has no variables yet.");
  const rows = [];
  let depth = null;
  for (const variable of variables) {
    if (variable.depth !== depth) {
      ({ depth } = variable);
      rows.push(html("tr", {}, html("th", { colspan: 3, scope: "colgroup" }, ["in the kernel", "in the function that it calls"][depth] ?? `in a function ${depth} calls deep`)));
    }
    rows.push(html("tr", { class: variable.changed ? "changed" : null }, html("th", { scope: "row" }, html("code", {}, variable.name)),
      html("td", {}, shown(variable.values.get(lane))), html("td", { class: "quiet" }, inWarp(variable.values))));
  }
  return html("table", {}, html("thead", {}, html("tr", {}, html("th", { scope: "col" }, "Variable"),
    html("th", { scope: "col" }, `Thread ${walk.threadName(thread)}`), html("th", { scope: "col" }, `Warp ${walk.data.warp}`))),
  html("tbody", {}, ...rows));
}

function inWarp(values) {
  const all = [...values.values()];
  if (all.every((each) => each === all[0])) return all.length > 1 ? "the same in all" : "";
  const numbers = all.filter((each) => typeof each === "number");
  if (numbers.length < all.length) return `${new Set(all).size} different`;
  return `${shown(Math.min(...numbers))} … ${shown(Math.max(...numbers))}`;
}
