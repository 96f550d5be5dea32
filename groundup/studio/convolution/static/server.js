// What the page asks the studio. offline.js answers the same questions in an exported page, which has no studio.

import { get, post } from "/static/common/api.js";
import { unpacked } from "/static/digits/server.js";

/** An answer with all its packed arrays as {shape, values}, wherever they lie. */
export function opened(answer) {
  if (answer === null || typeof answer !== "object") return answer;
  if ("base64" in answer) return unpacked(answer);
  return Array.isArray(answer) ? answer.map(opened) : Object.fromEntries(Object.entries(answer).map(([name, each]) => [name, opened(each)]));
}

/** The questions of routes.py by their names, each a function of what is asked. */
export const server = Object.fromEntries([["networks", get], ["network", get], ["architecture", get], ["digits", get], ["maps", post], ["pixel", post]].map(
  ([name, ask]) => [name, async (asked = {}) => opened(await ask(`/api/convolution/${name}`, asked))]));
