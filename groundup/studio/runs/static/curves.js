// The charts of several runs over each other. Each is a function of the runs that are drawn; plotly.js does the rest.

import { chart } from "/static/common/chart.js";
import { colour, html } from "/static/common/draw.js";
import { any, axisTitle, epochPlaces, logarithmic, smoothed, stepPlaces, timeUnit } from "/static/runs/numbers.js";

const CHARTS = [
  { id: "loss", title: "Loss", note: "Lines: training. Points: data that was held out, at the end of each epoch.", lines: lossLines, logarithm: true },
  { id: "accuracy", title: "Accuracy", note: "Filled points: validation data. Open points: test data. Thin: the first 1,000 training samples.", lines: accuracyLines, tickformat: ".1~%" },
  { id: "rate", title: "Learning rate", lines: (each, shown) => column(each, shown, "rate", "learning_rate"), zero: true },
  { id: "speed", title: "Images per second", note: "Without evaluations.", lines: (each, shown) => column(each, shown, "images_per_second", "samples_per_second"), zero: true, tickformat: "~s", plain: true },
  { id: "cores", title: "Processor", note: "Cores that were busy for the training.", lines: (each, shown) => column(each, shown, "cores"), zero: true },
  { id: "memory", title: "Memory", note: "Of the training's process.", lines: (each, shown) => column(each, shown, "memory", null, 2 ** 20), unit: "MiB", zero: true },
  { id: "busy", title: "GPU", note: "Share of the time in which it computed, for all programs.", lines: (each, shown) => perGpu(each, shown, "busy"), tickformat: ".0%", zero: true },
  { id: "held", title: "GPU memory", note: "In use by all programs.", lines: (each, shown) => perGpu(each, shown, "held", 2 ** 30), unit: "GiB", zero: true },
];

/** Make the places for the charts within a node. */
export function places(node) {
  node.replaceChildren(...CHARTS.map(({ id, title, note }) => html("figure", { id: `chart-${id}`, hidden: true },
    html("h3", {}, title), html("div", { class: "chart" }), note ? html("figcaption", {}, note) : null)));
}

/**
 * Draw all charts that have something to show.
 *
 * drawn: [{ run, columns, look }]; options: { axis, from, to, smoothing, logarithm }. Resolves when they are drawn.
 */
export async function draw(drawn, options) {
  const longest = Math.max(0, ...drawn.map(({ columns }) => Math.max(0, ...(columns.steps.seconds ?? []), ...(columns.epochs.time ?? []))));
  const [unit, divisor] = timeUnit(longest);
  const shown = { ...options, divisor, alone: drawn.length === 1 };
  for (const each of CHARTS) {
    const made = () => drawn.flatMap((one) => each.lines(one, shown));
    const node = document.getElementById(`chart-${each.id}`);
    const lines = made();
    node.hidden = lines.length === 0;
    if (node.hidden) continue;
    const title = axisTitle(options.axis, unit);
    await chart(node.querySelector(".chart"), () => ({ data: made(), layout: layout(each, options, title, lines) }), spoken(each, lines));
  }
}

/** The horizontal axis with its limits, which are null where there is none. */
export function across({ from, to }, title) {
  const limited = from !== null || to !== null ? { range: [from ?? 0, to], autorange: to === null ? "max" : undefined } : {};
  return { title: { text: title }, ...limited };
}

function layout(each, options, title, lines) {
  const { axis, from, to, logarithm } = options;
  return {
    height: 250, showlegend: false, margin: { l: 56, r: 10, t: 8, b: 42 }, hovermode: "closest",
    uirevision: `${axis} ${from} ${to} ${each.logarithm && logarithm}`,
    xaxis: across(options, title),
    yaxis: {
      ...(each.logarithm && logarithm ? logarithmic(lines.map(({ y }) => y)) : { tickformat: each.tickformat }), rangemode: each.zero ? "tozero" : "normal",
      title: each.unit ? { text: each.unit } : undefined,
    },
  };
}

/** What a reader who listens is told: each run's last value. */
function spoken({ title, unit = "", tickformat, plain }, lines) {
  const last = (line) => line.y.findLast((value) => value !== null && value !== undefined);
  const value = (number) => (tickformat && !plain ? `${(100 * number).toFixed(1)} %` : `${Number(number.toPrecision(4))} ${unit}`.trim());
  const told = lines.filter((line) => line.spoken && last(line) !== undefined).map((line) => `${line.name} ${value(last(line))}`);
  return `${title}, at the end: ${told.join("; ")}`;
}

