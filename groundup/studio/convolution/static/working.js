// One number of a map worked out: its window, the filter, the products and their sum; the winner of a pool; the numbers of
// a batch normalisation; and the pixels of the drawing that it depends on.

import { diverging, html, number, replace, svg } from "/static/common/draw.js";
import { framed, map, mapOf, mark, shade } from "/static/convolution/maps.js";
import { inkTile, largestOf } from "/static/digits/tiles.js";

const LISTED = 8; // sums of input maps that are written out

/**
 * Show how the number at `at` was computed. found: the studio's answer; from: the input map that is shown
 * moved(row, column): another pixel of this map was picked; chosen(from): another input map was
 * @returns {HTMLElement} the enlarged map, which takes the keys
 */
export function showWorking(node, { network, layer, maps, ink, at, found, from, moved, chosen }) {
  const output = maps.outputs[at.layer];
  const [, rows, columns] = output.shape;
  const result = map(mapOf(output, at.channel), rows, columns, largestOf(output.values), {
    tabindex: 0, role: "application", "aria-label": `Map ${at.channel} of layer ${at.layer}. ${inWords(at, found)}`, "aria-describedby": "keys",
  }, moved);
  mark(result, rows, columns, at.row, at.column);
  const source = layer.before ? maps.outputs[layer.before] : maps.x;
  replace(node, field(ink, found.field), input(source, layer, found.sums ? from : at.channel, found, chosen),
    html("figure", {}, result, html("figcaption", {}, html("b", {}, "The number. "), `Map ${at.channel} of layer ${at.layer}, ${layer.words}.`)),
    html("div", { class: "steps" }, STEPS[found.kind](found, from, chosen, source.shape)));
  return result;
}

/** The place and its number, for the heading's sentence and for readers who listen. */
export function inWords(at, found) {
  return `Row ${at.row}, column ${at.column}: ${number(found.value, 4)}.`;
}

/** The drawing with the receptive field: what the number does not depend on is covered. */
function field(ink, { values, shape: [rows, columns] }) {
  const picture = framed(inkTile(ink, null, rows, columns), rows, columns, { role: "img" });
  picture.append(shade(values.map((each) => 1 - each), rows, columns, [128, 128, 128], 150));
  const places = [...values.keys()].filter((i) => values[i]);
  const [top, bottom] = [Math.floor(places[0] / columns), Math.floor(places.at(-1) / columns)];
  const across = places.map((i) => i % columns);
  const [left, right] = [Math.min(...across), Math.max(...across)];
  mark(picture, rows, columns, top, left, bottom - top + 1, right - left + 1);
  const words = `It depends on ${places.length} of ${rows * columns} pixels: rows ${top} to ${bottom}, columns ${left} to ${right}.`;
  picture.setAttribute("aria-label", `The drawing. ${words}`);
  return html("figure", {}, picture, html("figcaption", {}, html("b", {}, "Receptive field. "), words));
}

/** The map under the window, and a slider for another one where there are several. */
function input(source, layer, channel, found, chosen) {
  const [count, rows, columns] = source.shape;
  const name = layer.before ? `Map ${channel} of layer ${layer.before}` : count > 1 ? `Channel ${channel} of the drawing` : "The drawing as the network gets it";
  const picture = map(mapOf(source, channel), rows, columns, largestOf(source.values), { role: "img", "aria-label": `${name}, with the window` });
  mark(picture, rows, columns, ...found.corner, found.inputs[0].length, found.inputs[0][0].length);
  const slider = found.sums && count > 1 ? html("label", { class: "field" }, `Input map ${channel} of ${count}, counted from 0`,
    html("input", { type: "range", min: 0, max: count - 1, value: channel, oninput: (event) => chosen(Number(event.target.value)) })) : null;
  return html("figure", {}, picture, html("figcaption", {}, html("b", {}, "Window. "), `${name}.`), slider);
}

/** A small table of numbers in colours, each as a share of the largest. */
function table(caption, values, { winner = -1, outside = () => false } = {}) {
  const largest = largestOf(values.flat());
  const columns = values[0].length;
  return html("table", {}, html("caption", {}, caption), html("tbody", {}, values.map((row, i) => html("tr", {}, row.map((each, j) => html("td", {
    class: i * columns + j === winner ? "winner" : outside(i, j) ? "outside" : null, style: { background: diverging((0.45 * each) / largest) },
  }, number(each + 0, 2)))))));
}

const sign = (text) => html("span", { class: "sign" }, text);
const signed = (value, digits = 3) => `${value < 0 ? "−" : "+"} ${number(Math.abs(value), digits)}`;

