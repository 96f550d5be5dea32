// Convolution: a drawing goes through a network, and every number of its maps can be looked into. The questions go to the studio
// (server.js), or, in an exported page, are answered here (offline.js).

import { fail, settle } from "/static/common/api.js";
import { showArchitecture } from "/static/common/architecture.js";
import { html, oncolours, replace } from "/static/common/draw.js";
import { bytes, embedded } from "/static/common/embedded.js";
import { keys } from "/static/common/keys.js";
import { framed, mapOf, shade, showAll, showRow } from "/static/convolution/maps.js";
import { offline } from "/static/convolution/offline.js";
import { server } from "/static/convolution/server.js";
import { showCode, showStages } from "/static/convolution/stages.js";
import { inWords, showWorking } from "/static/convolution/working.js";
import { percent, showBars } from "/static/digits/answers.js";
import { centred } from "/static/digits/centre.js";
import { makePad } from "/static/digits/pad.js";
import { inkTile, largestOf } from "/static/digits/tiles.js";

const carried = embedded();
const source = carried ? offline(carried) : server;
const opening = carried?.opening ?? { digit: 3, class: null, at: null }; // what is shown at first
const LOOK = 400; // milliseconds between two looks at stages that are being prepared

const place = (id) => document.getElementById(id);
document.body.classList.toggle("framed", window !== window.top && matchMedia("(min-width: 40rem)").matches);
const state = { name: "", network: null, pixels: null, ink: null, chosen: null, maps: null, at: null, found: null, from: 0, fixed: false };
let [turn, asked] = [0, 0]; // the newest drawing, and the newest question about a number; an earlier answer comes too late
let markRow = () => {};
let digits = [];

const guarded = (function_) => (...given) => function_(...given).catch(fail);
const pad = makePad(() => draw(centred(pad.ink(), pad.size, state.network.shape, state.network.onWhite)));
place("pad").append(pad.node);
place("undo").onclick = pad.undo;
place("clear").onclick = pad.clear;

/** Another drawing, as `centred` returns it, or null. chosen: the class whose score is derived, null for the answer */
function draw(drawn, chosen = null) {
  Object.assign(state, { pixels: drawn && [...drawn.pixels], ink: drawn?.ink ?? null, chosen });
  [...place("digits").children].forEach((button, i) => button.setAttribute("aria-pressed", String(digits[i] === state.ink)));
  look();
}

/** Send the drawing through the network, and show what every layer makes of it. */
const look = guarded(async () => {
  const mine = ++turn;
  asked++;
  if (!state.pixels) {
    place("inside").hidden = true;
    replace(place("answer"), "Draw something.");
    showBars(place("bars"), state.network.classes, null);
    replace(place("evidence"));
    return;
  }
  const maps = await source.maps({ network: state.name, pixels: state.pixels, class: state.chosen });
  if (mine !== turn) return;
  Object.assign(state, { maps, found: null });
  settle();
  place("inside").hidden = false;
  showMaps();
  choose(state.at ?? { layer: state.network.layers[0].number });
});

/** The answer, Grad-CAM and the row of all layers. */
function showMaps() {
  const { network: { classes, certain, shape: [, rows, columns] }, maps, ink } = state;
  const best = maps.scores.indexOf(Math.max(...maps.scores));
  place("class").value = maps.class;
  replace(place("answer"), `It is ${classes[best]}${certain ? `, with a probability of ${percent(maps.shares[best]).replace("> ", "more than ")}` : ""}.`);
  showBars(place("bars"), classes, maps.shares);
  const { values, shape } = maps.evidence;
  const picture = framed(inkTile(ink, null, rows, columns), rows, columns, { role: "img", "aria-label": `Grad-CAM over the drawing for ${classes[maps.class]}` });
  picture.append(shade(values, ...shape, [230, 120, 0], 200, "heat"));
  const words = values.some((each) => each > 0) ? `Where the last maps, ${shape.join(" by ")}, speak for ${classes[maps.class]}: the stronger the orange, the more.` :
    `Nothing in the last maps speaks for ${classes[maps.class]}.`;
  replace(place("evidence"), picture, html("figcaption", {}, words));
  markRow = showRow(place("row"), state.network, maps, choose);
}

/** Look at another place. What is left out stays, in another layer of the same shape, too; else it is the largest number of the first map. */
function choose(wanted) {
  const same = state.at?.layer === wanted.layer;
  const output = state.maps.outputs[wanted.layer];
  const columns = output.shape[2];
  const alike = String(state.maps.outputs[state.at?.layer]?.shape) === String(output.shape);
  const at = { channel: 0, ...(alike ? state.at : {}), ...wanted };
  if (at.row === undefined) {
    const values = mapOf(output, at.channel);
    const first = Math.max(values.indexOf(Math.max(...values)), 0);
    Object.assign(at, { row: Math.floor(first / columns), column: first % columns });
  }
  if (!same) state.fixed = false;
  state.at = at;
  markRow(at);
  ask();
}

