/**
 * The drawing of the network: a column for each layer, a square for each neuron with what it makes of the plane, and a
 * line for each weight. A transparent button lies on each neuron, so that keyboard and screen reader reach it.
 */

import { canvas, html, number, replace } from "/static/common/draw.js";
import { palette, pixelCanvas } from "/static/playground/colours.js";
import { DRAWN, TILE } from "/static/playground/pictures.js";

const [TOP, GAP, SIDE_MARGIN] = [34, 6, 26];
export const IMAGE = 28;

/**
 * holder: an element with a height; onselect(layer, neuron) is called when a neuron is looked at, onselect(null) after;
 * onsize(layer, size) when the reader changes the size of a hidden layer (from 0).
 * Returns { arrange(scene), draw(picture, looked), describe(picture) }.
 */
export function diagramIn(holder, { onselect, onsize }) {
  let scene = null;
  let columns = [];
  let [node, pen, width, height] = [null, null, 0, 0];
  let buttons = [];

  /** Place the columns of a scene's network, if its layers have changed; anew: also if the page has. */
  function arrange(next, anew = false) {
    const same = scene && String(scene.sizes) === String(next.sizes) && Boolean(scene.points) === Boolean(next.points);
    scene = next;
    if (same && !anew) return;
    const focused = holder.contains(document.activeElement) ? document.activeElement.getAttribute("aria-label") : null;
    [width, height] = [holder.clientWidth, holder.clientHeight];
    columns = columnsOf(scene, width, height);
    node = canvas(width, height, { role: "img", "aria-label": `A network with ${scene.sizes.join(", ")} neurons in its layers` });
    pen = node.getContext("2d");
    buttons = columns.map((column) => column.tiles.map((tile, neuron) => buttonOf(column, tile, neuron)));
    replace(holder, node, ...columns.map(headOf), ...buttons.flat());
    // The keyboard stays where it was, such as in the field with a layer's size.
    [...holder.children].find((each) => focused !== null && each.getAttribute("aria-label") === focused)?.focus();
  }

  function buttonOf(column, tile, neuron) {
    const place = { left: `${tile.x - 2}px`, top: `${tile.y - 2}px`, width: `${column.side + 4}px`, height: `${column.side + 4}px` };
    const look = () => onselect(column.layer, neuron);
    const away = () => onselect(null);
    return html("button", {
      class: "neuron", style: place, "aria-label": nameOf(column.layer, neuron, scene),
      onmouseenter: look, onfocus: look, onmouseleave: away, onblur: away, onclick: look,
    });
  }

  /** What stands above a column: the size of a hidden layer as a field, else a word. */
  function headOf(column) {
    const left = `${column.middle}px`;
    if (column.layer === 0) return html("span", { class: "head", style: { left } }, scene.points ? "Input" : `${scene.sizes[0]} pixels`);
    if (column.layer === scene.sizes.length - 1) return html("span", { class: "head", style: { left } }, "Output");
    const field = html("input", {
      class: "size", type: "number", min: 1, max: 128, step: 1, required: true, value: scene.sizes[column.layer], style: { left },
      "aria-label": `Neurons in hidden layer ${column.layer}`,
    });
    field.addEventListener("change", () => { if (field.reportValidity()) onsize(column.layer - 1, Number(field.value)); });
    return field;
  }

  /** looked: [layer, neuron] of the one that is looked at, whose lines stand out; or null. */
  function draw(picture, looked = null) {
    const colours = palette();
    pen.clearRect(0, 0, width, height);
    picture.weights.forEach((weights, i) => drawLines(weights, columns[i], columns[i + 1], colours, looked));
    columns.forEach((column) => drawColumn(column, picture, colours));
  }

  function drawLines(weights, from, to, colours, looked) {
    if (!from.tiles.length || !weights.length) return;
    weights.forEach((row, k) => row.forEach((weight, j) => {
      if (!weight) return; // 0, or null: not a finite number
      const size = Math.abs(weight);
      const touches = !looked || (looked[0] === to.layer && looked[1] === j) || (looked[0] === from.layer && looked[1] === k);
      const [start, end] = [from.tiles[k], to.tiles[j]];
      const [x, y, toX, toY] = [start.x + from.side, start.y + from.side / 2, end.x, end.y + to.side / 2];
      const bend = (toX - x) / 2;
      pen.strokeStyle = weight < 0 ? colours.negative : colours.positive;
      pen.globalAlpha = Math.min(0.95, 0.25 + 0.5 * size) * (touches ? 1 : 0.15);
      pen.lineWidth = Math.min(7, 0.4 + 2 * size);
      pen.beginPath();
      pen.moveTo(x, y);
      pen.bezierCurveTo(x + bend, y, toX - bend, toY, toX, toY);
      pen.stroke();
    }));
    pen.globalAlpha = 1;
  }

  function drawColumn(column, picture, colours) {
    const { layer, side } = column;
    const squares = squaresOf(layer, picture, scene, colours);
    const dead = layer > 0 && layer < scene.sizes.length - 1 ? picture.dead?.[layer - 1] ?? [] : [];
    pen.imageSmoothingEnabled = true;
    column.tiles.forEach(({ x, y }, neuron) => {
      pen.fillStyle = colours.zero;
      pen.fillRect(x, y, side, side);
      if (squares) pen.drawImage(squares.canvas, 0, neuron * squares.side, squares.side, squares.side, x, y, side, side);
      pen.strokeStyle = colours.edge;
      pen.lineWidth = 1;
      pen.strokeRect(x + 0.5, y + 0.5, side - 1, side - 1);
      if (dead.includes(neuron)) crossOut(x, y, side, colours);
      const word = wordOn(layer, neuron, scene, Boolean(squares));
      if (word) write(word, x + side / 2, y + side / 2, colours);
    });
    if (column.more) write(`and ${column.more} more`, column.middle, height - 8, colours);
    if (layer === 0 && scene.image) {
      const side = 2 * SIDE_MARGIN - 4;
      pen.imageSmoothingEnabled = false;
      pen.drawImage(pixelCanvas(scene.image, IMAGE, IMAGE, colours.tile, 128), column.middle - side / 2, (height - side) / 2, side, side);
      write("28 × 28", column.middle, (height + side) / 2 + 12, colours);
    }
  }

  function crossOut(x, y, side, colours) {
    pen.strokeStyle = colours.ink;
    pen.lineWidth = 2;
    pen.beginPath();
    pen.moveTo(x + 4, y + 4);
    pen.lineTo(x + side - 4, y + side - 4);
    pen.moveTo(x + side - 4, y + 4);
    pen.lineTo(x + 4, y + side - 4);
    pen.stroke();
  }

  function write(text, x, y, colours) {
    pen.fillStyle = colours.ink;
    pen.font = "12px system-ui, sans-serif";
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    pen.fillText(text, x, y);
  }

  /** Bring the texts of the neurons up to date: not at every frame, because a screen reader would not follow. */
  function describe(picture) {
    columns.forEach(({ layer }, c) => buttons[c].forEach((button, neuron) => {
      button.setAttribute("aria-label", [nameOf(layer, neuron, scene), factsOf(layer, neuron, picture)].filter(Boolean).join(": "));
    }));
  }

  return { arrange, draw, describe };
}

