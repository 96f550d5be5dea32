// What there is to know about one run in words: its state, its machine, its commands, and what of it is damaged.

import { fail, say } from "/static/common/api.js";
import { html, number } from "/static/common/draw.js";
import { bytes, clock, percent } from "/static/runs/numbers.js";

const STATES = {
  running: "The training is running.", done: "The training is done.", stopped: "The training was stopped.",
  unknown: "Whether the training still runs is not known.",
};

/** The facts of a run as nodes. trouble: sentences about what could not be read. */
export function facts(run, trouble) {
  const rows = [
    ["State", state(run)],
    ["Folder", run.folder],
    ["Network", [run.network, run.loss, run.optimizer].filter(Boolean).join("; ")],
    ["Data", run.dataset || "unknown"],
    ["Steps", steps(run)],
    ["Training loss now", run.train_loss === null ? null : `${number(run.train_loss, 4)}, the mean of ${run.train_loss_of}`],
    ["Best epoch", best(run)],
    ["Images per second", run.images_per_second === null ? null : number(run.images_per_second)],
    ["Processor", run.cores === null ? null : `${number(run.cores, 2)} cores busy`],
    ["Memory", run.memory === null ? null : bytes(run.memory)],
    ["GPU", gpu(run)],
  ];
  return [
    ...trouble.map((sentence) => html("p", { class: "trouble" }, sentence)),
    html("dl", { class: "facts" }, rows.filter(([, value]) => value !== null && value !== "").flatMap(([name, value]) =>
      [html("dt", {}, name), html("dd", {}, value)])),
    html("h3", {}, "Train it again"),
    run.command.text ? command(run.command.text, "Copy the command that trains this run again") :
      html("p", { class: "quiet" }, `There is no command: ${run.command.reason}.`),
    sessions(run),
  ];
}

/** What has changed since the page last asked: only the state and the numbers, which a live run moves on. */
export function state(run) {
  return run.reason ? `${STATES[run.state].slice(0, -1)}: ${run.reason}` : STATES[run.state];
}

function steps(run) {
  if (run.steps_done === null) return null;
  const of = run.steps === null ? "" : ` of ${number(run.steps, 9)}`;
  const left = run.state === "running" && run.left !== null ? `; about ${clock(run.left)} left` : "";
  return `${number(run.steps_done, 9)}${of}, in ${clock(run.seconds)}${left}`;
}

function best(run) {
  if (run.best_epoch === null || run.best_value === null) return null;
  const value = run.monitor.endsWith("accuracy") ? percent(run.best_value) : number(run.best_value, 4);
  return `${run.best_epoch}, by ${run.monitor.replace("_", " ")} of the whole epoch (${value})`;
}

function gpu(run) {
  if (!run.gpu.length) return run.no_gpus ? `no numbers: ${run.no_gpus}` : null;
  return run.gpu.map(([busy, held], at) => `${run.gpus[at] ?? `GPU ${at}`}: ${Math.round(100 * busy)} % busy, ${bytes(held)}`).join("; ");
}

/** The command lines that worked at the run, as the system knew them. */
function sessions(run) {
  if (!run.sessions.length) return null;
  const day = (seconds) => (seconds === null ? "an unknown time" : new Date(1000 * seconds).toLocaleString());
  return html("details", {}, html("summary", {}, run.sessions.length === 1 ? "How it was started" : `How it was started, and resumed ${run.sessions.length - 1} times`),
    run.sessions.map((each) => html("div", {},
      html("p", { class: "quiet" }, `${day(each.began)}, in ${each.folder}${each.first_step ? `, from step ${number(each.first_step, 9)}` : ""}${each.ended ? `; ended ${day(each.ended)}` : ""}`),
      command(each.command, "Copy this command"))));
}

function command(text, label) {
  return html("div", { class: "command" }, html("pre", { tabindex: 0 }, text),
    html("button", { "aria-label": label, onclick: () => copy(text) }, "Copy"));
}

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    say("The command is on the clipboard.");
  } catch {
    fail("The browser did not let the page copy; mark the command and copy it by hand.");
  }
}

/** A table of all epochs. */
export function epochTable(epochs) {
  const columns = [
    ["Epoch", "epoch", (value) => value], ["Learning rate", "learning_rate", number], ["Training loss, mean of the epoch", "train_loss", (value) => number(value, 4)],
    ["Training", "train_accuracy", percent], ["Validation loss", "validation_loss", (value) => number(value, 4)],
    ["Validation", "validation_accuracy", percent], ["Test loss", "test_loss", (value) => number(value, 4)], ["Test", "test_accuracy", percent],
    ["Seconds", "seconds", number], ["Images per second", "samples_per_second", number],
  ].filter(([, name]) => epochs[name]?.some((value) => value !== null));
  if (!epochs.epoch?.length) return html("p", { class: "quiet" }, "No epoch is finished yet.");
  const cell = (value, text) => html("td", { class: "number" }, value === null ? "–" : String(text(value)));
  return html("table", {}, html("thead", {}, html("tr", {}, columns.map(([title]) => html("th", { scope: "col", class: "number" }, title)))),
    html("tbody", {}, epochs.epoch.map((_, at) => html("tr", {}, columns.map(([, name, text]) => cell(epochs[name][at], text))))));
}