/** Ask about the number that is looked at. */
const ask = guarded(async () => {
  const [mine, began, at] = [++asked, performance.now(), state.at];
  const found = await source.pixel({ network: state.name, pixels: state.pixels, class: state.chosen, ...at });
  if (mine !== asked) return;
  state.found = found;
  if (!state.fixed) state.from = found.sums ? Math.max(0, found.sums.map(Math.abs).indexOf(largestOf(found.sums))) : 0;
  show();
  document.body.dataset.clicked = String(Math.round(10 * (performance.now() - began)) / 10);
  if (found.stages.some((each) => each.state === "warming")) setTimeout(() => { if (mine === asked) ask(); }, LOOK);
  if (!carried) await showCode(place("code"), found.function);
});

/** Everything about the number that is looked at. */
function show() {
  const { network, maps, at, found } = state;
  const layer = network.layers.find((each) => each.number === at.layer);
  const focused = place("working").contains(document.activeElement) ? document.activeElement.tagName : null;
  place("number-title").textContent = `One number of layer ${at.layer}, ${layer.words}`;
  replace(place("now"), `Map ${at.channel}. ${inWords(at, found)}`);
  const result = showWorking(place("working"), { ...state, layer, moved: (row, column) => choose({ ...at, row, column }), chosen: from });
  const moves = { ArrowUp: ["row", -1], ArrowDown: ["row", 1], ArrowLeft: ["column", -1], ArrowRight: ["column", 1], PageUp: ["channel", -1], PageDown: ["channel", 1] };
  keys(result, Object.fromEntries(Object.entries(moves).map(([key, move]) => [key, () => step(...move)])));
  if (focused) (focused === "INPUT" && place("working").querySelector("input") || result).focus({ preventScroll: true });
  const of = `${turn} ${at.layer} ${state.from}`;
  if (place("all").dataset.of !== of) {
    place("all").dataset.of = of;
    const filters = layer.weights ? `, each with its filter${layer.weights.shape[1] > 1 ? ` for input map ${state.from}` : ""}` : "";
    place("all-title").textContent = `All maps of layer ${at.layer}, ${layer.words}${filters}`;
    showAll(place("all"), layer, maps.outputs[at.layer], state.from, choose);
  }
  if (!carried) showStages(place, found);
}

/** Show another input map of the convolution. */
function from(channel) {
  Object.assign(state, { from: channel, fixed: true });
  show();
}

/** A step of the keys: along a map to its edge, or round to another map. */
function step(axis, by) {
  const count = state.maps.outputs[state.at.layer].shape[["channel", "row", "column"].indexOf(axis)];
  const next = state.at[axis] + by;
  choose({ ...state.at, [axis]: axis === "channel" ? (next + count) % count : Math.min(Math.max(next, 0), count - 1) });
}

/** Change to another network. */
const change = guarded(async (name) => {
  const mine = ++turn;
  asked++;
  replace(place("about"), "This network is being loaded …");
  place("inside").hidden = true; // what it shows is of another network
  const network = await source.network({ name });
  if (mine !== turn) return;
  if (String(network.shape) !== String(state.network?.shape)) state.pixels = null;
  Object.assign(state, { name, network, at: state.network ? null : opening.at, chosen: null });
  replace(place("about"), `${network.title}: ${network.about}.`);
  replace(place("class"), network.classes.map((each, i) => html("option", { value: i }, each)));
  place("samples").hidden = String(network.shape) !== "1,28,28";
  source.architecture({ name }).then((drawn) => showArchitecture(place("form"), drawn), (error) => replace(place("form"), error.message));
  if (!state.pixels && !place("samples").hidden) sample(opening.digit, opening.class);
  else await look();
});

/** Look at a test image. */
function sample(digit, chosen) {
  pad.clear();
  const ink = digits[digit];
  draw({ pixels: state.network.onWhite ? ink.map((each) => 255 - each) : ink, ink }, chosen);
}

async function begin() {
  const [{ networks }, samples] = await Promise.all([source.networks(), source.digits()]);
  digits = samples.digits.map(bytes);
  replace(place("network"), networks.map(({ name, title }) => html("option", { value: name }, title)));
  replace(place("digits"), digits.map((ink, i) => html("button", { type: "button", "aria-label": `Take a ${i}`, onclick: () => sample(i) }, inkTile(ink, null))));
  place("network").onchange = (event) => change(event.target.value);
  place("class").onchange = (event) => { state.chosen = Number(event.target.value); look(); };
  await change(networks[0].name);
}

oncolours(() => {
  if (!state.pixels || !state.found) return;
  showMaps();
  markRow(state.at);
  delete place("all").dataset.of;
  show();
});
begin().catch(fail);
