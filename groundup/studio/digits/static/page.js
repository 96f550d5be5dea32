// Digits: the pad, and what is shown when the pen is lifted. The questions go to the studio (server.js), or, in an
// exported page, are answered here (offline.js).

import { fail, say, settle } from "/static/common/api.js";
import { html, oncolours, replace } from "/static/common/draw.js";
import { embedded } from "/static/common/embedded.js";
import { apartInWords, percent, showBars, showFloors, winnerOf } from "/static/digits/answers.js";
import { centred } from "/static/digits/centre.js";
import { makeLayers } from "/static/digits/layers.js";
import { offline } from "/static/digits/offline.js";
import { makeOwnSet } from "/static/digits/own.js";
import { makePad } from "/static/digits/pad.js";
import { showNearest, showNeuron, showPull, showWinner } from "/static/digits/reasons.js";
import * as server from "/static/digits/server.js";
import { inkTile } from "/static/digits/tiles.js";

const QUICK = [2, 3, 4]; // floors that answer at once; Python's loops take longer, and are asked last
const SHIPPED = "/shipped"; // the name of the network that ships, as in networks.py
const LOOK = 400; // milliseconds between two looks at how far the floors are prepared

const place = (id) => document.getElementById(id);
const carried = embedded();
const source = carried ? offline(carried) : server;

let network = null;
let layers = null;
let floors = [];
let drawn = null; // the last drawing, as `centred` returns it
let shown = null; // what is on the page: {answers: Map, answer, reasons, nearest}
let turn = 0; // the newest drawing's; an answer to an earlier one comes too late

const pad = makePad(() => answer().catch(fail));
place("pad").append(pad.node);
place("undo").onclick = pad.undo;
place("clear").onclick = pad.clear;

/** Ask everything about the drawing, the answer first. */
async function answer() {
  const mine = ++turn;
  const began = performance.now();
  drawn = network && centred(pad.ink(), pad.size, network.shape);
  shown = null;
  showInput();
  if (drawn === null || network === null) return show();
  const { name } = network;
  const { pixels } = drawn;
  const ready = floors.filter(({ state }) => state === "ready").map((each) => each.number);
  const quick = QUICK.filter((each) => ready.includes(each));
  const answers = new Map();
  const take = (several) => several.forEach((each) => answers.set(each.number, each));

  take(await source.answers(name, pixels, quick.length || carried ? quick : [2]));
  if (mine !== turn) return;
  shown = { answers, answer: [...answers.values()][0], reasons: null, nearest: null };
  showAnswer();
  settle();
  document.body.dataset.answered = String(Math.round(10 * (performance.now() - began)) / 10);
  shown.reasons = await source.reasons(name, pixels);
  if (mine !== turn) return;
  showReasons();
  shown.nearest = ofMnist() ? await source.nearest(pixels) : { nearest: [], of: 0 };
  if (mine !== turn) return;
  showNearest(place("nearest"), shown.nearest);
  if (!carried) await askOthers(mine);
  document.body.dataset.done = String(mine);
}

/** The floors that are ready and have not answered this drawing yet, one after the other. */
async function askOthers(mine) {
  for (const { number, state } of floors) {
    if (state !== "ready" || shown === null || shown.answers.has(number) || mine !== turn) continue;
    const [late] = await server.answers(network.name, drawn.pixels, [number]);
    if (mine !== turn || shown === null) return;
    shown.answers.set(number, late);
    showTable();
  }
}

/** Whether the network's images are MNIST's: the nearest training images and the own set are. */
function ofMnist() {
  return String(network.shape) === "1,28,28" && network.classes.length === 10 && network.classes.every((name, i) => name === String(i));
}

function showInput() {
  const words = drawn ? drawn.words : "Nothing is drawn yet.";
  const [, rows, columns] = network ? network.shape : [1, 28, 28];
  replace(place("input"), inkTile(drawn ? drawn.pixels : new Uint8Array(rows * columns), `The drawing as ${rows} by ${columns} pixels`, rows, columns));
  if (drawn) replace(place("done"), words);
}

function showAnswer() {
  const { probabilities } = shown.answer;
  const winner = winnerOf(probabilities);
  const name = network.classes[winner];
  const words = network.certain ? `It is a ${name}, with a probability of ${percent(probabilities[winner]).replace("> ", "more than ")}.`
    : `It is a ${name}. This network was trained with another loss: its numbers rank the classes, and are no probabilities.`;
  replace(place("answer"), words);
  showBars(place("bars"), network.classes, probabilities);
  showTable();
}

