// A function's text in colours.

import { html } from "/static/common/draw.js";

/** A function { name, place, language, lines }, folded, with its text as spans. */
export function part({ name, place, language, lines }) {
  const text = html("pre", {}, html("code", {}, ...lines.map((line) => row(line))));
  return html("details", {}, html("summary", {}, `${language} ${name} `, html("span", { class: "quiet" }, place)), text);
}

/**
 * A line of the text, its indentation half as wide. Where it is too long for the screen, it goes on further to the right
 * than it began: never directly after its indentation, which would leave an empty line. most: spaces that are kept at most
 */
export function row(line, most = 24) {
  if (!line.length) return html("span", { class: "line" });
  const [[what, text], ...rest] = line;
  const [, spaces, word] = text.match(/^( *)(\w*)/);
  const kept = spaces.slice(0, most);
  const indent = `${kept.length / 2 + 3}ch`;
  return html("span", { class: "line", style: { paddingLeft: indent, textIndent: `-${indent}` } },
    html("span", { class: "start" }, html("span", { class: "indent" }, kept), span([what, word])), span([what, text.slice(spaces.length + word.length)]), ...rest.map(span));
}

function span([what, text]) {
  return what ? html("span", { class: `code-${what}` }, text) : text;
}
