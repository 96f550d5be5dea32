/** What the page shows of a training: the numbers, the network, its answer, the curves and the table of the layers. */

import { html, number, replace } from "/static/common/draw.js";
import { confusionIn } from "/static/playground/confusion.js";
import { curvesIn } from "/static/playground/curves.js";
import { classOf, diagramIn, factsOf, IMAGE, INPUTS, nameOf } from "/static/playground/diagram.js";
import { MISTAKES } from "/static/playground/mistakes.js";
import { formulaOf } from "/static/playground/formula.js";
import { TILE } from "/static/playground/pictures.js";
import { MOST } from "/static/playground/settings.js";
import { surfaceIn } from "/static/playground/surface.js";

const CURVE_POINTS = 800;

const CAPTIONS = {
  plane: "The colour is the class of the best answer; the stronger it is, the further ahead is that answer.",
  digits: "Rows: the digits of 100 test images. Columns: what each was taken for. Loss and share are measured on 100 images of each part.",
};

const part = (id) => document.getElementById(id);

/**
 * onsize(layer, size) is called when the reader changes the size of a hidden layer (from 0).
 *
 * Returns { showScene(scene), show(picture, running), again() }: `again` draws everything anew, after the page has
 * changed its size or its colours.
 */
export function view(onsize) {
  let scene = null;
  let picture = null;
  let curve = [];
  let looked = null; // [layer, neuron] of the neuron that is shown large
  let described = 0;
  let answer = null;
  const losses = curvesIn(part("losses"));
  const gradients = curvesIn(part("gradients"), { logarithmic: true });
  const diagram = diagramIn(part("diagram"), {
    onselect: (layer, neuron) => {
      looked = layer === null ? null : [layer, neuron];
      if (picture) diagram.draw(picture, looked);
      drawAnswer();
    },
    onsize,
  });
  part("show-test").addEventListener("change", drawAnswer);

  function showScene(next) {
    const hadPoints = Boolean(scene?.points);
    scene = next;
    curve = [...next.curves];
    looked = null;
    picture = null;
    described = 0;
    const plane = Boolean(scene.points);
    if (!answer || hadPoints !== plane) answer = (plane ? surfaceIn : confusionIn)(part("surface"));
    diagram.arrange(scene);
    showMistake(scene.settings.mistake);
    const hidden = scene.settings.layers.length;
    part("layer-count").textContent = hidden === 1 ? "1 hidden layer" : `${hidden} hidden layers`;
    part("fewer").disabled = hidden === 0;
    part("more").disabled = hidden === MOST.layers;
    part("show-test").parentElement.hidden = !plane;
    const names = Array.from({ length: plane ? scene.classes : 0 }, (_, i) => html("span", {}, html("span", { class: `swatch class${i}` }), ` ${classOf(i, scene)}`));
    replace(part("classes"), names);
    show(next.picture, next.picture.running);
  }

  /** Draw a picture, unless it is of an earlier training or an earlier step than what is shown. */
  function show(next, running) {
    if (!next || next.training !== scene.picture.training || (picture && next.step < picture.step)) return;
    if (picture?.step !== next.step && next.step > 0) remember(next);
    picture = next;
    part("steps").textContent = next.step.toLocaleString("en-US");
    part("epochs").textContent = next.epoch.toFixed(1);
    part("computed").textContent = next.stage;
    part("seconds").textContent = next.step ? `${number(next.seconds * 1000, 2)} ms` : "–";
    ["train", "test"].forEach((name, i) => {
      part(`${name}-loss`).textContent = number(next.loss[i], 3);
      part(`${name}-right`).textContent = `${number(100 * next.accuracy[i], 3)} %`;
    });
    diagram.draw(next, looked);
    drawAnswer();
    const steps = curve.map((each) => each.step);
    losses.draw(steps, [0, 1].map((i) => curve.map((each) => each.loss[i])));
    gradients.draw(steps, next.weights.map((_, layer) => curve.map((each) => each.gradients[layer])));
    // Texts that are read aloud come after the picture, and at most once a second while the training runs.
    if (running && performance.now() - described < 1000) return;
    described = performance.now();
    setTimeout(describe);
  }

  /** The newest point of the curves; when there are many, every second one is dropped. */
  function remember({ step, loss, gradients: norms }) {
    if (curve.length && curve.at(-1).step >= step) return;
    curve.push({ step, loss, gradients: norms });
    if (curve.length > CURVE_POINTS) curve = curve.filter((_, i) => i % 2 === 0);
  }

  function drawAnswer() {
    if (!picture) return;
    if (scene.points) {
      const hollow = part("show-test").checked ? scene.points.test.map((point) => [...point, true]) : [];
      const points = looked ? [] : [...scene.points.train, ...hollow];
      answer.draw({ surface: picture.surface, tile: looked && tileOf(...looked), points, edge: scene.edge });
    } else {
      answer.draw(picture.confusion, looked?.[0] === 1 ? imageOf(looked[1]) : null);
    }
    part("output-title").textContent = looked && scene.points ? nameOf(...looked, scene) : "Its answer";
    part("classes").style.visibility = looked ? "hidden" : ""; // its colours are those of numbers
    const facts = looked && [nameOf(...looked, scene), formulaOf(...looked, scene, picture), factsOf(...looked, picture)].filter(Boolean).join(": ");
    part("output-caption").textContent = facts ?? CAPTIONS[scene.points ? "plane" : "digits"];
  }

  function tileOf(layer, neuron) {
    const tiles = layer === 0 ? INPUTS : picture.tiles[layer - 1];
    return tiles.subarray(neuron * TILE * TILE, (neuron + 1) * TILE * TILE);
  }

  /** The weights of a neuron of the first hidden layer as an image; null in a network without hidden layers. */
  function imageOf(neuron) {
    return scene.sizes.length > 2 ? picture.images.subarray(neuron * IMAGE * IMAGE, (neuron + 1) * IMAGE * IMAGE) : null;
  }

  /** Bring the table and the texts for those who listen up to date. */
  function describe() {
    if (!picture) return; // another training has begun since
    diagram.describe(picture);
    const [train, test] = picture.loss.map((each) => number(each, 3));
    const said = `after ${picture.step} ${picture.step === 1 ? "step" : "steps"}: loss ${train} on the training points and ${test} on the test points`;
    answer.node.setAttribute("aria-label", scene.points
      ? `The plane from −${scene.edge} to ${scene.edge} in the colours of the network's answer, ${said}`
      : `How often each digit of the test images was taken for each, ${said}`);
    losses.describe(`Loss ${said}`);
    gradients.describe("Size of the gradient of each layer; the table below has the numbers");
    part("dead-note").textContent = picture.finite ? deadNote(picture.dead) : "The numbers have grown beyond all bounds: the training has diverged.";
    showLayers(scene.sizes, picture);
  }

  function again() {
    if (!picture) return;
    diagram.arrange(scene, true);
    losses.resize();
    gradients.resize();
    const shown = picture;
    picture = null;
    show(shown, false);
  }

  return { showScene, show, again };
}

