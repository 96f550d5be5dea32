// The page Kernel: opens a kernel and walks through it. In an exported file the walk comes with the file.

import { fail, get, listen, post, say, settle } from "/static/common/api.js";
import { html, oncolours, replace } from "/static/common/draw.js";
import { embedded } from "/static/common/embedded.js";
import { keys } from "/static/common/keys.js";
import { arrayPictures } from "/static/kernel/arrays.js";
import { Chooser } from "/static/kernel/chooser.js";
import { mapPictures } from "/static/kernel/maps.js";
import { racePanel } from "/static/kernel/race.js";
import { plural, requestPictures, shown } from "/static/kernel/requests.js";
import { Source } from "/static/kernel/source.js";
import { variablesTable } from "/static/kernel/variables.js";
import { WARP, Walk, elementName } from "/static/kernel/walk.js";

const $ = (name) => document.getElementById(name);
const KEPT = "groundup-kernel";
const carried = embedded();
const source = new Source($("source"), toggleBarrier);
let session = null;
let walk = null; // the one that is shown
let right = null; // the walk with all barriers, while a race is shown
let race = null;
let step = 0;
let thread = 0;
let asked = 0; // of the latest question: an older answer is not shown
let playing = null; // the timer that goes on by itself
let opened = null; // the target of the walk that is shown
let opening = false; // while another kernel is opened nothing of it is known, and nothing more is asked about the last

if (carried) {
  document.body.classList.add("carried");
  document.querySelector("h1").className = "hidden";
  document.querySelectorAll(".walkthrough > div").forEach((each) => { each.tabIndex = 0; });
  $("chooser").hidden = true;
  show(carried, carried.title);
  if (carried.race) {
    right = walk;
    showRace(carried.race);
  }
} else {
  begin().catch(fail);
}

async function begin() {
  const chooser = new Chooser(open);
  const offered = get("/api/kernel/choices").then((choices) => chooser.offer(choices));
  const begun = await post("/api/kernel/begin");
  ({ session } = begun);
  listen(`/api/kernel/watch?session=${encodeURIComponent(session)}`, () => {});
  if (begun.first === null) await offered;
  const kept = JSON.parse(sessionStorage.getItem(KEPT)); // of this tab, before it was loaded again
  const walked = open(kept?.target ?? begun.first ?? chooser.target());
  await offered;
  if (kept) chooser.take(kept.target);
  if (await walked && kept) await goBack(kept);
}

/** Go back to where the reader was before the page was loaded again. */
async function goBack({ block, warp, barriers, at, who }) {
  if (block || warp) await other(block, warp, who);
  if (barriers.length) await toggleBarrier(barriers[0]);
  thread = who;
  step = Math.min(at, walk.length - 1);
  draw();
}

function keep() {
  const kept = { target: opened, block: walk.data.number, warp: walk.data.warp, barriers: race?.barriers ?? [], at: step, who: thread };
  if (opened) sessionStorage.setItem(KEPT, JSON.stringify(kept));
}

async function open(target) {
  $("waiting").textContent = `Walking through ${target.name ?? target.kernel ?? target.id} …`;
  const mine = ++asked;
  hide(true);
  try {
    const answer = await post("/api/kernel/open", { session, target });
    if (mine !== asked) return;
    settle();
    opened = target;
    replace($("found"), printed(answer.printed));
    hide(false);
    show(answer, null);
    $("waiting").textContent = "";
    askVerdicts(target);
    return true;
  } catch (error) {
    if (mine === asked) {
      $("waiting").textContent = "";
      hide(false);
    }
    fail(error);
  }
  return false;
}

/** Hide the walk of the kernel before this one, or show it again. */
function hide(now) {
  opening = now;
  for (const id of ["walk", "further"]) $(id).hidden = now || walk === null || (id === "further" && carried !== null);
}

function show(answer, title) {
  race = right = null;
  step = thread = 0;
  const { about } = answer;
  $("title").textContent = title ?? about.name;
  $("about").textContent = `${about.name}: ${about.grid.join(" × ")} blocks of ${about.block.join(" × ")} threads; ${about.arguments.map(([name, given]) => `${name} is ${given}`).join(", ")}`;
  source.note([]);
  take(new Walk(answer.walk));
  thread = walk.first;
  $("walk").hidden = false;
  $("further").hidden = carried !== null;
  draw();
}

