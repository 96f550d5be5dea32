// An array as a picture: a cell for each element, coloured by what the block has written there, with the elements of
// this step marked. It shows shared memory as it fills, and who computes which element of the result.

import { canvas, colour, diverging, html } from "/static/common/draw.js";
import { elementName, indexOf } from "/static/kernel/walk.js";
import { plural, shown } from "/static/kernel/requests.js";

const MOST = 96; // rows or columns that are drawn; of a larger array, the part that the walk touches

/**
 * The pictures of all arrays of a space, "shared" or "global". wrong: the element with a wrong result, or null;
 * choose(thread): called when an element is clicked, with the thread that computes it.
 */
export function arrayPictures(walk, step, thread, space, wrong = null, choose = null) {
  const memory = walk.memory(step);
  return walk.data.arrays.flatMap((array, number) => (
    array.space === space ? [arrayPicture(walk, step, thread, number, memory.get(number), wrong, choose)] : []
  ));
}

/** { rows, columns, top, left } of the part of an array that is drawn; an array of one axis goes on in further rows. */
export function windowOf(shape, touched) {
  const columns = shape.length > 1 ? shape.at(-1) : Math.min(32, shape[0] ?? 1);
  const total = shape.reduce((product, extent) => product * extent, 1);
  const rows = Math.ceil(total / columns);
  if (rows <= MOST && columns <= MOST) return { rows, columns, top: 0, left: 0, stride: columns };
  const places = [...touched];
  if (places.length === 0) return { rows: Math.min(rows, MOST), columns: Math.min(columns, MOST), top: 0, left: 0, stride: columns };
  const [down, along] = [places.map((place) => Math.floor(place / columns)), places.map((place) => place % columns)];
  const [top, left] = [smallest(down), smallest(along)];
  return { top, left, stride: columns, rows: Math.min(MOST, -smallest(down.map((each) => -each)) - top + 1),
    columns: Math.min(MOST, -smallest(along.map((each) => -each)) - left + 1) };
}

function smallest(numbers) {
  return numbers.reduce((least, each) => Math.min(least, each), Infinity);
}

function arrayPicture(walk, step, thread, number, written, wrong, choose) {
  const array = walk.data.arrays[number];
  const view = windowOf(array.shape, walk.touched(number));
  const size = Math.max(2, Math.min(18, Math.floor((array.space === "shared" ? 250 : 176) / Math.max(view.columns, view.rows * 0.8))));
  const node = canvas(view.columns * size + 1, view.rows * size + 1, { role: "img" });
  const pen = node.getContext("2d");
  const cell = (place) => [(place % view.stride - view.left) * size, (Math.floor(place / view.stride) - view.top) * size];
  pen.fillStyle = colour("unwritten");
  pen.fillRect(0, 0, view.columns * size, view.rows * size);
  if (array.space === "global") {
    pen.fillStyle = colour("group0");
    for (const place of walk.touchedUntil(step, number)) pen.fillRect(...cell(place), size, size);
  }
  let largest = 0;
  for (const value of written?.values.values() ?? []) if (typeof value === "number") largest = Math.max(largest, Math.abs(value));
  for (const [place, value] of written?.values ?? []) {
    const [x, y] = cell(place);
    pen.fillStyle = typeof value === "number" ? diverging(largest ? value / largest : 0) : colour("bad");
    pen.fillRect(x, y, size, size);
  }
  if (size >= 6) lattice(pen, view, size);
  const mine = [];
  const marked = new Set();
  for (const access of walk.accesses(step)) {
    if (access.number !== number) continue;
    access.places.forEach((place, at) => {
      if (!marked.has(place)) {
        marked.add(place);
        frame(pen, cell(place), size, colour("accent"), 1.5);
      }
      if (access.lanes[at] === thread - walk.first) mine.push([access.kind, place, access.values[at]]);
    });
  }
  let fresh = 0;
  for (const write of walk.writes(step)) {
    if (write.number !== number) continue;
    fresh += write.places.length;
    write.places.forEach((place) => { if (!marked.has(place)) frame(pen, cell(place), size, colour("orange"), 1); });
  }
  const writers = array.space === "global" ? walk.writers(number) : new Map();
  const results = [...writers].filter(([, by]) => by === thread).map(([place]) => place);
  for (const place of results) dot(pen, cell(place), size);
  for (const [place, by] of (array.space === "shared" && written?.by) || []) if (by === thread) dot(pen, cell(place), size);
  if (choose && writers.size) {
    node.onclick = (event) => {
      const box = node.getBoundingClientRect();
      const [x, y] = [((event.clientX - box.left) / box.width) * view.columns, ((event.clientY - box.top) / box.height) * view.rows];
      const by = writers.get((Math.floor(y) + view.top) * view.stride + Math.floor(x) + view.left);
      if (by !== undefined) choose(by);
    };
    node.classList.add("click");
  }
  for (const [, place] of mine) frame(pen, cell(place), size, colour("ink"), 2.5);
  if (wrong && wrong[0] === number) frame(pen, cell(wrong[1]), size, colour("bad"), 3);
  const said = sentences(walk, array, written, mine, fresh, thread, results, wrong && wrong[0] === number ? wrong[1] : null)
    || `Thread ${walk.threadName(thread)} does not touch it in this step${marked.size ? "; others of its warp do" : ""}.`;
  node.setAttribute("aria-label", `${array.name}, ${array.dtype}, ${array.shape.join(" by ")}. ${said}`);
  const part = view.top || view.left || view.rows * view.columns < array.shape.reduce((a, b) => a * b, 1)
    ? ` from ${elementName(array, view.top * view.stride + view.left)}` : "";
  return html("div", { class: "picture" }, html("h3", {}, `${array.name} (${array.shape.join(" × ")})${part}`), node,
    html("p", { class: "quiet" }, said));
}

