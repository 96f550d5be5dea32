// What the page asks the studio. offline.js answers the same questions in an exported page, which has no studio.

import { get, post } from "/static/common/api.js";
import { floats } from "/static/common/embedded.js";

/** An array as Python packed it, {shape, base64}: {shape, values}. */
export function unpacked({ shape, base64 }) {
  return { shape, values: floats(base64) };
}

/** A network's description with its arrays unpacked: "parameters" [W1, b1, …] of dense layers, or "filters". */
export function unpackedNetwork(network) {
  const filters = network.filters ? unpacked(network.filters) : null;
  return { ...network, parameters: network.parameters?.map(unpacked) ?? null, filters };
}

/** The networks that can answer: [{name, title, about}]. */
export async function networks() {
  return (await get("/api/digits/networks")).networks;
}

/** One of them, with its weights; the studio begins to prepare the stages for it. */
export async function network(name) {
  return unpackedNetwork(await get("/api/digits/network", { name }));
}

/** How far the stages are prepared for a network: [{number, title, state, why}]. */
export async function floors(name) {
  return (await get("/api/digits/floors", { name })).floors;
}

/** The answers of these stages: [{number, version, scores, probabilities, seconds}]. */
export async function answers(name, pixels, floors) {
  return (await post("/api/digits/answer", { network: name, pixels: [...pixels], floors })).answers;
}

/** What led to the answer: {version, winner, rival, layers: [{words, shape, values}], pull: {shape, values}, evidence, last}. */
export async function reasons(name, pixels) {
  const found = await post("/api/digits/reasons", { network: name, pixels: [...pixels] });
  const layers = found.layers.map(({ words, values }) => ({ words, ...unpacked(values) }));
  const last = found.last && {
    inputs: unpacked(found.last.inputs).values, weights: unpacked(found.last.weights).values, bias: found.last.bias,
  };
  return { ...found, layers, pull: unpacked(found.pull), evidence: found.evidence && unpacked(found.evidence), last };
}

/** The training images that are most like the drawing: {nearest: [{label, distance, pixels}], of, why}; why: none are. */
export function nearest(name, pixels) {
  return post("/api/digits/nearest", { network: name, pixels: [...pixels] });
}

/** The learner's own set: {folder, count, counts, latest, command}. */
export function own() {
  return get("/api/digits/own");
}

/** Add the drawing to it, with the digit that it shows. */
export function tell(pixels, label) {
  return post("/api/digits/tell", { pixels: [...pixels], label });
}

/** Remove the newest drawing from it. */
export function takeBack() {
  return post("/api/digits/take-back");
}