function showMistake(mistake) {
  const { title, does, look } = MISTAKES[mistake];
  part("mistake-box").hidden = mistake === "none";
  part("mistake-title").textContent = `Planted mistake: ${title}`;
  part("mistake-does").textContent = does ?? "";
  part("mistake-look").textContent = look ?? "";
}

function deadNote(dead) {
  if (!dead) return "";
  const count = dead.reduce((sum, each) => sum + each.length, 0);
  return count ? `Crossed out: ${count} dead ${count === 1 ? "neuron" : "neurons"}, 0 for every training point.` : "No neuron is dead.";
}

function showLayers(sizes, { gradients, dead }) {
  const head = ["Layer", "Size of the gradient", "Dead neurons"].map((text, i) => html("th", { scope: "col", class: i ? "number" : null }, text));
  const rows = sizes.slice(1).map((size, i) => {
    const isOutput = i === sizes.length - 2;
    const deadText = isOutput || !dead ? "–" : `${dead[i].length} of ${size}`;
    return html("tr", {},
      html("th", { scope: "row" }, html("span", { class: `swatch line${i}` }), isOutput ? " output" : ` hidden ${i + 1}`),
      html("td", { class: "number" }, gradients.length ? number(gradients[i], 3) : "–"), html("td", { class: "number" }, deadText));
  });
  replace(part("layers-table"), html("thead", {}, html("tr", {}, head)), html("tbody", {}, rows));
}
