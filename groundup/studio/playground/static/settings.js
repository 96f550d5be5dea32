/**
 * The settings of a training, their fields on the page, and the part of the address that keeps them.
 *
 * The names are those of groundup/studio/playground/settings.py, which checks them.
 */

import { ACTIVATIONS } from "/static/common/activations.js";
import { html } from "/static/common/draw.js";
import { MISTAKES } from "/static/playground/mistakes.js";

export const DEFAULTS = {
  data: "circles", noise: 0.05, samples: 300, stage: "stage2_numpy", layers: [6, 4], activation: "tanh",
  loss: "softmax_cross_entropy", initializer: "xavier", optimizer: "Adam", learning_rate: 0.02, batch_size: 20,
  dropout: 0, mistake: "none", seed: 0,
};

export const MOST = { layers: 6, neurons: 128 };

const RATES = [0.0001, 0.0003, 0.001, 0.003, 0.01, 0.02, 0.03, 0.1, 0.3, 1, 3, 10];
const BATCHES = [1, 2, 5, 10, 20, 50, 100, 200];

const numbers = (values) => values.map((value) => [value, String(value)]);
const words = (values) => values.map((value) => [value, value.replaceAll("_", " ")]);

/**
 * The fields in their order. choices: [value, text] of a list; range: of a number, whatever the choices offer;
 * serverOnly: not on a page without a server.
 */
const FIELDS = [
  { name: "stage", label: "Stage", serverOnly: true, choices: [
    ["stage1_pure_python", "1: pure Python"], ["stage2_numpy", "2: NumPy"], ["stage3_c", "3: C"], ["stage4_numba_cuda", "4: CUDA"]] },
  { name: "data", label: "Data", choices: [
    ["xor", "XOR"], ["clouds", "two clouds"], ["circles", "circles"], ["spirals", "three spirals"], ["own", "my own points"], ["digits", "digits"]] },
  { name: "noise", label: "Noise", range: [0, 0.5], choices: numbers([0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5]) },
  { name: "samples", label: "Points", range: [20, 1000], choices: numbers([20, 50, 100, 200, 300, 500, 1000]) },
  { name: "activation", label: "Activation", choices: words(Object.keys(ACTIVATIONS)) },
  { name: "loss", label: "Loss", choices: [
    ["softmax_cross_entropy", "cross-entropy, softmax"], ["sigmoid_cross_entropy", "cross-entropy, sigmoid"], ["mean_squared_error", "squared error"], ["hinge", "hinge"]] },
  { name: "initializer", label: "First weights", choices: [
    ["xavier", "Xavier, normal"], ["xavier_uniform", "Xavier, uniform"], ["he", "He, normal"], ["he_uniform", "He, uniform"]] },
  { name: "optimizer", label: "Optimizer", choices: [["SGD", "SGD"], ["momentum", "SGD, momentum 0.9"], ["RMSProp", "RMSProp"], ["Adam", "Adam"]] },
  { name: "learning_rate", label: "Learning rate", range: [0, 10], choices: numbers(RATES) },
  { name: "batch_size", label: "Batch", range: [1, 1000], choices: numbers(BATCHES) },
  { name: "dropout", label: "Dropout", range: [0, 0.9], choices: numbers([0, 0.1, 0.2, 0.3, 0.5, 0.8]) },
  { name: "seed", label: "Seed", range: [0, 2 ** 31 - 1] },
  { name: "mistake", label: "Planted mistake", choices: Object.entries(MISTAKES).map(([mistake, { name }]) => [mistake, name]) },
];

/**
 * Fill a node with the fields. onchange(name, value) is called when the reader changes one.
 * Returns show(settings), which puts the settings into the fields.
 */
export function fields(node, onchange, withServer) {
  const inputs = {};
  for (const field of FIELDS) {
    if (field.serverOnly && !withServer) continue;
    const choices = (field.choices ?? []).filter(([value]) => withServer || value !== "digits");
    const input = field.choices
      ? html("select", { id: `set-${field.name}` }, ...choices.map(([value, label]) => html("option", { value }, label)))
      : html("input", { id: `set-${field.name}`, type: "number", min: field.range[0], max: field.range[1], step: 1, required: true });
    input.addEventListener("change", () => {
      if (input.reportValidity()) onchange(field.name, typeof DEFAULTS[field.name] === "number" ? Number(input.value) : input.value);
    });
    inputs[field.name] = input;
    node.append(html("label", {}, field.label, input));
  }
  return (settings) => {
    for (const [name, input] of Object.entries(inputs)) {
      const value = String(settings[name]);
      // A link may hold a number that is not among the choices.
      if (input.options && ![...input.options].some((option) => option.value === value)) input.append(html("option", { value }, value));
      input.value = value;
    }
    for (const name of ["noise", "samples"]) inputs[name].disabled = settings.data === "own" || settings.data === "digits";
  };
}

/** The settings that differ from DEFAULTS, as the part of an address after #. */
export function toHash(settings) {
  const differ = Object.keys(DEFAULTS).filter((name) => String(settings[name]) !== String(DEFAULTS[name]));
  return differ.map((name) => `${name}=${encodeURIComponent(settings[name])}`).join("&").replaceAll("%2C", ",");
}

/** { settings, wrong }: the settings of an address, the default for what it does not name; and what it names wrongly. */
export function fromHash(hash) {
  const settings = structuredClone(DEFAULTS);
  const wrong = [];
  for (const [name, text] of new URLSearchParams(hash.replace(/^#/, ""))) {
    const value = read(name, text);
    if (value === undefined) wrong.push(`${name}=${text}`);
    else settings[name] = value;
  }
  return { settings, wrong };
}

/** The value of a setting in an address, or undefined if it is none. */
function read(name, text) {
  if (name === "layers") {
    const sizes = text === "" ? [] : text.split(",").map(Number);
    const right = sizes.every((size) => Number.isInteger(size) && size >= 1 && size <= MOST.neurons);
    return right && sizes.length <= MOST.layers ? sizes : undefined;
  }
  const field = FIELDS.find((each) => each.name === name);
  if (!field) return undefined;
  if (!field.range) return field.choices.some(([value]) => value === text) ? text : undefined;
  const value = Number(text);
  const [least, most] = field.range;
  const whole = Number.isInteger(DEFAULTS[name]) && name !== "dropout";
  return text !== "" && value >= least && value <= most && (!whole || Number.isInteger(value)) ? value : undefined;
}
