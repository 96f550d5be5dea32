/** What a neuron computes, written out: tanh(1.2·x₁ − 0.8·x₂ − 0.92). */

import { number } from "/static/common/draw.js";

const MOST = 6; // terms that are written; of more inputs, those with the largest weights

const lowered = (value) => String(value).replace(/\d/g, (digit) => String.fromCharCode(0x2080 + Number(digit)));

/** The formula of a neuron; null where its weights are not drawn: for inputs, and for what has pixels as its inputs. */
export function formulaOf(layer, neuron, scene, picture) {
  const rows = layer > 0 ? picture.weights[layer - 1] : [];
  const bias = picture.biases[layer - 1]?.[neuron] ?? null;
  if (!rows.length || bias === null || rows.some((row) => (row[neuron] ?? null) === null)) return null;
  const input = layer === 1 ? "x" : "h";
  const terms = rows.map((row, i) => ({ weight: row[neuron], name: `${input}${lowered(i + 1)}`, i }));
  const written = terms.sort((a, b) => Math.abs(b.weight) - Math.abs(a.weight)).slice(0, MOST).sort((a, b) => a.i - b.i);
  const left = scene.sizes[layer - 1] - written.length;
  const sum = written.map(({ weight, name }, i) => signed(weight, i === 0, `·${name}`)).join("")
    + (left ? ` + ${left} smaller` : "") + signed(bias, false, "");
  const { activation } = scene.settings;
  return layer === scene.sizes.length - 1 || activation === "identity" ? sum : `${activation}(${sum})`;
}

/** A number with its sign as it stands in a sum. */
function signed(value, first, after) {
  const size = `${number(Math.abs(value), 2)}${after}`;
  if (first) return value < 0 ? `−${size}` : size;
  return value < 0 ? ` − ${size}` : ` + ${size}`;
}
