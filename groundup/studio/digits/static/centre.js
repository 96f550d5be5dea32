// From a drawing of any size to 28 by 28 pixels, as MNIST was made of its scanned digits:
//
//     1. the ink is cut out and scaled, so that the longer side is 20 pixels; a pixel is the mean of what it covers
//     2. it is moved by whole pixels, so that its centre of mass is in the middle of 28 by 28
//
// In MNIST's own files that middle is pixel 14, counted from 0: every one of its images has its centre of mass within
// half a pixel of (14, 14).

export const SIDE = 28;
const BOX = 20;
const MIDDLE = 14;
const FAINT = 24; // less ink than this, of 255, is the soft edge of a stroke

/**
 * The drawing as the network gets it.
 * @param {ArrayLike<number>} ink  size * size numbers from 0, paper, to 255, ink, row after row
 * @param {number} size
 * @returns {{pixels: Uint8Array, scale: number, down: number, right: number, words: string} | null}  null without ink.
 *   scale: how many times as large it became, on a pad of 28 by 28; down, right: pixels that its centre of mass moved
 */
export function centred(ink, size) {
  const box = boxOfInk(ink, size);
  if (box === null) return null;
  const longer = Math.max(box.height, box.width);
  const rows = Math.max(1, Math.round((BOX * box.height) / longer));
  const columns = Math.max(1, Math.round((BOX * box.width) / longer));
  const small = shrunk(cut(ink, size, box), box.height, box.width, rows, columns);
  const mass = centreOfMass(small, rows, columns);
  const top = within(Math.round(MIDDLE - mass.row), SIDE - rows);
  const left = within(Math.round(MIDDLE - mass.column), SIDE - columns);
  const pixels = new Uint8Array(SIDE * SIDE);
  for (let row = 0; row < rows; row++)
    for (let column = 0; column < columns; column++)
      pixels[(top + row) * SIDE + left + column] = Math.round(small[row * columns + column]);

  const before = centreOfMass(ink, size, size);
  const unit = size / SIDE; // how much of the pad is one pixel
  const down = top + mass.row + 0.5 - (before.row + 0.5) / unit;
  const right = left + mass.column + 0.5 - (before.column + 0.5) / unit;
  const scale = (BOX / longer) * unit;
  return { pixels, scale, down, right, words: inWords(scale, down, right) };
}

/** What was done to the drawing, in a sentence. */
function inWords(scale, down, right) {
  const way = (distance, one, other) => `${Math.abs(distance).toFixed(1)} pixels ${distance < 0 ? other : one}`;
  return `Your drawing was scaled by ${scale.toFixed(2)}, so that its longer side is ${BOX} pixels, and moved by `
    + `${way(right, "to the right", "to the left")} and ${way(down, "down", "up")}, so that its centre of mass is in the `
    + `middle of ${SIDE} by ${SIDE}.`;
}

function within(value, largest) {
  return Math.min(Math.max(value, 0), largest);
}

/** The smallest box that holds all ink: {top, left, height, width}, or null. */
function boxOfInk(ink, size) {
  let top = size, bottom = -1, left = size, right = -1;
  for (let row = 0; row < size; row++)
    for (let column = 0; column < size; column++)
      if (ink[row * size + column] >= FAINT) {
        top = Math.min(top, row);
        bottom = row;
        left = Math.min(left, column);
        right = Math.max(right, column);
      }
  return bottom < 0 ? null : { top, left, height: bottom - top + 1, width: right - left + 1 };
}

function cut(ink, size, { top, left, height, width }) {
  const found = new Float64Array(height * width);
  for (let row = 0; row < height; row++)
    for (let column = 0; column < width; column++)
      found[row * width + column] = ink[(top + row) * size + left + column];
  return found;
}

/** The picture in another size: each new pixel is the mean of the area that it covers, first along, then down. */
function shrunk(picture, height, width, rows, columns) {
  return along(along(picture, height, width, columns), columns, height, rows);
}

/** The rows of a picture in another length, as the columns of the result: so two calls do both directions. */
function along(picture, height, width, columns) {
  const found = new Float64Array(columns * height);
  const step = width / columns;
  for (let column = 0; column < columns; column++) {
    const from = column * step, to = from + step;
    for (let k = Math.floor(from); k < Math.min(Math.ceil(to - 1e-9), width); k++) {
      const share = (Math.min(k + 1, to) - Math.max(k, from)) / step;
      for (let row = 0; row < height; row++) found[column * height + row] += share * picture[row * width + k];
    }
  }
  return found;
}

/** The mean row and column, each weighted with its ink; the middle of pixel (0, 0) is (0, 0). */
function centreOfMass(picture, height, width) {
  let sum = 0, row = 0, column = 0;
  for (let i = 0; i < height; i++)
    for (let j = 0; j < width; j++) {
      const ink = picture[i * width + j];
      sum += ink;
      row += ink * i;
      column += ink * j;
    }
  return { row: row / sum, column: column / sum };
}
