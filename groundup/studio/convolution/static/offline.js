// The questions of server.js answered in the browser, for an exported page: passes.py, pixel.py and field.py in JavaScript.

import { softmax } from "/static/common/activations.js";
import { LAYERS, alongRow, windows } from "/static/convolution/layers.js";
import { opened } from "/static/convolution/server.js";
import { largestOf } from "/static/digits/tiles.js";

const mapped = (object, of) => Object.fromEntries(Object.entries(object).map(([name, each]) => [name, of(each)]));
const table = (rows, columns, of) => Array.from({ length: rows }, (_, i) => Array.from({ length: columns }, (_, j) => of(i, j)));

/** The layers whose outputs a layer gets; the end of a residual block gets two. */
const sources = ({ kind, before, past }) => (kind === "sum" ? [before, past] : [before]);

/** data: as groundup/studio/convolution/embedded.py makes it. */
export function offline(data) {
  const { network, last, drawn, digits } = opened(data);
  // Layers stand in the order in which they are computed, those of a residual block before the block itself.
  const layers = network.layers.map((layer) => {
    const all = { ...layer.arrays, ...(layer.weights ? { weights: layer.weights } : {}) };
    return { ...layer, arrays: mapped(all, ({ values }) => Float64Array.from(values)) };
  });
  const back = [...layers].reverse();
  const [end, shapes] = [layers.at(-1).number, Object.fromEntries(layers.map(({ number, shape }) => [number, shape]))];
  let latest = {}; // the pass of the drawing that was asked for last

  /** The drawing as the network learned from images, in every channel. */
  function learned(pixels) {
    const { mean, deviation } = network.normalisation ?? { mean: 0, deviation: 1 };
    const image = pixels.map((each) => (each / 255 - mean) / deviation);
    return Float64Array.from(Array.from({ length: network.shape[0] }, () => image).flat());
  }

  /** { outputs, slopes, chosen }: of each layer what came out, and d score / d output. "" is the drawing. */
  function pass(pixels, wanted) {
    if (latest.pixels === pixels && latest.wanted === wanted) return latest;
    const outputs = { "": learned(pixels) };
    for (const layer of layers) outputs[layer.number] = LAYERS[layer.kind].forward(layer, outputs[layer.before], outputs[layer.past]);
    const scores = outputs[end];
    const chosen = wanted ?? scores.indexOf(Math.max(...scores));
    const slopes = mapped(outputs, ({ length }) => new Float64Array(length));
    slopes[end][chosen] = 1;
    for (const layer of back) {
      const slope = LAYERS[layer.kind].backward(layer, slopes[layer.number], outputs[layer.before], outputs[layer.number]);
      for (const source of sources(layer)) slope.forEach((each, i) => { slopes[source][i] += each; });
    }
    latest = { pixels, wanted, outputs, slopes, chosen };
    return latest;
  }

  /** Which pixels of the drawing a place of a layer depends on: those under the windows at the places that are seen. */
  function receptiveField(number, row, column) {
    const seen = { [number]: new Set([row * shapes[number][2] + column]), "": new Set() };
    for (const layer of back) {
      const under = new Set();
      if (seen[layer.number]) windows(layer, alongRow((out, at) => { if (seen[layer.number].has(out)) under.add(at); }));
      for (const source of sources(layer)) seen[source] = new Set([...(seen[source] ?? []), ...under]);
    }
    const [, rows, columns] = network.shape;
    return { shape: [rows, columns], values: Float32Array.from({ length: rows * columns }, (_, i) => Number(seen[""].has(i))) };
  }

  async function maps({ pixels, class: wanted }) {
    const { outputs, slopes, chosen } = pass(pixels, wanted);
    const [scores, shaped] = [outputs[end], Object.fromEntries(layers.map(({ number, shape }) => [number, { shape, values: outputs[number] }]))];
    const answer = { class: chosen, scores: [...scores], shares: [...softmax(scores, scores.length)], outputs: shaped };
    return { ...answer, x: { shape: network.shape, values: outputs[""] }, evidence: gradCam(outputs[last], slopes[last], shapes[last]) };
  }

  async function pixel({ pixels, class: wanted, layer: number, channel, row, column }) {
    await new Promise((resolve) => { setTimeout(resolve); }); // as late as a server's answer: the browser first focuses what was clicked
    const { outputs, slopes } = pass(pixels, wanted);
    const layer = layers.find((each) => each.number === number);
    const { kind, input: [count, high, wide], shape: [maps, rows, columns], window: [tall, broad], stride, padding } = layer;
    const [place, corner] = [(channel * rows + row) * columns + column, [row * stride[0] - padding[0], column * stride[1] - padding[1]]];
    const channels = kind === "convolution" ? [...Array(count).keys()] : [channel];
    const inputs = channels.map((c) => table(tall, broad, (i, j) => {
      const [r, s] = [corner[0] + i, corner[1] + j];
      return r < 0 || r >= high || s < 0 || s >= wide ? 0 : outputs[layer.before][(c * high + r) * wide + s];
    }));
    const [window, value, slope] = [Float64Array.from(inputs.flat(2)), outputs[number][place], slopes[number][place]];
    // The layer on this window alone, with its own arrays: so its backward pass gives the way back from this number.
    const arrays = mapped(layer.arrays, (array) => array.subarray((channel * array.length) / maps, ((channel + 1) * array.length) / maps));
    const alone = { ...layer, arrays, input: [channels.length, tall, broad], shape: [1, 1, 1], padding: [0, 0] };
    const way = LAYERS[kind].backward(alone, Float64Array.of(slope), window, Float64Array.of(value));
    const { weights, ...single } = arrays;
    const numbers = { ...mapped(single, ([each]) => each), ...(kind === "norm" ? { epsilon: layer.epsilon } : {}) };
    if (kind === "max") numbers.winner = window.indexOf(value);
    if (kind === "sum") Object.assign(numbers, { through: window[0], past: outputs[layer.past][place] });
    const shaped = (values) => channels.map((_, k) => table(tall, broad, (i, j) => values[(k * tall + i) * broad + j]));
    const found = { kind, value, slope, corner, numbers, inputs, back: shaped(way), function: layer.function, stages: [] };
    if (weights) {
      const products = shaped(window.map((x, i) => x * weights[i]));
      Object.assign(found, { weights: shaped(weights), sums: products.map((map) => map.flat().reduce((sum, each) => sum + each, 0)) });
    }
    return { ...found, field: receptiveField(number, row, column) };
  }

  const carried = { networks: { networks: [network] }, network, architecture: drawn, digits: { digits } };
  return { ...mapped(carried, (each) => async () => each), maps, pixel };
}

/** groundup/grad_cam.py: the maps, each as strong as the mean of its slopes, added up; what is below 0 counts as 0. */
function gradCam(maps, slopes, [channels, rows, columns]) {
  const size = rows * columns;
  const values = new Float64Array(size);
  for (let channel = 0; channel < channels; channel++) {
    const weight = slopes.subarray(channel * size, (channel + 1) * size).reduce((sum, each) => sum + each, 0) / size;
    for (let i = 0; i < size; i++) values[i] += weight * maps[channel * size + i];
  }
  const evidence = values.map((each) => Math.max(each, 0));
  const largest = largestOf(evidence);
  return { shape: [rows, columns], values: evidence.map((each) => each / largest) };
}
