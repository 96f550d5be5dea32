// The confusion matrix of a run, the images behind each of its cells, and the mistakes that the network is surest of.

import { fail, get, say } from "/static/common/api.js";
import { colour, html, number, oncolours, replace, scale } from "/static/common/draw.js";

const FIRST = 24; // mistakes that are shown at first
const AGAIN = 500; // milliseconds between two questions how far it is
const STRONGEST = 0.45; // of a cell's colour, so that the number on it can be read

let current = null; // { code, node } of the run that is shown; an answer for an earlier one is left aside
let redraw = () => {};
oncolours(() => redraw());

/** Forget what is shown, and offer to ask the network of this run, or ask at once where that takes no time. */
export function begin(node, run) {
  current = { code: run.code, node, changed: run.best_changed };
  redraw = () => {};
  if (!run.has_network) replace(node, html("p", { class: "quiet" }, "There is no checkpoint yet: the first one comes with the end of the first epoch."));
  else if (run.dense) ask();
  else offer("Ask the network about the test images");
}

/** Say that the run has a newer checkpoint than the one that was asked. */
export function outdated(run) {
  if (current?.code !== run.code || run.best_changed === current.changed || current.node.querySelector("#ask")) return;
  current.changed = run.best_changed;
  if (!current.node.querySelector("table")) { begin(current.node, run); return; }
  current.node.prepend(html("p", { class: "row" }, button("Ask again"), html("span", { class: "quiet" }, "The run has a newer checkpoint.")));
}

function offer(words) {
  replace(current.node, html("p", { class: "row" }, button(words)), html("p", { class: "quiet" }, "It is asked about every test image of its data. A convolutional network needs a minute or more."));
}

function button(words) {
  return html("button", { id: "ask", onclick: ask }, words);
}

async function ask() {
  const mine = current;
  const progress = html("progress", { max: 1, "aria-label": "test images that were asked about" });
  const note = html("p", { class: "row" }, progress, html("span", { class: "quiet" }, "The network is asked about the test images …"));
  replace(mine.node, note);
  try {
    for (;;) {
      const answer = await get("/api/runs/mistakes", { run: mine.code });
      if (mine !== current) return;
      if (answer.state === "refused") {
        replace(mine.node, html("p", { class: "trouble" }, `The network cannot be asked: ${answer.reason}`));
        return;
      }
      if (answer.state === "ready") {
        show(mine, answer);
        return;
      }
      if (answer.of) progress.value = answer.done / answer.of;
      await new Promise((resolve) => { setTimeout(resolve, AGAIN); });
    }
  } catch (error) {
    if (mine === current) replace(mine.node, html("p", { class: "row" }, button("Ask again")));
    fail(error);
  }
}

function show(mine, answer) {
  const wrong = answer.of - answer.right;
  const images = html("div", {});
  const from = answer.epoch === null ? answer.file : `${answer.file}, of epoch ${answer.epoch}`;
  const sentence = `${number(answer.right, 9)} of ${number(answer.of, 9)} test images of ${answer.dataset} are right, ${(100 * answer.right / answer.of).toFixed(2)} % (${from}). ` +
    (wrong ? "A row is what an image shows, a column what the network takes it for. Choose a cell to see its images." : "There is no mistake among them.");
  const table = html("table", { class: "matrix", "aria-label": "Confusion matrix" });
  const state = { mine, answer, images, table, pressed: null };
  replace(mine.node, html("p", {}, sentence), html("div", { class: "two" }, html("div", { class: "scroll" }, table), images));
  redraw = () => { fill(state); state.pictures?.(); };
  fill(state);
  surest(state);
}

