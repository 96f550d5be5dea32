/**
 * The playground: puts the parts of the page together.
 *
 * A trainer (server.js, or local.js on a page without a server) owns the training. What it hands out is drawn here, at
 * most once for each frame of the screen, and the newest picture wins.
 */

import { fail, say, settle } from "/static/common/api.js";
import { html, number, oncolours, replace } from "/static/common/draw.js";
import { embedded } from "/static/common/embedded.js";
import { confusionIn } from "/static/playground/confusion.js";
import { curvesIn } from "/static/playground/curves.js";
import { diagramIn, factsOf, INPUTS, nameOf } from "/static/playground/diagram.js";
import { open as openLocal } from "/static/playground/local.js";
import { MISTAKES } from "/static/playground/mistakes.js";
import { ownDataIn } from "/static/playground/owndata.js";
import { TILE } from "/static/playground/pictures.js";
import { open as openServer } from "/static/playground/server.js";
import { DEFAULTS, fields, fromHash, MOST, toHash } from "/static/playground/settings.js";
import { surfaceIn } from "/static/playground/surface.js";

const PATIENCE = 700; // milliseconds without a picture after which the page says that it waits
const CURVE_POINTS = 800;

const part = (id) => document.getElementById(id);
const withServer = embedded() === null;

let trainer = null;
let scene = null;
let picture = null;
let ownPoints = [];
let curve = [];
let looked = null; // [layer, neuron] of the neuron that is shown large
let pending = null;
let described = 0;
let waiting = 0;
let running = false;

const showFields = fields(part("settings"), (name, value) => change({ [name]: value }), withServer);
const diagram = diagramIn(part("diagram"), {
  onselect: (layer, neuron) => { looked = layer === null ? null : [layer, neuron]; drawAnswer(); },
  onsize: (layer, size) => change({ layers: scene.settings.layers.map((each, i) => (i === layer ? size : each)) }),
});
const losses = curvesIn(part("losses"));
const gradients = curvesIn(part("gradients"), { logarithmic: true });
let answer = null;

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
  const open = withServer ? openServer : openLocal;
  const { settings, wrong } = fromHash(location.hash);
  const wanted = location.hash ? settings : { ...settings, ...embedded()?.settings };
  if (wanted.data === "own") {
    wanted.data = DEFAULTS.data;
    part("own-box").open = true;
    say("The link names points of somebody's own. A link does not carry them: draw or paste them again.");
  }
  part("settings-box").open = matchMedia("(min-width: 62rem)").matches;
  trainer = await attempt(() => open(wanted, receive)) ?? await attempt(() => open(DEFAULTS, receive));
  if (trainer) showScene(trainer.scene);
  if (wrong.length) fail(`The address names settings that are not possible here: ${wrong.join(", ")}. The usual ones took their place.`);
}

