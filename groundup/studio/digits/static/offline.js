// The questions of server.js answered in the browser, for an exported page: a stack of dense layers, forward and
// backward, in float64. tests/browser compares the numbers with those of stage 2 and of groundup.inside.

import { ACTIVATIONS, softmax } from "/static/common/activations.js";
import { bytes } from "/static/common/embedded.js";
import { forward } from "/static/common/network.js";
import { unpackedNetwork } from "/static/digits/server.js";

const PIXELS = 784;

/** data: as groundup/studio/digits/embedded.py makes it. */
export function offline(data) {
  const about = unpackedNetwork(data.network);
  const float64 = about.parameters.map(({ values }) => Float64Array.from(values));
  const net = {
    sizes: about.sizes, activation: about.activation,
    weights: float64.filter((_, i) => i % 2 === 0), biases: float64.filter((_, i) => i % 2 === 1),
  };
  const images = bytes(data.images.pixels);

  /** The drawing as the network learned from images: pixel / 255, normalised if its training did that. */
  function learned(pixels) {
    const { mean, deviation } = about.normalisation ?? { mean: 0, deviation: 1 };
    return Float64Array.from(pixels, (each) => (each / 255 - mean) / deviation);
  }

  async function answers(name, pixels) {
    const started = performance.now();
    const scores = forward(net, learned(pixels)).at(-1).output;
    const probabilities = softmax(scores, scores.length);
    const seconds = (performance.now() - started) / 1000;
    return [{ number: null, version: about.version, scores: [...scores], probabilities: [...probabilities], seconds }];
  }

  async function reasons(name, pixels) {
    const x = learned(pixels);
    const trace = forward(net, x);
    const scores = [...trace.at(-1).output];
    // The first of equals, as in Python: sort keeps their order.
    const [winner, rival] = scores.map((_, i) => i).sort((a, b) => scores[b] - scores[a]);
    const layers = trace.slice(0, -1).map(({ output }, i) => ({
      words: `hidden layer ${i + 1}: ${output.length} neurons, ${net.activation}`, shape: [output.length], values: output,
    }));
    const inputs = trace.length > 1 ? trace.at(-2).output : x;
    const weights = column(net.weights.at(-1), scores.length, winner);
    const values = pull(trace, winner, rival);
    const last = { inputs, weights, bias: net.biases.at(-1)[winner] };
    return { version: about.version, winner, rival, layers, pull: { shape: [PIXELS], values }, evidence: null, last };
  }

  /** d (score[winner] - score[rival]) / dx: backpropagation that starts at the scores instead of a loss. */
  function pull(trace, winner, rival) {
    let grad = new Float64Array(net.sizes.at(-1));
    grad[winner] += 1;
    grad[rival] -= 1;
    for (let layer = net.weights.length - 1; layer >= 0; layer--) {
      grad = timesTransposed(grad, net.weights[layer]);
      if (layer > 0) {
        const { z, output } = trace[layer - 1];
        grad = ACTIVATIONS[net.activation].backward(grad, z, output, net.sizes[layer]);
      }
    }
    return grad;
  }

  async function nearest(name, pixels) {
    const labels = data.images.labels;
    const found = labels.map((label, i) => {
      const image = images.subarray(i * PIXELS, (i + 1) * PIXELS);
      let sum = 0;
      for (let k = 0; k < PIXELS; k++) sum += ((image[k] - pixels[k]) / 255) ** 2;
      return { label, distance: Math.sqrt(sum), image };
    });
    found.sort((a, b) => a.distance - b.distance);
    return { nearest: found.slice(0, 8), of: labels.length, why: data.why };
  }

  return { network: async () => about, networks: async () => [about], answers, reasons, nearest };
}

function column(matrix, columns, chosen) {
  return matrix.filter((_, i) => i % columns === chosen);
}

/** grad Wᵀ: grad (columns,), matrix (rows, columns) -> (rows,). */
function timesTransposed(grad, matrix) {
  const columns = grad.length;
  const found = new Float64Array(matrix.length / columns);
  for (let i = 0; i < found.length; i++)
    for (let j = 0; j < columns; j++) found[i] += grad[j] * matrix[i * columns + j];
  return found;
}
