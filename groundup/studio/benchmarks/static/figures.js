// The charts of the page, as plotly.js takes them. Text from a file is escaped: plotly.js reads some markup in labels.

import { colour } from "/static/common/draw.js";

const SYMBOLS = ["circle", "square", "diamond", "triangle-up", "x", "cross", "star", "hexagon", "triangle-down", "pentagon"];
const DASHES = ["solid", "dash", "dot", "dashdot", "longdash"];
const LEGEND = { orientation: "h", yref: "container", y: 0, yanchor: "bottom", x: 0 };
const TIME = { name: "seconds", unit: "s", log: true };

/** Text that plotly.js shows as it is. */
export function plain(text) {
  return String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
}

/** A label in lines of about so many characters. */
export function wrapped(text, width) {
  const lines = [""];
  for (const word of String(text).split(" ")) {
    const last = lines[lines.length - 1];
    if (last && last.length + word.length >= width) lines.push(word);
    else lines[lines.length - 1] = last ? `${last} ${word}` : word;
  }
  return lines.map(plain).join("<br>");
}

/** A chart of measured rows: dots beside what was measured, or lines over the size where there is a number for it. */
export function measured(names, value, width) {
  const lines = names.length > 0 && names.every((each) => each.row.number !== null)
    && new Set(names.map((each) => each.row.number)).size > 1;
  const groups = grouped(names); // who -> their rows
  const data = [...groups].map(([who, found], at) => trace(who, found, value, lines, at, groups, width));
  const axis = { title: { text: value.title }, type: value.log ? "log" : "linear",
    ...ticks(value, names.map((each) => each.row.values[value.name])) };
  const rows = new Set(names.map((each) => each.what)).size;
  const category = {
    type: "category", range: [rows - 0.5, -0.5], automargin: true, tickfont: { size: 12 },
    categoryorder: "array", categoryarray: [...new Set(names.map((each) => label(each.what, width)))],
  };
  const height = (lines ? 340 : 70 + Math.max(3, rows) * (width < 600 ? 40 : 26)) + (width < 600 ? 21 * groups.size : 24 * Math.ceil(groups.size / 4));
  const layout = {
    height, hovermode: "closest", showlegend: true, legend: LEGEND,
    xaxis: lines ? { type: "log", title: { text: "size" }, ...sizes(names) } : { ...axis, side: "top" },
    yaxis: lines ? axis : category, margin: { l: 60, r: 16, t: lines ? 12 : 56, b: 12 },
  };
  return { data, layout };
}

/** How many rows of a comparison a chart of this width has room for. */
export function room(width) {
  return width < 600 ? 20 : 60;
}

/** A chart of a comparison: new / old of every row, with the noise as a bar. */
export function compared(names, width) {
  const tones = { faster: "good", slower: "bad", "within the noise": "quiet", unknown: "edge" };
  const verdicts = [...new Set(names.map((each) => each.row.verdict))];
  const at = (each) => wrapped(`${each.row.title}, ${each.row.contender}, ${each.row.dtype}`, width < 600 ? 26 : 72);
  const data = verdicts.map((verdict, number) => {
    const found = names.filter((each) => each.row.verdict === verdict && each.row.factor !== null);
    return {
      type: "scatter", mode: "markers", name: verdict, x: found.map((each) => each.row.factor), y: found.map(at),
      marker: { color: colour(tones[verdict]), symbol: SYMBOLS[number], size: 9 },
      error_x: {
        type: "data", symmetric: false, color: colour(tones[verdict]), thickness: 1,
        array: found.map((each) => each.row.factor * (each.row.noise ?? 0)),
        arrayminus: found.map((each) => each.row.factor * (1 - 1 / (1 + (each.row.noise ?? 0)))),
      },
      text: found.map((each) => [
        `${each.row.title}, ${each.row.contender}, ${each.row.dtype}`, `old ${each.row.old}, new ${each.row.new}`,
        `new / old ${each.row.factor_text}${each.row.noise_text && ` ± ${each.row.noise_text}`}`,
      ].map(plain).join("<br>")),
      hovertemplate: "%{text}<extra></extra>",
    };
  });
  const layout = {
    height: 110 + names.length * (width < 600 ? 58 : 24), hovermode: "closest",
    legend: LEGEND, margin: { l: 60, r: 16, t: 56, b: 12 },
    showlegend: true, yaxis: { type: "category", range: [names.length - 0.5, -0.5], automargin: true, tickfont: { size: 12 } },
    xaxis: {
      type: "log", side: "top", title: { text: "new / old: left of 1 is faster" },
      ...ticks({ name: "", unit: "", log: true }, names.flatMap(({ row }) => [row.factor ?? 1, (row.factor ?? 1) / (1 + (row.noise ?? 0)), 1])),
    },
    shapes: [{ type: "line", x0: 1, x1: 1, y0: 0, y1: 1, yref: "paper", line: { color: colour("edge"), width: 1 } }],
  };
  return { data, layout };
}

