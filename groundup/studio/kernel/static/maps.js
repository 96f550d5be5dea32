// The grid with its blocks, and the block with its threads: which one is shown, and which threads take this step.

import { html, svg } from "/static/common/draw.js";
import { WARP } from "/static/kernel/walk.js";

const MOST_BLOCKS = 32; // along an axis; a larger grid is drawn as far as that

/** Both maps. chooseBlock(number), chooseThread(number): called when one is clicked; null where there is no choice. */
export function mapPictures(walk, step, thread, chooseBlock, chooseThread) {
  return html("div", { class: "side" }, gridMap(walk, chooseBlock), blockMap(walk, step, thread, chooseThread));
}

function gridMap(walk, choose) {
  const [x, y, z] = walk.data.grid;
  const [columns, rows] = [Math.min(x, MOST_BLOCKS), Math.min(y * z, MOST_BLOCKS)];
  const size = Math.max(6, Math.min(22, Math.floor(160 / Math.max(columns, rows))));
  const parts = [];
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++) {
      const number = row * x + column;
      const own = number === walk.data.number;
      parts.push(svg("rect", { x: column * size + 1, y: row * size + 1, width: size - 2, height: size - 2,
        class: `cell${own ? " group1" : ""}${choose ? " click" : ""}`, onclick: choose ? () => choose(number) : null }));
      if (own) parts.push(svg("rect", { x: column * size + 2, y: row * size + 2, width: size - 4, height: size - 4, class: "own" }));
    }
  }
  const all = x * y * z;
  const said = `block ${walk.data.number} of ${all}, at (${walk.data.place.slice(0, z > 1 ? 3 : 2).join(", ")})`;
  return html("div", { class: "picture" }, html("h3", {}, `Grid of ${x} × ${y}${z > 1 ? ` × ${z}` : ""} blocks`),
    svg("svg", { viewBox: `0 0 ${columns * size} ${rows * size}`, width: columns * size, height: rows * size, role: "img",
      "aria-label": `The grid: ${said}` }, ...parts),
    html("p", { class: "quiet" }, `${said[0].toUpperCase()}${said.slice(1)}.`));
}

function blockMap(walk, step, thread, choose) {
  const [x, y, z] = walk.data.block;
  const columns = x <= 64 ? x : WARP;
  const rows = Math.ceil(walk.threads / columns);
  const size = Math.max(5, Math.min(16, Math.floor(260 / Math.max(columns, rows * 0.8))));
  const active = new Set(walk.allThreads(step));
  const parts = [];
  for (let number = 0; number < walk.threads; number++) {
    const [left, top] = [(number % columns) * size, Math.floor(number / columns) * size];
    const warp = Math.floor(number / WARP);
    const kind = active.has(number) ? (warp === walk.data.warp ? " group1" : " group0") : "";
    parts.push(svg("rect", { x: left + 0.5, y: top + 0.5, width: size - 1, height: size - 1, class: `cell${kind}${choose ? " click" : ""}`,
      onclick: choose ? () => choose(number) : null }));
    if (number === thread) parts.push(svg("rect", { x: left + 1.5, y: top + 1.5, width: size - 3, height: size - 3, class: "own" }));
  }
  const said = `${active.size} of ${walk.threads} threads take this step; thread ${walk.threadName(thread)} is in warp ${walk.data.warp}`;
  return html("div", { class: "picture" }, html("h3", {}, `Block of ${x}${y * z > 1 ? ` × ${y}` : ""}${z > 1 ? ` × ${z}` : ""} threads`),
    svg("svg", { viewBox: `0 0 ${columns * size} ${rows * size}`, width: columns * size, height: rows * size, role: "img",
      "aria-label": `The block: ${said}` }, ...parts),
    html("p", { class: "quiet" }, `${said[0].toUpperCase()}${said.slice(1)}, which is orange.`));
}
