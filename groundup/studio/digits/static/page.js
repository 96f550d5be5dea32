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
import { showEvidence, showNearest, showNeuron, showPull, showWinner } from "/static/digits/reasons.js";
import * as server from "/static/digits/server.js";
import { inkTile } from "/static/digits/tiles.js";

const QUICK = [2, 3, 4]; // floors that answer at once; Python's loops take longer, and are asked last
const SHIPPED = "/shipped"; // the name of the network that ships, as in networks.py
const MNIST = [1, 28, 28]; // the shape of its images; that of a drawing while no network is loaded
const LOOK = 400; // milliseconds between two looks at how far the stages are prepared

const place = (id) => document.getElementById(id);
const carried = embedded();
const source = carried ? offline(carried) : server;

let network = null;
let layers = null;
let floors = [];
let drawn = null; // the last drawing, as `centred` returns it
let shown = null; // what is on the page: {answers: Map, answer, reasons, nearest}
let turn = 0; // the newest drawing's; an answer to an earlier one comes too late
let choice = 0; // the newest choice of a network; a network that was chosen before comes too late

// What stands in each place before there is a drawing.
const FIRST = Object.fromEntries(["answer", "winner", "pull", "evidence", "nearest"].map((id) => [id, place(id).textContent.trim()]));
const HOW = place("done").textContent;

const pad = makePad(() => answer().catch(fail));
place("pad").append(pad.node);
place("undo").onclick = pad.undo;
place("clear").onclick = pad.clear;

/** Ask everything about the drawing, the answer first. */
async function answer() {
  const mine = ++turn;
  const began = performance.now();
  drawn = centred(pad.ink(), pad.size, network?.shape ?? MNIST, network?.onWhite);
  shown = null;
  show();
  if (drawn === null || network === null) return;
  const { name } = network;
  const { pixels } = drawn;
  const ready = floors.filter(({ state }) => state === "ready").map((each) => each.number);
  const quick = QUICK.filter((each) => ready.includes(each));
  const answers = new Map();

  for (const each of await source.answers(name, pixels, quick.length || carried ? quick : [2])) answers.set(each.number, each);
  if (mine !== turn) return;
  if ([...answers.values()].some(isOfAnother)) return choose(name);
  shown = { answers, answer: [...answers.values()][0], reasons: null, nearest: null };
  showAnswer();
  settle();
  document.body.dataset.answered = String(Math.round(10 * (performance.now() - began)) / 10);
  const reasons = await source.reasons(name, pixels);
  if (mine !== turn) return;
  if (isOfAnother(reasons)) return choose(name);
  shown.reasons = reasons;
  showReasons();
  const nearest = await source.nearest(name, pixels);
  if (mine !== turn) return;
  shown.nearest = nearest;
  showNearest(known("nearest"), nearest);
  if (!carried) await askOthers(mine);
  document.body.dataset.done = String(mine);
}

/** The stages that are ready and have not answered this drawing yet, one after the other. */
async function askOthers(mine) {
  for (const { number, state } of floors) {
    if (state !== "ready" || shown === null || shown.answers.has(number) || mine !== turn) continue;
    const [late] = await server.answers(network.name, drawn.pixels, [number]);
    if (mine !== turn || shown === null) return;
    if (isOfAnother(late)) return choose(network.name);
    shown.answers.set(number, late);
    showTable();
  }
}

/** Whether an answer belongs to other weights than the page has: the run has trained on meanwhile. */
function isOfAnother({ version }) {
  return version !== network.version;
}

/** Whether the network's images are MNIST's: those of the own set are. */
function ofMnist() {
  return String(network.shape) === String(MNIST) && network.classes.length === 10 && network.classes.every((name, i) => name === String(i));
}

function showInput() {
  const [, rows, columns] = drawn?.shape ?? network?.shape ?? MNIST;
  replace(place("input"), inkTile(drawn ? drawn.ink : new Uint8Array(rows * columns), `The drawing as ${rows} by ${columns} pixels`, rows, columns));
  replace(place("done"), drawn ? drawn.words : HOW);
}