/** The columns with the places of their squares: [{ layer, middle, side, tiles: [{ x, y }], more }, …]. */
function columnsOf(scene, width, height) {
  const counts = scene.sizes.map((size, layer) => (layer === 0 && !scene.points ? 0 : Math.min(size, DRAWN)));
  const room = height - TOP - 16;
  const apart = (width - 2 * SIDE_MARGIN) / (scene.sizes.length - 1);
  const most = Math.max(14, Math.min(44, apart - 16));
  return counts.map((count, layer) => {
    const side = Math.min(most, room / Math.max(1, count) - GAP);
    const middle = SIDE_MARGIN + layer * apart;
    const first = TOP + (room - count * (side + GAP)) / 2;
    const tiles = Array.from({ length: count }, (_, i) => ({ x: Math.round(middle - side / 2), y: Math.round(first + i * (side + GAP)) }));
    return { layer, middle, side: Math.round(side), tiles, more: count ? scene.sizes[layer] - count : 0 };
  });
}

/** The squares of a layer below each other on one canvas, or null where there is nothing to show. */
function squaresOf(layer, picture, scene, colours) {
  const of = (values, side) => ({ canvas: pixelCanvas(values, side, values.length / side, colours.tile, 128), side });
  if (!scene.points) return layer === 1 && picture.images ? of(picture.images, IMAGE) : null;
  return layer === 0 ? of(INPUTS, TILE) : of(picture.tiles[layer - 1], TILE);
}

/** The squares of the two inputs: x1 grows to the right, x2 upwards. */
export const INPUTS = Int8Array.from({ length: 2 * TILE * TILE }, (_, i) => {
  const [row, column] = [Math.floor(i / TILE) % TILE, i % TILE];
  const share = i < TILE * TILE ? column / (TILE - 1) : 1 - row / (TILE - 1);
  return Math.round(127 * (2 * share - 1));
});

function wordOn(layer, neuron, scene, drawn) {
  if (layer === 0) return scene.points ? ["x₁", "x₂"][neuron] : "";
  return !drawn && layer === scene.sizes.length - 1 ? String(neuron) : "";
}

/** What a class is called: the word that the reader's own data have for it, or its number. */
export function classOf(number, { names }) {
  const name = names?.[number];
  return typeof name === "string" ? name : `class ${name ?? number}`;
}

/** What a neuron is called. */
export function nameOf(layer, neuron, scene) {
  if (layer === 0) return `Input x${neuron + 1}`;
  if (layer === scene.sizes.length - 1) return `Output for ${classOf(neuron, scene)}`;
  return `Hidden layer ${layer}, neuron ${neuron + 1}`;
}

/** What can be said of a neuron in numbers. */
export function factsOf(layer, neuron, picture) {
  if (layer === 0) return "";
  const largest = picture.largest ? `, strongest output ±${number(picture.largest[layer - 1][neuron], 2)}` : "";
  const bias = `bias ${number(picture.biases[layer - 1][neuron], 2)}${largest}`;
  if (layer === picture.biases.length) return bias;
  if (!picture.dead) return bias;
  if (picture.dead[layer - 1].includes(neuron)) return `${bias}, dead: 0 for every training point`;
  return `${bias}, above 0 for ${Math.round(100 * picture.active[layer - 1][neuron])}% of the training points`;
}
