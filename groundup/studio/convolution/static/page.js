// Convolution: a drawing goes through a network, and every number of its maps can be looked into.

import { fail, get, post, settle } from "/static/common/api.js";
import { showArchitecture } from "/static/common/architecture.js";
import { html, number, oncolours, replace } from "/static/common/draw.js";
import { bytes } from "/static/common/embedded.js";
import { keys } from "/static/common/keys.js";
import { framed, mapOf, showAll, showRow } from "/static/convolution/maps.js";
import { showCode, showStages } from "/static/convolution/stages.js";
import { inWords, showWorking } from "/static/convolution/working.js";
import { percent, showBars } from "/static/digits/answers.js";
import { centred } from "/static/digits/centre.js";
import { makePad } from "/static/digits/pad.js";
import { unpacked } from "/static/digits/server.js";
import { inkTile, largestOf } from "/static/digits/tiles.js";

const FIRST = 3; // the digit that is shown at first
const LOOK = 400; // milliseconds between two looks at stages that are being prepared

const place = (id) => document.getElementById(id);
const state = { name: "", network: null, pixels: null, ink: null, maps: null, at: null, found: null, from: 0, fixed: false, chosen: null };
let turn = 0; // the newest drawing or network; an answer to an earlier one comes too late
let [asking, waiting] = [false, false]; // about a number: one question at a time, and the newest one after it
let markRow = () => {};
let digits = [];

const pad = makePad(() => draw(centred(pad.ink(), pad.size, state.network.shape, state.network.onWhite)));
place("pad").append(pad.node);
place("undo").onclick = pad.undo;
place("clear").onclick = pad.clear;

const guarded = (function_) => (...given) => function_(...given).catch(fail);

/** Another drawing, as `centred` returns it, or null. */
function draw(drawn) {
  state.pixels = drawn && [...drawn.pixels];
  state.ink = drawn?.ink ?? null;
  state.chosen = null;
  for (const [digit, button] of [...place("digits").children].entries()) button.setAttribute("aria-pressed", String(digits[digit] === state.ink));
  look();
}

/** Send the drawing through the network, and show what every layer makes of it. */
const look = guarded(async () => {
  const mine = ++turn;
  place("inside").hidden = !state.pixels;
  if (!state.pixels) {
    replace(place("answer"), "Draw something.");
    showBars(place("bars"), state.network.classes, null);
    replace(place("evidence"));
    return;
  }
  const maps = await post("/api/convolution/maps", { network: state.name, pixels: state.pixels, class: state.chosen });
  if (mine !== turn) return;
  maps.outputs = Object.fromEntries(Object.entries(maps.outputs).map(([number_, array]) => [number_, unpacked(array)]));
  Object.assign(state, { maps: { ...maps, x: unpacked(maps.x), evidence: unpacked(maps.evidence) }, found: null });
  settle();
  showMaps();
  choose(state.at && maps.outputs[state.at.layer] ? state.at : { layer: state.network.layers[0].number });
});

/** The answer, Grad-CAM and the row of all layers. */
function showMaps() {
  const { network, maps, ink } = state;
  const best = maps.scores.indexOf(Math.max(...maps.scores));
  place("class").value = maps.class;
  replace(place("answer"), `It is ${network.classes[best]}${network.certain ? `, with a probability of ${percent(maps.shares[best])}` : ""}.`);
  showBars(place("bars"), network.classes, maps.shares);
  const [, rows, columns] = network.shape;
  const picture = framed(inkTile(ink, null, rows, columns), rows, columns, {
    role: "img", "aria-label": `Grad-CAM over the drawing for ${network.classes[maps.class]}`,
  });
  picture.append(heat(maps.evidence));
  const none = maps.evidence.values.every((each) => each === 0);
  replace(place("evidence"), picture, html("figcaption", {}, none ? `Nothing in the last maps speaks for ${network.classes[maps.class]}.` :
    `Where the last maps, ${maps.evidence.shape.join(" by ")}, speak for ${network.classes[maps.class]}: the more orange, the more.`));
  markRow = showRow(place("row"), network, maps, choose);
}

function heat({ values, shape: [rows, columns] }) {
  const canvas = html("canvas", { width: columns, height: rows, class: "heat" });
  const image = new ImageData(columns, rows);
  values.forEach((each, i) => image.data.set([230, 120, 0, 200 * each], 4 * i));
  canvas.getContext("2d").putImageData(image, 0, 0);
  return canvas;
}

/** Look at another place; what is left out stays, or becomes the largest number of the layer's first map. */
function choose(wanted) {
  const began = performance.now();
  const output = state.maps.outputs[wanted.layer];
  const [count, rows, columns] = output.shape;
  const same = state.at?.layer === wanted.layer;
  const at = { ...(same ? state.at : {}), ...wanted };
  at.channel = Math.min(at.channel ?? 0, count - 1);
  if (at.row === undefined) {
    const values = mapOf(output, at.channel);
    const first = values.indexOf(values.reduce((one, other) => Math.max(one, other)));
    [at.row, at.column] = [Math.floor(Math.max(first, 0) / columns), Math.max(first, 0) % columns];
  }
  [at.row, at.column] = [Math.min(at.row, rows - 1), Math.min(at.column, columns - 1)];
  if (!same) state.fixed = false;
  state.at = at;
  markRow(at);
  ask(began);
}