/** Show a walk: its source, slider and controls. */
function take(another) {
  walk = another;
  step = Math.min(step, walk.length - 1);
  const [x, y, z] = walk.data.grid;
  $("slider").max = walk.length - 1;
  $("block-number").max = x * y * z - 1;
  $("thread-number").max = walk.threads - 1;
  $("block-number").disabled = carried !== null || race !== null;
  source.draw((right ?? walk).data, race?.found ? race.barriers : [], (number) => carried === null || (carried.race?.barriers.includes(number) ?? false));
  replace($("phases"), walk.barrierSteps().map((at) => stripe(at, "")), race?.found ? stripe(race.step, "wrong") : []);
  drawRace();
}

function stripe(at, kind) {
  return html("span", { class: kind, style: { left: `${(100 * at) / Math.max(1, walk.length - 1)}%` } });
}

async function askVerdicts(target) {
  try {
    const { verdicts } = await post("/api/kernel/verdicts", { session });
    if (target !== opened) return;
    source.note(verdicts.lines);
    $("found").prepend(html("h3", {}, "The lens"), verdicts.summary.length
      ? html("ul", {}, ...verdicts.summary.map(([level, text]) => html("li", { class: level === "error" ? "bad" : null }, text)))
      : html("p", {}, "Nothing to find fault with in the blocks that were traced."));
  } catch (error) {
    if (target === opened) $("found").prepend(html("p", {}, `The lens has no verdict: ${error.message}`));
  }
}

function printed(text) {
  return text ? [html("h3", {}, "Printed by the script"), html("pre", {}, text)] : [];
}

// ---- going on

function go(to) {
  const wanted = Math.max(0, Math.min(walk.length - 1, to));
  if (wanted === step) return;
  step = wanted;
  draw();
  say(`Step ${step + 1}, line ${walk.at(step).line}`);
}

/** Select a thread; one of another warp needs the walk of that warp. */
async function select(number) {
  const wanted = Math.max(0, Math.min(walk.threads - 1, number));
  const warp = Math.floor(wanted / WARP);
  if (warp === walk.data.warp) {
    thread = wanted;
    draw();
  } else if (carried || race) {
    thread = Math.max(walk.first, Math.min(walk.first + WARP - 1, walk.threads - 1, wanted));
    say(carried ? "This file has one warp." : "A race shows the warp that reads the wrong value.");
    draw();
  } else {
    await other(walk.data.number, warp, wanted);
  }
}

async function other(block, warp, wanted) {
  if (opening) return;
  const mine = ++asked;
  try {
    const answer = await post("/api/kernel/walk", { session, block, warp });
    if (mine !== asked) return;
    settle();
    thread = wanted;
    take(new Walk(answer.walk));
    draw();
  } catch (error) {
    fail(error);
    draw();
  }
}

async function toggleBarrier(number) {
  if (opening) return;
  const barriers = race?.barriers ?? [];
  if (barriers.includes(number)) {
    backToRight();
    return;
  }
  if (carried) {
    right ??= walk;
    showRace(carried.race);
    return;
  }
  const searching = "Looking for an order of the warps that gives a wrong number …";
  source.sign(number, searching);
  say(searching);
  const mine = ++asked;
  const data = (right ?? walk).data;
  try {
    const answer = await post("/api/kernel/race", { session, block: data.number, warp: data.warp, barriers: [number] });
    if (mine !== asked) return;
    settle();
    right ??= walk;
    showRace({ ...answer.race, barriers: [number] });
    regain($("race").querySelector("button"));
    $("race").scrollIntoView({ block: "center" });
  } catch (error) {
    source.sign(number, null);
    regain(source.button(number));
    fail(error);
  }
}

function showRace(found) {
  race = found;
  if (race.found) {
    thread = race.thread;
    step = race.step;
    take(new Walk(race.walk));
  } else {
    take(right);
  }
  draw();
  say(race.text);
}

/** Give the focus to a button, where the one that had it is gone or hidden. */
function regain(button) {
  if (document.activeElement === document.body || document.activeElement.closest("[hidden]")) button?.focus({ preventScroll: true });
}

function backToRight() {
  const [number] = race.barriers;
  race = null;
  const back = right ?? walk;
  right = null;
  thread = back.first;
  take(back);
  draw();
  regain(source.button(number));
  say("The barrier is back.");
}

function drawRace() {
  $("race").hidden = race === null;
  if (race === null) return;
  const held = [...$("race").querySelectorAll("button")].indexOf(document.activeElement);
  $("race").classList.toggle("none", !race.found);
  replace($("race"), racePanel(race, walk, (at, who) => { if (who !== null) thread = who; step = at; draw(); }, backToRight));
  $("race").querySelectorAll("button")[held]?.focus({ preventScroll: true });
}

