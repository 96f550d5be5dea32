// The page Floors: one function on four stages, beside each other.

import { fail, get, post, say, settle } from "/static/common/api.js";
import { html, replace } from "/static/common/draw.js";
import { keys } from "/static/common/keys.js";
import { showColumns, showTabs } from "/static/floors/columns.js";
import { showRun, showSpeeds } from "/static/floors/numbers.js";

const LOOK = 300; // milliseconds between two looks at stages that are being prepared

const place = (id) => document.getElementById(id);
const wide = matchMedia("(min-width: 1000px)");
const state = { all: [], titles: [], at: null, seed: 0 }; // at: { room, name, rungs } of what is shown
let turn = 0; // the newest choice; an earlier answer comes too late

const guarded = (function_) => (...given) => function_(...given).catch(fail);
const options = (names, chosen) => names.map((name) => html("option", { value: name, selected: name === chosen }, name));

/** Show a function. rungs: of a ladder the rung of each stage, with commas between. */
const choose = guarded(async (room, name, rungs = "") => {
  const mine = ++turn;
  state.at = { room, name, rungs };
  if (place("ran").contains(document.activeElement)) place("run").focus({ preventScroll: true });
  place("ran").hidden = true; // of another function, or of a call that is under way
  place("room").value = room;
  replace(place("function"), options(state.all.filter((each) => each.room === room).map((each) => each.name), name));
  const shown = await get("/api/floors/function", { ...state.at, prepare: 1 });
  if (mine !== turn) return;
  settle();
  history.replaceState(null, "", `?${new URLSearchParams({ room, function: name, ...(rungs && { rungs }) })}`);
  replace(place("name"), `${name}.`);
  replace(place("sentence"), shown.sentence);
  showColumns(place("columns"), shown, state.titles, (k, rung) => {
    choose(room, name, shown.stages.map((each, i) => (i === k ? rung : each.rung)).join(",")).then(() => place(`column-${k}`).querySelector("select")?.focus());
  });
  fit();
  showSpeeds(place("speeds"), shown.speeds);
  say(`${name} on four stages`);
});

const fit = () => showTabs(place("tabs"), place("columns"), state.titles, wide.matches, Number(place("columns").dataset.tab ?? 0));

/** Go on by so many functions, from the last to the first. */
function step(by) {
  const at = state.all.findIndex(({ room, name }) => room === state.at.room && name === state.at.name);
  const { room, name } = state.all[(at + by + state.all.length) % state.all.length];
  choose(room, name);
}

/** Call the function on all stages, and again until the last is prepared. */
const run = guarded(async (seed) => {
  const mine = turn;
  state.seed = seed;
  const newest = () => mine === turn && seed === state.seed;
  const found = await post("/api/floors/run", { ...state.at, seed });
  if (!newest()) return;
  settle();
  place("ran").hidden = false;
  showRun(place, found);
  if (found.stages.some((each) => each.state === "warming")) setTimeout(() => newest() && run(seed), LOOK);
});

async function begin() {
  const { rooms, stages } = await get("/api/floors/rooms");
  state.titles = stages.map((title) => title[0].toUpperCase() + title.slice(1));
  state.all = Object.entries(rooms).flatMap(([room, names]) => names.map((name) => ({ room, name })));
  replace(place("room"), options(Object.keys(rooms)));
  place("room").onchange = (event) => choose(event.target.value, rooms[event.target.value][0]);
  place("function").onchange = (event) => choose(state.at.room, event.target.value);
  place("previous").onclick = () => step(-1);
  place("next").onclick = () => step(1);
  place("run").onclick = () => run(state.seed);
  place("other").onclick = () => run(state.seed + 1);
  keys(document, { ArrowLeft: () => step(-1), ArrowRight: () => step(1) });
  wide.addEventListener("change", fit);
  const asked = new URLSearchParams(location.search);
  const room = Object.hasOwn(rooms, asked.get("room")) ? asked.get("room") : "activations";
  const named = rooms[room].find((name) => name === asked.get("function"));
  choose(room, named ?? (room === "activations" ? "softmax" : rooms[room][0]), asked.get("rungs") ?? "");
}

begin().catch(fail);