/** Ask about the number that is looked at now. */
const ask = guarded(async (began) => {
  waiting = began;
  if (asking) return;
  asking = true;
  try {
    while (waiting !== false) {
      const [now, mine, at] = [waiting, turn, state.at];
      waiting = false;
      const found = await post("/api/convolution/pixel", { network: state.name, pixels: state.pixels, class: state.chosen, ...at });
      if (mine !== turn || waiting !== false) continue;
      found.field = unpacked(found.field);
      Object.assign(state, { found: { ...found, layer: at.layer } });
      if (!state.fixed) state.from = found.sums ? found.sums.map(Math.abs).indexOf(largestOf(found.sums)) : 0;
      state.from = Math.max(0, state.from);
      show();
      document.body.dataset.clicked = String(Math.round(10 * (performance.now() - now)) / 10);
      showCode(place("code"), found.function).catch(fail);
      if (found.stages.some(({ state: each }) => each === "warming")) setTimeout(() => { if (state.at === at) ask(performance.now()); }, LOOK);
    }
  } finally {
    asking = false;
  }
});

/** Everything about the number that is looked at. */
function show() {
  const { network, maps, at, found } = state;
  const layer = network.layers.find((each) => each.number === at.layer);
  const focused = place("working").contains(document.activeElement) ? document.activeElement.tagName : "";
  place("number-title").textContent = `One number of layer ${at.layer}, ${layer.words}`;
  replace(place("now"), `Map ${at.channel}. ${inWords(at, found)}`);
  const result = showWorking(place("working"), { ...state, moved: (row, column) => choose({ ...at, row, column }), chosen: from });
  keys(result, {
    ArrowUp: () => move(-1, 0), ArrowDown: () => move(1, 0), ArrowLeft: () => move(0, -1), ArrowRight: () => move(0, 1),
    PageUp: () => otherMap(-1), PageDown: () => otherMap(1),
  });
  if (focused === "DIV") result.focus({ preventScroll: true });
  if (focused === "INPUT") place("working").querySelector("input")?.focus({ preventScroll: true });
  const of = `${turn} ${at.layer} ${state.from}`;
  if (place("all").dataset.of !== of) {
    place("all").dataset.of = of;
    const filters = layer.weights ? `, each with its filter${layer.weights.shape[1] > 1 ? ` for input map ${state.from}` : ""}` : "";
    place("all-title").textContent = `All maps of layer ${at.layer}, ${layer.words}${filters}`;
    showAll(place("all"), layer, maps.outputs[at.layer], state.from, choose);
  }
  showStages(place, found);
}

/** Show another input map of the convolution. */
function from(channel) {
  Object.assign(state, { from: channel, fixed: true });
  show();
}

function move(down, right) {
  const [, rows, columns] = state.maps.outputs[state.at.layer].shape;
  const within = (value, count) => Math.min(Math.max(value, 0), count - 1);
  choose({ ...state.at, row: within(state.at.row + down, rows), column: within(state.at.column + right, columns) });
}

function otherMap(step) {
  const [count] = state.maps.outputs[state.at.layer].shape;
  choose({ ...state.at, channel: (state.at.channel + step + count) % count });
}

/** Change to another network. */
const change = guarded(async (name) => {
  const mine = ++turn;
  replace(place("about"), "This network is being loaded …");
  const network = await get("/api/convolution/network", { name });
  if (mine !== turn) return;
  network.layers = network.layers.map((each) => (each.weights ? { ...each, weights: unpacked(each.weights) } : each));
  const shape = String(state.network?.shape);
  Object.assign(state, { name, network, at: null, chosen: null });
  replace(place("about"), `${network.title}: ${network.about}.`);
  replace(place("class"), network.classes.map((each, i) => html("option", { value: i }, each)));
  place("samples").hidden = String(network.shape) !== "1,28,28";
  if (shape !== String(network.shape)) state.pixels = null;
  get("/api/convolution/architecture", { name }).then((drawn) => showArchitecture(place("form"), drawn), (error) => replace(place("form"), error.message));
  if (!state.pixels && !place("samples").hidden) sample(FIRST);
  else await look();
});

/** Look at a test image. */
function sample(digit) {
  const { onWhite } = state.network;
  const ink = digits[digit];
  pad.clear();
  draw({ pixels: onWhite ? ink.map((each) => 255 - each) : ink, ink });
}

async function begin() {
  const [{ networks }, samples] = await Promise.all([get("/api/convolution/networks"), get("/api/convolution/digits")]);
  digits = samples.digits.map(bytes);
  replace(place("network"), networks.map(({ name, title }) => html("option", { value: name }, title)));
  replace(place("digits"), digits.map((ink, i) => html("button", { type: "button", "aria-label": `Take a ${i}`, "aria-pressed": "false", onclick: () => sample(i) }, inkTile(ink, null))));
  place("network").onchange = (event) => change(event.target.value);
  place("class").onchange = (event) => { state.chosen = Number(event.target.value); look(); };
  await change(networks[0].name);
}

oncolours(() => {
  if (!state.maps || !state.found) return;
  showMaps();
  markRow(state.at);
  delete place("all").dataset.of;
  show();
});
begin().catch(fail);