/** Nothing is known of this drawing, or of this network. A place keeps its height until its new content is there. */
function showUnknown() {
  for (const [id, words] of Object.entries(FIRST)) {
    const node = place(id);
    node.style.minHeight = drawn ? `${node.offsetHeight}px` : "";
    replace(node, id === "answer" ? (drawn ? "…" : words) : html("p", { class: "quiet" }, drawn ? "…" : words));
  }
  showBars(place("bars"), network ? network.classes : [], null);
  showTable();
  if (layers) layers.clear();
  if (chosen && network) showNeuron(place("neuron"), network, null, ...chosen);
  else replace(place("neuron"));
}

/** The place of something that is known now. */
function known(id) {
  place(id).style.minHeight = "";
  return place(id);
}

function showAnswer() {
  const { probabilities } = shown.answer;
  const winner = winnerOf(probabilities);
  const name = network.classes[winner];
  const words = network.certain ? `It is a ${name}, with a probability of ${percent(probabilities[winner]).replace("> ", "more than ")}.`
    : `It is a ${name}. This network was trained with another loss: its numbers rank the classes, and are no probabilities.`;
  replace(known("answer"), words);
  showBars(place("bars"), network.classes, probabilities, place("log-bars").checked);
  showTable();
}

function showTable() {
  const answers = shown ? shown.answers : new Map();
  showFloors(place("floors"), floors, answers, network ? network.classes : []);
  replace(place("apart"), apartInWords(answers));
}

function showReasons() {
  const { reasons, answer } = shown;
  layers.show(drawn.ink, reasons, answer.probabilities);
  showWinner(known("winner"), network, reasons, answer.scores);
  showPull(known("pull"), network, reasons, drawn.pixels);
  if (reasons.evidence) showEvidence(known("evidence"), network, reasons, drawn.ink);
  if (chosen) showNeuron(place("neuron"), network, reasons, ...chosen);
}

/** Everything that is known, as after a change of colours; all else as not known. */
function show() {
  showInput();
  showUnknown();
  if (shown === null) return;
  showAnswer();
  if (shown.reasons) showReasons();
  if (shown.nearest) showNearest(known("nearest"), shown.nearest);
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

/** Change to another network, and have the stages prepared for it. */
async function choose(name) {
  const mine = ++choice;
  const before = network;
  turn++;
  network = null; // what is not loaded yet answers nothing
  shown = null;
  floors = [];
  replace(place("about"), "This network is being loaded …");
  show();
  try {
    const found = await source.network(name);
    if (mine !== choice) return;
    network = found;
  } catch (error) {
    if (mine === choice && before && before.name !== name) {
      place("network").value = before.name;
      choose(before.name).catch(fail);
    }
    throw error;
  }
  replace(place("about"), `${network.title}: ${network.about}.`);
  place("evidence-panel").hidden = !network.convolves;
  place("own").hidden = carried !== null || !ofMnist();
  newLayers();
  show();
  if (!carried) await watchFloors(name);
  if (mine === choice) await answer();
}

/** Look at the stages now, and again until none is being prepared. */
async function watchFloors(name) {
  if (network?.name !== name) return;
  const before = floors.filter(({ state }) => state === "ready").length;
  floors = await server.floors(name);
  if (network?.name !== name) return;
  showTable();
  const ready = floors.filter(({ state }) => state === "ready").length;
  if (shown && ready > before) askOthers(turn).catch(fail);
  if (floors.some(({ state }) => state === "warming")) setTimeout(() => watchFloors(name).catch(fail), LOOK);
  else if (before !== ready) say("All stages are ready.");
}

/** Fill the list of networks if it has changed, and return them. The chosen one stays chosen. */
async function listNetworks() {
  const known = await source.networks();
  const select = place("network");
  const words = known.map(({ name, title }) => [name, name === SHIPPED ? `${title}, from groundup` : `${name}: ${title}`]);
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
  if (!carried) makeOwnSet(place("labels"), place("own-set"), () => drawn?.ink ?? null);
  await choose(known[0].name);
}

place("log-bars").onchange = () => { if (shown) showAnswer(); };
let narrow = innerWidth < 700;
addEventListener("resize", () => {
  if (narrow === innerWidth < 700 || network === null) return;
  narrow = innerWidth < 700;
  newLayers();
  show();
});
oncolours(() => { if (network) { newLayers(); show(); } });
begin().catch(fail);
