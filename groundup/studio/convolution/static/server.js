// What the page asks the studio. offline.js answers the same questions in an exported page, which has no studio.

import { get, post } from "/static/common/api.js";
import { bytes } from "/static/common/embedded.js";
import { unpacked } from "/static/digits/server.js";

/** The networks to choose from: [{name, title}]. */
export async function networks() {
  return (await get("/api/convolution/networks")).networks;
}

/** What the page is told about a network, its filters unpacked. */
export async function network(name) {
  return withFilters(await get("/api/convolution/network", { name }));
}

/** The drawing of its architecture: {svg, alt, note}. */
export function architecture(name) {
  return get("/api/convolution/architecture", { name });
}

/** A test image of each digit: [784 bytes]. */
export async function digits() {
  return (await get("/api/convolution/digits")).digits.map(bytes);
}

/** What every layer makes of a drawing, and Grad-CAM. asked: {network, pixels, class} */
export async function maps(asked) {
  const found = await post("/api/convolution/maps", asked);
  const outputs = Object.fromEntries(Object.entries(found.outputs).map(([layer, array]) => [layer, unpacked(array)]));
  return { ...found, outputs, x: unpacked(found.x), evidence: unpacked(found.evidence) };
}

/** One number of a map. asked: {network, pixels, class, layer, channel, row, column} */
export async function clicked(asked) {
  const found = await post("/api/convolution/pixel", asked);
  return { ...found, field: unpacked(found.field) };
}

/** A network's description with the filters of its convolutions as numbers. */
export function withFilters(network) {
  return { ...network, layers: network.layers.map((each) => (each.weights ? { ...each, weights: unpacked(each.weights) } : each)) };
}
