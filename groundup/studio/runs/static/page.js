// The page Runs: which runs are drawn over each other, which one is looked into, and what changes while one is trained.

import { fail, get, listen, post, say, settle } from "/static/common/api.js";
import { showArchitecture } from "/static/common/architecture.js";
import { html, replace } from "/static/common/draw.js";
import * as curves from "/static/runs/curves.js";
import { differing, table as differences } from "/static/runs/differences.js";
import { epochTable, facts } from "/static/runs/facts.js";
import * as layers from "/static/runs/layers.js";
import { chosen, legend, table } from "/static/runs/list.js";
import * as matrix from "/static/runs/matrix.js";
import { looks } from "/static/runs/numbers.js";

const FIRST = 3; // runs that are drawn at first
const PAUSE = 1000; // milliseconds between two drawings of a run that is trained

const at = (id) => document.getElementById(id);
const LOOKS = "groundup-run-looks"; // in this browser: which run has which colour
const state = { kept: JSON.parse(localStorage.getItem(LOOKS) ?? "{}"), runs: [], drawn: [], selected: "", columns: new Map(), states: new Map() };

const run = (code) => state.runs.find((each) => each.code === code);

/** Ask for the list of runs. */
async function load() {
  const { runs, folders } = await get("/api/runs/list");
  state.runs = runs;
  at("shown").hidden = runs.length === 0;
  at("empty").hidden = runs.length > 0;
  replace(at("empty"), "There is no run yet in ", folders.map((each, i) => [i ? ", " : "", html("code", {}, each)]), ". ",
    html("code", {}, "groundup train numpy"), " makes one; it appears here as soon as it begins.");
  orders();
  for (const each of runs) {
    const before = state.states.get(each.code);
    if (before && before !== each.state) say(`${each.name}: ${each.state}`);
    state.states.set(each.code, each.state);
  }
  state.drawn = state.drawn.filter(run);
  if (!run(state.selected)) await select(wanted() ?? best()?.code ?? "", true);
}

/** The looks of these runs, which they keep; those of runs that are gone are free again. */
function lookOf(runs) {
  for (const code of Object.keys(state.kept)) if (!run(code)) delete state.kept[code];
  const found = looks(runs, state.kept);
  localStorage.setItem(LOOKS, JSON.stringify(state.kept));
  return found;
}

/** Offer each setting in which the runs differ as an order of the list. */
function orders() {
  const wanted = at("order").value;
  at("order").querySelectorAll("[value^=setting]").forEach((each) => each.remove());
  at("order").append(...differing(state.runs).map((name) => html("option", { value: `setting ${name}` }, `by ${name.replaceAll("_", " ")}`)));
  at("order").value = wanted;
  if (!at("order").value) at("order").value = "changed";
}

/** The run that the address names. */
function wanted() {
  return state.runs.find((each) => each.code === location.hash.slice(1))?.code;
}

/** The run to look into at first: the newest that runs, else the newest that can be read. */
function best() {
  const sound = state.runs.filter((each) => !each.trouble.length);
  return sound.find((each) => each.state === "running") ?? sound[0] ?? state.runs[0];
}

/** Look into a run. first: whether nothing was chosen before, so that the newest runs are drawn with it. */
async function select(code, first = false) {
  state.selected = code;
  if (!code) return;
  if (first && !state.drawn.length) state.drawn = state.runs.filter((each) => !each.trouble.length).slice(0, FIRST).map((each) => each.code);
  if (!state.drawn.includes(code)) state.drawn = [...state.drawn, code];
  history.replaceState(null, "", `#${code}`);
  at("run-title").textContent = run(code).name;
  [at("label-title").value, at("label-note").value] = [run(code).title, run(code).note];
  for (const id of ["facts", "epochs", "layers-note", "architecture", "histograms", "gradients-note"]) replace(at(id)); // of the run before
  get("/api/runs/architecture", { run: code }).then((drawn) => state.selected === code && showArchitecture(at("architecture"), drawn),
    (error) => state.selected === code && replace(at("architecture"), html("p", { class: "quiet" }, error.message)));
  spread(code).catch((error) => state.selected === code && replace(at("histograms"), html("p", { class: "quiet" }, error.message)));
  layers.clear();
  matrix.begin(at("mistakes"), run(code));
  await show();
}

/** Look into a run that the reader has chosen: it stands below the charts. */
async function onselect(code) {
  await select(code);
  at("run").scrollIntoView();
  at("run-title").focus({ preventScroll: true });
}

/** The histograms of the weights, and of the gradients, which have to be computed. */
async function spread(code) {
  const weights = await get("/api/runs/histograms", { run: code });
  if (state.selected === code) replace(at("histograms"), layers.histograms(weights));
  if (!weights.layers.length) return;
  const gradients = await get("/api/runs/gradients", { run: code });
  if (state.selected !== code) return;
  replace(at("gradients-note"), layers.howMade(gradients));
  replace(at("histograms"), layers.histograms(weights, gradients.layers));
}

async function toggle(code, on) {
  state.drawn = on ? [...state.drawn, code] : state.drawn.filter((each) => each !== code);
  await show();
}

