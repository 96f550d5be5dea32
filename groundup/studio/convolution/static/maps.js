// Maps as pictures: one map with its marks, the row of all layers, and all maps of one layer.

import { html, pixels, replace } from "/static/common/draw.js";
import { largestOf, signedTile } from "/static/digits/tiles.js";

const MOST = window === window.top ? 6 : 3; // maps of a layer in the row; fewer in a frame of the book

/** The numbers of one map of a layer: values and shape as they were unpacked. */
export function mapOf({ values, shape }, channel) {
  const size = shape[1] * shape[2];
  return values.subarray(channel * size, (channel + 1) * size);
}

/**
 * A map, or any picture of rows × columns, in which places can be picked.
 * picture: a canvas; picked(row, column): called for a click, and while the pressed mouse moves over it
 */
export function framed(picture, rows, columns, attributes = {}, picked = null) {
  const node = html("div", { ...attributes, class: picked ? "map live" : "map", style: { aspectRatio: `${columns} / ${rows}` } }, picture);
  if (!picked) return node;
  const pick = (event) => {
    const box = node.getBoundingClientRect();
    const place = (at, from, size, count) => Math.min(Math.max(Math.floor(((at - from) * count) / size), 0), count - 1);
    picked(place(event.clientY, box.top, box.height, rows), place(event.clientX, box.left, box.width, columns));
  };
  node.addEventListener("pointerdown", (event) => { if (event.button === 0) pick(event); });
  node.addEventListener("pointermove", (event) => { if (event.buttons === 1 && event.pointerType === "mouse") pick(event); });
  return node;
}

/** A map of numbers, orange above 0 and blue below. */
export function map(values, rows, columns, largest, attributes, picked) {
  return framed(pixels(values.map((each) => each / largest), rows, columns, { "aria-hidden": "true" }), rows, columns, attributes, picked);
}

/** A layer of one colour over a picture: values from 0 to 1, where 1 has the opacity `most` of 255. */
export function shade(values, rows, columns, rgb, most, name = "") {
  const canvas = html("canvas", { width: columns, height: rows, class: name });
  const image = new ImageData(columns, rows);
  values.forEach((each, i) => image.data.set([...rgb, most * each], 4 * i));
  canvas.getContext("2d").putImageData(image, 0, 0);
  return canvas;
}

/** Mark a part of a picture of rows × columns, in place of what was marked before. */
export function mark(node, rows, columns, top, left, height = 1, width = 1) {
  node.querySelector(".mark")?.remove();
  const share = (part, of) => `${(100 * part) / of}%`;
  node.append(html("span", { class: "mark", style: {
    top: share(top, rows), left: share(left, columns), height: share(height, rows), width: share(width, columns),
  } }));
}

/**
 * The row: a column for the drawing and for each layer, with its first maps.
 * choose({ layer, channel, row, column }): a place was clicked; without a row, only the layer was chosen
 * @returns {(at) => void} marks the place that is looked at
 */
export function showRow(node, network, maps, choose) {
  const shown = new Map();
  const columns = [{ number: "", name: "input", shape: network.shape }, ...network.layers].map(({ number, name, shape }) => {
    const { values } = number ? maps.outputs[number] : maps.x;
    const title = number ? `${number} ${name}` : name;
    const inner = number.includes(".") ? " inner" : "";
    const button = number && shape.length === 3 ? html("button", {
      type: "button", "aria-pressed": "false", "aria-label": `Layer ${title}, ${shape[0]} maps`, onclick: () => choose({ layer: number }),
    }, title) : html("small", {}, title);
    const size = html("small", {}, shape.join("×\u200b"));
    const largest = largestOf(values);
    if (shape.length < 3) {
      return html("div", { class: `column flat${inner}` }, button, size,
        pixels(values.map((each) => each / largest), shape[0], 1, { class: "vector", "aria-hidden": "true" }));
    }
    const [count, rows, wide] = shape;
    const tiles = Array.from({ length: Math.min(count, MOST) }, (_, channel) => {
      const tile = map(mapOf({ values, shape }, channel), rows, wide, largest, { "aria-hidden": "true" },
        number ? (row, column) => choose({ layer: number, channel, row, column }) : null);
      shown.set(`${number}/${channel}`, tile);
      return tile;
    });
    shown.set(`${number}/`, button);
    return html("div", { class: `column${inner}` }, button, size, tiles, count > MOST ? html("small", {}, `and ${count - MOST} more`) : null);
  });
  replace(node, columns);
  return (at) => {
    for (const each of node.querySelectorAll(".mark")) each.remove();
    for (const each of node.querySelectorAll("button")) each.setAttribute("aria-pressed", String(each === shown.get(`${at.layer}/`)));
    const [, rows, wide] = maps.outputs[at.layer].shape;
    const tile = shown.get(`${at.layer}/${at.channel}`);
    if (tile) mark(tile, rows, wide, at.row, at.column);
  };
}

/** All maps of one layer, each with its filter for input map `from` if the layer is a convolution. */
export function showAll(node, layer, output, from, choose) {
  const [count, rows, columns] = output.shape;
  const largest = largestOf(output.values);
  const { weights } = layer;
  const strongest = weights ? largestOf(weights.values) : 1;
  replace(node, Array.from({ length: count }, (_, channel) => {
    const tile = map(mapOf(output, channel), rows, columns, largest, { "aria-hidden": "true" }, (row, column) => choose({ layer: layer.number, channel, row, column }));
    let filter = null;
    if (weights) {
      const [, inputs, high, wide] = weights.shape;
      const first = (channel * inputs + from) * high * wide;
      filter = signedTile(weights.values.subarray(first, first + high * wide), null, high, wide, strongest);
      filter.classList.add("filter");
    }
    return html("div", {}, `map ${channel}`, tile, filter);
  }));
}
