// The phases, weeks and tasks with their states, and the learner's function.

import { html } from "/static/common/draw.js";

/** Whether an id is that of a detective exercise: "9.d", or "23.e" for the second one of a week. */
export const isCase = (id) => /[a-z]$/.test(id);

/** The list of a course's tasks. chosen: the task that is shown; onchoose: called with the id of another. */
export function tasks(progress, chosen, onchoose) {
  return progress.phases.map((phase) => {
    const here = phase.weeks.some((week) => week.tasks.some((task) => task.id === chosen));
    return html("details", { open: here }, html("summary", {}, `${phase.number} ${phase.title} `, html("small", {}, counted(phase))),
      phase.weeks.map((week) => [html("h3", {}, `Week ${week.number}: ${week.title}`),
        html("ul", {}, ...week.tasks.map((task) => html("li", {}, html("button", {
          type: "button", "aria-current": task.id === chosen ? "true" : null, onclick: () => onchoose(task.id),
        }, `${task.id} ${task.title} `, state(task)))))]),
      html("p", { class: "quiet" }, `Checkpoint: ${phase.checkpoint}. `, phase.reached ? html("span", { class: "good" }, "Reached.") : ""));
  });
}

function counted(phase) {
  const all = phase.weeks.flatMap((week) => week.tasks).filter((task) => !isCase(task.id));
  return `${all.filter((task) => task.state.startsWith("passed")).length} of ${all.length}`;
}

function state(task) {
  if (!task.state) return null;
  const passed = task.state.startsWith("passed");
  return html("small", { class: passed && "good" }, passed ? `✓ ${task.state}` : task.state);
}

/** The learner's function, line by line, with the lines' numbers in the file. here: the line that the verdict names */
export function source({ lines, first, said }, here) {
  if (said) return [said];
  return lines.map((line, at) => html("span", { class: here === first + at ? "line here" : "line" },
    html("span", { class: "lineno", "aria-hidden": "true" }, String(first + at)),
    ...line.map(([what, text]) => (what ? html("span", { class: `code-${what}` }, text) : text))));
}