function line({ run, look }, x, y, more = {}) {
  const { name = run.name, width = 2, opacity = 1, ...rest } = more;
  const shown = rest.line ?? {};
  return {
    x, y, name, type: "scatter", mode: "lines", connectgaps: false, opacity, spoken: true,
    hovertemplate: "%{y:.4~g}, at %{x:,.5~r}<extra>%{fullData.name}</extra>", ...rest,
    line: { color: colour(look.colour), dash: look.dash, width, ...shown },
    marker: { color: colour(look.colour), size: y.length > 50 ? 3 : 6, ...(rest.marker ?? {}) },
  };
}

/** One line of the steps; of a run without steps, its epochs. */
function column(each, shown, name, epochName = null, divisor = 1) {
  const { columns, run } = each;
  const scaled = (values) => (divisor === 1 ? values : values.map((value) => (value === null ? null : value / divisor)));
  if (any(columns.steps[name])) {
    const values = scaled(columns.steps[name]);
    return [line(each, stepPlaces(run, columns, shown.axis, shown.divisor), shown.smoothing && name !== "rate" ? smoothed(values, shown.smoothing) : values)];
  }
  if (!epochName || !any(columns.epochs[epochName])) return [];
  return [line(each, epochPlaces(run, columns, shown.axis, shown.divisor), scaled(columns.epochs[epochName]), { mode: "lines+markers" })];
}

function perGpu(each, shown, name, divisor = 1) {
  const places = () => stepPlaces(each.run, each.columns, shown.axis, shown.divisor);
  return (each.columns.steps[name] ?? []).filter(any).map((values, at) => line(each, places(),
    divisor === 1 ? values : values.map((value) => (value === null ? null : value / divisor)), { name: `${each.run.name}, ${each.run.gpus[at] ?? `GPU ${at}`}` }));
}

function lossLines(each, shown) {
  const { run, columns } = each;
  const found = [];
  if (any(columns.steps.loss)) {
    const x = stepPlaces(run, columns, shown.axis, shown.divisor);
    const { loss, low, high } = columns.steps;
    if (shown.alone && !shown.smoothing) found.push(...band(each, x, low, high));
    if (shown.smoothing) found.push(line(each, x, loss, { width: 1, opacity: 0.35, hoverinfo: "skip", hovertemplate: null, spoken: false }));
    found.push(line(each, x, shown.smoothing ? smoothed(loss, shown.smoothing) : loss));
  } else if (any(columns.epochs.train_loss)) {
    found.push(line(each, epochPlaces(run, columns, shown.axis, shown.divisor), columns.epochs.train_loss, { mode: "lines+markers" }));
  }
  const part = held(columns, "loss");
  if (part) {
    found.push(line(each, epochPlaces(run, columns, shown.axis, shown.divisor), columns.epochs[`${part}_loss`],
      { mode: "markers", name: `${run.name}, ${part}`, marker: { symbol: "circle" } }));
  }
  return found;
}

/** From the smallest to the largest loss of the steps that a point stands for. */
function band(each, x, low, high) {
  if (!any(low) || !low.some((value, at) => value !== high[at])) return [];
  const edge = { mode: "lines", width: 0, hoverinfo: "skip", hovertemplate: null, spoken: false };
  const fill = `${colour(each.look.colour)}33`;
  return [line(each, x, low, edge), { ...line(each, x, high, edge), fill: "tonexty", fillcolor: fill }];
}

function accuracyLines(each, shown) {
  const { run, columns } = each;
  const found = [];
  const x = epochPlaces(run, columns, shown.axis, shown.divisor);
  if (any(columns.epochs.train_accuracy))
    found.push(line(each, x, columns.epochs.train_accuracy, { name: `${run.name}, training`, width: 1, opacity: 0.6 }));
  for (const part of ["validation", "test"])
    if (any(columns.epochs[`${part}_accuracy`])) {
      const symbol = part === "test" ? "circle-open" : "circle";
      found.push(line(each, x, columns.epochs[`${part}_accuracy`], { mode: "lines+markers", name: `${run.name}, ${part}`, marker: { symbol } }));
    }
  return found;
}

/** The data that was held out and has this number: validation before test. */
function held(columns, what) {
  return ["validation", "test"].find((part) => any(columns.epochs[`${part}_${what}`]));
}