/** Training curves over the seconds of training. name: "loss" or "accuracy". */
export function trained(curves, name) {
  const several = new Set(curves.map((each) => each.of)).size > 1;
  const data = curves.map((each, at) => ({
    type: "scatter", mode: "lines+markers", name: plain(several ? `${each.who}, ${each.of}` : each.who),
    x: each.seconds, y: each[name], line: { color: colour(each.colour), dash: DASHES[at % DASHES.length], width: 2 },
    marker: { symbol: SYMBOLS[at % SYMBOLS.length], size: 6 },
    text: each.epochs.map((epoch) => `epoch ${epoch}`), hovertemplate: "%{text}: %{y:.4~g} after %{x:.3~g} s",
  }));
  const percent = name === "accuracy" ? { tickformat: ".0%" } : {};
  const layout = {
    height: 360, hovermode: "closest", legend: LEGEND,
    xaxis: { type: "log", title: { text: "time of training" }, ...ticks(TIME, curves.flatMap((each) => each.seconds)) }, margin: { l: 56, r: 12, t: 12, b: 12 },
    yaxis: { title: { text: name === "loss" ? "training loss" : "test accuracy" }, ...percent },
  };
  return { data, layout };
}

function grouped(names) {
  const groups = new Map();
  for (const each of names) groups.set(each.who, [...(groups.get(each.who) ?? []), each]);
  return groups;
}

function trace(who, found, value, lines, at, groups, width) {
  const shade = colour(found[0].row.colour);
  const kin = [...groups.values()].filter((each) => each[0].row.stage === found[0].row.stage);
  const place = kin.indexOf(found); // rungs of one stage have its colour, and differ in the symbol
  const numbers = found.map((each) => each.row.values[value.name]);
  const places = found.map((each) => (lines ? each.row.number : label(each.what, width)));
  const spread = value.name !== "seconds" ? {} : {
    type: "data", symmetric: false, thickness: 1, color: shade,
    array: found.map((each) => (each.row.upper ?? 0) - each.row.values.seconds),
    arrayminus: found.map((each) => each.row.values.seconds - (each.row.lower ?? 0)),
  };
  return {
    type: "scatter", mode: lines ? "lines+markers" : "markers", name: plain(who),
    x: lines ? places : numbers, y: lines ? numbers : places, [lines ? "error_y" : "error_x"]: spread,
    marker: { color: shade, symbol: SYMBOLS[place % SYMBOLS.length] + (found[0].row.emulated ? "-open" : ""), size: 9 },
    line: { color: shade, dash: DASHES[place % DASHES.length], width: 2 },
    text: found.map((each) => [`${each.row.title}, ${each.who}`, ...each.row.more].map(plain).join("<br>")),
    hovertemplate: "%{text}<extra></extra>",
  };
}

function label(text, width) {
  return wrapped(text, width < 600 ? 18 : 44);
}

/** Ticks at powers of ten, or at 1, 2 and 5 of each where there are few, in units that people read: 100 µs. */
function ticks(value, numbers) {
  if (!value.log) return { tickformat: ".3~p" };
  const found = numbers.filter((each) => each > 0);
  const [low, high] = [Math.min(...found), Math.max(...found)].map(Math.log10);
  const steps = high - low < 1.5 ? [1, 2, 5] : [1];
  const every = Math.max(1, Math.ceil((high - low) / 7));
  const tickvals = [];
  for (let power = Math.floor(low) - 1; power <= Math.ceil(high); power++)
    if (power % every === 0) tickvals.push(...steps.map((step) => step * 10 ** power));
  return { tickvals, ticktext: tickvals.map((each) => told(each, value)) };
}

/** A round number with its unit: 100 µs, 20 GFLOP/s, 5 %. */
function told(number, { name, unit }) {
  if (name === "peak") return `${Number((100 * number).toPrecision(3))} %`;
  if (!unit || unit === "1/s") return Number(number.toPrecision(3)).toLocaleString("en-US", { maximumFractionDigits: 9 });
  const power = Math.min(5, Math.max(unit === "s" ? -3 : 0, Math.floor(Math.log10(number * 1.0001) / 3)));
  const prefix = { "-3": "n", "-2": "µ", "-1": "m", 0: "", 1: "k", 2: "M", 3: "G", 4: "T", 5: "P" }[unit === "s" ? Math.min(0, power) : power];
  return `${Number((number / 1000 ** (unit === "s" ? Math.min(0, power) : power)).toPrecision(3)).toLocaleString("en-US")} ${prefix}${unit}`;
}

function sizes(names) {
  const found = [...new Map(names.map((each) => [each.row.number, each.row.size]))].sort((a, b) => a[0] - b[0]);
  return { tickvals: found.map((each) => each[0]), ticktext: found.map((each) => plain(each[1])) };
}
