// The drawing of a network's architecture, as the studio made it.

import { html, replace } from "/static/common/draw.js";

/** Show a drawing { svg, alt, note } in a node. The picture follows the reader's light or dark colours by itself. */
export function showArchitecture(node, { svg, alt, note }) {
  const src = `data:image/svg+xml,${encodeURIComponent(svg)}`;
  replace(node, html("img", { class: "drawn", src, alt }), note ? html("p", { class: "quiet" }, note) : null);
}
