// The verdict on a task: each check that passed, the first that failed, and what helps.

import { html } from "/static/common/draw.js";
import { isCase } from "/static/course/lists.js";
import { matrices } from "/static/course/matrix.js";

/** What is shown of a value of the watch; see groundup/studio/course/watching.py. */
export function verdict(value) {
  if (value.state === "checking") {
    return [html("p", { class: "headline" }, "Checking …"), html("progress", { "aria-label": "Time of this check" }), html("p", { class: "quiet", id: "checking" }),
      html("div", { id: "checks" }, checks(value.checks ?? []))];
  }
  if (value.state !== "done") return [html("p", { class: "headline bad" }, "Not graded"), html("p", { class: "what" }, value.said)];
  const found = value.verdict;
  if (found.stub) return [html("p", { class: "headline" }, untouched(value)), html("p", {}, isCase(value.task) ? found.what : "Put your own lines in place of the error, and save the file.")];
  return [headline(value), checks(found.rungs), found.passed ? null : failed(found), rest(found), lens(value.lens)];
}

/** The same in a sentence, for a reader who listens. */
export function sentence(value) {
  if (value.state === "checking") return `Checking ${value.checks?.at(-1)?.[0] ?? ""}`;
  if (value.state !== "done") return value.said;
  const found = value.verdict;
  if (found.stub) return untouched(value);
  return found.passed ? `Passed. ${following(value)}` : `Failed at ${found.rung}: ${found.what}`;
}

function untouched(value) {
  return isCase(value.task) ? "Not mended yet" : "Not written yet";
}

function headline(value) {
  const found = value.verdict;
  if (!found.passed) return html("p", { class: "headline bad" }, `Failed: ${found.rung}`);
  return html("div", {}, html("p", { class: "headline good" }, `Passed in ${found.seconds.toFixed(1)} s`), html("p", {}, following(value)));
}

function following(value) {
  if (value.changed) return "The function was saved again while it was graded.";
  if (isCase(value.task)) return "The program is mended.";
  const phase = value.phase ? `That was the last of the phase: groundup learn checkpoint ${value.phase}. ` : "";
  return phase + (value.following ? `Next is ${value.following}.` : "");
}

/** A list of checks, each with its number of comparisons; null for the one that runs. */
export function checks(found) {
  return html("ul", {}, ...found.map(([name, count]) => (count === null ? html("li", {}, html("strong", {}, name), " runs …")
    : html("li", {}, html("span", { class: "good" }, "✓ "), `${name} `, html("span", { class: "quiet" }, `${count} ${count === 1 ? "comparison" : "comparisons"}`)))));
}

function failed(found) {
  return html("div", {},
    html("p", { class: "what" }, found.what),
    found.picture ? matrices(found.picture) : values(found),
    found.likely ? html("p", {}, html("strong", {}, "Likely: "), found.likely) : null,
    found.line ? html("p", {}, html("code", {}, `${found.file}:${found.line}`), " ", html("code", {}, found.source)) : null,
    found.by_hand ? html("details", {}, html("summary", {}, "The call, to be computed by hand"), html("pre", {}, found.by_hand)) : null,
    found.more ? html("pre", {}, found.more) : null);
}

function values(found) {
  if (!found.expected && !found.got) return null;
  return html("dl", { class: "facts" },
    found.expected ? [html("dt", {}, "expected"), html("dd", {}, html("code", {}, found.expected))] : null,
    found.got ? [html("dt", {}, "yours"), html("dd", {}, html("code", {}, found.got))] : null);
}

function rest(found) {
  return html("div", {}, ...found.notes.map((note) => html("p", { class: "quiet" }, note)),
    found.printed ? [html("p", { class: "quiet" }, "It printed:"), html("pre", {}, found.printed)] : null);
}

/** What the lens says of the kernel, with its pictures. They are files of their own: nothing of them becomes markup. */
function lens(found) {
  if (!found) return null;
  return html("section", {}, html("h3", {}, "What your kernel does to memory"),
    found.said ? html("p", {}, found.said) : null,
    found.findings.map((each) => html("div", { class: "lens-finding" }, html("strong", {}, each.title),
      each.remedy ? html("p", {}, ...withCode(each.remedy)) : null,
      html("ul", {}, ...each.details.map((detail) => html("li", {}, ...withCode(detail)))))),
    found.pictures.map((each) => html("figure", { class: "lens-picture" },
      html("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": each.name },
        html("img", { src: `data:image/svg+xml;charset=utf-8,${encodeURIComponent(each.svg)}`, alt: `${each.name}: ${each.verdict}` })),
      html("figcaption", {}, `${each.name}: `, html("code", {}, each.code), ` ${each.verdict}.`))));
}

/** The parts of a text; those between backquotes are code. */
function withCode(text) {
  return text.split("`").map((part, at) => (at % 2 ? html("code", {}, part) : part));
}
