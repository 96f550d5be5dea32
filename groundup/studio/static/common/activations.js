/**
 * What a layer does after z = xW + b, each function beside its derivative: stage 2's activations in JavaScript.
 *
 * z, output and grad are typed arrays of rows * columns numbers, row after row. `forward` returns the output, a new
 * array; `backward` returns dL/dz, a new array, from grad = dL/doutput.
 */

export const LEAKY_SLOPE = 0.01;

/** An activation that looks at one number at a time. slope: (z, output) -> doutput/dz */
const elementwise = (value, slope) => ({
  forward: (z) => z.map(value),
  backward: (grad, z, output) => grad.map((each, i) => each * slope(z[i], output[i])),
});

const softmaxActivation = {
  forward: (z, columns) => softmax(z, columns),
  /** dL/dz_i = s_i (g_i - sum over j of g_j s_j): each output of a row depends on every z of the row. */
  backward: (grad, z, output, columns) => {
    const result = grad.slice();
    for (let start = 0; start < grad.length; start += columns) {
      let weighted = 0;
      for (let j = 0; j < columns; j++) weighted += grad[start + j] * output[start + j];
      for (let j = 0; j < columns; j++) result[start + j] = output[start + j] * (grad[start + j] - weighted);
    }
    return result;
  },
};

/** By its name in shared/names.py, { forward(z, columns), backward(grad, z, output, columns) }; in the playground's order. */
export const ACTIVATIONS = {
  tanh: elementwise(Math.tanh, (z, output) => 1 - output * output),
  // A comparison that NaN fails, so that NaN passes on, as on every floor.
  relu: elementwise((z) => (z <= 0 ? 0 : z), (z) => (z <= 0 ? 0 : 1)),
  leaky_relu: elementwise((z) => (z <= 0 ? LEAKY_SLOPE * z : z), (z) => (z > 0 ? 1 : LEAKY_SLOPE)),
  sigmoid: elementwise((z) => 1 / (1 + Math.exp(-z)), (z, output) => output * (1 - output)),
  identity: elementwise((z) => z, () => 1),
  softmax: softmaxActivation,
};

/**
 * exp(z) / sum of exp(z) over each row: positive numbers that add up to 1, in a new array.
 *
 * Subtracting the row's maximum changes nothing (it cancels) and keeps exp from overflowing.
 */
export function softmax(z, columns) {
  const result = z.slice();
  for (let start = 0; start < z.length; start += columns) {
    let largest = -Infinity;
    for (let j = start; j < start + columns; j++) largest = Math.max(largest, z[j]);
    let sum = 0;
    for (let j = start; j < start + columns; j++) sum += result[j] = Math.exp(z[j] - largest);
    for (let j = start; j < start + columns; j++) result[j] /= sum;
  }
  return result;
}
