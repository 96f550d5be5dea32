// The page Course: a task, its verdict at every save, and what helps with it.

import { fail, get, listen, post, say, settle } from "/static/common/api.js";
import { html, replace } from "/static/common/draw.js";
import { keys } from "/static/common/keys.js";
import { detective } from "/static/course/detective.js";
import { isCase, source, tasks } from "/static/course/lists.js";
import { checks, sentence, verdict } from "/static/course/verdict.js";

const at = (id) => document.getElementById(id);
const state = { session: null, task: "", week: 0, progress: null, last: null };

/** Show where the learner is. */
function list() {
  const { progress } = state;
  at("bar").max = progress.tasks;
  at("bar").value = progress.passed;
  at("count").textContent = `${progress.passed} of ${progress.tasks} tasks passed`;
  const open = new Set([...at("list").querySelectorAll(":scope > details[open] > summary")].map((each) => each.textContent[0]));
  const focused = document.activeElement?.closest("#list button")?.textContent;
  replace(at("list"), tasks(progress, state.task, (id) => choose(id).catch(fail)));
  for (const each of at("list").querySelectorAll(":scope > details")) if (open.has(each.textContent[0])) each.open = true;
  if (focused) [...at("list").querySelectorAll("button")].find((each) => each.textContent.slice(0, 4) === focused.slice(0, 4))?.focus();
}

/** Show a task's title, its week's page and its hints. */
async function open(id) {
  const task = await get("/api/course/task", id ? { task: id } : {});
  state.task = task.id;
  at("title").textContent = `${task.id} ${task.title}`;
  at("week").textContent = `Week ${task.week.number}: ${task.week.title} · ${task.week.hours[0]} to ${task.week.hours[1]} hours`;
  showPlace(task.place);
  replace(at("source"), source(task.source, 0));
  at("about").textContent = task.about;
  at("about-frame").hidden = !task.about;
  if (!task.text) at("about-frame").open = true; // there is no week's page to read instead
  hints(task.hints, task.last);
  replace(at("compared"));
  if (state.week !== task.week.number) {
    state.week = task.week.number;
    // The project's own page, in which markdown-it has made text of all markup.
    replace(at("text"), task.text ? [...new DOMParser().parseFromString(task.text, "text/html").body.childNodes]
      : html("p", {}, "The weeks' pages are in the book, which this installation does not have. The first lines of the file and of the function say what it has to do."));
  }
  detective(at("case"), task, answer);
  list();
}

function hints(found, last) {
  replace(at("hints"), found.map(({ level, name, text }) => html("div", {}, html("p", { class: "quiet" }, `Hint ${level} of ${last}: ${name}`), html("p", {}, text))));
  at("hint").disabled = found.length >= last;
}

/** Where the file is; the link opens it there in an editor that knows such addresses, as Visual Studio Code does. */
function showPlace(place) {
  at("place").textContent = place;
  at("edit").href = `vscode://file/${encodeURI(place.replaceAll("\\", "/").replace(/^\//, ""))}`;
}

const took = new Map(); // task: milliseconds of its last check
let ticking = null;

/** The verdict; while it is made, which checks have passed, and how long that has taken, beside the last time. */
function showVerdict(value) {
  if (ticking && value.checks) return replace(at("checks"), checks(value.checks));
  clearInterval(ticking);
  ticking = null;
  replace(at("verdict"), verdict(value));
  if (value.state !== "checking") return;
  const [task, began] = [state.task, Date.now()];
  const tick = () => {
    const [passed, last] = [Date.now() - began, took.get(task)];
    at("checking").textContent = `${Math.round(passed / 1000)} s${last ? ` of about ${Math.ceil(last / 1000)} s, as the last time` : ""}`;
    if (last) at("verdict").querySelector("progress").value = Math.min(1, passed / last);
  };
  tick();
  ticking = setInterval(tick, 250);
  state.ended = () => took.set(task, Date.now() - began);
}

