// A week's page: blocks of text, code, tables, figures and formulas, as groundup/studio/course/week_text.py makes them.

import { html } from "/static/common/draw.js";

const MATHML = "http://www.w3.org/1998/Math/MathML";

/** The elements of a page's blocks. */
export function prose(blocks) {
  return blocks.map((block) => KINDS[block.kind](block));
}

const KINDS = {
  heading: ({ level, spans }) => html(`h${Math.min(6, level + 2)}`, {}, ...inline(spans)),
  paragraph: ({ spans }) => html("p", {}, ...inline(spans)),
  list: ({ ordered, items }) => html(ordered ? "ol" : "ul", {}, ...items.map((spans) => html("li", {}, ...inline(spans)))),
  code: ({ text }) => html("pre", { tabindex: 0 }, html("code", {}, text)),
  math: ({ tree }) => formula(tree, "block"),
  figure: ({ name, text }) => html("figure", {}, html("img", { src: `/api/course/figure?name=${encodeURIComponent(name)}`, alt: text, loading: "lazy" })),
  table: ({ head, rows }) => html("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Table" }, html("table", {},
    html("thead", {}, html("tr", {}, ...head.map((cell) => html("th", { scope: "col" }, ...inline(cell))))),
    html("tbody", {}, ...rows.map((row) => html("tr", {}, ...row.map((cell) => html("td", {}, ...inline(cell)))))))),
};

function inline(spans) {
  return spans.map(([kind, content, address]) => {
    if (kind === "math") return formula(content, "inline");
    if (kind === "link") return html("a", { href: address, rel: "noopener noreferrer", target: "_blank" }, content);
    return kind ? html(kind, {}, content) : content;
  });
}

function formula(tree, display) {
  const node = element("math", part(tree));
  node.setAttribute("display", display);
  return node;
}

const NAMES = { row: "mrow", frac: "mfrac", sqrt: "msqrt", sub: "msub", sup: "msup", both: "msubsup" };

/** A formula's tree as MathML. */
function part([kind, ...content]) {
  return NAMES[kind] ? element(NAMES[kind], ...content.map(part)) : element(kind, content[0]);
}

function element(name, ...children) {
  const node = document.createElementNS(MATHML, name);
  node.replaceChildren(...children);
  return node;
}
