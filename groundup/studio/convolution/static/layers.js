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

/** Call each(place in the output, place in the input, place in the window) for one map, where its windows lie on the input. */
export function windows({ input: [, high, wide], shape: [, rows, columns], window: [tall, broad], stride: [down, right], padding: [above, left] }, each) {
  for (let r = 0; r < rows; r++)
    for (let s = 0; s < columns; s++)
      for (let i = 0; i < tall; i++)
        for (let j = 0; j < broad; j++) {
          const row = r * down + i - above;
          const column = s * right + j - left;
          if (row >= 0 && row < high && column >= 0 && column < wide) each(r * columns + s, row * wide + column, i * broad + j);
        }
}

/** Call each(place in y, place in x, place in the weights) for every product of a convolution, and for every number of a pool's windows. */
function products(layer, each) {
  const [[channels, high, wide], [maps, rows, columns], [tall, broad]] = [layer.input, layer.shape, layer.window];
  for (let o = 0; o < maps; o++)
    for (let c = 0; c < channels; c++) {
      if (layer.kind !== "convolution" && c !== o) continue; // a pool's map has windows in its own channel alone
      const [out, at, weight] = [o * rows * columns, c * high * wide, (o * channels + c) * tall * broad];
      windows(layer, (place, source, tap) => each(out + place, at + source, weight + tap));
    }
}

/** The channel of each number: of an image its map, of features the feature itself. */
const channelOf = ({ shape: [, rows = 1, columns = 1] }, i) => Math.floor(i / (rows * columns));
const scaleOf = ({ arrays: { gamma, variance }, epsilon }, channel) => gamma[channel] / Math.sqrt(variance[channel] + epsilon);
const sizeOf = ({ window: [rows, columns] }) => rows * columns;

export const LAYERS = {
  convolution: {
    forward(layer, x) {
      const y = zeros(layer.shape).map((_, i) => layer.arrays.bias[channelOf(layer, i)]);
      products(layer, (out, at, weight) => { y[out] += x[at] * layer.arrays.weights[weight]; });
      return y;
    },
    backward(layer, slope) {
      const back = zeros(layer.input);
      products(layer, (out, at, weight) => { back[at] += slope[out] * layer.arrays.weights[weight]; });
      return back;
    },
  },
  max: {
    forward(layer, x) {
      const y = zeros(layer.shape).fill(-Infinity);
      products(layer, (out, at) => { y[out] = Math.max(y[out], x[at]); });
      return y;
    },
    /** The gradient goes to the winner alone, of equal numbers to the first: what was given is gone. */
    backward(layer, slope, x, y) {
      const [back, left] = [zeros(layer.input), slope.slice()];
      products(layer, (out, at) => {
        if (x[at] !== y[out]) return;
        back[at] += left[out];
        left[out] = 0;
      });
      return back;
    },
  },
  average: {
    forward(layer, x) {
      const y = zeros(layer.shape);
      products(layer, (out, at) => { y[out] += x[at] / sizeOf(layer); });
      return y;
    },
    backward(layer, slope) {
      const back = zeros(layer.input);
      products(layer, (out, at) => { back[at] += slope[out] / sizeOf(layer); });
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
