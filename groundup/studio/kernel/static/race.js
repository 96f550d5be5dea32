// What happens without a barrier: the sentences, and the ways to the steps in which it does.

import { html } from "/static/common/draw.js";
import { plural } from "/static/kernel/requests.js";

/** The panel. go(step, thread): shows a step; back(): puts the barrier back. */
export function racePanel(race, walk, go, back) {
  const buttons = [];
  if (race.found) {
    buttons.push(html("button", { type: "button", onclick: () => go(race.step, race.thread) }, "The wrong read"));
    if (race.seen) buttons.push(html("button", { type: "button", onclick: () => go(race.seen[1], null) }, "What was there was written here"));
    if (race.early && race.writer) buttons.push(html("button", { type: "button", onclick: () => go(race.writer[1], null) }, "The write that came too late"));
  }
  buttons.push(html("button", { type: "button", class: "primary", onclick: back }, race.found ? "Put the barrier back" : "Good"));
  return [
    html("h2", {}, race.found ? `Without ${plural(race.barriers.length, "this barrier", "these barriers").replace(/^\d+ /, "")}: a race` : "Without this barrier"),
    html("p", {}, race.text),
    html("div", { class: "row" }, ...buttons),
  ];
}