/** The functions that show how a number of each kind was computed, as nodes. */
const STEPS = {
  convolution(found, from, chosen, [, rows, columns]) {
    const { inputs, weights, sums, numbers, corner: [top, left] } = found;
    const products = inputs[from].map((row, i) => row.map((each, j) => each * weights[from][i][j]));
    const outside = (i, j) => top + i < 0 || left + j < 0 || top + i >= rows || left + j >= columns;
    const padded = products.some((row, i) => row.some((_, j) => outside(i, j)));
    const all = sums.length <= LISTED ? sums.map((each, i) => (i ? signed(each, 4) : number(each, 4))).join(" ") : number(sums.reduce((one, other) => one + other, 0), 4);
    return [
      html("div", { class: "tables" }, table("window", inputs[from], { outside }), sign("×"), table("filter", weights[from]), sign("="), table("products", products)),
      padded ? html("p", { class: "quiet" }, "Slanted zeros are the padding around the map.") : null,
      html("p", { class: "sum" }, sums.length > 1 ? `The products of input map ${from} add up to ${number(sums[from], 4)}. All ${sums.length} input maps: ` : "The products and the bias: ",
        html("b", {}, `${all} ${signed(numbers.bias, 4)} = ${number(found.value, 4)}`), "; the last term is the bias."),
      sums.length > 1 ? bars(sums, from, chosen) : null,
      html("p", { class: "quiet" }, back(found)),
    ];
  },
  max(found) {
    const { winner } = found.numbers;
    const columns = found.inputs[0][0].length;
    const place = `row ${Math.floor(winner / columns)}, column ${winner % columns}`;
    return pool(found, winner, `The winner at ${place} of the window is `, ". Of equal numbers the first wins.",
      `The gradient ${number(found.slope)} of the class's score goes to the winner alone; the other numbers of the window get 0.`);
  },
  average: (found) => pool(found, -1, "The mean of the window is ", ".", `All its numbers get the same share of the gradient ${number(found.slope)}.`),
  norm(found) {
    const { mean, variance, gamma, beta, epsilon } = found.numbers;
    const x = found.inputs[0][0][0];
    const steps = [
      ["x, from the layer before", x], [`− mean ${number(mean)} of the channel`, x - mean],
      [`÷ √(variance ${number(variance)} + ε ${number(epsilon)})`, (x - mean) / Math.sqrt(variance + epsilon)],
      [`× γ ${number(gamma)}`, (gamma * (x - mean)) / Math.sqrt(variance + epsilon)], [`+ β ${number(beta)}`, found.value],
    ];
    return [
      html("table", {}, html("tbody", {}, steps.map(([words, value]) => html("tr", {}, html("th", { scope: "row" }, words), html("td", { class: "number" }, number(value, 4)))))),
      html("p", { class: "quiet" }, `Mean and variance are the running ones of the training. ${back(found)}`),
    ];
  },
  activation(found) {
    const [x, passes] = [found.inputs[0][0][0], found.back[0][0][0]];
    return [
      html("p", { class: "sum" }, `${found.function[1]}(${number(x, 4)}) = `, html("b", {}, number(found.value, 4))),
      html("p", {}, found.slope === 0 ? "No gradient of the class's score comes here." :
        passes === 0 ? `The gradient ${number(found.slope)} stops here: a little more of x changes nothing.` : `The gradient ${number(found.slope)} goes on as ${number(passes)}.`),
    ];
  },
  sum(found) {
    const { through, past } = found.numbers;
    return [
      html("p", { class: "sum" }, `${number(through, 4)} came through the block's layers, ${number(past, 4)} past them: `, html("b", {}, `${number(through, 4)} ${signed(past, 4)} = ${number(found.value, 4)}`)),
      html("p", {}, `The gradient ${number(found.slope)} takes both ways, undivided.`),
    ];
  },
  same: () => [html("p", {}, "This layer passes its numbers on unchanged when the network answers.")],
};

/** The window of a pool, and the way back of the gradient. */
function pool(found, winner, before, after, gradient) {
  return [
    html("div", { class: "tables" }, table("window", found.inputs[0], { winner }), sign("←"), table("the way back", found.back[0], { winner })),
    html("p", { class: "sum" }, before, html("b", {}, number(found.value, 4)), after), html("p", {}, gradient),
  ];
}

function back({ slope }) {
  return `d score / d number = ${number(slope)}: by so much the chosen class's score grows with this number.`;
}

/** The sum of each input map's products as a bar. */
function bars(sums, from, chosen) {
  const largest = largestOf(sums);
  const rects = sums.flatMap((each, i) => [
    svg("rect", { x: i + 0.1, y: each > 0 ? 1 - each / largest : 1, width: 0.8, height: Math.abs(each) / largest, fill: diverging(Math.sign(each)), class: i === from ? "chosen" : null }),
    svg("rect", { x: i, y: 0, width: 1, height: 2, class: "all", onclick: () => chosen(i) }, svg("title", {}, `input map ${i}: ${number(sums[i])}`)),
  ]);
  const label = `The sums of ${sums.length} input maps, from ${number(Math.min(...sums))} to ${number(Math.max(...sums))}; input map ${from} is chosen`;
  return svg("svg", { viewBox: `0 -0.05 ${sums.length} 2.1`, preserveAspectRatio: "none", class: "sums", role: "img", "aria-label": label }, rects);
}