/** Ask for the columns of the runs that are drawn. stale: codes of runs that have changed since. */
async function fetchColumns(stale = []) {
  const needed = new Set([...state.drawn, state.selected].filter(Boolean));
  for (const code of [...state.columns.keys()]) if (!needed.has(code) || stale.includes(code)) state.columns.delete(code);
  await Promise.all([...needed].filter((code) => !state.columns.has(code)).map(async (code) => {
    state.columns.set(code, await get("/api/runs/curves", { run: code }).catch((error) => ({ steps: {}, epochs: {}, trouble: [error.message] })));
  }));
}

let [due, drawing] = [null, false];

/** Bring the whole page up to date. stale: codes of runs whose columns have changed. One drawing waits for the other. */
async function show(stale = []) {
  due = [...(due ?? []), ...stale];
  if (drawing) return;
  drawing = true;
  try {
    while (due) {
      const now = due;
      due = null;
      await draw(now);
    }
    settle();
  } catch (error) {
    fail(error);
  } finally {
    drawing = false;
  }
}

async function draw(stale) {
  list();
  await fetchColumns(stale);
  words();
  const drawn = state.drawn.filter((code) => state.columns.has(code) && run(code));
  const differing = differences(drawn.map(run));
  at("differing").hidden = !differing;
  replace(at("differences"), differing);
  const styles = lookOf(drawn.map(run));
  replace(at("legend"), legend(drawn.map(run), styles));
  await curves.draw(drawn.map((code, i) => ({ run: run(code), columns: state.columns.get(code), look: styles[i] })), options());
  const [selected, columns] = [run(state.selected), state.columns.get(state.selected)];
  if (selected && columns) at("layers-note").textContent = await layers.draw(selected, columns, options());
}

function options() {
  const limit = (id) => (at(id).value === "" ? null : Number(at(id).value));
  return {
    axis: at("axis").value, from: limit("from"), to: limit("to"), smoothing: Number(at("smoothing").value), logarithm: at("logarithm").checked,
  };
}

/** The table of the runs. It is made anew, so the focus goes back to where it was. */
function list() {
  const focused = document.activeElement?.closest("#list") ? document.activeElement.id : "";
  const left = chosen(state.runs, at("find").value, at("order").value);
  const styles = lookOf(state.drawn.map(run));
  const shown = new Map(state.drawn.map((code, i) => [code, styles[i]]));
  replace(at("list"), table(left, { setting: at("order").value.split("setting ")[1] ?? null, shown, selected: state.selected, ontoggle: toggle, onselect }));
  if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
  const one = state.runs.length === 1 ? "1 run" : `${state.runs.length} runs`;
  replace(at("list-note"), left.length < state.runs.length ? `${left.length} of ${one}.` : `${one}.`,
    " The box draws a run over the others; its name leads to what is inside it, below the charts.");
}

/** What is known about the run that is looked into. */
function words() {
  const selected = run(state.selected);
  const columns = state.columns.get(state.selected);
  if (!selected || !columns) return;
  at("run-title").textContent = selected.name;
  const open = at("facts").querySelector("details")?.open;
  const focused = document.activeElement?.closest("#facts") ? document.activeElement.getAttribute("aria-label") : null;
  replace(at("facts"), facts(selected, [...new Set([...selected.trouble, ...columns.trouble])]));
  const details = at("facts").querySelector("details");
  if (details && open) details.open = true;
  if (focused) at("facts").querySelector(`[aria-label="${focused}"]`)?.focus({ preventScroll: true });
  replace(at("epochs"), epochTable(columns.epochs));
}

/** Follow the runs: ask again when something has changed, but not more often than once in a PAUSE. */
function follow() {
  let [changed, waiting, last] = [new Set(), null, 0];
  const again = async () => {
    last = Date.now();
    const stale = [...changed];
    changed = new Set();
    try {
      await load();
      if (stale.includes(state.selected)) matrix.outdated(run(state.selected));
      await show(stale);
    } catch (error) {
      fail(error);
    }
    waiting = changed.size ? setTimeout(again, PAUSE) : null;
  };
  const told = (news) => {
    news.changed.forEach((code) => changed.add(code));
    if (!(news.changed.length || news.all) || waiting !== null) return;
    waiting = setTimeout(again, Math.max(0, last + PAUSE - Date.now()));
  };
  // A browser has few connections to one server, so a tab that nobody sees does not hold one.
  let stream = null;
  const watch = () => {
    stream?.close();
    stream = document.hidden ? null : listen("/api/runs/watch", told);
  };
  watch();
  document.addEventListener("visibilitychange", () => {
    watch();
    if (!document.hidden) told({ changed: state.drawn, all: true });
  });
}

at("label").onsubmit = async (event) => {
  event.preventDefault();
  try {
    const labelled = await post("/api/runs/label", { run: state.selected, title: at("label-title").value.trim(), note: at("label-note").value.trim() });
    state.runs = state.runs.map((each) => (each.code === labelled.code ? labelled : each));
    say("The name and the note are kept in the run's folder, in label.json.");
    await show();
  } catch (error) {
    fail(error);
  }
};
for (const id of ["find", "order"]) at(id).addEventListener("input", list);
for (const id of ["axis", "from", "to", "smoothing", "logarithm"]) at(id).addEventListener("input", () => {
  at("smoothing-text").textContent = at("smoothing").value;
  if (id === "axis") at("from").value = at("to").value = "";
  show();
});
curves.places(at("curves"));
layers.places(at("layers"));
load().then(follow, fail);
