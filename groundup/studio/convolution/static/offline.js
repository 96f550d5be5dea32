// The questions of server.js answered in the browser, for an exported page: passes.py, pixel.py and field.py in JavaScript.

import { softmax } from "/static/common/activations.js";
import { bytes } from "/static/common/embedded.js";
import { LAYERS, windows } from "/static/convolution/layers.js";
import { withFilters } from "/static/convolution/server.js";
import { unpacked } from "/static/digits/server.js";
import { largestOf } from "/static/digits/tiles.js";

/** data: as groundup/studio/convolution/embedded.py makes it. */
export function offline(data) {
  const network = withFilters(data.network);
  // Layers stand in the order in which they are computed, those of a residual block before the block itself.
  const layers = network.layers.map(({ arrays, weights, ...layer }) => {
    const all = Object.entries(arrays).map(([name, array]) => [name, unpacked(array)]);
    const numbers = [...all, ...(weights ? [["weights", weights]] : [])].map(([name, { values }]) => [name, Float64Array.from(values)]);
    return { ...layer, ...Object.fromEntries(numbers) };
  });
  const [end, shapes] = [layers.at(-1).number, Object.fromEntries(layers.map(({ number, shape }) => [number, shape]))];
  let last = null; // the pass of the drawing that was asked for last

  /** The drawing as the network learned from images, in every channel. */
  function learned(pixels) {
    const { mean, deviation } = network.normalisation ?? { mean: 0, deviation: 1 };
    const image = pixels.map((each) => (each / 255 - mean) / deviation);
    return Float64Array.from(Array.from({ length: network.shape[0] }, () => image).flat());
  }

  /** { outputs, slopes, chosen }: of each layer what came out, and d score / d output. "" is the drawing. */
  function pass(pixels, wanted) {
    if (last?.pixels === pixels && last.wanted === wanted) return last;
    const outputs = { "": learned(pixels) };
    for (const layer of layers) outputs[layer.number] = LAYERS[layer.kind].forward(layer, outputs[layer.before], outputs[layer.past]);
    const scores = outputs[end];
    const chosen = wanted ?? scores.indexOf(Math.max(...scores));
    const slopes = Object.fromEntries(Object.entries(outputs).map(([number, { length }]) => [number, new Float64Array(length)]));
    slopes[end][chosen] = 1;
    for (const layer of [...layers].reverse()) {
      const back = LAYERS[layer.kind].backward(layer, slopes[layer.number], outputs[layer.before], outputs[layer.number]);
      for (const source of sources(layer)) back.forEach((each, i) => { slopes[source][i] += each; });
    }
    last = { pixels, wanted, outputs, slopes, chosen };
    return last;
  }

  /** Which pixels of the drawing a place of a layer depends on: those under the windows at the places that are seen. */
  function receptiveField(number, row, column) {
    const seen = { [number]: new Set([row * shapes[number][2] + column]), "": new Set() };
    for (const layer of [...layers].reverse()) {
      const under = new Set();
      if (seen[layer.number]) windows(layer, (out, at) => { if (seen[layer.number].has(out)) under.add(at); });
      for (const source of sources(layer)) seen[source] = new Set([...(seen[source] ?? []), ...under]);
    }
    const [, rows, columns] = network.shape;
    return { shape: [rows, columns], values: Float32Array.from({ length: rows * columns }, (_, i) => Number(seen[""].has(i))) };
  }

  async function maps({ pixels, class: wanted }) {
    const { outputs, slopes, chosen } = pass(pixels, wanted);
    const scores = outputs[end];
    const shaped = layers.map(({ number, shape }) => [number, { shape, values: outputs[number] }]);
    const evidence = gradCam(outputs[data.last], slopes[data.last], shapes[data.last]);
    const answer = { class: chosen, scores: [...scores], shares: [...softmax(scores, scores.length)], evidence };
    return { ...answer, x: { shape: network.shape, values: outputs[""] }, outputs: Object.fromEntries(shaped) };
  }

  async function clicked({ pixels, class: wanted, layer: number, channel, row, column }) {
    await new Promise((resolve) => { setTimeout(resolve); }); // as late as a server's answer: the browser first focuses what was clicked
    const { outputs, slopes } = pass(pixels, wanted);
    const layer = layers.find((each) => each.number === number);
    const { kind, input: [count, high, wide], shape: [, rows, columns], window: [tall, broad], stride, padding } = layer;
    const corner = [row * stride[0] - padding[0], column * stride[1] - padding[1]];
    const channels = kind === "convolution" ? [...Array(count).keys()] : [channel];
    const inputs = channels.map((c) => table(tall, broad, (i, j) => {
      const [r, s] = [corner[0] + i, corner[1] + j];
      return r < 0 || r >= high || s < 0 || s >= wide ? 0 : outputs[layer.before][(c * high + r) * wide + s];
    }));
    const place = (channel * rows + row) * columns + column;
    const [value, slope] = [outputs[number][place], slopes[number][place]];
    const { share, numbers } = LAYERS[kind].number(layer, Float64Array.from(inputs.flat(2)), channel, value);
    const each = (of) => channels.map((_, k) => table(tall, broad, (i, j) => of((k * tall + i) * broad + j)));
    const found = { kind, value, slope, corner, numbers, inputs, back: each((i) => slope * share[i]), function: layer.function, stages: [] };
    if (kind === "sum") found.numbers = { through: inputs[0][0][0], past: outputs[layer.past][place] };
    if (kind === "convolution") {
      found.weights = each((i) => share[i]);
      found.sums = inputs.map((map, k) => map.flat().reduce((sum, x, i) => sum + x * share[k * tall * broad + i], 0));
    }
    return { ...found, field: receptiveField(number, row, column) };
  }

  return {
    networks: async () => [network], network: async () => network, architecture: async () => data.drawn,
    digits: async () => data.digits.map(bytes), maps, clicked,
  };
}

/** The layers whose outputs a layer gets; to a residual block's end come two. */
function sources({ kind, before, past }) {
  return kind === "sum" ? [before, past] : [before];
}

function table(rows, columns, of) {
  return Array.from({ length: rows }, (_, i) => Array.from({ length: columns }, (_, j) => of(i, j)));
}

/** groundup/grad_cam.py: the maps, each as strong as the mean of its slopes, added up; what is below 0 counts as 0. */
function gradCam(maps, slopes, [channels, rows, columns]) {
  const size = rows * columns;
  const values = new Float64Array(size);
  for (let channel = 0; channel < channels; channel++) {
    const own = slopes.subarray(channel * size, (channel + 1) * size);
    const weight = own.reduce((sum, each) => sum + each, 0) / size;
    for (let i = 0; i < size; i++) values[i] += weight * maps[channel * size + i];
  }
  const evidence = values.map((each) => Math.max(each, 0));
  const largest = largestOf(evidence);
  return { shape: [rows, columns], values: evidence.map((each) => each / largest) };
}
