// Race: what the reader does goes to the race, in the studio or replayed (replay.js); its states go to the lanes (lanes.js).

import { fail, listen, post, settle } from "/static/common/api.js";
import { html, number, reducedMotion, replace } from "/static/common/draw.js";
import { embedded } from "/static/common/embedded.js";
import { centred } from "/static/digits/centre.js";
import { makePad } from "/static/digits/pad.js";
import { inkTile } from "/static/digits/tiles.js";
import { makeLane } from "/static/race/lanes.js";
import { replay } from "/static/race/replay.js";

const FIRST = 0; // the digit that is read at first
const CALM = 500, WORDS = 150; // milliseconds between two pictures for a reader who asked for less motion, and between two texts
const HOW = "All four train on this machine, in turn and for the same seconds each: a clock runs only while its own stage computes, so equal clocks make a fair race. NumPy takes the test of 1,000 images, off the clock. A line across the tracks: there all lanes were compared.";
const ENDED = "The studio has ended this race, because it ends itself or because this tab was not reachable for a while. Load the page again to begin a new one.";

const place = (id) => document.getElementById(id);
const carried = embedded();
let source, lanes, state, wanted;
let [told, painted, reading] = [0, 0, false];

/** The race in the studio; replay.js has the same without one. */
async function onServer() {
  const { session, ...about } = await post("/api/race/open");
  const does = (name) => (body = {}) => post(`/api/race/${name}`, { session, ...body });
  listen(`/api/race/watch?session=${encodeURIComponent(session)}`, receive, () => fail(ENDED));
  return { ...about, how: HOW, run: does("run"), pause: does("pause"), begin: does("begin"), draw: (pixels) => does("draw")({ pixels: pixels && [...pixels] }) };
}

/** Have all lanes read these pixels. While they do, only the newest drawing waits. */
async function read(pixels) {
  wanted = pixels;
  [...place("samples").children].forEach((button, i) => button.setAttribute("aria-pressed", String(source.samples[i] === pixels)));
  replace(place("read"), pixels && ["They read", inkTile(pixels, "What all four read")]);
  if (reading) return;
  for (reading = true; wanted !== undefined;) {
    const [began, newest] = [performance.now(), wanted];
    wanted = undefined;
    await act(() => source.draw(newest));
    document.body.dataset.answered = String(Math.round(10 * (performance.now() - began)) / 10);
  }
  reading = false;
}

/** Do something, and take the state that it answers with. */
const act = (doing) => doing().then((next) => { receive(next); settle(); }).catch(fail);

function receive(next) {
  if (next.error) return fail(next.error);
  state = next;
  lanes.forEach((lane, i) => lane.know(state.lanes[i], performance.now()));
}

function frame() {
  const now = performance.now();
  const [side, marks] = [Math.min(...lanes.map((lane) => lane.cell())), state.agreed.map(({ seen }) => seen).filter((seen) => seen <= source.lap)];
  if (lanes.filter((lane) => lane.paint(now, side, marks)).length) document.body.dataset.painted = String(++painted);
  if (now - told > WORDS) {
    told = now;
    lanes.forEach((lane) => lane.tell(state.lanes[0]));
    showWords();
  }
  if (reducedMotion()) setTimeout(frame, CALM);
  else requestAnimationFrame(frame);
}

function showWords() {
  const say = (id, text) => { if (place(id).textContent !== text) place(id).textContent = text; };
  const waits = state.lanes.filter(({ ready, why }) => !ready && !why).map(({ title }) => title);
  const [slowest, ...others] = state.lanes.filter(({ ready, emulated }) => ready && !emulated).sort((a, b) => a.seen - b.seen);
  const laps = others.reverse().map(({ title, seen }) => `${title} ran ${number(Math.floor(seen / source.lap), 9)}`).join(" and ");
  say("run", state.running ? "Pause" : slowest?.seen && !state.finished ? "Go on" : "Start");
  [place("run").disabled, place("begin").disabled] = [state.finished, !slowest?.seen];
  const held = state.running ? " The race begins when all are ready; compiling may take a minute." : "";
  say("news", waits.length ? `${waits.join(", ")}: being prepared …${held}` : state.finished ? `While ${slowest.title} ran one lap, ${laps}.` : "");
  const { seen, losses, apart } = state.agreed.at(-1) ?? {};
  const how = losses ? `the loss of every lane was ${[...new Set(losses.map((each) => each.toFixed(12)))].join(" or ")}, and no weight of two lanes differed by more than` :
    "of the recorded race the weights of all lanes were the same but for rounding: the worst was off by";
  say("agreed", seen ? `After ${number(seen, 9)} images ${how} ${number(apart, 2)}.` : "");
}

async function begin() {
  document.body.classList.toggle("carried", carried !== null);
  source = carried ? replay(carried, receive) : await onServer();
  lanes = source.state.lanes.map((lane) => makeLane(source.lap, lane));
  replace(place("lanes"), lanes.map(({ node }) => node));
  receive(source.state);
  const drawn = () => centred(pad.ink(), pad.size, [1, 28, 28])?.pixels ?? null;
  const pad = makePad(() => read(drawn()));
  place("pad").append(pad.node);
  pad.node.addEventListener("pointermove", ({ buttons }) => { if (buttons && !reading) read(drawn()); });
  place("clear").onclick = pad.clear;
  const sample = (pixels, digit) => html("button", { type: "button", "aria-label": `Take a ${digit}`, onclick: () => { pad.clear(); read(pixels); } }, inkTile(pixels));
  replace(place("samples"), source.samples.map(sample));
  replace(place("how"), `${source.how} A square is a finished lap of ${number(source.lap)} images; the race ends with the first one of the slowest.`);
  place("run").onclick = () => act(state.running ? source.pause : source.run);
  place("begin").onclick = () => act(source.begin);
  frame();
  await read(source.samples[FIRST]);
}

begin().catch(fail);
