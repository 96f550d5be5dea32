// Small pictures: pixels of ink, 28 by 28 unless another size is given, or of numbers from blue, below 0, to orange, above 0.

import { html, oncolours, pixels } from "/static/common/draw.js";

/**
 * Ink on paper in the reader's colours. values: rows * columns numbers from 0 to 255.
 * name: what is seen, for a reader who listens; without it the picture is decoration of the text beside it.
 */
export function inkTile(values, name, rows = 28, columns = 28) {
  const tile = html("canvas", { width: columns, height: rows, class: "tile ink", ...named(name) });
  tile.values = values;
  ink(tile);
  return tile;
}

/** Draw a tile's ink in the colour of the text around it. */
function ink(tile) {
  const context = tile.getContext("2d");
  const image = context.createImageData(tile.width, tile.height);
  const [red, green, blue] = getComputedStyle(document.body).color.match(/[\d.]+/g).map(Number);
  for (let i = 0; i < tile.width * tile.height; i++) image.data.set([red, green, blue, tile.values[i]], 4 * i);
  context.putImageData(image, 0, 0);
}

oncolours(() => document.querySelectorAll("canvas.ink").forEach(ink));

/** Numbers of either sign, as shares of the largest: their own, or that of several tiles beside each other. */
export function signedTile(values, name, rows = 28, columns = 28, largest = largestOf(values)) {
  return pixels(values.map((each) => each / largest), rows, columns, { class: "tile", ...named(name) });
}

/** The largest size of these numbers; 1 if all are 0, so that one can divide by it. */
export function largestOf(values) {
  let largest = 0;
  for (const each of values) largest = Math.max(largest, Math.abs(each));
  return largest || 1;
}

/** Numbers of every channel of an image as numbers of its pixels: their sums. */
export function ofPixels(values, [channels, rows, columns]) {
  const size = rows * columns;
  return channels === 1 ? values : Float32Array.from({ length: size }, (_, i) => {
    let sum = 0;
    for (let channel = 0; channel < channels; channel++) sum += values[channel * size + i];
    return sum;
  });
}

function named(name) {
  return name ? { role: "img", "aria-label": name } : { "aria-hidden": "true" };
}
