// What led to the answer, in pictures and sentences: the winner's weights, one neuron, the pixels that mattered, and the
// nearest training images.

import { bytes } from "/static/common/embedded.js";
import { diverging, html, number, pixels, replace, svg } from "/static/common/draw.js";
import { productsOf } from "/static/digits/layers.js";
import { inkTile, largestOf, ofPixels, signedTile } from "/static/digits/tiles.js";

const STRONGEST = 6;
const BARS = 256;

/** The winner's score as a sum of products, its weights, and the hidden neurons that add the most. */
export function showWinner(node, network, reasons, scores) {
  const { last, winner } = reasons;
  const name = network.classes[winner];
  if (last === null) {
    replace(node, html("p", { class: "quiet" }, "The last layer of this network has no weights of its own."));
    return;
  }
  const products = productsOf(last);
  const sum = products.reduce((one, other) => one + other, 0);
  const words = `The score of ${name} is ${number(scores[winner], 4)}: a sum of ${products.length} products, `
    + `${number(sum, 4)}, and the bias ${number(last.bias, 3)}.`;
  const strongest = products.map((_, i) => i).sort((a, b) => products[b] - products[a]).slice(0, STRONGEST);
  const oneHidden = network.parameters && network.sizes.length === 3;
  const direct = network.parameters && network.sizes.length === 2;
  const items = direct ? [] : strongest.map((unit) => html("li", {},
    oneHidden ? signed(network, incoming(network, 0, unit), `Weights of hidden neuron ${unit}`) : null,
    html("span", {}, html("b", {}, `neuron ${unit}`), html("br"), `${number(last.inputs[unit])} × ${number(last.weights[unit])}`,
      html("br"), `= ${number(products[unit])}`)));
  replace(node, html("p", {}, words),
    direct ? signed(network, last.weights, `The weights of ${name}, one for each pixel`) : weightBars(last, name),
    items.length ? html("p", { class: "quiet" }, `The ${items.length} neurons that add the most, output × weight`
      + (oneHidden ? ", each with its own weights as an image:" : ":")) : null,
    items.length ? html("ol", { class: "strongest" }, items) : null);
}

/** A bar for each of the winner's weights, strong in colour where the neuron is not 0 now. */
function weightBars({ inputs, weights }, name) {
  const shown = Math.min(weights.length, BARS);
  const largest = largestOf(weights);
  const [width, half] = [Math.max(shown, 128), 24];
  const bar = width / shown;
  const bars = Array.from({ length: shown }, (_, i) => {
    const high = (half * Math.abs(weights[i])) / largest;
    return svg("rect", {
      x: i * bar, y: weights[i] > 0 ? half - high : half, width: 0.8 * bar, height: high,
      fill: diverging(Math.sign(weights[i])), "fill-opacity": inputs[i] === 0 ? 0.3 : 1,
    });
  });
  const label = `The weights of ${name}: ${weights.filter((each) => each > 0).length} of ${weights.length} are positive`;
  const picture = svg("svg", { viewBox: `0 0 ${width} ${2 * half}`, preserveAspectRatio: "none", role: "img", "aria-label": label, class: "weights" }, bars);
  const words = `${shown < weights.length ? `The first ${shown} of ${weights.length} weights` : "A bar for each weight"}, orange above 0, `
    + "blue below. Pale: the neuron before it is 0 now, so that the weight adds nothing.";
  return html("figure", {}, picture, html("figcaption", {}, words));
}

/** One hidden neuron, which the reader chose in the picture of the layers. reasons: null before the first drawing */
export function showNeuron(node, network, reasons, layer, unit) {
  const title = `Neuron ${unit} of hidden layer ${layer + 1}`;
  const sentences = [];
  if (reasons) {
    sentences.push(`Its output is ${number(reasons.layers[layer].values[unit])}.`);
    const isLast = layer === network.sizes.length - 3;
    if (isLast) {
      const weight = reasons.last.weights[unit];
      sentences.push(`Its weight to ${network.classes[reasons.winner]} is ${number(weight)}, so it adds `
        + `${number(reasons.last.inputs[unit] * weight + 0)} to that score.`);
    }
  }
  const tile = layer === 0 ? signed(network, incoming(network, 0, unit), `Weights of neuron ${unit}: orange pixels raise it, blue ones lower it`) : null;
  replace(node, tile, html("p", { "aria-live": "polite" }, html("b", {}, title), html("br"), sentences.join(" "),
    layer === 0 ? html("span", { class: "quiet" }, " Orange: ink here raises it. Blue: ink here lowers it.") : null));
}

/** Numbers of a network's input as a picture. */
function signed(network, values, name) {
  return signedTile(ofPixels(values, network.shape), name, ...network.shape.slice(1));
}

/** The weights that lead into one neuron. */
function incoming(network, layer, unit) {
  const columns = network.sizes[layer + 1];
  return network.parameters[2 * layer].values.filter((_, i) => i % columns === unit);
}

/** The gradient by the pixels, by itself and times the ink. */
export function showPull(node, network, reasons, pixels) {
  const [winner, rival] = [network.classes[reasons.winner], network.classes[reasons.rival]];
  const gradient = reasons.pull.values;
  const size = network.shape.slice(1);
  const timesInk = gradient.map((each, i) => each * pixels[i]);
  replace(node,
    html("p", {}, `What speaks for ${winner} and against ${rival}, which came second. Orange: more ink here helps ${winner}. `
      + `Blue: it helps ${rival}.`),
    html("div", { class: "row pulls" },
      html("figure", {}, signedTile(gradient, `Gradient of the score of ${winner} minus that of ${rival}, by the pixels`, ...size),
        html("figcaption", {}, "the gradient by every pixel")),
      html("figure", {}, signedTile(timesInk, `The same gradient, times the ink of the drawing`, ...size),
        html("figcaption", {}, "times the ink that is there"))));
}

/** Grad-CAM: the places of the last maps that speak for the winner, over the drawing; the reader can take them away. */
export function showEvidence(node, network, reasons, ink) {
  const name = network.classes[reasons.winner];
  const { shape: [high, wide], values } = reasons.evidence;
  const [rows, columns] = network.shape.slice(1);
  if (!values.some((each) => each > 0)) {
    replace(node, html("p", {}, `Nothing in the last maps speaks for ${name}: its score is the highest all the same.`));
    return;
  }
  const overlay = pixels(values, high, wide, { class: "tile places", role: "img", "aria-label": `The places that speak for ${name}` });
  const shown = html("input", { type: "checkbox", checked: "", onchange: () => { overlay.hidden = !shown.checked; } });
  replace(node,
    html("p", {}, `Orange: what lies here in the last maps, ${high} by ${wide} of them, speaks for ${name}.`),
    html("div", { class: "evidence" }, inkTile(ink, "The drawing", rows, columns), overlay),
    html("label", {}, shown, " show the places"));
}

/** The nearest training images, the nearest first. found: as server.nearest() gives it */
export function showNearest(node, found) {
  if (found.why) return replace(node, html("p", { class: "quiet" }, found.why));
  const tiles = found.nearest.map(({ label, distance, pixels, image }) => html("li", {},
    inkTile(image ?? bytes(pixels), null), html("span", {}, html("b", {}, label), html("br"), html("span", { class: "quiet" }, number(distance, 3)))));
  replace(node, html("ol", { class: "nearest" }, tiles),
    html("p", { class: "quiet" }, `Of ${found.of.toLocaleString("en-US")} training images of MNIST: the label, and the distance over all `
      + "pixels from 0 to 1. The network does not look at them when it answers."));
}
