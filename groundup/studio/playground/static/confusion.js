/** For digits, in place of the plane: how often each class of the test images was taken for each; or one image. */

import { canvas, replace } from "/static/common/draw.js";
import { palette, pixelCanvas } from "/static/playground/colours.js";

const SIDE = 320;
const MARGIN = 26;

/**
 * Put a canvas into a node. Returns { node, draw(counts, image) }; counts: a row a class, a column a prediction;
 * image: the signed bytes of a square picture, drawn in place of the counts, or null.
 */
export function confusionIn(holder) {
  const node = canvas(SIDE, SIDE, { role: "img", "aria-label": "How often each digit was taken for each" });
  node.style.width = node.style.height = "";
  replace(holder, node);
  const pen = node.getContext("2d");

  function draw(counts, image) {
    const colours = palette();
    if (image) {
      const side = Math.sqrt(image.length);
      pen.imageSmoothingEnabled = false;
      pen.drawImage(pixelCanvas(image, side, side, colours.tile, 128), 0, 0, SIDE, SIDE);
      return;
    }
    const cell = (SIDE - MARGIN) / counts.length;
    const most = Math.max(1, ...counts.flat());
    pen.fillStyle = colours.zero;
    pen.fillRect(0, 0, SIDE, SIDE);
    pen.font = "11px system-ui, sans-serif";
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    counts.forEach((row, label) => {
      pen.fillStyle = colours.ink;
      pen.fillText(String(label), MARGIN / 2, MARGIN + (label + 0.5) * cell);
      pen.fillText(String(label), MARGIN + (label + 0.5) * cell, MARGIN / 2);
      row.forEach((count, guess) => {
        if (!count) return;
        pen.globalAlpha = 0.15 + (0.85 * count) / most;
        pen.fillStyle = label === guess ? colours.negative : colours.positive;
        pen.fillRect(MARGIN + guess * cell + 1, MARGIN + label * cell + 1, cell - 2, cell - 2);
        pen.globalAlpha = 1;
        pen.fillStyle = colours.ink;
        pen.fillText(String(count), MARGIN + (guess + 0.5) * cell, MARGIN + (label + 0.5) * cell);
      });
    });
  }

  return { node, draw };
}
