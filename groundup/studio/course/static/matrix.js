// The expected and the computed matrix beside each other, with the differences marked.

import { diverging, html, number } from "/static/common/draw.js";

/** Both matrices of a picture that the grader made; see groundup/course/checks/picture.py. */
export function matrices(picture) {
  const wrong = new Set(picture.wrong.map(([row, column]) => `${row},${column}`));
  const finite = [...picture.expected, ...picture.got].flat().filter((value) => typeof value === "number");
  const largest = Math.max(1e-300, ...finite.map(Math.abs));
  return html("div", {},
    html("div", { class: "matrices" },
      matrix("expected", picture.shapes[0], picture.expected, new Set(), largest),
      matrix("yours", picture.shapes[1], picture.got, wrong, largest)),
    html("p", { class: "quiet" }, ...sentences(picture)));
}

function matrix(name, shape, rows, wrong, largest) {
  return html("div", { class: "matrix" }, html("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": `The ${name} matrix` },
    html("table", {}, html("caption", {}, `${name}, ${shape}`),
      html("tbody", {}, ...rows.map((row, i) => html("tr", {}, ...row.map((value, j) => cell(value, wrong.has(`${i},${j}`), largest))))))));
}

function cell(value, wrong, largest) {
  const drawn = typeof value === "number" ? diverging(value / largest) : "transparent";
  return html("td", { class: wrong && "wrong" }, wrong ? html("span", { class: "hidden" }, "wrong: ") : null,
    html("span", { class: "swatch", style: { background: drawn }, "aria-hidden": "true" }), told(value));
}

/** A number as a reader says it; the grader sends NaN and infinity as words. */
function told(value) {
  if (typeof value === "number") return number(value, 6);
  return { nan: "NaN", inf: "∞", "-inf": "−∞" }[value] ?? String(value);
}

function sentences(picture) {
  const said = [];
  if (picture.count) said.push(picture.count === 1 ? "One number is wrong. " : `${picture.count.toLocaleString("en-US")} numbers are wrong. `);
  if (picture.got.flat().includes("nan")) said.push("NaN is “not a number”: it was computed from a division by zero or the like, or nothing was written there. ");
  if (picture.plane.length) said.push(`This is matrix ${picture.plane.join(", ")} of the whole. `);
  if (picture.row || picture.column) said.push(`The part begins at row ${picture.row}, column ${picture.column}. `);
  return said;
}
