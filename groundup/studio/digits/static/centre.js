// From a drawing of any size to the pixels of a network's images, as MNIST was made of its scanned digits:
//
//     1. the ink is cut out and scaled, so that it fits into a box of 20 by 20 of 28 pixels, or of as large a share of
//        images of another size; a pixel is the mean of what it covers
//     2. it is moved by whole pixels, so that its centre of mass is in the middle of the image
//
// In MNIST's own files that middle is pixel 14, counted from 0: every one of its images has its centre of mass within
// half a pixel of (14, 14).
//
//     3. ink is white on black paper, as in MNIST, or black on white for a set whose images are so

const BOX = 20, OF = 28; // the share of the image's height and width
const FAINT = 24; // less ink than this, of 255, is the soft edge of a stroke

/**
 * The drawing as the network gets it.
 * @param {ArrayLike<number>} ink  size * size numbers from 0, paper, to 255, ink, row after row
 * @param {number} size
 * @param {number[]} shape  [channels, height, width] of the network's images
 * @param {boolean} onWhite  whether these have dark figures on white paper
 * @returns {{pixels: Uint8Array, ink: Uint8Array, shape: number[], scale: number, down: number, right: number, words: string} | null}  null without ink.
 *   pixels: the network's, ink: the same from 0, paper, to 255, ink
 *   scale: how many times as large it became, on a pad as high as the image; down, right: pixels that its centre of mass moved
 */
export function centred(ink, size, shape, onWhite = false) {
  const [, height, width] = shape;
  const box = boxOfInk(ink, size);
  if (box === null) return null;
  const [high, wide] = [(BOX * height) / OF, (BOX * width) / OF];
  const tall = box.height * width >= box.width * height;
  const rows = Math.max(1, Math.round(tall ? high : (wide * box.height) / box.width));
  const columns = Math.max(1, Math.round(tall ? (high * box.width) / box.height : wide));
  const small = shrunk(cut(ink, size, box), box.height, box.width, rows, columns);
  const mass = centreOfMass(small, rows, columns);
  const top = within(Math.round(height / 2 - mass.row), height - rows);
  const left = within(Math.round(width / 2 - mass.column), width - columns);
  const found = new Uint8Array(height * width);
  for (let row = 0; row < rows; row++)
    for (let column = 0; column < columns; column++)
      found[(top + row) * width + left + column] = Math.round(small[row * columns + column]);

  const before = centreOfMass(ink, size, size);
  const unit = size / height; // how much of the pad is one pixel
  const down = top + mass.row + 0.5 - (before.row + 0.5) / unit;
  const right = left + mass.column + 0.5 - (before.column + 0.5) * width / size;
  const scale = (tall ? high / box.height : wide / box.width) * unit;
  const longer = tall ? `height is ${rows} pixels` : `width is ${columns} pixels`;
  const pixels = onWhite ? found.map((each) => 255 - each) : found;
  return { pixels, ink: found, shape, scale, down, right, words: inWords(scale, down, right, longer, `${height} by ${width}`) };
}

/** What was done to the drawing, in a sentence. */
function inWords(scale, down, right, longer, image) {
  const way = (distance, one, other) => `${Math.abs(distance).toFixed(1)} pixels ${distance < 0 ? other : one}`;
  return `Your drawing was scaled by ${scale.toFixed(2)}, so that its ${longer}, and moved by `
    + `${way(right, "to the right", "to the left")} and ${way(down, "down", "up")}, so that its centre of mass is in the `
    + `middle of ${image}.`;
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
