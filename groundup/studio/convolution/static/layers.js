// Every kind of layer in evaluation, forward beside backward: stage 2's mathematics in plain loops and float64, for pages
// without a server. tests/browser compares all numbers with stage 2's.
//
// A layer is as groundup/studio/convolution/embedded.py describes it. x: the numbers that came in, y: those that went out,
// (channels, rows, columns) or (features), flat; slope: d score / d y; past: what a residual block adds.
//
//     forward(layer, x, past) -> y        backward(layer, slope, x, y) -> d score / d x

import { ACTIVATIONS } from "/static/common/activations.js";
import { dense } from "/static/common/network.js";

const zeros = (shape) => new Float64Array(shape.reduce((product, each) => product * each, 1));

/**
 * The windows of one map, week 19's way: one place of the window meets a whole row of outputs. Calls each(out, at, tap, count, step):
 * the outputs out, out + 1, … are `count` places, the inputs under them at, at + step, …, and tap the place in the window.
 */
export function windows({ input: [, high, wide], shape: [, rows, columns], window: [tall, broad], stride: [down, step], padding: [above, left] }, each) {
  for (let i = 0; i < tall; i++)
    for (let j = 0; j < broad; j++) {
      const first = Math.max(0, Math.ceil((left - j) / step));
      const count = Math.min(columns, Math.floor((wide - 1 + left - j) / step) + 1) - first;
      for (let r = 0; r < rows; r++) {
        const row = r * down + i - above;
        if (row >= 0 && row < high && count > 0) each(r * columns + first, row * wide + first * step + j - left, i * broad + j, count, step);
      }
    }
}

/** The same for every pair of maps that a convolution joins, or of the same channel of a pool; tap is the place in the weights. */
function products(layer, each) {
  const [[channels, high, wide], [maps, rows, columns], [tall, broad]] = [layer.input, layer.shape, layer.window];
  for (let o = 0; o < maps; o++)
    for (let c = 0; c < channels; c++) {
      if (layer.kind !== "convolution" && c !== o) continue;
      const [to, from, weight] = [o * rows * columns, c * high * wide, (o * channels + c) * tall * broad];
      windows(layer, (out, at, tap, count, step) => each(to + out, from + at, weight + tap, count, step));
    }
}

/** From a function of one output and one input to one of a row of them. */
export const alongRow = (each) => (out, at, tap, count, step) => { for (let k = 0; k < count; k++) each(out + k, at + k * step); };

/** The channel of each number: of an image its map, of features the feature itself. */
const channelOf = ({ shape: [, rows = 1, columns = 1] }, i) => Math.floor(i / (rows * columns));
const scaleOf = ({ arrays: { gamma, variance }, epsilon }, channel) => gamma[channel] / Math.sqrt(variance[channel] + epsilon);
const sizeOf = ({ window: [rows, columns] }) => rows * columns;

export const LAYERS = {
  convolution: {
    forward(layer, x) {
      const y = zeros(layer.shape).map((_, i) => layer.arrays.bias[channelOf(layer, i)]);
      products(layer, (out, at, tap, count, step) => {
        const weight = layer.arrays.weights[tap];
        for (let k = 0; k < count; k++) y[out + k] += x[at + k * step] * weight;
      });
      return y;
    },
    backward(layer, slope) {
      const back = zeros(layer.input);
      products(layer, (out, at, tap, count, step) => {
        const weight = layer.arrays.weights[tap];
        for (let k = 0; k < count; k++) back[at + k * step] += slope[out + k] * weight;
      });
      return back;
    },
  },
  max: {
    forward(layer, x) {
      const y = zeros(layer.shape).fill(-Infinity);
      products(layer, alongRow((out, at) => { y[out] = Math.max(y[out], x[at]); }));
      return y;
    },
    /** The gradient goes to the winner alone, of equal numbers to the first: what was given is gone. */
    backward(layer, slope, x, y) {
      const [back, left] = [zeros(layer.input), slope.slice()];
      products(layer, alongRow((out, at) => {
        if (x[at] !== y[out]) return;
        back[at] += left[out];
        left[out] = 0;
      }));
      return back;
    },
  },
  average: {
    forward(layer, x) {
      const y = zeros(layer.shape);
      products(layer, alongRow((out, at) => { y[out] += x[at] / sizeOf(layer); }));
      return y;
    },
    backward(layer, slope) {
      const back = zeros(layer.input);
      products(layer, alongRow((out, at) => { back[at] += slope[out] / sizeOf(layer); }));
      return back;
    },
  },
  /** Batch normalisation with the running statistics: each channel is scaled and shifted. */
  norm: {
    forward: (layer, x) => x.map((each, i) => {
      const channel = channelOf(layer, i);
      return (each - layer.arrays.mean[channel]) * scaleOf(layer, channel) + layer.arrays.beta[channel];
    }),
    backward: (layer, slope) => slope.map((each, i) => each * scaleOf(layer, channelOf(layer, i))),
  },
  activation: {
    forward: ({ function: [, name] }, x) => ACTIVATIONS[name].forward(x, x.length),
    backward: ({ function: [, name] }, slope, x, y) => ACTIVATIONS[name].backward(slope, x, y, x.length),
  },
  dense: {
    forward: ({ arrays: { weights, bias } }, x) => dense(x, weights, bias),
    backward: ({ arrays: { weights } }, slope, x) => x.map((_, i) => slope.reduce((sum, each, j) => sum + each * weights[i * slope.length + j], 0)),
  },
  /** The end of a residual block, layers(x) + x: the gradient takes both ways. */
  sum: { forward: (layer, x, past) => x.map((each, i) => each + past[i]), backward: (layer, slope) => slope },
  /** Flatten, and dropout, which drops nothing in evaluation. */
  same: { forward: (layer, x) => x, backward: (layer, slope) => slope },
};