/** The cells of the matrix, a button each; the arrow keys go from one to the next. */
function fill(state) {
  const { answer, table } = state;
  const { names, counts } = answer;
  const [wrong, right] = [counts.map((row, i) => row.filter((_, j) => j !== i)).flat(), counts.map((row, i) => row[i])].map((all) => Math.max(1, ...all));
  const coloured = scale();
  const focused = table.querySelector("button[tabindex='0']")?.id ?? "cell-0-0";
  const cell = (count, row, column) => {
    const share = row === column ? -count / right : count / wrong;
    const strength = count ? Math.sign(share) * (0.12 + (STRONGEST - 0.12) * Math.abs(share)) : 0;
    const id = `cell-${row}-${column}`;
    return html("td", {}, html("button", {
      id, tabindex: id === focused ? 0 : -1, "aria-pressed": state.pressed === id ? "true" : "false",
      "aria-label": `${count} images of ${names[row]} taken for ${names[column]}`,
      style: { background: `rgb(${coloured(strength).join(" ")})` }, onclick: () => choose(state, row, column), onkeydown: (event) => move(event, table, row, column),
    }, number(count, 9)));
  };
  replace(table, html("thead", {}, html("tr", {}, html("th", {}), names.map((name) => html("th", { scope: "col" }, name)))),
    html("tbody", {}, counts.map((row, i) => html("tr", {}, html("th", { scope: "row" }, names[i]), row.map((count, j) => cell(count, i, j))))));
}

function move(event, table, row, column) {
  const way = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
  const next = way && table.querySelector(`#cell-${row + way[0]}-${column + way[1]}`);
  if (!next) return;
  event.preventDefault();
  event.target.tabIndex = -1;
  next.tabIndex = 0;
  next.focus();
}

async function choose(state, row, column) {
  const { mine, answer, table } = state;
  try {
    const cell = await get("/api/runs/cell", { run: mine.code, version: answer.version, label: row, prediction: column });
    if (mine !== current) return;
    table.querySelector("[aria-pressed='true']")?.setAttribute("aria-pressed", "false");
    state.pressed = `cell-${row}-${column}`;
    table.querySelector(`#${state.pressed}`).setAttribute("aria-pressed", "true");
    const title = row === column ? `${answer.names[row]}: ${number(cell.count, 9)} right` :
      `${answer.names[row]} taken for ${answer.names[column]}: ${number(cell.count, 9)}`;
    pictures(state, title, cell, html("button", { onclick: () => surest(state) }, "The surest mistakes"));
    say(title);
  } catch (error) {
    fail(error);
  }
}

async function surest(state) {
  try {
    const found = await get("/api/runs/surest", { run: state.mine.code, version: state.answer.version, count: FIRST });
    if (state.mine !== current) return;
    state.table.querySelector("[aria-pressed='true']")?.setAttribute("aria-pressed", "false");
    state.pressed = null;
    pictures(state, found.count ? "The surest mistakes" : "No mistakes", found, null);
  } catch (error) {
    fail(error);
  }
}

function pictures(state, title, found, further) {
  const { names, shape } = state.answer;
  state.pictures = () => replace(state.images, html("h3", {}, title),
    html("div", { class: "images", tabindex: 0, role: "region", "aria-label": title }, found.images.map((each) => picture(each, names, shape))),
    found.images.length < found.count ? html("p", { class: "quiet" }, `The first ${found.images.length} of ${number(found.count, 9)}, by confidence.`) : null,
    further);
  state.pictures();
}

function picture({ image, label, prediction, confidence, pixels }, names, shape) {
  const share = `${(100 * confidence).toFixed(confidence > 0.9995 ? 2 : 1)} %`;
  const words = label === prediction ? `${names[label]}, ${share}` : `${names[label]} taken for ${names[prediction]}, ${share}`;
  return html("figure", {}, inked(pixels, shape, { role: "img", "aria-label": `test image ${image}: ${words}` }),
    html("figcaption", {}, words, html("span", { class: "quiet" }, `no. ${image}`)));
}

/** An image from base64 bytes: of one channel, 255 is full ink in the reader's colours; of three, it is red, green, blue. */
function inked(pixels, [channels, rows, columns], attributes) {
  const bytes = Uint8Array.from(atob(pixels), (letter) => letter.charCodeAt(0));
  const node = html("canvas", { width: columns, height: rows, ...attributes });
  const image = new ImageData(columns, rows);
  const ink = colour("ink");
  const [red, green, blue] = [1, 3, 5].map((at) => parseInt(ink.slice(at, at + 2), 16));
  const size = rows * columns;
  for (let at = 0; at < size; at++)
    image.data.set(channels === 1 ? [red, green, blue, bytes[at]] : [bytes[at], bytes[size + at], bytes[2 * size + at], 255], 4 * at);
  node.getContext("2d").putImageData(image, 0, 0);
  return node;
}