// ---- drawing

function draw() {
  const at = walk.at(step);
  $("slider").value = step;
  $("slider").setAttribute("aria-valuetext", `step ${step + 1} of ${walk.length}, line ${at.line}`);
  $("block-number").value = walk.data.number;
  $("thread-number").value = thread;
  replace($("now"), sentence(at));
  source.mark(at);
  keep();
  const wrong = race?.found ? race.cell : null;
  replace($("variables"), html("h2", {}, "Variables"), variablesTable(walk, step, thread));
  replace($("requests"), html("h2", {}, `What warp ${walk.data.warp} asks for`), requestPictures(walk, step, thread));
  const arrays = arrayPictures(walk, step, thread, "shared");
  $("shared").hidden = arrays.length === 0;
  replace($("shared"), html("h2", {}, "Shared memory"), html("div", { class: "side" }, ...arrays));
  replace($("maps"), html("h2", {}, "Blocks and threads"), mapPictures(walk, step, thread,
    carried || race ? null : (number) => other(number, walk.data.warp, walk.first), (number) => { select(number); }));
  replace($("global"), html("h2", {}, "Global memory"),
    html("p", { class: "quiet" }, "Light blue: what the warp has touched so far; with a frame, in this step. Thick frame: this thread. A dot: what this thread computes."),
    html("div", { class: "side" }, ...arrayPictures(walk, step, thread, "global", wrong, (by) => { select(by); })));
}

function sentence(at) {
  const { data } = walk;
  const count = walk.count(step);
  const parts = [`Step ${step + 1} of ${walk.length}, line ${at.line}: ${count === walk.threads ? `all ${plural(count, "thread")}` : `${count} of ${plural(walk.threads, "thread")}`} of the block.`];
  if (!walk.takes(step, thread)) parts.push(`Thread ${walk.threadName(thread)} does not take this step.`);
  for (const access of walk.accesses(step)) {
    const own = access.lanes.indexOf(thread - walk.first);
    if (own >= 0) parts.push(`Thread ${walk.threadName(thread)} ${access.kind === "read" ? "reads" : "writes"} ${elementName(access.array, access.places[own])} = ${shown(access.values[own])}.`);
  }
  const waits = walk.steps[step].o ?? "";
  if (waits.startsWith("syncthreads")) parts.push("Here every thread waits until all of the block have come.");
  if (race?.found && step === race.step) {
    parts.push(`The read of ${elementName(data.arrays[race.element[0]], race.element[1])} should give ${shown(race.expected)}.`);
  }
  if (step === walk.length - 1 && data.fault) parts.push(`Here the walk ends with an error: ${data.fault}`);
  if (step === walk.length - 1 && data.cut) parts.push("The walk is cut here, because it is too long to be shown; choose a smaller size.");
  return parts.join(" ");
}

// ---- controls

/** Go on by itself, at the reader's speed, until the end; or stop. */
function play(on) {
  clearInterval(playing);
  playing = on ? setInterval(() => (step < walk.length - 1 && !opening ? go(step + 1) : play(false)), 1000 / Number($("speed").value)) : null;
  $("play").textContent = on ? "Pause" : "Play";
}

$("first").onclick = () => go(0);
$("back").onclick = () => go(step - 1);
$("next").onclick = () => go(step + 1);
$("access").onclick = () => go(walk.nextAccess(step));
$("play").onclick = () => play(playing === null);
$("speed").onchange = () => play(playing !== null);
$("barrier").onclick = () => go(walk.nextBarrier(step));
$("last").onclick = () => go(walk.length - 1);
$("slider").oninput = () => go(Number($("slider").value));
$("thread-number").onchange = () => select(Number($("thread-number").value));
$("block-number").onchange = () => other(Number($("block-number").value), walk.data.warp, walk.first);
keys(document, {
  ArrowRight: () => walk && go(step + 1),
  ArrowLeft: () => walk && go(step - 1),
  ArrowDown: () => walk && select(thread + 1),
  ArrowUp: () => walk && select(thread - 1),
  a: () => walk && go(walk.nextAccess(step)),
  p: () => walk && play(playing === null),
  b: () => walk && go(walk.nextBarrier(step)),
  Home: () => walk && go(0),
  End: () => walk && go(walk.length - 1),
});
oncolours(() => walk && draw());
