// What the charts and the list of runs compute: smoothing, the columns of an axis, times and sizes as text. No drawing.

/**
 * An exponential moving average, as TensorBoard draws it: each value is `weight` times the average so far and
 * (1 - weight) times itself, divided by the sum of the weights so that the beginning is not pulled towards 0.
 * What is null stays null and changes nothing.
 */
export function smoothed(values, weight) {
  let [sum, total] = [0, 0];
  return values.map((value) => {
    if (value === null || value === undefined) return null;
    sum = weight * sum + (1 - weight) * value;
    total = weight * total + (1 - weight);
    return sum / total;
  });
}

/** The places of a run's steps on an axis: "step", "epoch" (with fractions), "share" in % of its own length, or "time" in the unit of `divisor`. */
export function stepPlaces(run, columns, axis, divisor = 1) {
  const steps = columns.steps;
  if (axis === "share") return steps.step.map((each) => (100 * each) / whole(run, columns));
  if (axis === "time") return steps.seconds.map((each) => each / divisor);
  if (axis === "epoch" && run.steps && run.epochs) return steps.step.map((each) => (each * run.epochs) / run.steps);
  return axis === "epoch" ? steps.epoch : steps.step;
}

/** The steps of a whole run: the planned ones while it is trained, else those that it did. */
const whole = (run, { steps }) => (run.state === "running" && run.steps) || steps.step.at(-1);

/** The same for a run's epochs, whose numbers stand at the end of each. */
export function epochPlaces(run, columns, axis, divisor = 1) {
  const { epochs } = columns;
  if (!epochs.epoch) return []; // no epoch is finished yet
  if (axis === "share") {
    if (columns.steps.step?.length && !epochs.step.includes(null)) return epochs.step.map((each) => (100 * each) / whole(run, columns));
    return epochs.epoch.map((each) => (100 * each) / ((run.state === "running" && run.epochs) || epochs.epoch.at(-1)));
  }
  if (axis === "time") return epochs.time.map((each) => (each === null ? null : each / divisor));
  return axis === "step" ? epochs.step : epochs.epoch;
}

/** What stands below an axis. */
export const axisTitle = (axis, unit) => ({ time: `time in ${unit}`, share: "share of the run in %" })[axis] ?? `${axis}s`;

/** [name, seconds in it] of the unit in which times up to `longest` seconds read best. */
export function timeUnit(longest) {
  if (longest > 2 * 86400) return ["days", 86400];
  if (longest > 2 * 3600) return ["hours", 3600];
  return longest > 120 ? ["minutes", 60] : ["seconds", 1];
}

/** A time as people say it: "8 s", "3 min 7 s", "1 h 20 min", "2 d 3 h". */
export function clock(seconds) {
  if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return "unknown";
  if (seconds < 9.95) return `${Number(seconds.toPrecision(2))} s`;
  const whole = Math.round(seconds);
  const parts = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
  const first = parts.findIndex(([size]) => whole >= size);
  const [[size, unit], next] = [parts[first], parts[first + 1]];
  const rest = next ? Math.floor((whole % size) / next[0]) : 0;
  return rest ? `${Math.floor(whole / size)} ${unit} ${rest} ${next[1]}` : `${Math.floor(whole / size)} ${unit}`;
}

/** Bytes as text: "512 KiB", "87.5 MiB", "1.2 GiB". */
export function bytes(count) {
  for (const [unit, size] of [["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 2 ** 10]])
    if (count >= size) return `${Number((count / size).toPrecision(3))} ${unit}`;
  return `${count} B`;
}

/** A share from 0 to 1 as a percentage with two decimals. */
export function percent(share) {
  return share === null || share === undefined ? "–" : `${(100 * share).toFixed(2)} %`;
}

const PALETTE = ["blue", "orange", "stage3", "stage4", "accent", "bad"];
const DASHES = ["solid", "dash", "dot", "dashdot"];

/**
 * The look of each run's lines: { colour, dash }. kept: { code: place in the palette }, which is added to: a run keeps its
 * look, and a new one gets the first that no run has.
 */
export function looks(runs, kept) {
  return runs.map(({ code }) => {
    const taken = new Set(Object.values(kept));
    for (let place = 0; !(code in kept); place++) if (!taken.has(place)) kept[code] = place;
    return { colour: PALETTE[kept[code] % PALETTE.length], dash: DASHES[Math.floor(kept[code] / PALETTE.length) % DASHES.length] };
  });
}

/** The values of two columns divided, element by element; null where that is no number. */
export function ratios(above, below) {
  return above.map((each, at) => (each === null || !below[at] ? null : each / below[at]));
}

/** How a logarithmic axis is labelled that shows these columns: 1, 2, 5 of each power of ten, or the powers alone. */
export function logarithmic(columns) {
  const shown = columns.flat().filter((each) => each > 0 && Number.isFinite(each)).map(Math.log10);
  const [low, high] = shown.reduce(([least, most], each) => [Math.min(least, each), Math.max(most, each)], [Infinity, -Infinity]);
  return high - low > 3 ? { type: "log", dtick: 1 } : { type: "log", dtick: "D2", tickformat: "~g" };
}

/** Whether a column has anything to show. */
export function any(column) {
  return Boolean(column && column.some((each) => each !== null && each !== undefined));
}