function showTable() {
  const answers = shown ? shown.answers : new Map();
  showFloors(place("floors"), floors, answers, network.classes);
  replace(place("apart"), apartInWords(answers));
}

function showReasons() {
  const { reasons, answer } = shown;
  layers.show(drawn.pixels, reasons, answer.probabilities);
  showWinner(place("winner"), network, reasons, answer.scores);
  showPull(place("pull"), network, reasons, drawn.pixels);
  if (chosen) showNeuron(place("neuron"), network, reasons, ...chosen);
}

/** Everything again, as after a change of colours. */
function show() {
  showInput();
  if (network === null) return;
  if (shown === null) {
    replace(place("answer"), "Draw something.");
    showBars(place("bars"), network.classes, null);
    showTable();
    return;
  }
  showAnswer();
  if (shown.reasons) showReasons();
  if (shown.nearest) showNearest(place("nearest"), shown.nearest);
}

let chosen = null; // [layer, unit] in the picture of the layers

function newLayers() {
  chosen = null;
  replace(place("neuron"));
  layers = makeLayers(place("layers"), network, (layer, unit) => {
    chosen = [layer, unit];
    showNeuron(place("neuron"), network, shown?.reasons ?? null, layer, unit);
  });
  replace(place("layers-caption"), network.parameters
    ? "First the drawing, then the neurons of each hidden layer, then the ten answers. The stronger the colour, the larger the output: "
      + "orange above 0, blue below. Lines: what adds most to the winner, or takes most from it. Point at a neuron, or press the arrow "
      + "keys here, to see its own weights."
    : "What each layer makes of the drawing: orange above 0, blue below, each layer on its own scale. At most 16 channels of a layer.");
}

/** Change to another network, and have the floors prepared for it. */
async function choose(name) {
  const found = await source.network(name);
  turn++;
  network = found;
  floors = [];
  replace(place("about"), `${network.title}: ${network.about}.`);
  place("own").hidden = carried !== null || !ofMnist();
  newLayers();
  if (!carried) await watchFloors(name);
  await answer();
}

/** Look at the floors now, and again until none is being prepared. */
async function watchFloors(name) {
  if (network.name !== name) return;
  const before = floors.filter(({ state }) => state === "ready").length;
  floors = await server.floors(name);
  if (network.name !== name) return;
  showTable();
  const ready = floors.filter(({ state }) => state === "ready").length;
  if (shown && ready > before) askOthers(turn).catch(fail);
  if (floors.some(({ state }) => state === "warming")) setTimeout(() => watchFloors(name).catch(fail), LOOK);
  else if (before !== ready) say("All floors are ready.");
}

/** Fill the list of networks if it has changed, and return them. The chosen one stays chosen. */
async function listNetworks() {
  const known = await source.networks();
  const select = place("network");
  const words = known.map(({ name, title }) => [name, name === SHIPPED ? `${title}, which ships` : `${name}: ${title}`]);
  if (String(words) === String([...select.options].map((each) => [each.value, each.textContent]))) return known;
  const before = select.value;
  replace(select, words.map(([value, text]) => html("option", { value }, text)));
  if (known.some(({ name }) => name === before)) select.value = before;
  return known;
}

/** A run that was trained meanwhile can be chosen; one that was deleted answers no more. */
async function listAgain() {
  const count = place("network").options.length;
  const known = await listNetworks();
  if (known.length > count) say("There are new runs that can answer.");
  if (network && !known.some(({ name }) => name === network.name)) await choose(known[0].name);
}

async function begin() {
  const known = await listNetworks();
  const select = place("network");
  select.onchange = () => choose(select.value).catch(fail);
  if (!carried) {
    const again = () => { if (!document.hidden) listAgain().catch(fail); };
    for (const event of ["focus", "visibilitychange"]) addEventListener(event, again); // the reader comes back from a terminal
    select.addEventListener("focus", again);
  }
  if (!carried) makeOwnSet(place("labels"), place("own-set"), () => drawn?.pixels ?? null);
  await choose(known[0].name);
}

let narrow = innerWidth < 700;
addEventListener("resize", () => {
  if (narrow === innerWidth < 700 || network === null) return;
  narrow = innerWidth < 700;
  newLayers();
  show();
});
oncolours(() => { if (network) { newLayers(); show(); } });
begin().catch(fail);
