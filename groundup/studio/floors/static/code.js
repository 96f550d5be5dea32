// A function's text in colours.

import { html } from "/static/common/draw.js";

/** A function { name, place, language, lines }, folded, with its text as spans. */
export function part({ name, place, language, lines }) {
  const text = html("pre", {}, html("code", {}, ...lines.map((line) => row(line))));
  return html("details", {}, html("summary", {}, `${language} ${name} `, html("span", { class: "quiet" }, place)), text);
}

/**
 * A line of the text. Where it is too long for the screen, it goes on further to the right than it began: never
 * directly after the spaces at its beginning, which would leave an empty line.
 */
export function row(line) {
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
