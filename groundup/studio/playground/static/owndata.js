/** Points of one's own: drawn into a square, or read from lines of numbers. */

import { html, number, replace } from "/static/common/draw.js";
import { MOST_CLASSES, MOST_POINTS, readPoints } from "/static/playground/csv.js";
import { EDGE } from "/static/playground/pictures.js";
import { pointAt, surfaceIn } from "/static/playground/surface.js";

const STEP = 0.1;
const LIMIT = 1.15;

/** Fill the panel. ontrain(points, names) is called when the reader wants to train on the points. Returns a function: how many there are. */
export function ownDataIn(document, ontrain) {
  const part = (id) => document.getElementById(id);
  let points = [];
  let label = 0;
  let names = null; // the words or numbers that a text had for its classes
  let cross = null;
  const sheet = surfaceIn(part("sheet"), {
    tabindex: 0, role: "application",
    "aria-label": "Square to draw points into: arrow keys move the cross, Enter sets a point, Delete takes the last one away",
  });

  function show() {
    sheet.draw({ points, edge: EDGE, cross });
    const classes = new Set(points.map((point) => point[2]));
    const enough = points.length >= 4 && classes.size >= 2;
    part("own-train").disabled = !enough;
    part("own-count").textContent = enough
      ? `${points.length} points of ${classes.size} classes; a third of them is kept for the test.`
      : `${points.length} points; at least 4 of 2 classes are needed.`;
  }

  function add(x1, x2) {
    if (points.length >= MOST_POINTS) return;
    const within = (value) => Math.max(-LIMIT, Math.min(LIMIT, Math.round(value * 1000) / 1000));
    points = [...points, [within(x1), within(x2), label]];
    show();
  }

  function moveCross(x, y) {
    const within = (value) => Math.max(-LIMIT, Math.min(LIMIT, value));
    cross = cross ? [within(cross[0] + x * STEP), within(cross[1] + y * STEP)] : [0, 0];
    show();
  }

  const ON_KEY = {
    ArrowLeft: () => moveCross(-1, 0), ArrowRight: () => moveCross(1, 0), ArrowUp: () => moveCross(0, 1), ArrowDown: () => moveCross(0, -1),
    Enter: () => add(...(cross ?? [0, 0])), " ": () => add(...(cross ?? [0, 0])),
    Delete: () => { points = points.slice(0, -1); show(); }, Backspace: () => { points = points.slice(0, -1); show(); },
  };
  sheet.node.addEventListener("keydown", (event) => {
    if (!(event.key in ON_KEY) || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    ON_KEY[event.key]();
  });
  sheet.node.addEventListener("focus", () => { cross ??= [0, 0]; show(); });
  sheet.node.addEventListener("blur", () => { cross = null; show(); });
  sheet.node.addEventListener("click", (event) => add(...pointAt(sheet.node, event, EDGE)));

  const penOf = (i) => names?.[i] ?? `class ${i}`;
  const pens = () => replace(part("pens"), ...Array.from({ length: MOST_CLASSES }, (_, i) => {
    const input = html("input", { type: "radio", name: "pen", value: i, checked: i === label, onchange: () => { label = i; } });
    return html("label", {}, input, html("span", { class: `swatch class${i}` }), String(penOf(i)));
  }));
  pens();

  function read(text) {
    try {
      const found = readPoints(text);
      ({ points, names } = found);
      pens();
      part("csv-error").textContent = "";
      part("csv-scale").textContent = described(found);
    } catch (error) {
      part("csv-error").textContent = error.message;
      part("csv-scale").textContent = "";
    }
    show();
  }
  part("csv-read").addEventListener("click", () => read(part("csv").value));
  part("csv-file").addEventListener("change", async (event) => {
    const [file] = event.target.files;
    if (!file) return;
    part("csv").value = (await file.slice(0, 300_000).text());
    read(part("csv").value);
  });
  part("own-clear").addEventListener("click", () => { points = []; names = null; pens(); show(); });
  part("own-train").addEventListener("click", () => ontrain(points, names));
  part("own-box").addEventListener("toggle", show);
  show();
  return () => points.length;
}

/** How the numbers of a text have become points of the square. */
function described({ points, ranges, names }) {
  const [x, y] = ranges.map(([least, largest]) => `${number(least)} to ${number(largest)}`);
  const classes = names.map((name, i) => (name === i ? `${i}` : `${name} is class ${i}`)).join(", ");
  return `${points.length} points read. The first column goes from ${x}, the second from ${y}; both were brought to the range from −1 to 1. Classes: ${classes}.`;
}
