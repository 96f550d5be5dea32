// The data of an exported page: one HTML file, opened without a server.
//
// groundup/studio/export.py writes the data of such a page as JSON into a <script id="embedded">. A page gets its data
// through one function of its own, which first looks here and else asks the server:
//
//     const data = embedded() ?? await get("/api/digits/network");

/**
 * The object that the exported page carries, or null on a page that has its server.
 * @returns {object | null}
 */
export function embedded() {
  const node = document.getElementById("embedded");
  return node === null ? null : JSON.parse(node.textContent);
}

/**
 * The numbers of a base64 text that Python wrote with base64.b64encode(array.astype("<f4").tobytes()).
 * @param {string} text
 * @returns {Float32Array}
 */
export function floats(text) {
  return new Float32Array(bytes(text).buffer);
}

/**
 * The bytes of a base64 text.
 * @param {string} text
 * @returns {Uint8Array}
 */
export function bytes(text) {
  const characters = atob(text);
  const result = new Uint8Array(characters.length);
  for (let i = 0; i < result.length; i++) result[i] = characters.charCodeAt(i);
  return result;
}
