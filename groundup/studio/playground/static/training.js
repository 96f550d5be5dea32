/**
 * One training step of a dense network, as stage 2 defines it: loss, backward pass, optimizer.
 *
 * The forward pass is in /static/common/network.js, with the shapes of everything here. labels are whole numbers, one
 * for each row of the batch. tests/browser trains 100 steps with this file and with stage 2, and compares to 1e-5.
 */

import { ACTIVATIONS, softmax } from "/static/common/activations.js";
import { forward } from "/static/common/network.js";

/** 1 where column j of row i is the label of the row, else 0: the targets of losses that take numbers. */
const target = (labels, i, classes) => (labels[Math.floor(i / classes)] === i % classes ? 1 : 0);

const sigmoid = (z) => 1 / (1 + Math.exp(-z));

/** By its name in the library: value(outputs, labels, classes) -> number; gradient(…) -> dL/doutputs, a new array. */
export const LOSSES = {
  mean_squared_error: {
    value: (outputs, labels, classes) => mean(outputs.map((o, i) => (o - target(labels, i, classes)) ** 2)),
    gradient: (outputs, labels, classes) =>
      outputs.map((o, i) => (2 * (o - target(labels, i, classes))) / outputs.length),
  },
  softmax_cross_entropy: {
    /** The mean over the rows of log(sum of exp(z - m)) - (z_label - m), with m the largest z of the row. */
    value: (outputs, labels, classes) => {
      let sum = 0;
      labels.forEach((label, row) => {
        const z = outputs.subarray(row * classes, (row + 1) * classes);
        const largest = z.reduce((a, b) => Math.max(a, b), -Infinity);
        const exponentials = z.reduce((total, each) => total + Math.exp(each - largest), 0);
        sum += Math.log(exponentials) - (z[label] - largest);
      });
      return sum / labels.length;
    },
    gradient: (outputs, labels, classes) =>
      softmax(outputs, classes).map((s, i) => (s - target(labels, i, classes)) / labels.length),
  },
  sigmoid_cross_entropy: {
    /** max(z, 0) - z t + log(1 + exp(-|z|)), which is finite for any finite z. */
    value: (outputs, labels, classes) =>
      mean(outputs.map((z, i) => Math.max(z, 0) - z * target(labels, i, classes) + Math.log1p(Math.exp(-Math.abs(z))))),
    gradient: (outputs, labels, classes) =>
      outputs.map((z, i) => (sigmoid(z) - target(labels, i, classes)) / outputs.length),
  },
  hinge: {
    value: (outputs, labels, classes) => mean(margins(outputs, labels, classes).map((each) => Math.max(0, each))),
    gradient: (outputs, labels, classes) => {
      const result = margins(outputs, labels, classes).map((each) => (each > 0 ? 1 / outputs.length : 0));
      labels.forEach((label, row) => {
        const within = result.subarray(row * classes, (row + 1) * classes);
        within[label] = -within.reduce((a, b) => a + b, 0);
      });
      return result;
    },
  },
};

/** 1 - s_label + s_j for every class j, 0 for the label itself. */
function margins(outputs, labels, classes) {
  return outputs.map((score, i) => {
    const row = Math.floor(i / classes);
    return labels[row] === i % classes ? 0 : 1 - outputs[row * classes + labels[row]] + score;
  });
}

function mean(values) {
  return values.reduce((a, b) => a + b, 0) / values.length;
}

/**
 * Forward and backward for a batch: { loss, gradients }, gradients [dL/dW1, dL/db1, …] in the order of `parameters`.
 *
 * masks: null, or one array for each hidden layer, shaped like its output, of 0 and 1 / (1 - rate)
 */
export function lossAndGradients(network, x, labels, loss, masks = null) {
  const layers = forward(network, x, masks);
  const activation = ACTIVATIONS[network.activation];
  const classes = network.sizes.at(-1);
  const outputs = layers.at(-1).output;
  const gradients = [];
  let grad = LOSSES[loss].gradient(outputs, labels, classes);
  for (let i = network.weights.length - 1; i >= 0; i--) {
    const input = i > 0 ? layers[i - 1].passed : x;
    const [inputs, width] = [network.sizes[i], network.sizes[i + 1]];
    gradients.unshift(...weightGradients(input, grad, inputs, width));
    if (i === 0) break; // the gradient of the data itself is not needed
    grad = throughWeights(grad, network.weights[i], inputs, width);
    if (masks) grad = grad.map((each, k) => each * masks[i - 1][k]);
    grad = activation.backward(grad, layers[i - 1].z, layers[i - 1].output, inputs);
  }
  return { loss: LOSSES[loss].value(outputs, labels, classes), gradients };
}

/** [xᵀ grad, the column sums of grad]: x (rows, inputs), grad (rows, width) -> (inputs, width) and (width). */
function weightGradients(x, grad, inputs, width) {
  const weights = new Float64Array(inputs * width);
  const bias = new Float64Array(width);
  for (let row = 0; row < grad.length / width; row++) {
    for (let j = 0; j < width; j++) {
      const slope = grad[row * width + j];
      bias[j] += slope;
      for (let k = 0; k < inputs; k++) weights[k * width + j] += x[row * inputs + k] * slope;
    }
  }
  return [weights, bias];
}

/** grad Wᵀ: grad (rows, width), weights (inputs, width) -> (rows, inputs). */
function throughWeights(grad, weights, inputs, width) {
  const rows = grad.length / width;
  const result = new Float64Array(rows * inputs);
  for (let row = 0; row < rows; row++) {
    for (let k = 0; k < inputs; k++) {
      let sum = 0;
      for (let j = 0; j < width; j++) sum += grad[row * width + j] * weights[k * width + j];
      result[row * inputs + k] = sum;
    }
  }
  return result;
}

/** [W1, b1, W2, b2, …]: the network's own arrays. */
export function parameters(network) {
  return network.weights.flatMap((weights, i) => [weights, network.biases[i]]);
}
