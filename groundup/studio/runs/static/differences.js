// What differs between the runs that are drawn: their settings and what came out, a row a run.

import { html, number } from "/static/common/draw.js";
import { clock, percent } from "/static/runs/numbers.js";

const NEVER = ["data_dir", "download"]; // where the data lay changes no number

/** The names of the settings in which these runs differ. */
export function differing(runs) {
  return [...new Set(runs.flatMap((run) => Object.keys(run.settings)))].filter((name) => !NEVER.includes(name) &&
    new Set(runs.map((run) => run.settings[name] ?? "")).size > 1);
}

/** The table; null for a single run. */
export function table(runs) {
  if (runs.length < 2) return null;
  const names = differing(runs);
  const stages = new Set(runs.map((run) => run.stage_title)).size > 1 ? ["stage"] : [];
  const head = ["Run", ...stages, ...names.map((name) => name.replaceAll("_", " ")), "accuracy", "loss now", "time", "images per second"];
  const row = (run) => [
    ...(stages.length ? [run.stage_title] : []), ...names.map((name) => run.settings[name] ?? "–"),
    run.accuracy ? `${percent(run.accuracy.value)} ${run.accuracy.part}` : "–", run.train_loss === null ? "–" : number(run.train_loss, 4),
    run.seconds ? clock(run.seconds) : "–", run.images_per_second === null ? "–" : number(run.images_per_second),
  ];
  return html("table", {}, html("thead", {}, html("tr", {}, head.map((each) => html("th", { scope: "col" }, each)))),
    html("tbody", {}, runs.map((run) => html("tr", {}, html("th", { scope: "row" }, run.name), row(run).map((each) => html("td", {}, each))))));
}
