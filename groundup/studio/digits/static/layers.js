// The picture of the layers lighting up: the drawing, every neuron's output, and what reaches the ten answers.
//
// Of dense layers each neuron is a circle; the lines show the products that weigh most in the winner's score. With the
// mouse or the arrow keys one neuron is chosen. Of convolutions each channel is a small image.

import { diverging, html, number, replace, svg } from "/static/common/draw.js";
import { largestOf, signedTile } from "/static/digits/tiles.js";
import { winnerOf } from "/static/digits/answers.js";

const LINES = 24;
const MOST = 1024; // neurons of a layer that are drawn

/**
 * Make the picture for a network.
 * chosen(layer, unit): called when the reader chooses a neuron; layer counts the hidden layers from 0
 * @returns {{show: (pixels, reasons, probabilities) => void, clear: () => void}}
 */
export function makeLayers(node, network, chosen) {
  return network.parameters ? denseLayers(node, network, chosen) : imageLayers(node);
}

function denseLayers(node, network, chosen) {
  const hidden = network.sizes.slice(1, -1).map((size) => Math.min(size, MOST));
  const narrow = node.clientWidth < 640;
  const plan = (narrow ? upright : lying)(hidden, network.sizes.at(-1), Math.max(...network.classes.map((name) => name.length)));
  const input = svg("g", {});
  const lines = svg("g", { class: "lines" });
  const circles = plan.units.map((units, layer) => units.map(({ x, y, r }) => svg("circle", { cx: x, cy: y, r, class: `unit unit${layer}` })));
  const ring = svg("circle", { class: "ring", r: 0 });
  const answers = plan.answers.map(({ x, y, labelX, labelY, anchor, turned }, i) => ({
    circle: svg("circle", { cx: x, cy: y, r: 11, class: `unit unit${hidden.length}` }),
    label: svg("text", { x: labelX, y: labelY, "text-anchor": anchor, transform: turned ? `rotate(-78 ${labelX} ${labelY})` : null }, network.classes[i]),
  }));
  const frame = svg("rect", { ...plan.input, height: plan.input.width, class: "frame" });
  const picture = svg("svg", { viewBox: `0 0 ${plan.width} ${plan.height}`, role: "img", tabindex: hidden.length ? 0 : null, class: "layers" },
    frame, input, lines, circles.flat(), answers.flatMap((each) => [each.circle, each.label]), ring);
  picture.setAttribute("aria-label", `Network ${network.sizes.join("-")}. Draw something to see it at work.`);
  replace(node, picture);
  let now = null; // what is shown: {reasons}
  let at = null; // the chosen neuron: {layer, unit}

  function choose(layer, unit) {
    at = { layer, unit };
    const { x, y, r } = plan.units[layer][unit];
    for (const [name, value] of Object.entries({ cx: x, cy: y, r: r + 2 })) ring.setAttribute(name, value);
    drawLines();
    chosen(layer, unit);
  }
  circles.forEach((row, layer) => row.forEach((circle, unit) => {
    circle.addEventListener("pointerenter", () => choose(layer, unit));
    circle.addEventListener("click", () => choose(layer, unit));
  }));
  picture.addEventListener("keydown", (event) => {
    const { layer, unit } = at ?? { layer: 0, unit: -1 };
    const columns = plan.columns[layer];
    const steps = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns };
    if (event.key === "PageDown" || event.key === "PageUp") {
      choose((layer + (event.key === "PageDown" ? 1 : hidden.length - 1)) % hidden.length, 0);
    } else if (event.key in steps) {
      choose(layer, Math.min(Math.max(unit + steps[event.key], 0), plan.units[layer].length - 1));
    } else {
      return;
    }
    event.preventDefault();
  });

  /** The products that weigh most in the winner's score; or, of a chosen neuron of the last layer, its ten weights. */
  function drawLines() {
    const layer = hidden.length - 1;
    if (layer < 0 || now === null || now.reasons.last === null) return replace(lines);
    const from = plan.units[layer];
    const drawn = [];
    if (at !== null && at.layer === layer) {
      const weights = network.parameters.at(-2).values;
      const count = network.sizes.at(-1);
      const own = Array.from(weights.subarray(at.unit * count, (at.unit + 1) * count));
      own.forEach((weight, i) => drawn.push([from[at.unit], plan.answers[i], weight / largestOf(own)]));
    } else {
      const products = productsOf(now.reasons.last).slice(0, from.length);
      const strongest = products.map((_, i) => i).sort((a, b) => Math.abs(products[b]) - Math.abs(products[a])).slice(0, LINES);
      const largest = largestOf(products);
      for (const i of strongest) drawn.push([from[i], plan.answers[now.reasons.winner], products[i] / largest]);
    }
    replace(lines, drawn.filter(([, , share]) => share !== 0).map(([one, other, share]) => svg("line", {
      x1: one.x, y1: one.y, x2: other.x, y2: other.y, stroke: diverging(Math.sign(share)),
      "stroke-width": 0.5 + 2.5 * Math.abs(share), "stroke-opacity": 0.25 + 0.75 * Math.abs(share),
    })));
  }

  function show(pixels, reasons, probabilities) {
    now = { reasons };
    const [, rows, columns] = network.shape;
    const cell = plan.input.width / Math.max(rows, columns);
    const [left, top] = [plan.input.width - columns * cell, plan.input.width - rows * cell].map((rest) => rest / 2);
    const inked = [...pixels].flatMap((value, i) => (value ? [svg("rect", {
      x: plan.input.x + left + (i % columns) * cell, y: plan.input.y + top + Math.floor(i / columns) * cell, width: cell, height: cell,
      class: "ink", "fill-opacity": value / 255,
    })] : []));
    replace(input, inked);
    reasons.layers.forEach(({ values }, layer) => {
      const largest = largestOf(values);
      circles[layer].forEach((circle, unit) => circle.style.fill = diverging(values[unit] / largest));
    });
    answers.forEach(({ circle, label }, i) => {
      circle.style.fill = diverging(probabilities[i]);
      label.classList.toggle("winner", i === reasons.winner);
    });
    drawLines();
    const lit = reasons.layers.map(({ values }, i) => `${values.filter((each) => each !== 0).length} of ${values.length} neurons of hidden layer ${i + 1} are not 0`);
    picture.setAttribute("aria-label", `Network ${network.sizes.join("-")}. ${lit.join("; ")}${lit.length ? ". " : ""}`
      + `The answer is ${network.classes[winnerOf(probabilities)]}.`);
  }

  /** Nothing is known of a drawing. */
  function clear() {
    now = null;
    replace(input);
    replace(lines);
    circles.flat().forEach((circle) => circle.style.fill = "");
    answers.forEach(({ circle, label }) => {
      circle.style.fill = "";
      label.classList.remove("winner");
    });
    picture.setAttribute("aria-label", `Network ${network.sizes.join("-")}. Draw something to see it at work.`);
  }

  return { show, clear };
}

