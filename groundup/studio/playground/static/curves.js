/** Curves over the steps of a training, drawn at every frame: a few lines on a canvas, with a linear or a log axis. */

import { canvas, number, replace } from "/static/common/draw.js";
import { palette } from "/static/playground/colours.js";

const [LEFT, RIGHT, TOP, BOTTOM] = [46, 10, 8, 22];
const DECADES = 12;

/**
 * holder: an element with a height. Returns { resize(), draw(steps, lines, spoken) }.
 * lines: for each line its values, a number or null for each step; spoken: what is seen, as a text
 */
export function curvesIn(holder, { logarithmic = false } = {}) {
  let [node, pen, width, height] = [null, null, 0, 0];

  function resize() {
    [width, height] = [holder.clientWidth, holder.clientHeight];
    node = canvas(width, height, { role: "img", "aria-label": "No step was taken yet" });
    pen = node.getContext("2d");
    replace(holder, node);
  }

  function draw(steps, lines) {
    const colours = palette();
    pen.clearRect(0, 0, width, height);
    pen.font = "12px system-ui, sans-serif";
    const [low, high] = rangeOf(lines, logarithmic);
    const scaled = (value) => (logarithmic ? Math.log10(value) : value);
    const last = Math.max(1, steps.at(-1) ?? 1);
    const x = (step) => LEFT + (step / last) * (width - LEFT - RIGHT);
    const y = (value) => height - BOTTOM - ((scaled(value) - low) / (high - low)) * (height - TOP - BOTTOM);
    drawAxis(low, high, last, y, colours);
    pen.save();
    pen.beginPath();
    pen.rect(LEFT, TOP - 1, width - LEFT - RIGHT, height - TOP - BOTTOM + 2);
    pen.clip(); // what is below the last power of ten stays off the axis
    lines.forEach((values, i) => {
      pen.strokeStyle = colours.lines[i % colours.lines.length];
      pen.lineWidth = 2;
      pen.setLineDash(i % 2 ? [5, 3] : []);
      pen.beginPath();
      let connected = false;
      values.forEach((value, at) => {
        if (!drawable(value, logarithmic)) {
          connected = false;
          return;
        }
        pen[connected ? "lineTo" : "moveTo"](x(steps[at]), y(value));
        connected = true;
      });
      pen.stroke();
    });
    pen.restore();
  }

  function drawAxis(low, high, last, y, colours) {
    pen.strokeStyle = colours.rule;
    pen.fillStyle = colours.quiet;
    pen.lineWidth = 1;
    pen.textBaseline = "middle";
    pen.textAlign = "right";
    for (const value of ticks(low, high, logarithmic)) {
      const at = Math.round(y(value)) + 0.5;
      pen.beginPath();
      pen.moveTo(LEFT, at);
      pen.lineTo(width - RIGHT, at);
      pen.stroke();
      pen.fillText(logarithmic ? powerOfTen(value) : number(value, 2), LEFT - 6, at);
    }
    pen.textBaseline = "alphabetic";
    pen.fillText(`step ${last.toLocaleString("en-US")}`, width - RIGHT, height - 6);
    pen.textAlign = "left";
    pen.fillText("0", LEFT, height - 6);
  }

  /** Say what is seen. */
  function describe(text) {
    node.setAttribute("aria-label", text);
  }

  resize();
  return { resize, draw, describe };
}

function drawable(value, logarithmic) {
  return value !== null && value !== undefined && Number.isFinite(value) && (!logarithmic || value > 0);
}

/** The least and the largest number of the axis, as exponents of ten if it is logarithmic. */
function rangeOf(lines, logarithmic) {
  let [low, high] = [Infinity, -Infinity];
  for (const values of lines) {
    for (const value of values) {
      if (!drawable(value, logarithmic)) continue;
      low = Math.min(low, value);
      high = Math.max(high, value);
    }
  }
  if (!logarithmic) return [0, high > 0 ? high * 1.05 : 1];
  if (high < low) return [-3, 0];
  const top = Math.ceil(Math.log10(high) + 1e-9);
  return [Math.max(top - DECADES, Math.min(top - 1, Math.floor(Math.log10(low)))), top];
}

function ticks(low, high, logarithmic) {
  const each = Math.ceil((high - low) / 6); // so many powers of ten from one line to the next
  if (logarithmic) return Array.from({ length: Math.floor((high - low) / each) + 1 }, (_, i) => 10 ** (high - i * each));
  const rough = high / 3;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((each) => each * power).find((each) => each >= rough);
  return Array.from({ length: Math.floor(high / step) + 1 }, (_, i) => i * step);
}

const RAISED = { "-": "⁻", 0: "⁰", 1: "¹", 2: "²", 3: "³", 4: "⁴", 5: "⁵", 6: "⁶", 7: "⁷", 8: "⁸", 9: "⁹" };

function powerOfTen(value) {
  const exponent = Math.round(Math.log10(value));
  if (exponent >= -3 && exponent <= 3) return number(value, 1);
  return `10${[...String(exponent)].map((each) => RAISED[each]).join("")}`;
}
