// The list of runs: which are there, how they are doing, which are drawn.

import { number } from "/static/common/draw.js";
import { html, svg } from "/static/common/draw.js";
import { clock, percent } from "/static/runs/numbers.js";

const STATES = { running: "running", done: "done", stopped: "stopped", unknown: "not known" };

/** The runs that a search leaves, in an order. */
export function chosen(runs, find, order) {
  const words = find.toLowerCase().split(/\s+/).filter(Boolean);
  const text = (run) => `${run.name} ${run.stage_title} ${run.network} ${run.dataset} ${run.state} ${run.note}`.toLowerCase();
  const left = runs.filter((run) => words.every((word) => fits(run, word) ?? text(run).includes(word)));
  const key = {
    changed: (run) => -run.changed,
    name: (run) => run.name.toLowerCase(),
    accuracy: (run) => -(run.accuracy?.value ?? -1),
    loss: (run) => run.train_loss ?? Infinity,
  }[order] ?? bySetting(left, order.slice(8));
  return left.sort((one, other) => (key(one) < key(other) ? -1 : key(one) > key(other) ? 1 : 0));
}

/** Whether a run has the setting of a word such as "optimizer=adam" or "learning_rate<0.1"; undefined for another word. */
function fits(run, word) {
  const [, name, sign, wanted] = word.match(/^([a-z_0-9]+)(<=|>=|=|<|>)(.+)$/) ?? [];
  const has = run.settings[name]?.toLowerCase();
  if (!name) return undefined;
  if (has === undefined) return false;
  const [one, other] = [Number(has), Number(wanted)];
  if (sign === "=") return has === wanted || one === other;
  return { "<": one < other, ">": one > other, "<=": one <= other, ">=": one >= other }[sign];
}

/** What runs are sorted by for a setting: numbers where all are, so that 8 stands before 16; runs without it come last. */
function bySetting(runs, name) {
  const numbers = runs.every((run) => !Number.isNaN(Number(run.settings[name] ?? 0)));
  return (run) => (numbers ? Number(run.settings[name] ?? Infinity) : run.settings[name] ?? "\uffff");
}

/**
 * The table. setting: a name whose values stand in a column of their own, or null; shown: a Map from codes to looks of those that are drawn; selected: the code of the one with the details;
 * ontoggle(code, on) and onselect(code) are called for the reader's choice.
 */
export function table(runs, { setting, shown, selected, ontoggle, onselect }) {
  const head = ["Drawn", "Run", "State", "Stage", "Network", "Data", "Epochs", "Accuracy", "Loss now", "Time", ...(setting ? [setting.replaceAll("_", " ")] : [])];
  return html("table", {}, html("thead", {}, html("tr", {}, head.map((each) => html("th", { scope: "col" }, each)))),
    html("tbody", {}, runs.map((run) => row(run, shown.get(run.code), run.code === selected, setting, ontoggle, onselect))));
}

function row(run, look, selected, setting, ontoggle, onselect) {
  const box = html("input", {
    type: "checkbox", checked: Boolean(look), "aria-label": `draw ${run.name}`, id: `draw-${run.code}`,
    onchange: (event) => ontoggle(run.code, event.target.checked),
  });
  const name = html("button", { id: `select-${run.code}`, onclick: () => onselect(run.code) }, run.name);
  return html("tr", { "aria-current": selected ? "true" : null },
    html("td", {}, html("label", { class: "check" }, box, look ? sample(look) : null)),
    html("td", { class: "name" }, name, run.trouble.length ? html("span", { class: "bad" }, " damaged") : null, run.note ? html("span", { class: "quiet note" }, run.note) : null),
    html("td", {}, state(run)), html("td", {}, run.stage_title), html("td", {}, run.network), html("td", {}, run.dataset || "–"),
    html("td", {}, epochs(run)),
    html("td", {}, run.accuracy ? `${percent(run.accuracy.value)} ${run.accuracy.part}` : "–"),
    html("td", { class: "number", title: nowTitle(run) }, run.train_loss === null ? "–" : number(run.train_loss, 4)),
    html("td", {}, time(run)), setting ? html("td", {}, run.settings[setting] ?? "–") : null);
}

/** Which training loss stands in the list: not that of an epoch, by which the best one is chosen. */
export const nowTitle = (run) => (run.train_loss_of ? `training loss, the mean of ${run.train_loss_of}` : null);

/** The runs that are drawn, with their lines: what stays in sight while the charts are read. */
export function legend(runs, looks) {
  return runs.map((run, at) => html("span", {}, sample(looks[at]), run.name));
}

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
