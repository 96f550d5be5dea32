// The page Floors: a room is chosen, and the functions of its floors stand side by side.

import { fail, get, say, settle } from "/static/common/api.js";
import { html, replace } from "/static/common/draw.js";
import { func } from "/static/floors/code.js";

const at = (id) => document.getElementById(id);
const narrow = matchMedia("(max-width: 48rem)");
const state = { floors: [], shown: new Set(), room: null };

/** The switches of the stages: on a narrow screen one at a time, else any of them. */
function switches() {
  replace(at("floors"), state.floors.map(({ name, title }) => html("button", {
    type: "button", "aria-pressed": String(state.shown.has(name)), onclick: () => choose(name), value: name,
  }, title)));
}

function choose(name) {
  if (narrow.matches) state.shown = new Set([name]);
  else if (state.shown.has(name) && state.shown.size > 1) state.shown.delete(name);
  else state.shown.add(name);
  for (const button of at("floors").children) button.setAttribute("aria-pressed", String(state.shown.has(button.value)));
  draw();
}

/** As many floors as the screen has room for. */
function fitted() {
  const names = state.floors.map((each) => each.name);
  state.shown = new Set(narrow.matches ? [names.find((name) => state.shown.has(name) && state.shown.size === 1) ?? names[0]] : names);
  switches();
  draw();
}

function draw() {
  if (!state.room) return;
  const floors = state.floors.filter((each) => state.shown.has(each.name));
  const style = { gridTemplateColumns: `repeat(${floors.length}, minmax(0, 1fr))` };
  replace(at("rows"), state.room.rows.map((row) => html("section", {}, html("h2", {}, row.title),
    html("div", { class: "floors", style }, ...floors.map((floor) => cell(floor, row.floors[floor.name]))))));
}

function cell(floor, { functions, folded, note }) {
  return html("div", { class: "cell", "data-floor": floor.name }, html("h3", {}, floor.title),
    note ? html("p", { class: "speed quiet" }, note) : null, functions.map((each) => func(each, folded)));
}

async function load(name) {
  try {
    state.room = await get("/api/floors/room", { name });
    settle();
  } catch (error) {
    fail(error);
    return;
  }
  replace(at("sentence"), state.room.sentence);
  history.replaceState(null, "", `?room=${encodeURIComponent(name)}`);
  draw();
  say(`${name}: ${state.room.rows.length} functions`);
}

async function begin() {
  const { rooms, floors, records } = await get("/api/floors/rooms");
  state.floors = floors;
  replace(at("room"), rooms.map(({ name }) => html("option", { value: name }, name)));
  const wanted = new URLSearchParams(location.search).get("room");
  at("room").value = rooms.some((each) => each.name === wanted) ? wanted : "matmul";
  replace(at("records"), html("h2", {}, "Where the speeds come from"),
    html("p", {}, "They were recorded on the machines below and came with the package; they are not of this machine. ",
      "Of stage 4 only a GPU's times are shown. ", html("code", {}, "groundup bench"), " measures your own."),
    html("ul", {}, ...records.map((each) => html("li", {}, `${each.title}: docs/benchmarks/${each.file}`))));
  fitted();
  await load(at("room").value);
}

at("room").addEventListener("change", () => load(at("room").value));
narrow.addEventListener("change", fitted);
begin().catch(fail);