/** A value of the watch: everything that is shown of the task now. */
function shown(value) {
  if (value.task !== state.task) return;
  state.progress = value.progress ?? state.progress;
  state.last = value;
  showPlace(value.place);
  replace(at("source"), source(value.source, value.verdict && !value.verdict.passed && !value.verdict.stub ? value.verdict.line : 0));
  showVerdict(value);
  if (value.state === "done") state.ended?.();
  at("verdict").setAttribute("aria-busy", String(value.state === "checking"));
  list();
  say(sentence(value));
}

async function choose(id) {
  if (id === state.task) return;
  showVerdict({ state: "checking" });
  await open(id);
  await post("/api/course/choose", { session: state.session, task: id });
  settle();
  history.replaceState(null, "", `?task=${encodeURIComponent(id)}`);
  at("title").scrollIntoView({ block: "nearest" });
}

/** The task after this one that has neither passed nor been skipped; after the last one the search begins again. */
function following() {
  const all = state.progress.phases.flatMap((phase) => phase.weeks.flatMap((week) => week.tasks)).filter((task) => !isCase(task.id));
  const place = all.findIndex((task) => task.id === state.task);
  const open = (task) => !task.state.startsWith("passed") && task.state !== "skipped" && task.id !== state.task;
  return [...all.slice(place + 1), ...all.slice(0, place + 1)].find(open)?.id;
}

async function next() {
  const id = state.last?.following ?? following();
  if (id) await choose(id);
  else say("Every other task has passed or was skipped.");
}

async function hint() {
  const taken = await post("/api/course/hint", { task: state.task });
  const task = await get("/api/course/task", { task: state.task });
  hints(task.hints, task.last);
  say(`Hint ${taken.level}, ${taken.name}: ${taken.text}`);
}

async function again() {
  showVerdict({ state: "checking" });
  await post("/api/course/again", { session: state.session });
}

async function skip() {
  const { following: id, progress } = await post("/api/course/skip", { task: state.task });
  state.progress = progress;
  if (id) await choose(id);
  else list();
}

/** The project's function beside the learner's; before a pass only for who asks for it twice. */
async function solution(reveal) {
  const found = await post("/api/course/solution", { task: state.task, reveal });
  if (!found.open) {
    replace(at("compared"), html("p", {}, "The task has not passed yet. A hint helps; or ",
      html("button", { type: "button", onclick: () => solution(true).catch(fail) }, "show the solution now"), ". It will be noted in your progress."));
    return;
  }
  const kind = { "+": "plus", "-": "minus" };
  replace(at("compared"), html("h3", {}, "The project's function, as the difference from yours"), found.lines.length
    ? html("pre", {}, ...found.lines.slice(3).map((line) => html("span", { class: kind[line[0]] }, line)))
    : html("p", {}, "Your function is the same as the project's, letter for letter."));
}

/** Judge where the fault of a detective exercise is said to be. */
async function answer(line, kind) {
  try {
    const found = await post("/api/course/answer", { task: state.task, line, kind });
    state.progress = found.progress;
    list();
    settle();
    return found;
  } catch (error) {
    fail(error);
    return null;
  }
}

async function begin(found) {
  at("none").hidden = Boolean(found.folder);
  at("course").hidden = !found.folder;
  if (!found.folder) {
    at("none-said").textContent = `${found.said.slice(0, 1).toUpperCase()}${found.said.slice(1)}.`;
    at("none-where").textContent = `The studio looks from ${found.where}.`;
    return;
  }
  state.progress = found.progress;
  if (matchMedia("(max-width: 62rem)").matches) at("list-frame").open = false;
  const wanted = new URLSearchParams(location.search).get("task");
  await open(wanted ?? found.progress.current);
  showVerdict({ state: "checking" });
  const { session } = await post("/api/course/watch", { task: state.task });
  state.session = session;
  listen(`/api/course/events?session=${encodeURIComponent(session)}`, shown, () => fail("This tab is watched no more. Load the page again."));
}

const actions = { hint, again, next, skip, solution: () => solution(false) };
for (const [id, action] of Object.entries(actions)) at(id).addEventListener("click", () => action().catch(fail));
at("start").addEventListener("click", () => post("/api/course/start").then(begin).catch(fail));
keys(document, { h: () => hint().catch(fail), c: () => again().catch(fail), n: () => next().catch(fail) });
get("/api/course/begin").then(begin).catch(fail);
