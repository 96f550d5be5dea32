/**
 * Points from a text: lines of two coordinates and a class, with commas, semicolons, tabs or spaces between.
 *
 * A first line of names is left out. Errors name the line. The coordinates are brought into the square from -1 to 1,
 * each column by its own least and largest number, because one learning rate should suit everybody's units.
 */

export const MOST_POINTS = 1000;
export const MOST_CLASSES = 5;
const MOST_CHARACTERS = 200_000;

/**
 * { points: [[x1, x2, class], …], ranges: [[least, largest], …] of both columns, names: the classes' numbers or words }
 *
 * Throws an Error with a sentence for the reader.
 */
export function readPoints(text) {
  if (text.length > MOST_CHARACTERS) throw new Error(`The text has ${text.length.toLocaleString("en-US")} characters; at most ${MOST_CHARACTERS.toLocaleString("en-US")} are read.`);
  const rows = rowsOf(text);
  if (!rows.length) throw new Error("There is no line with numbers. Each line should be like 5.1, 3.5, 0");
  if (rows.length > MOST_POINTS) throw new Error(`There are ${rows.length.toLocaleString("en-US")} points; at most 1,000 are taken. Leave some lines out.`);
  const names = [...new Set(rows.map((row) => row.values[2]))].sort((a, b) => (typeof a === "number" && typeof b === "number" ? a - b : String(a) < String(b) ? -1 : 1));
  if (names.length > MOST_CLASSES) throw new Error(`The last column has ${names.length} different classes (${names.slice(0, 6).join(", ")}, …); at most 5 can be told apart here.`);
  if (names.length < 2) throw new Error(`Every line is of class ${names[0]}. At least two classes are needed.`);
  if (rows.length < 4) throw new Error(`There are ${rows.length} points; at least 4 are needed, because some are kept for the test.`);
  const ranges = [0, 1].map((column) => {
    const values = rows.map((row) => row.values[column]);
    return [Math.min(...values), Math.max(...values)];
  });
  const scaled = (value, [least, largest]) => (largest > least ? (2 * (value - least)) / (largest - least) - 1 : 0);
  const points = rows.map(({ values }) => [scaled(values[0], ranges[0]), scaled(values[1], ranges[1]), names.indexOf(values[2])]);
  return { points, ranges, names };
}

function rowsOf(text) {
  const rows = [];
  let first = true;
  text.split(/\r\n|\r|\n/).forEach((line, i) => {
    if (!line.trim()) return;
    const cells = line.trim().split(/\s*[,;\t]\s*|\s+/).map((cell) => cell.replace(/^"(.*)"$/, "$1"));
    const isHeading = first && cells.every((cell) => cell !== "" && Number.isNaN(Number(cell)));
    first = false;
    if (!isHeading) rows.push({ line: i + 1, values: checked(cells, i + 1) });
  });
  return rows;
}

/** Two numbers and the class, a whole number or a word, of a line; or an Error that names the line and what is wrong with it. */
function checked(cells, line) {
  if (cells.length !== 3) {
    throw new Error(`Line ${line} has ${cells.length} ${cells.length === 1 ? "column" : "columns"}; expected three: x, y and the class.`);
  }
  return cells.map((cell, i) => {
    const value = Number(cell);
    if (i === 2 && cell !== "" && Number.isNaN(value)) return cell.slice(0, 30);
    const which = ["first column (x)", "second column (y)", "third column (the class)"][i];
    if (i === 2 && cell === "") throw new Error(`Line ${line}: the ${which} is empty.`);
    if (cell === "" || !Number.isFinite(value)) throw new Error(`Line ${line}: the ${which} should be a number, and is “${cell}”.`);
    if (i === 2 && !Number.isInteger(value)) throw new Error(`Line ${line}: the ${which} should be a whole number, and is ${cell}.`);
    if (Math.abs(value) > 1e12) throw new Error(`Line ${line}: the ${which} is ${cell}; numbers up to 1e12 can be drawn.`);
    return value;
  });
}
