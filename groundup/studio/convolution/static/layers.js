// Every kind of layer in evaluation, forward beside backward: stage 2's mathematics in plain loops and float64. So an exported
// page computes without a server; tests/browser compares all of its numbers with stage 2's.
//
// A layer is as groundup/studio/convolution/embedded.py describes it, its arrays as Float64Array. x: the numbers that came in,
// y: those that went out, (channels, rows, columns) or (features), flat; slope: d score / d y.
//
//     forward(layer, x, past)               y; past: what a residual block adds
//     backward(layer, slope, x, y)          d score / d x
//     number(layer, window, channel, value) of one number of y: { share: d value / d window, numbers: what else it was made of }

import { ACTIVATIONS } from "/static/common/activations.js";
import { dense } from "/static/common/network.js";

const zeros = (shape) => new Float64Array(shape.reduce((product, each) => product * each, 1));

/** Call each(place in the output, place in the input, place in the window) for one map, where the window lies on the input. */
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

/** Call each(place in y, place in x, place in the weights) for every product of a convolution. */
function products(layer, each) {
  const [[channels, high, wide], [maps, rows, columns], [tall, broad]] = [layer.input, layer.shape, layer.window];
  for (let o = 0; o < maps; o++)
    for (let c = 0; c < channels; c++) {
      const [out, at, weight] = [o * rows * columns, c * high * wide, (o * channels + c) * tall * broad];
      windows(layer, (place, source, tap) => each(out + place, at + source, weight + tap));
    }
}

/** Call each(place in y, place in x) for every number of every window of a pool. */
function pooled(layer, each) {
  const [[channels, high, wide], [, rows, columns]] = [layer.input, layer.shape];
  for (let c = 0; c < channels; c++) windows(layer, (place, source) => each(c * rows * columns + place, c * high * wide + source));
}

/** The channel of each number: of an image its map, of features the feature itself. */
const channelOf = ({ shape: [, rows = 1, columns = 1] }, i) => Math.floor(i / (rows * columns));
const scaleOf = ({ gamma, running_var: variance, epsilon }, channel) => gamma[channel] / Math.sqrt(variance[channel] + epsilon);

const passing = { forward: (layer, x) => x, backward: (layer, slope) => slope, number: (layer, window) => ({ share: window.map(() => 1), numbers: {} }) };

export const LAYERS = {
  convolution: {
    forward(layer, x) {
      const y = zeros(layer.shape).map((_, i) => layer.bias[channelOf(layer, i)]);
      products(layer, (out, at, weight) => { y[out] += x[at] * layer.weights[weight]; });
      return y;
    },
    backward(layer, slope) {
      const back = zeros(layer.input);
      products(layer, (out, at, weight) => { back[at] += slope[out] * layer.weights[weight]; });
      return back;
    },
    number: ({ weights, bias }, window, channel) => ({
      share: weights.subarray(channel * window.length, (channel + 1) * window.length), numbers: { bias: bias[channel] },
    }),
  },
  max: {
    forward(layer, x) {
      const y = zeros(layer.shape).fill(-Infinity);
      pooled(layer, (out, at) => { y[out] = Math.max(y[out], x[at]); });
      return y;
    },
    /** The gradient goes to the winner alone, of equal numbers to the first: what was given is gone. */
    backward(layer, slope, x, y) {
      const [back, left] = [zeros(layer.input), slope.slice()];
      pooled(layer, (out, at) => {
        if (x[at] !== y[out]) return;
        back[at] += left[out];
        left[out] = 0;
      });
      return back;
    },
    number(layer, window, channel, value) {
      const winner = window.indexOf(value);
      return { share: window.map((_, i) => Number(i === winner)), numbers: { winner } };
    },
  },
  average: {
    forward(layer, x) {
      const [y, size] = [zeros(layer.shape), layer.window[0] * layer.window[1]];
      pooled(layer, (out, at) => { y[out] += x[at] / size; });
      return y;
    },
    backward(layer, slope) {
      const [back, size] = [zeros(layer.input), layer.window[0] * layer.window[1]];
      pooled(layer, (out, at) => { back[at] += slope[out] / size; });
      return back;
    },
    number: (layer, window) => ({ share: window.map(() => 1 / window.length), numbers: {} }),
  },
  /** Batch normalisation with the running statistics: each channel is scaled and shifted. */
  norm: {
    forward: (layer, x) => x.map((each, i) => {
      const channel = channelOf(layer, i);
      return (each - layer.running_mean[channel]) * scaleOf(layer, channel) + layer.beta[channel];
    }),
    backward: (layer, slope) => slope.map((each, i) => each * scaleOf(layer, channelOf(layer, i))),
    number(layer, window, channel) {
      const names = { mean: "running_mean", variance: "running_var", gamma: "gamma", beta: "beta" };
      const own = Object.entries(names).map(([name, array]) => [name, layer[array][channel]]);
      return { share: window.map(() => scaleOf(layer, channel)), numbers: { ...Object.fromEntries(own), epsilon: layer.epsilon } };
    },
  },
  activation: {
    forward: ({ function: [, name] }, x) => ACTIVATIONS[name].forward(x, x.length),
    backward: ({ function: [, name] }, slope, x, y) => ACTIVATIONS[name].backward(slope, x, y, x.length),
    number: ({ function: [, name] }, window, channel, value) => (
      { share: ACTIVATIONS[name].backward(Float64Array.of(1), window, Float64Array.of(value), 1), numbers: {} }),
  },
  dense: {
    forward: ({ weights, bias }, x) => dense(x, weights, bias),
    backward: ({ weights }, slope, x) => x.map((_, i) => slope.reduce((sum, each, j) => sum + each * weights[i * slope.length + j], 0)),
  },
  /** The end of a residual block, layers(x) + x: the gradient takes both ways. */
  sum: { ...passing, forward: (layer, x, past) => x.map((each, i) => each + past[i]) },
  /** Flatten, and dropout, which drops nothing in evaluation. */
  same: passing,
};