/** Change some settings; the training goes on or begins again, as the settings allow. */
async function change(changed) {
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

/** A picture came from a running training: draw it at the next frame, unless a newer one comes before. */
function receive(next) {
  clearTimeout(waiting);
  if (next.error) {
    fail(next.error);
    setRunning(false);
    return;
  }
  if (!pending) requestAnimationFrame(() => { const newest = pending; pending = null; show(newest); });
  pending = next;
  if (running) expectPicture();
}

/** Say so if a running training does not answer soon: stage 4 compiles its kernels at the first step. */
function expectPicture() {
  clearTimeout(waiting);
  waiting = setTimeout(() => {
    part("computed").textContent = `${picture?.stage ?? ""}: waiting for its first step`;
  }, PATIENCE);
}

function showScene(next) {
  scene = next;
  curve = [...next.curves];
  looked = null;
  picture = null;
  showFields(scene.settings);
  const hash = toHash(scene.settings);
  history.replaceState(null, "", hash ? `#${hash}` : location.pathname + location.search);
  answer = (scene.points ? surfaceIn : confusionIn)(part("surface"));
  diagram.arrange(scene);
  showMistake();
  const hidden = scene.settings.layers.length;
  part("layer-count").textContent = hidden === 1 ? "1 hidden layer" : `${hidden} hidden layers`;
  part("fewer").disabled = hidden === 0;
  part("more").disabled = hidden === MOST.layers;
  part("show-test").parentElement.hidden = !scene.points;
  replace(part("classes"), scene.points ? Array.from({ length: scene.classes }, (_, i) => html("span", {}, html("span", { class: `swatch class${i}` }), ` class ${i}`)) : []);
  described = 0;
  show(next.picture);
  setRunning(next.picture.running);
}

function showMistake() {
  const { mistake } = scene.settings;
  const { title, does, look } = MISTAKES[mistake];
  part("mistake-box").hidden = mistake === "none";
  replace(part("mistake-title"), `Planted mistake: ${title}`);
  replace(part("mistake-does"), does ?? "");
  replace(part("mistake-look"), look ?? "");
}

/** Draw a picture, unless it is of an earlier training or an earlier step than what is shown. */
function show(next) {
  if (!next || next.training !== scene.picture.training || (picture && next.step < picture.step)) return;
  if (picture?.step !== next.step && next.step > 0) remember(next);
  picture = next;
  part("steps").textContent = next.step.toLocaleString("en-US");
  part("epochs").textContent = next.epoch.toFixed(1);
  part("computed").textContent = next.stage;
  part("seconds").textContent = next.step ? `${number(next.seconds * 1000, 2)} ms` : "–";
  ["train", "test"].forEach((name, i) => {
    part(`${name}-loss`).textContent = number(next.loss[i], 3);
    part(`${name}-right`).textContent = `${number(100 * next.accuracy[i], 3)}%`;
  });
  diagram.draw(next);
  drawAnswer();
  const steps = curve.map((each) => each.step);
  losses.draw(steps, [0, 1].map((i) => curve.map((each) => each.loss[i])));
  gradients.draw(steps, next.weights.map((_, layer) => curve.map((each) => each.gradients[layer])));
  // Texts that are read aloud change at most once a second while the training runs.
  if (!running || performance.now() - described > 1000) describe(next);
}

/** The newest point of the curves; when there are many, every second one is dropped. */
function remember({ step, loss, gradients: norms }) {
  if (curve.length && curve.at(-1).step >= step) return;
  curve.push({ step, loss, gradients: norms });
  if (curve.length > CURVE_POINTS) curve = curve.filter((_, i) => i % 2 === 0);
}

function drawAnswer() {
  if (!picture) return;
  if (!scene.points) {
    answer.draw(picture.confusion);
    part("output-caption").textContent = "Rows: the digits of 100 test images. Columns: what each was taken for. Loss and share are measured on 100 images of each part.";
    return;
  }
  const hollow = part("show-test").checked ? scene.points.test.map((point) => [...point, true]) : [];
  const points = looked ? [] : [...scene.points.train, ...hollow];
  answer.draw({ surface: picture.surface, tile: looked && tileOf(...looked), points, edge: scene.edge });
  part("output-caption").textContent = looked
    ? [nameOf(...looked, scene), factsOf(...looked, picture)].filter(Boolean).join(": ")
    : "The colour is the class of the best answer; the stronger it is, the further ahead is that answer.";
}

function tileOf(layer, neuron) {
  const tiles = layer === 0 ? INPUTS : picture.tiles[layer - 1];
  return tiles.subarray(neuron * TILE * TILE, (neuron + 1) * TILE * TILE);
}

/** Bring the table and the texts for those who listen up to date. */
function describe(shown) {
  described = performance.now();
  diagram.describe(shown);
  const [train, test] = shown.loss.map((each) => number(each, 3));
  const said = `after ${shown.step} steps: loss ${train} on the training points and ${test} on the test points`;
  answer.node.setAttribute("aria-label", scene.points
    ? `The plane from −${scene.edge} to ${scene.edge} in the colours of the network's answer, ${said}`
    : `How often each digit of the test images was taken for each, ${said}`);
  losses.describe(`Loss ${said}`);
  gradients.describe(`Size of the gradient of each layer; the table below has the numbers`);
  part("dead-note").textContent = shown.finite ? deadNote(shown) : "The numbers have grown beyond all bounds: the training has diverged.";
  showLayers(shown);
}

function deadNote({ dead }) {
  if (!dead) return "";
  const count = dead.reduce((sum, each) => sum + each.length, 0);
  return count ? `Crossed out: ${count} dead ${count === 1 ? "neuron" : "neurons"}, 0 for every training point.` : "No neuron is dead.";
}

function showLayers({ gradients: norms, dead }) {
  const head = ["Layer", "Size of the gradient", "Dead neurons"].map((text, i) => html("th", { scope: "col", class: i ? "number" : null }, text));
  const rows = scene.sizes.slice(1).map((size, i) => {
    const isOutput = i === scene.sizes.length - 2;
    const deadText = isOutput || !dead ? "–" : `${dead[i].length} of ${size}`;
    return html("tr", {},
      html("th", { scope: "row" }, html("span", { class: `swatch line${i}` }), isOutput ? " output" : ` hidden ${i + 1}`),
      html("td", { class: "number" }, norms.length ? number(norms[i], 3) : "–"), html("td", { class: "number" }, deadText));
  });
  replace(part("layers-table"), html("thead", {}, html("tr", {}, head)), html("tbody", {}, rows));
}

/** What an action of the reader answered decides whether the training runs: pictures come late. */
function setRunning(value) {
  running = value;
  part("run").textContent = running ? "Pause" : "Run";
  if (!running) clearTimeout(waiting);
}

/** Do something and show the picture that comes of it. */
async function act(doing) {
  expectPicture();
  const shown = await attempt(doing);
  clearTimeout(waiting);
  if (!shown) return;
  setRunning(shown.running);
  show(shown);
  if (running) expectPicture();
}

const speed = () => Number(part("speed").value);
part("run").addEventListener("click", () => act(() => (running ? trainer.pause() : trainer.run(speed()))));
part("speed").addEventListener("change", () => { if (running) act(() => trainer.run(speed())); });
part("step").addEventListener("click", () => act(() => trainer.step(1)));
part("begin").addEventListener("click", async () => {
  const next = await attempt(() => trainer.begin());
  if (next) showScene(next);
});
part("fewer").addEventListener("click", () => change({ layers: scene.settings.layers.slice(0, -1) }));
part("more").addEventListener("click", () => change({ layers: [...scene.settings.layers, scene.settings.layers.at(-1) ?? 4] }));
part("show-test").addEventListener("change", drawAnswer);
ownDataIn(document, (points) => {
  ownPoints = points;
  change({ data: "own" });
  part("network-title").scrollIntoView({ block: "nearest" });
});

function again() {
  if (!scene) return;
  diagram.arrange(scene);
  losses.resize();
  gradients.resize();
  const shown = picture;
  picture = null;
  show(shown);
}

let width = part("diagram").clientWidth;
new ResizeObserver(() => {
  if (part("diagram").clientWidth === width) return;
  width = part("diagram").clientWidth;
  again();
}).observe(part("diagram"));
oncolours(again);
addEventListener("hashchange", () => change(fromHash(location.hash).settings));

begin();
