// Making elements and colours. Strings always become text, never markup, so that a name from a file cannot be a script.

const SVG = "http://www.w3.org/2000/svg";

/** An SVG element: svg("circle", { cx: 1, cy: 2, r: 3 }, child, "text", …). */
export function svg(name, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, name), attributes, children);
}

/** An HTML element: html("button", { class: "primary", onclick: run }, "Run"). */
export function html(name, attributes = {}, ...children) {
  return filled(document.createElement(name), attributes, children);
}

/** Put these children into a node in place of what it holds. */
export function replace(node, ...children) {
  node.replaceChildren(...children.flat(Infinity).filter((each) => each !== null && each !== undefined && each !== false));
}

function filled(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") node.addEventListener(name.replace(/^on/, ""), value);
    else if (name === "style" && typeof value === "object") Object.assign(node.style, value);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  replace(node, ...children);
  return node;
}

/** The reader's colour of this name, such as "ink" or "stage3"; studio.css lists them. */
export function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

/** Call `drawn` again when the reader changes between light and dark. */
export function oncolours(drawn) {
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawn);
}

/** [red, green, blue] from 0 to 255 of a colour "#rrggbb". */
export function rgb(hex) {
  return [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
}

/** A function from -1 … 1 to [red, green, blue]: negative, zero, positive in the reader's colours. NaN is the ink. */
export function scale() {
  const [negative, zero, positive, ink] = ["negative", "zero", "positive", "ink"].map((each) => rgb(colour(each)));
  return (value) => {
    if (!(value >= -1e300 && value <= 1e300)) return ink;
    const share = Math.min(1, Math.abs(value));
    const end = value < 0 ? negative : positive;
    return zero.map((from, at) => Math.round(from + (end[at] - from) * share));
  };
}

/** The same as a CSS colour. */
export function diverging(value) {
  return `rgb(${scale()(value).join(" ")})`;
}

/** A number with so many significant digits; powers of ten only where nothing else fits. */
export function number(value, digits = 3) {
  if (value === null || value === undefined || Number.isNaN(value)) return "NaN";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-4 || size >= 1e7)) {
    const [mantissa, exponent] = value.toExponential(digits - 1).split("e");
    return `${mantissa.replace("-", "−")}e${exponent.replace("+", "").replace("-", "−")}`;
  }
  const whole = size === 0 ? 1 : Math.floor(Math.log10(size)) + 1;
  return withPlaces(Math.max(0, digits - whole)).format(value).replace("-", "−");
}

const formats = new Map(); // making one takes longer than a hundred uses

/** The format of numbers with at most so many decimal places. */
function withPlaces(places) {
  if (!formats.has(places)) formats.set(places, new Intl.NumberFormat("en-US", { maximumFractionDigits: places }));
  return formats.get(places);
}

/** Whether the reader asked for less motion. */
export function reducedMotion() {
  return matchMedia("(prefers-reduced-motion: reduce)").matches;
}

/** A canvas of width × height CSS pixels that is sharp on every screen; its context is scaled to CSS pixels. */
export function canvas(width, height, attributes = {}) {
  const node = html("canvas", attributes);
  const ratio = Math.min(3, window.devicePixelRatio || 1);
  node.width = Math.round(width * ratio);
  node.height = Math.round(height * ratio);
  node.style.width = `${width}px`;
  node.style.height = `${height}px`;
  node.getContext("2d").scale(ratio, ratio);
  return node;
}

/** A picture of a matrix, a pixel for each number in [-1, 1]; enlarge it with CSS (image-rendering: pixelated). */
export function pixels(values, rows, columns, attributes = {}) {
  const node = html("canvas", { width: columns, height: rows, ...attributes });
  const image = new ImageData(columns, rows);
  const coloured = scale();
  for (let at = 0; at < rows * columns; at++) {
    const [red, green, blue] = coloured(values[at]);
    image.data.set([red, green, blue, 255], 4 * at);
  }
  node.getContext("2d").putImageData(image, 0, 0);
  return node;
}
