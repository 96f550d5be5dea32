// A function's text in colours, with what lies below it.

import { html } from "/static/common/draw.js";

/** A part of a function { name, place, language, lines, open }: folded, with its text as spans. */
export function part({ name, place, language, lines, open }) {
  const text = html("pre", {}, html("code", {}, ...lines.map(row)));
  return html("details", { open }, html("summary", {}, `${language} ${name} `, html("span", { class: "quiet" }, place)), text);
}

/** A function of one stage with its speeds; in a ladder it is folded as a whole. */
export function func({ name, parts, speeds, measured }, folded) {
  const said = speeds.map((each) => html("p", { class: "speed" }, each));
  const none = measured && !speeds.length && !folded ? html("p", { class: "speed quiet" }, "No speed of it is recorded.") : null;
  const body = parts.map(part);
  if (!folded) return html("div", {}, said, none, body);
  const first = speeds.length ? ` · ${speeds[0]}` : "";
  return html("details", { class: "rung" }, html("summary", {}, name + first), said.slice(1), body);
}

/**
 * A line of the text. Where it is too long for the screen, it goes on further to the right than it began: never
 * directly after the spaces at its beginning, which would leave an empty line.
 */
function row(line) {
  if (!line.length) return html("span", { class: "line" });
  const [[what, text], ...rest] = line;
  const first = text.match(/^ *\w*/)[0]; // the spaces, and the word after them
  const indent = `${first.match(/^ */)[0].length + 4}ch`;
  return html("span", { class: "line", style: { paddingLeft: indent, textIndent: `-${indent}` } },
    html("span", { class: "start" }, span([what, first])), span([what, text.slice(first.length)]), ...rest.map(span));
}

function span([what, text]) {
  return what ? html("span", { class: `code-${what}` }, text) : text;
}
