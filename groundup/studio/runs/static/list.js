// The list of runs: which are there, how they are doing, which are drawn.

import { number } from "/static/common/draw.js";
import { html, svg } from "/static/common/draw.js";
import { clock, percent } from "/static/runs/numbers.js";

const STATES = { running: "running", done: "done", stopped: "stopped", unknown: "not known" };

/** The runs that a search leaves, in an order. */
export function chosen(runs, find, order) {
  const words = find.toLowerCase().split(/\s+/).filter(Boolean);
  const text = (run) => `${run.name} ${run.stage_title} ${run.network} ${run.dataset} ${run.state}`.toLowerCase();
  const left = runs.filter((run) => words.every((word) => text(run).includes(word)));
  const key = {
    changed: (run) => -run.changed,
    name: (run) => run.name.toLowerCase(),
    accuracy: (run) => -(run.accuracy?.value ?? -1),
    loss: (run) => run.train_loss ?? Infinity,
  }[order];
  return left.sort((one, other) => (key(one) < key(other) ? -1 : key(one) > key(other) ? 1 : 0));
}

/**
 * The table. shown: a Map from codes to looks of those that are drawn; selected: the code of the one with the details;
 * ontoggle(code, on) and onselect(code) are called for the reader's choice.
 */
export function table(runs, { shown, selected, ontoggle, onselect }) {
  const head = ["Drawn", "Run", "State", "Stage", "Network", "Data", "Epochs", "Accuracy", "Loss now", "Time"];
  return html("table", {}, html("thead", {}, html("tr", {}, head.map((each) => html("th", { scope: "col" }, each)))),
    html("tbody", {}, runs.map((run) => row(run, shown.get(run.code), run.code === selected, ontoggle, onselect))));
}

function row(run, look, selected, ontoggle, onselect) {
  const box = html("input", {
    type: "checkbox", checked: Boolean(look), "aria-label": `draw ${run.name}`, id: `draw-${run.code}`,
    onchange: (event) => ontoggle(run.code, event.target.checked),
  });
  const name = html("button", { id: `select-${run.code}`, onclick: () => onselect(run.code) }, run.name);
  return html("tr", { "aria-current": selected ? "true" : null },
    html("td", {}, html("label", { class: "check" }, box, look ? sample(look) : null)),
    html("td", { class: "name" }, name, run.trouble.length ? html("span", { class: "bad" }, " damaged") : null),
    html("td", {}, state(run)), html("td", {}, run.stage_title), html("td", {}, run.network), html("td", {}, run.dataset || "–"),
    html("td", {}, epochs(run)),
    html("td", {}, run.accuracy ? `${percent(run.accuracy.value)} ${run.accuracy.part}` : "–"),
    html("td", { class: "number", title: nowTitle(run) }, run.train_loss === null ? "–" : number(run.train_loss, 4)),
    html("td", {}, time(run)));
}

/** Which training loss stands in the list: not that of an epoch, by which the best one is chosen. */
export const nowTitle = (run) => (run.train_loss_of ? `training loss, the mean of ${run.train_loss_of}` : null);

/** A piece of the run's line, so that the list is the charts' legend, too. */
function sample({ colour, dash }) {
  const dashes = { solid: null, dash: "7 4", dot: "2 3", dashdot: "7 3 2 3" }[dash];
  return svg("svg", { width: 30, height: 12, "aria-hidden": "true" },
    svg("line", { x1: 0, y1: 6, x2: 30, y2: 6, "stroke-width": 3, "stroke-dasharray": dashes, style: { stroke: `var(--${colour})` } }));
}

function state(run) {
  return html("span", { class: run.state === "running" ? "good running" : run.state === "stopped" ? "bad" : null,
    title: run.reason || null }, STATES[run.state]);
}

function epochs(run) {
  const text = run.epochs === null ? `${run.epochs_done}` : `${run.epochs_done} of ${run.epochs}`;
  if (run.state !== "running" || !run.steps) return text;
  const share = Math.min(1, (run.steps_done ?? 0) / run.steps);
  return [html("progress", { value: share, max: 1, "aria-label": `${Math.round(100 * share)} % of the steps` }), ` ${text}`];
}

function time(run) {
  if (run.state === "running" && run.left !== null) return `${clock(run.left)} left`;
  return run.seconds ? clock(run.seconds) : "–";
}
