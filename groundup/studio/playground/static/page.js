/**
 * The playground: what the reader does goes to the trainer, and what the trainer hands out goes to the view.
 *
 * A trainer (server.js, or local.js on a page without a server) owns the training. At most one of its pictures is drawn
 * for each frame of the screen; when more come, the oldest are left out.
 */

import { fail, say, settle } from "/static/common/api.js";
import { oncolours, reducedMotion } from "/static/common/draw.js";
import { embedded } from "/static/common/embedded.js";
import { open as openLocal } from "/static/playground/local.js";
import { ownDataIn } from "/static/playground/owndata.js";
import { open as openServer } from "/static/playground/server.js";
import { DEFAULTS, fields, fromHash, toHash } from "/static/playground/settings.js";
import { view } from "/static/playground/view.js";

const PATIENCE = 700; // milliseconds without a picture after which the page says that it waits
const KEPT = 2; // pictures that wait at most: they come at an uneven pace, and every frame shall find one
const CALM = 500; // milliseconds between two pictures for a reader who asked for less motion

/** Call a function when the next picture may be drawn: at the screen's pace, or slowly for a reader who asked for less motion. */
const nextFrame = (drawn) => (reducedMotion() ? setTimeout(drawn, CALM) : requestAnimationFrame(drawn));

const part = (id) => document.getElementById(id);
const carried = embedded(); // what a page without a server was exported with, else null

let trainer = null;
let begun = null; // a promise: the trainer is there; what the reader does before that waits for it
let scene = null;
let ownPoints = [];
let ownNames = null;
const pending = []; // pictures that wait for a frame, the oldest first
let waiting = 0;
let running = false;
let changing = Promise.resolve();

const showFields = fields(part("settings"), (name, value) => change({ [name]: value }), carried === null);
const shown = view((layer, size) => change({ layers: scene.settings.layers.map((each, i) => (i === layer ? size : each)) }));

/** Do something with the trainer; an error becomes a sentence on the page. */
async function attempt(doing) {
  try {
    const result = await doing();
    settle();
    return result;
  } catch (error) {
    fail(error);
    if (scene) showFields(scene.settings);
    return null;
  }
}

async function begin() {
  const open = carried === null ? openServer : openLocal;
  const { settings, wrong } = fromHash(location.hash);
  const wanted = location.hash ? settings : { ...settings, ...carried?.settings };
  if (wanted.data === "own" || (carried && wanted.data === "digits")) {
    wrong.push(`data=${wanted.data}`);
    wanted.data = DEFAULTS.data;
  }
  if (carried) part("kept").textContent = "This page computes in your browser what the NumPy stage computes. Rate, batch, dropout and mistakes in a step change in the middle of a training; any other change starts again.";
  part("settings-box").open = matchMedia("(min-width: 62rem) and (min-height: 56rem)").matches; // open they leave the network no room in less
  trainer = await attempt(() => open(wanted, receive)) ?? await attempt(() => open(DEFAULTS, receive));
  if (!trainer) return;
  showScene(trainer.scene);
  if (wrong.length) fail(`The address names settings that are not possible here: ${wrong.join(", ")}. The usual ones took their place. A link does not carry points of one's own.`);
}

/** Change some settings; the training goes on or begins again, as the settings allow. One change at a time. */
function change(changed) {
  changing = changing.then(() => changeNow(changed));
  return changing;
}

async function changeNow(changed) {
  await begun;
  if (!scene) return;
  const settings = { ...scene.settings, ...changed };
  if (settings.data === "own") {
    if (!ownPoints.length) {
      part("own-box").open = true;
      part("own-box").scrollIntoView({ block: "nearest" });
      showFields(scene.settings);
      say("Draw or paste points of your own, then choose: Train on these points.");
      return;
    }
    settings.points = ownPoints;
  }
  const before = scene;
  const next = await attempt(() => trainer.change(settings));
  if (!next) return;
  showScene(next);
  const goesOn = next.picture.training === before.picture.training && next.picture.step > 0;
  say(goesOn ? `Goes on at step ${next.picture.step}, computed by ${next.picture.stage}.` : "The training is at its start.");
}

function showScene(next) {
  scene = { ...next, names: next.settings.data === "own" ? ownNames : null };
  showFields(scene.settings);
  const hash = toHash(scene.settings);
  history.replaceState(null, "", location.href.split("#")[0] + (hash && `#${hash}`));
  setRunning(next.picture.running);
  shown.showScene(scene);
  if (running) expectPicture();
}

/** A picture came from a running training: draw it at the next frame, unless a newer one comes before. */
function receive(picture) {
  clearTimeout(waiting);
  if (picture.error) {
    fail(picture.error);
    setRunning(false);
    return;
  }
  if (pending.length === 0) nextFrame(drawPending);
  pending.push(picture);
  if (pending.length > KEPT) pending.shift();
  if (running) expectPicture();
}

/** Draw the oldest picture that waits; the next one has the next frame. */
function drawPending() {
  const picture = pending.shift();
  if (pending.length) nextFrame(drawPending);
  shown.show(picture, running);
}

/** Say so if a step takes long: stage 4 compiles its kernels at the first one. */
function expectPicture() {
  clearTimeout(waiting);
  waiting = setTimeout(() => { part("computed").textContent = "waiting for a step; a stage prepares itself at its first one"; }, PATIENCE);
}

/** What an action of the reader answered decides whether the training runs: pictures come late. */
function setRunning(value) {
  running = value;
  part("run").textContent = running ? "Pause" : "Run";
  if (!running) clearTimeout(waiting);
}

/** Do something and show the picture that comes of it. */
async function act(doing) {
  await begun;
  if (!trainer) return;
  expectPicture();
  const picture = await attempt(doing);
  clearTimeout(waiting);
  if (!picture) {
    part("computed").textContent = scene.picture.stage;
    return;
  }
  setRunning(picture.running);
  shown.show(picture, running);
  if (running) expectPicture();
}

const speed = () => Number(part("speed").value);
part("run").addEventListener("click", () => act(() => (running ? trainer.pause() : trainer.run(speed()))));
part("speed").addEventListener("change", () => { if (running) act(() => trainer.run(speed())); });
part("step").addEventListener("click", () => act(() => trainer.step(1)));
part("begin").addEventListener("click", async () => {
  await begun;
  const next = trainer && await attempt(() => trainer.begin());
  if (next) showScene(next);
});
part("fewer").addEventListener("click", () => change({ layers: scene.settings.layers.slice(0, -1) }));
part("more").addEventListener("click", () => change({ layers: [...scene.settings.layers, scene.settings.layers.at(-1) ?? 4] }));
const drawnPoints = ownDataIn(document, (points, names) => {
  [ownPoints, ownNames] = [points, names];
  change({ data: "own" });
  part("network-title").scrollIntoView({ block: "nearest" });
});

addEventListener("beforeunload", (event) => { // the browser asks; a frame in the book does not hold its reader
  if (window.top === window && (part("steps").textContent !== "0" || drawnPoints())) event.preventDefault();
});

let width = part("diagram").clientWidth;
new ResizeObserver(() => {
  if (part("diagram").clientWidth === width) return;
  width = part("diagram").clientWidth;
  shown.again();
}).observe(part("diagram"));
oncolours(shown.again);
addEventListener("hashchange", () => change(fromHash(location.hash).settings));

begun = begin();
