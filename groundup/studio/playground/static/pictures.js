/**
 * What is drawn of a network, computed in the browser: the same numbers as groundup/studio/playground/picture.py.
 *
 * surface: one byte a cell, class * LEVELS + round((LEVELS - 1) * lead); lead is how far the best answer is ahead of
 * the second. tiles: for each layer a signed byte for each cell of each neuron, its output beside its own largest;
 * largest: those largest outputs.
 */

import { softmax } from "/static/common/activations.js";
import { forward, predict } from "/static/common/network.js";
import { LOSSES } from "/static/playground/training.js";

export const EDGE = 1.2;
export const [GRID, TILE] = [50, 25];
export const LEVELS = 51;
export const DRAWN = 16;

/** The cells' centres as a batch, row after row, the highest x2 first. */
function cells() {
  const at = (i) => ((i + 0.5) / GRID) * 2 * EDGE - EDGE;
  const batch = new Float64Array(GRID * GRID * 2);
  for (let row = 0; row < GRID; row++) {
    for (let column = 0; column < GRID; column++) batch.set([at(column), -at(row)], 2 * (row * GRID + column));
  }
  return batch;
}

const CELLS = cells();

/** { loss, accuracy } of the network for the points of a part. */
export function measured(network, points, loss) {
  const classes = network.sizes.at(-1);
  const labels = points.map((point) => point[2]);
  const outputs = forward(network, batchOf(points)).at(-1).output;
  const right = predict(outputs, classes).filter((each, i) => each === labels[i]).length;
  return { loss: LOSSES[loss].value(outputs, labels, classes), accuracy: right / points.length };
}

/** The points' coordinates as a batch. */
export function batchOf(points) {
  return Float64Array.from(points.flatMap((point) => [point[0], point[1]]));
}

/** { surface, tiles, largest } of a network with two inputs. */
export function grids(network, loss) {
  const layers = forward(network, CELLS);
  const classes = network.sizes.at(-1);
  const drawn = layers.map((layer, i) => tilesOf(layer.output, network.sizes[i + 1]));
  return {
    surface: surfaceOf(answers(layers.at(-1).output, loss, classes), classes),
    tiles: drawn.map((each) => each.tiles),
    largest: drawn.map((each) => each.largest),
  };
}

/** The share of the points for which each hidden neuron is not 0, layer by layer. */
export function activeShares(network, points) {
  const layers = forward(network, batchOf(points)).slice(0, -1);
  return layers.map(({ output }, i) => {
    const width = network.sizes[i + 1];
    const counts = new Array(width).fill(0);
    output.forEach((value, k) => { counts[k % width] += value !== 0 ? 1 : 0; });
    return counts.map((count) => count / points.length);
  });
}

/** The outputs on the scale on which the loss judges them, where a lead of 1 is the clearest answer. */
function answers(outputs, loss, classes) {
  if (loss === "softmax_cross_entropy") return softmax(outputs, classes);
  if (loss === "sigmoid_cross_entropy") return outputs.map((z) => 1 / (1 + Math.exp(-z)));
  return outputs;
}

function surfaceOf(values, classes) {
  const result = new Uint8Array(GRID * GRID);
  for (let cell = 0; cell < result.length; cell++) {
    let [best, first, second] = [0, -Infinity, -Infinity];
    for (let j = 0; j < classes; j++) {
      const value = finite(values[cell * classes + j]);
      if (value > first) [best, first, second] = [j, value, first];
      else if (value > second) second = value;
    }
    const lead = Math.min(1, Math.max(0, first - second));
    result[cell] = best * LEVELS + Math.round(lead * (LEVELS - 1));
  }
  return result;
}

/** Every second cell of the drawn neurons, each beside its own largest: { tiles, largest }. */
function tilesOf(output, width) {
  const neurons = Math.min(width, DRAWN);
  const cellsOfTile = TILE * TILE;
  const tiles = new Int8Array(neurons * cellsOfTile);
  const largest = [];
  const values = new Float64Array(cellsOfTile);
  for (let neuron = 0; neuron < neurons; neuron++) {
    let most = 0;
    for (let cell = 0; cell < cellsOfTile; cell++) {
      const [row, column] = [2 * Math.floor(cell / TILE) + 1, 2 * (cell % TILE)];
      values[cell] = finite(output[(row * GRID + column) * width + neuron]);
      most = Math.max(most, Math.abs(values[cell]));
    }
    for (let cell = 0; cell < cellsOfTile; cell++) tiles[neuron * cellsOfTile + cell] = Math.round((127 * values[cell]) / (most || 1));
    largest.push(most);
  }
  return { tiles, largest };
}

function finite(value) {
  return Number.isFinite(value) ? value : 0;
}
