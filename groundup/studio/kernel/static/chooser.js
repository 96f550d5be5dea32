// Which kernel: of the project, of a script in the studio's folder, or the learner's own.

import { html, replace } from "/static/common/draw.js";

const $ = (name) => document.getElementById(name);
const FIRST = "tiled_16";

export class Chooser {
  /** open(target): called when a kernel is to be opened. */
  constructor(open) {
    this.targets = [];
    $("choice").onchange = () => this.changed();
    $("chooser").onsubmit = (event) => {
      event.preventDefault();
      open(this.target());
    };
  }

  /** Offer what GET /api/kernel/choices has found. */
  offer({ project, scripts, tasks, named }) {
    this.targets = [];
    replace($("choice"),
      this.group("Your own, from the course", tasks.map((task) => [`${task.id} ${task.function}`, { kind: "task", id: task.id }])),
      this.group("Of this project", project.map((each) => [`${each.name}: ${each.title}`, { kind: "project", name: each.name, size: each.size }])),
      this.group("Of scripts in this folder", scripts.flatMap(({ path, kernels }) => (
        kernels.map((kernel) => [`${path}: ${kernel}`, { kind: "script", path, kernel }])))));
    // A script that was named on the command line is what the reader wants to see.
    const first = this.targets.findIndex((target) => (named ? target.kind === "script" : target.name === FIRST));
    $("choice").value = String(Math.max(0, first));
    this.changed();
  }

  group(label, entries) {
    if (entries.length === 0) return null;
    return html("optgroup", { label }, ...entries.map(([text, target]) => {
      this.targets.push(target);
      return html("option", { value: this.targets.length - 1 }, text);
    }));
  }

  changed() {
    const target = this.targets[Number($("choice").value)];
    document.querySelectorAll("#chooser .size").forEach((each) => { each.hidden = target.kind !== "project"; });
    $("by-hand").hidden = target.kind !== "script";
    if (target.kind === "project") ["m", "n", "k"].forEach((name, at) => { $(name).value = target.size[at]; });
  }

  /** Choose what was opened before the page was loaded again, if it is still offered. */
  take(target) {
    const same = (each) => ["kind", "name", "id", "path", "kernel"].every((name) => each[name] === target[name]);
    const place = this.targets.findIndex(same);
    if (place < 0) return;
    $("choice").value = String(place);
    this.changed();
    if (target.size) ["m", "n", "k"].forEach((name, at) => { $(name).value = target.size[at]; });
    $("args").value = target.args ?? "";
    for (const name of ["grid", "block"]) $(name).value = target[name]?.join(",") ?? "";
  }

  /** What is chosen, as routes.py takes it. */
  target() {
    const target = { ...this.targets[Number($("choice").value)] };
    if (target.kind === "project") target.size = ["m", "n", "k"].map((name) => Number($(name).value));
    if (target.kind === "script" && $("args").value.trim()) {
      target.args = $("args").value.trim();
      for (const name of ["grid", "block"]) target[name] = $(name).value.split(",").map(Number);
    }
    return target;
  }
}
