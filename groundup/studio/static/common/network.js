/**
 * The forward pass of a dense network, as stage 2 computes it: for pages that work without a server.
 *
 * A network here is { sizes, weights, biases, activation }: sizes [in_features, hidden, …, out_features]; weights[i] a
 * typed array of sizes[i] * sizes[i + 1] numbers, row after row as in the library; biases[i] of sizes[i + 1] numbers.
 * A batch is a typed array of rows * sizes[0] numbers. tests/browser compares the results with stage 2's, to 1e-5.
 */

import { ACTIVATIONS } from "/static/common/activations.js";

/**
 * A network from the library's list of parameters [W1, b1, W2, b2, …] as nested arrays, in float64.
 *
 * Throws an Error if a weight matrix does not fit its bias or the layer before it.
 */
export function fromParameters(parameters, activation) {
  if (!(activation in ACTIVATIONS)) throw new Error(`unknown activation ${activation}`);
  const network = { sizes: [parameters[0].length], weights: [], biases: [], activation };
  for (let i = 0; i < parameters.length; i += 2) {
    const [rows, bias] = [parameters[i], parameters[i + 1]];
    if (rows.length !== network.sizes.at(-1) || rows.some((row) => row.length !== bias.length)) {
      throw new Error(`W${i / 2 + 1} should be ${network.sizes.at(-1)} rows of ${bias.length} numbers`);
    }
    network.weights.push(Float64Array.from(rows.flat()));
    network.biases.push(Float64Array.from(bias));
    network.sizes.push(bias.length);
  }
  return network;
}

/** xW + b: x (rows, inputs), weights (inputs, outputs), bias (outputs) -> a new array (rows, outputs). */
export function dense(x, weights, bias) {
  const outputs = bias.length;
  const inputs = weights.length / outputs;
  const rows = x.length / inputs;
  const result = new weights.constructor(rows * outputs);
  for (let row = 0; row < rows; row++) {
    const start = row * outputs;
    result.set(bias, start);
    for (let k = 0; k < inputs; k++) {
      const value = x[row * inputs + k];
      // Along a row of the weights: neighbouring numbers in memory, as in stage 3's product.
      for (let j = 0; j < outputs; j++) result[start + j] += value * weights[k * outputs + j];
    }
  }
  return result;
}

/**
 * Every layer's numbers for a batch, the first layer first: [{ z, output }, …].
 *
 * The activation follows every layer but the last, whose output is its z: the scores that `scores` returns.
 * masks: one array for each hidden layer, of 0 and 1 / (1 - rate), or null; then `passed` is what the next layer
 * receives, and without masks it is the output itself.
 */
export function forward(network, x, masks = null) {
  const last = network.weights.length - 1;
  const activate = ACTIVATIONS[network.activation].forward;
  let signal = x;
  return network.weights.map((weights, i) => {
    const z = dense(signal, weights, network.biases[i]);
    const output = i < last ? activate(z, network.sizes[i + 1]) : z;
    const passed = masks && i < last ? output.map((value, k) => value * masks[i][k]) : output;
    signal = passed;
    return { z, output, passed };
  });
}

/** The last layer's raw output for a batch, (rows, out_features): what `Network.forward` returns in the library. */
export function scores(network, x) {
  return forward(network, x).at(-1).output;
}

/** The number of the largest score of each row, the first of equals: the predicted classes. */
export function predict(rowsOfScores, classes) {
  const result = [];
  for (let start = 0; start < rowsOfScores.length; start += classes) {
    const row = rowsOfScores.subarray(start, start + classes);
    result.push(row.indexOf(Math.max(...row)));
  }
  return result;
}
