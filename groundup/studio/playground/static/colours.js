/** The colours of classes, surfaces and tiles, asked of the style sheet once and again when the reader changes to dark. */

import { colour, oncolours, rgb, scale } from "/static/common/draw.js";
import { LEVELS } from "/static/playground/pictures.js";

const STRONGEST = 0.7; // of a class's colour, so that its points stand out from it

let known = null;
oncolours(() => { known = null; });

/**
 * { classes, surface, tile, ink, paper, edge, quiet, negative, positive, lines }
 *
 * classes: CSS colours; surface: a packed pixel for each byte of a surface; tile: one for each signed byte + 128
 */
export function palette() {
  known ??= made();
  return known;
}

function made() {
  const named = Object.fromEntries(["ink", "paper", "edge", "rule", "quiet", "negative", "positive", "zero"].map((name) => [name, colour(name)]));
  const classes = ["negative", "positive", "stage3", "stage4", "quiet"].map(colour);
  const zero = rgb(named.zero);
  const surface = Uint32Array.from({ length: 256 }, (_, byte) => {
    const end = rgb(classes[Math.min(classes.length - 1, Math.floor(byte / LEVELS))]);
    const share = (STRONGEST * (byte % LEVELS)) / (LEVELS - 1);
    return packed(zero.map((from, at) => from + (end[at] - from) * share));
  });
  const coloured = scale();
  const tile = Uint32Array.from({ length: 256 }, (_, byte) => packed(coloured((byte - 128) / 127)));
  const lines = ["blue", "orange", "stage3", "stage4", "ink", "quiet", "accent"].map(colour);
  return { ...named, classes, surface, tile, lines };
}

/** One pixel as canvases keep it: alpha, blue, green, red from the highest byte down. */
function packed([red, green, blue]) {
  return ((255 << 24) | (Math.round(blue) << 16) | (Math.round(green) << 8) | Math.round(red)) >>> 0;
}

const kept = new Map();

/**
 * A canvas off the screen with a pixel for each number: values of 0 to 255, or signed bytes with a shift of 128.
 *
 * One canvas is kept for each size, so draw it before the next call.
 */
export function pixelCanvas(values, columns, rows, colours, shift = 0) {
  const size = `${columns} ${rows}`;
  if (!kept.has(size)) kept.set(size, { node: new OffscreenCanvas(columns, rows), image: new ImageData(columns, rows) });
  const { node, image } = kept.get(size);
  const target = new Uint32Array(image.data.buffer);
  for (let i = 0; i < target.length; i++) target[i] = colours[values[i] + shift];
  node.getContext("2d").putImageData(image, 0, 0);
  return node;
}