function sentences(walk, array, written, mine, fresh, thread, results, wrong) {
  const parts = [];
  const total = array.shape.reduce((product, extent) => product * extent, 1);
  if (array.space === "shared") parts.push(`${written?.values.size ?? 0} of ${total} elements are written.`);
  else if (written) parts.push(`This block has written ${plural(written.values.size, "element")}.`);
  if (fresh) parts.push(`${fresh} in this step.`);
  for (const [kind, place, value] of mine.slice(0, 3)) {
    parts.push(`Thread ${walk.threadName(thread)} ${kind === "read" ? "reads" : "writes"} [${indexOf(array.shape, place).join(", ")}] = ${shown(value)}.`);
  }
  if (results.length && mine.length === 0) {
    const named = results.slice(0, 3).map((place) => `[${indexOf(array.shape, place).join(", ")}]`).join(", ");
    parts.push(`Thread ${walk.threadName(thread)} computes ${named}${results.length > 3 ? ` and ${results.length - 3} more` : ""}.`);
  }
  if (wrong !== null) parts.push(`The framed element [${indexOf(array.shape, wrong).join(", ")}] gets a wrong result.`);
  return parts.join(" ");
}

function lattice(pen, view, size) {
  pen.strokeStyle = colour("rule");
  pen.lineWidth = 0.5;
  pen.beginPath();
  for (let row = 0; row <= view.rows; row++) { pen.moveTo(0, row * size + 0.5); pen.lineTo(view.columns * size, row * size + 0.5); }
  for (let column = 0; column <= view.columns; column++) { pen.moveTo(column * size + 0.5, 0); pen.lineTo(column * size + 0.5, view.rows * size); }
  pen.stroke();
}

function frame(pen, [x, y], size, ink, width) {
  pen.strokeStyle = ink;
  pen.lineWidth = width;
  pen.strokeRect(x + width / 2 + 0.25, y + width / 2 + 0.25, size - width, size - width);
}

function dot(pen, [x, y], size) {
  pen.fillStyle = colour("ink");
  pen.beginPath();
  pen.arc(x + size / 2, y + size / 2, Math.max(1.2, size / 6), 0, 2 * Math.PI);
  pen.fill();
}