/** inputs times weights of the winning neuron, one for each input. */
export function productsOf({ inputs, weights }) {
  return Array.from(inputs, (each, i) => each * weights[i] + 0); // + 0: never -0
}

/** The layers from left to right, for wide screens. */
function lying(hidden, classes, longest) {
  const height = 330;
  const slot = 430 / Math.max(hidden.length, 1);
  const grids = hidden.map((count, i) => grid(count, 340 + i * slot, 25, slot - 25, 280));
  const answers = Array.from({ length: classes }, (_, i) => {
    const [x, y] = [830, 25 + (280 * (i + 0.5)) / classes];
    return { x, y, labelX: x + 20, labelY: y + 5, anchor: "start" };
  });
  return { width: Math.max(900, 860 + 9 * longest), height, input: { x: 10, y: 25, width: 280 }, answers, ...together(grids) };
}

/** The layers from top to bottom, for phones. */
function upright(hidden, classes, longest) {
  const grids = hidden.map((count, i) => grid(count, 10, 175 + i * 150, 340, 125));
  const y = 175 + hidden.length * 150 + 30;
  const turned = longest > 3; // longer names stand slanting below their circles
  const answers = Array.from({ length: classes }, (_, i) => {
    const x = 10 + (340 * (i + 0.5)) / classes;
    return turned ? { x, y, labelX: x + 4, labelY: y + 24, anchor: "end", turned } : { x, y, labelX: x, labelY: y + 28, anchor: "middle" };
  });
  return { width: 360, height: y + 40 + (turned ? 7 * longest : 0), input: { x: 110, y: 10, width: 140 }, answers, ...together(grids) };
}

function together(grids) {
  return { units: grids.map((each) => each.units), columns: grids.map((each) => each.columns) };
}

/** The places of `count` circles in a box, row by row. */
function grid(count, left, top, width, height) {
  const fitting = Math.max(1, Math.min(count, Math.round(Math.sqrt((count * width) / height))));
  // A few more or fewer, if the last row is full then.
  const columns = [0, 1, -1, 2, -2, 3, -3].map((more) => fitting + more).find((each) => each > 0 && count % each === 0) ?? fitting;
  const rows = Math.ceil(count / columns);
  const cell = Math.min(width / columns, height / rows);
  const [x, y] = [left + (width - columns * cell) / 2, top + (height - rows * cell) / 2];
  const units = Array.from({ length: count }, (_, i) => ({
    x: x + ((i % columns) + 0.5) * cell, y: y + (Math.floor(i / columns) + 0.5) * cell, r: Math.max(0.42 * cell, 1),
  }));
  return { units, columns };
}

/** A row of small images for each layer of a convolutional network. */
function imageLayers(node) {
  const clear = () => replace(node, html("p", { class: "quiet" }, "Draw something to see what each layer makes of it."));
  clear();
  function show(pixels, reasons) {
    replace(node, ...reasons.layers.map(({ words, shape, values }) => {
      const [channels, rows, columns] = shape.length === 3 ? shape : [1, 1, shape[0]]; // flat numbers: one row
      const size = rows * columns;
      const largest = largestOf(values);
      const tiles = Array.from({ length: channels }, (_, i) => {
        const tile = signedTile(values.subarray(i * size, (i + 1) * size), null, rows, columns, largest);
        tile.classList.toggle("strip", rows === 1);
        return tile;
      });
      const name = `${words}: ${channels > 1 ? `${channels} channels` : `${columns} numbers`}, the largest ${number(largest, 3)}`;
      return html("div", { class: "maps" }, html("h3", {}, words), html("div", { class: "row", role: "img", "aria-label": name }, tiles));
    }));
  }
  return { show, clear };
}
