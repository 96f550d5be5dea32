// The layers of one run: how large their gradients and weights are over time, and how large one is beside the other.

import { chart } from "/static/common/chart.js";
import { colour, html, number, svg } from "/static/common/draw.js";
import { across } from "/static/runs/curves.js";
import { any, axisTitle, logarithmic, ratios, smoothed, stepPlaces, timeUnit } from "/static/runs/numbers.js";

const COLOURS = ["blue", "orange", "stage3", "stage4", "accent", "bad", "good", "quiet"];
const CHARTS = [
  { id: "gradients", title: "Gradients", note: "‖dL/dW‖: the root of the sum of all squares of a layer's gradient." },
  { id: "weights", title: "Weights", note: "‖W‖, the same of its weights." },
  { id: "ratio", title: "Gradients beside weights", note: "‖dL/dW‖ / ‖W‖. Times the learning rate, it is the share by which a step of plain SGD changes the weights." },
];

/** Make the places for the charts within a node. */
export function places(node) {
  node.replaceChildren(...CHARTS.map(({ id, title, note }) => html("figure", { id: `layers-${id}`, hidden: true },
    html("h3", {}, title), html("div", { class: "chart" }), html("figcaption", {}, note))));
}

/** Show no layers: those of this run are not known yet. */
export function clear() {
  for (const { id } of CHARTS) document.getElementById(`layers-${id}`).hidden = true;
}

/** Draw the layers of a run. options: as for the curves. Returns the sentence to show instead where nothing was recorded, or "". */
export async function draw(run, columns, options) {
  const { axis, smoothing, from, to } = options;
  const { weights = [], gradients = [] } = columns.steps;
  const of = { gradients, weights, ratio: gradients.map((each, layer) => ratios(each, weights[layer] ?? [])) };
  const [unit, divisor] = timeUnit(Math.max(0, ...(columns.steps.seconds ?? [])));
  for (const { id, title } of CHARTS) {
    const node = document.getElementById(`layers-${id}`);
    const lines = of[id].map((y, layer) => ({ y, layer })).filter(({ y }) => any(y));
    node.hidden = lines.length === 0;
    if (node.hidden) continue;
    const x = stepPlaces(run, columns, axis, divisor);
    const made = () => ({
      data: lines.map(({ y, layer }) => ({
        x, y: smoothing ? smoothed(y, smoothing) : y, name: run.layers[layer] ?? `${layer + 1}`, type: "scatter", mode: "lines",
        line: { color: colour(COLOURS[layer % COLOURS.length]), dash: layer < COLOURS.length ? "solid" : "dash", width: 2 },
        hovertemplate: "%{y:.4~g}, at %{x:,.5~r}<extra>layer %{fullData.name}</extra>",
      })),
      layout: {
        height: 280, margin: { l: 60, r: 10, t: 8, b: 42 }, uirevision: `${run.code} ${axis} ${from} ${to}`, hovermode: "closest",
        showlegend: true, legend: { orientation: "h", y: 1.02, yanchor: "bottom", x: 0, title: { text: "layer " } },
        xaxis: across(options, axisTitle(axis, unit)), yaxis: id === "weights" ? {} : logarithmic(lines.map(({ y }) => y)),
      },
    });
    const last = lines.map(({ y, layer }) => `layer ${run.layers[layer] ?? layer + 1}: ${number(y.findLast((each) => each !== null))}`);
    await chart(node.querySelector(".chart"), made, `${title}, at the end: ${last.join("; ")}`);
  }
  if (any(weights[0])) return "";
  return columns.steps.step?.length ? "The network of this run has no layers with weights." :
    "This run has no steps.jsonl: it was made by an earlier version of groundup, which did not write its layers down.";
}

/** How the weights of the last checkpoint are spread, and their gradients as soon as they are computed; each as the studio counted them. */
export function histograms({ layers, file }, gradients = []) {
  if (!layers.length) return [html("p", { class: "quiet" }, file ?? "There is no checkpoint in this folder.")];
  return layers.map((layer, i) => html("figure", {}, html("h4", {}, `Layer ${layer.name}`), [["Weights", layer], ["Gradients", gradients[i]]].map(([what, each]) => {
    if (!each) return null;
    const { end, counts, mean, deviation, broken } = each;
    const most = Math.max(1, ...counts);
    const said = `${what}: mean ${number(mean)}, standard deviation ${number(deviation)}${broken ? `, ${number(broken, 9)} not finite` : ""}`;
    return [
      svg("svg", { viewBox: "0 0 410 100", role: "img", "aria-label": `Layer ${layer.name}, from ${number(-end)} to ${number(end)}. ${said}` },
        counts.map((count, at) => svg("rect", { x: 10 * at, y: 100 - (98 * count) / most, width: 9, height: (98 * count) / most, class: `bar ${what.toLowerCase()}` }))),
      html("div", { class: "ends quiet" }, html("span", {}, number(-end)), html("span", {}, "0"), html("span", {}, number(end))), html("figcaption", {}, said),
    ];
  })));
}

/** How the gradients were made, in a sentence, or why there are none. */
export function howMade({ layers, file, count }) {
  return layers.length ? `A run records only the length of each gradient: these were computed now by stage 2, from ${file} and a batch of ${count} images of its training set, without dropout.` :
    `The gradients cannot be computed: ${file}.`;
}
