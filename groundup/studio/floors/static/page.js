// The page Floors: one function on four stages, beside each other.

import { fail, get, post, say, settle } from "/static/common/api.js";
import { html, replace } from "/static/common/draw.js";
import { keys } from "/static/common/keys.js";
import { showColumns, showTabs } from "/static/floors/columns.js";
import { showRun, showSpeeds } from "/static/floors/numbers.js";

const LOOK = 300; // milliseconds between two looks at stages that are being prepared

const place = (id) => document.getElementById(id);
const wide = matchMedia("(min-width: 1000px)");
const state = { all: [], titles: [], room: "", name: "", rungs: "", shown: null, seed: 0 };
let turn = 0; // the newest choice; an earlier answer comes too late

const guarded = (function_) => (...given) => function_(...given).catch(fail);

/** Show a function. rungs: of a ladder the rung of each stage, with commas between. */
const choose = guarded(async (room, name, rungs = "") => {
  const mine = ++turn;
  Object.assign(state, { room, name, rungs });
  place("room").value = room;
  replace(place("function"), state.all.filter((each) => each.room === room).map((each) => html("option", { value: each.name, selected: each.name === name }, each.name)));
  const shown = await get("/api/floors/function", { room, name, rungs, prepare: 1 });
  if (mine !== turn) return;
  state.shown = shown;
  settle();
  history.replaceState(null, "", `?${new URLSearchParams({ room, function: name, ...(rungs ? { rungs } : {}) })}`);
  replace(place("name"), `${name}.`);
  replace(place("sentence"), shown.sentence);
  place("ran").hidden = true;
  showColumns(place("columns"), shown, state.titles, rung);
  fit();
  showSpeeds(place("speeds"), shown.speeds);
  say(`${name} on four stages`);
});

function rung(stage, chosen) {
  choose(state.room, state.name, state.shown.stages.map((each) => (each.name === stage ? chosen : each.rung)).join(","))
    .then(() => document.querySelector(`[data-floor="${stage}"] select`).focus());
}

function fit() {
  showTabs(place("tabs"), place("columns"), state.titles, wide.matches, Number(place("columns").dataset.tab ?? 0));
}

/** Go on by so many functions, from the last to the first. */
function step(by) {
  const at = state.all.findIndex((each) => each.room === state.room && each.name === state.name);
  const next = state.all[(at + by + state.all.length) % state.all.length];
  choose(next.room, next.name);
}

/** Call the function on all stages, and again until the last is prepared. */
const run = guarded(async (seed) => {
  const mine = turn;
  state.seed = seed;
  const { room, name, rungs } = state;
  const began = performance.now();
  const found = await post("/api/floors/run", { room, name, rungs, seed });
  if (mine !== turn || seed !== state.seed) return;
  settle();
  place("ran").hidden = false;
  showRun(place, found);
  document.body.dataset.ran = String(Math.round(performance.now() - began));
  if (found.stages.some((each) => each.state === "warming")) setTimeout(() => { if (mine === turn && seed === state.seed) run(seed); }, LOOK);
});

async function begin() {
  const { rooms, stages } = await get("/api/floors/rooms");
  state.titles = stages.map(({ title }) => title[0].toUpperCase() + title.slice(1));
  state.all = Object.entries(rooms).flatMap(([room, names]) => names.map((name) => ({ room, name })));
  replace(place("room"), Object.keys(rooms).map((name) => html("option", { value: name }, name)));
  place("room").onchange = (event) => choose(event.target.value, rooms[event.target.value][0]);
  place("function").onchange = (event) => choose(state.room, event.target.value);
  place("previous").onclick = () => step(-1);
  place("next").onclick = () => step(1);
  place("run").onclick = () => run(state.seed);
  place("other").onclick = () => run(state.seed + 1);
  keys(document, { ArrowLeft: () => step(-1), ArrowRight: () => step(1) });
  wide.addEventListener("change", fit);
  const asked = new URLSearchParams(location.search);
  const [room, name] = [asked.get("room"), asked.get("function")];
  const known = rooms[room] ? room : "activations";
  await choose(known, rooms[known].includes(name) ? name : known === room ? rooms[known][0] : "softmax", asked.get("rungs") ?? "");
}

begin().catch(fail);
