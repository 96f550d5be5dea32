/** The large picture: the plane with the network's answer, or one neuron's, and the points in it. */

import { canvas, replace } from "/static/common/draw.js";
import { palette, pixelCanvas } from "/static/playground/colours.js";
import { GRID, TILE } from "/static/playground/pictures.js";

const SIDE = 320;
const RADIUS = 4;

/** Put a canvas into a node. Returns { node, draw(what) }, to be called at every picture. */
export function surfaceIn(holder, attributes = { role: "img", "aria-label": "The plane" }) {
  const node = canvas(SIDE, SIDE, attributes);
  node.style.width = node.style.height = ""; // the style sheet decides about the size on the screen
  replace(holder, node);
  const pen = node.getContext("2d");

  /**
   * surface: GRID * GRID bytes, or null; tile: TILE * TILE signed bytes of one neuron, shown in its place;
   * points: [[x1, x2, class, hollow], …]; edge: half the side of the square; cross: [x1, x2] or null
   */
  function draw({ surface = null, tile = null, points = [], edge, cross = null }) {
    const colours = palette();
    pen.fillStyle = colours.zero;
    pen.fillRect(0, 0, SIDE, SIDE);
    pen.imageSmoothingEnabled = true;
    if (tile) pen.drawImage(pixelCanvas(tile, TILE, TILE, colours.tile, 128), 0, 0, SIDE, SIDE);
    else if (surface) pen.drawImage(pixelCanvas(surface, GRID, GRID, colours.surface), 0, 0, SIDE, SIDE);
    drawAxes(edge, colours);
    for (const [x1, x2, label, hollow] of points) drawPoint(...place(x1, x2, edge), label, hollow, colours);
    if (cross) drawCross(...place(...cross, edge), colours);
  }

  function drawAxes(edge, colours) {
    pen.strokeStyle = colours.edge;
    pen.globalAlpha = 0.45;
    pen.lineWidth = 1;
    for (const [from, to] of [[[-edge, 0], [edge, 0]], [[0, -edge], [0, edge]]]) {
      pen.beginPath();
      pen.moveTo(...place(...from, edge));
      pen.lineTo(...place(...to, edge));
      pen.stroke();
    }
    pen.globalAlpha = 1;
    pen.fillStyle = colours.ink;
    pen.font = "12px system-ui, sans-serif";
    pen.fillText("x₁", SIDE - 16, SIDE / 2 - 5);
    pen.fillText("x₂", SIDE / 2 + 5, 13);
  }

  function drawPoint(x, y, label, hollow, colours) {
    outline(pen, x, y, label);
    pen.lineWidth = hollow ? 2 : 1;
    pen.fillStyle = hollow ? colours.paper : colours.classes[label];
    pen.strokeStyle = hollow ? colours.classes[label] : colours.paper;
    pen.fill();
    pen.stroke();
  }

  function drawCross(x, y, colours) {
    pen.strokeStyle = colours.ink;
    pen.lineWidth = 2;
    pen.beginPath();
    pen.moveTo(x - 9, y);
    pen.lineTo(x + 9, y);
    pen.moveTo(x, y - 9);
    pen.lineTo(x, y + 9);
    pen.stroke();
  }

  return { node, draw };
}

/** A point of the plane as a place on the canvas. */
function place(x1, x2, edge) {
  return [((x1 + edge) / (2 * edge)) * SIDE, ((edge - x2) / (2 * edge)) * SIDE];
}

/** A place on the screen as a point of the plane. */
export function pointAt(node, event, edge) {
  const box = node.getBoundingClientRect();
  const [across, down] = [(event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height];
  return [(2 * across - 1) * edge, (1 - 2 * down) * edge];
}

/** Classes differ in form, too: circle, square, triangle, diamond, pentagon. */
function outline(pen, x, y, label) {
  pen.beginPath();
  if (label === 0) {
    pen.arc(x, y, RADIUS, 0, 2 * Math.PI);
    return;
  }
  const [corners, turn, size] = [[4, Math.PI / 4, 5.4], [3, -Math.PI / 2, 5.6], [4, 0, 5.4], [5, -Math.PI / 2, 5.2]][label - 1];
  for (let i = 0; i < corners; i++) {
    const angle = turn + (2 * Math.PI * i) / corners;
    pen[i ? "lineTo" : "moveTo"](x + size * Math.cos(angle), y + size * Math.sin(angle));
  }
  pen.closePath();
}
