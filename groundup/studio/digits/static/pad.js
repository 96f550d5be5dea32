// The pad to draw on, with mouse, pen or finger, or with a cursor that the arrow keys move.

import { say } from "/static/common/api.js";
import { colour, html, oncolours } from "/static/common/draw.js";

const SIZE = 280; // 10 for each of the network's 28 pixels
const PEN = 24; // MNIST's strokes are two to three pixels wide
const STEP = 10;

/**
 * Make a pad. lifted(): called when the pen is lifted, and when a stroke is taken back or all are cleared.
 * @returns {{node: HTMLElement, ink: () => Uint8Array, size: number, undo: () => void, clear: () => void}}
 */
export function makePad(lifted) {
  const paper = html("canvas", {
    width: SIZE, height: SIZE, tabindex: 0, role: "application", "aria-label": "Drawing pad", "aria-describedby": "pad-help",
  });
  const cursor = html("div", { class: "cursor", "aria-hidden": "true" });
  const node = html("div", { class: "pad" }, paper, cursor);
  const context = paper.getContext("2d", { willReadFrequently: true });
  const strokes = []; // each a list of points {x, y}
  const at = { x: SIZE / 2, y: SIZE / 2 };
  let drawing = null; // the stroke that grows, or null while the pen is up

  function begin(x, y) {
    drawing = [{ x, y }];
    strokes.push(drawing);
    paint();
  }

  function go(x, y) {
    drawing.push({ x, y });
    paint();
  }

  function lift() {
    if (drawing === null) return;
    drawing = null;
    showCursor();
    lifted();
  }

  function undo() {
    drawing = null;
    strokes.pop();
    changed();
  }

  function clear() {
    drawing = null;
    strokes.length = 0;
    changed();
  }

  function changed() {
    showCursor();
    paint();
    lifted();
  }

  function paint() {
    context.clearRect(0, 0, SIZE, SIZE);
    Object.assign(context, { lineWidth: PEN, lineCap: "round", lineJoin: "round", strokeStyle: colour("ink") });
    for (const [first, ...others] of strokes) {
      context.beginPath();
      context.moveTo(first.x, first.y);
      for (const point of others) context.lineTo(point.x, point.y);
      if (others.length === 0) context.lineTo(first.x, first.y); // a dot
      context.stroke();
    }
  }

  function showCursor() {
    cursor.style.left = `${(100 * at.x) / SIZE}%`;
    cursor.style.top = `${(100 * at.y) / SIZE}%`;
    cursor.classList.toggle("down", drawing !== null);
  }

  const place = (event) => {
    const box = paper.getBoundingClientRect();
    return [((event.clientX - box.left) * SIZE) / box.width, ((event.clientY - box.top) * SIZE) / box.height];
  };
  paper.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    paper.setPointerCapture(event.pointerId);
    begin(...place(event));
  });
  paper.addEventListener("pointermove", (event) => {
    if (drawing === null || !paper.hasPointerCapture(event.pointerId)) return;
    // A fast hand makes several points between two pictures.
    const several = event.getCoalescedEvents?.() ?? [];
    for (const each of several.length ? several : [event]) go(...place(each));
  });
  paper.addEventListener("pointerup", lift);
  paper.addEventListener("pointercancel", lift);

  const moves = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
  paper.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    if (event.key in moves) {
      const [right, down] = moves[event.key];
      at.x = Math.min(Math.max(at.x + STEP * right, PEN / 2), SIZE - PEN / 2);
      at.y = Math.min(Math.max(at.y + STEP * down, PEN / 2), SIZE - PEN / 2);
      if (drawing !== null) go(at.x, at.y);
      showCursor();
    } else if (event.key === " ") {
      if (drawing === null) {
        begin(at.x, at.y);
        showCursor();
        say("Pen down.");
      } else {
        lift();
      }
    } else if (event.key === "Backspace") {
      undo();
    } else if (event.key === "Delete" || event.key === "Escape") {
      clear();
    } else {
      return;
    }
    event.preventDefault();
  });
  paper.addEventListener("blur", lift);
  oncolours(paint);
  showCursor();

  /** How much ink is on each point of the pad: the canvas is transparent where there is none. */
  function ink() {
    const { data } = context.getImageData(0, 0, SIZE, SIZE);
    return Uint8Array.from({ length: SIZE * SIZE }, (_, i) => data[4 * i + 3]);
  }

  return { node, ink, size: SIZE, undo, clear };
}
