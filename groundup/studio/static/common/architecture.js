// The drawing of a network's architecture, as the studio made it.

import { html, replace } from "/static/common/draw.js";

/** Show a drawing { svg, alt, note } in a node; svg is "" where there is only a note. The picture follows the reader's light or dark colours by itself. */
export function showArchitecture(node, { svg, alt, note }) {
  const src = `data:image/svg+xml,${encodeURIComponent(svg)}`;
  replace(node, svg ? html("img", { class: "drawn", src, alt }) : null, note ? html("p", { class: "quiet" }, note) : null);
}
