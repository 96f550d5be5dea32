// A detective exercise: where the fault is, and of which kind.

import { html, replace } from "/static/common/draw.js";

/** Fill the panel of a detective exercise. answer: a function of a line and a kind that asks the studio */
export function detective(node, task, answer) {
  node.hidden = !task.case;
  if (!task.case) return;
  const line = html("input", { required: true, placeholder: "31 or 31-32", autocomplete: "off" });
  const kind = html("select", {}, ...task.kinds.map(({ name }) => html("option", { value: name }, name)));
  const meaning = html("p", { class: "quiet" }, task.kinds[0].meaning);
  const judged = html("div", { role: "status" });
  kind.addEventListener("change", () => { meaning.textContent = task.kinds.find(({ name }) => name === kind.value).meaning; });
  const form = html("form", {}, html("label", { class: "field" }, "Line", line), html("label", { class: "field" }, "Kind of fault", kind),
    html("button", {}, "That is it"));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const found = await answer(line.value, kind.value);
    if (found) replace(judged, told(found));
  });
  replace(node, html("p", {}, "This program has one fault. ", html("code", {}, task.shows), " shows what goes wrong. Find it, name it, and mend it."),
    form, meaning, judged);
}

function told(found) {
  if (found.because) return [html("p", { class: "good" }, "Right."), html("p", {}, found.because),
    html("p", {}, found.passed ? "You have mended it already: the exercise has passed." : "Now mend it.")];
  return [html("p", {}, `The line is ${found.line ? "right" : "not right"}, the kind is ${found.kind ? "right" : "not right"}.`),
    found.source ? html("p", {}, html("code", {}, found.source)) : null, found.help.map((sentence) => html("p", {}, sentence))];
}
