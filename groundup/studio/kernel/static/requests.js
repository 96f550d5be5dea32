// The requests of a warp in one step: 32 lanes, and where in memory they go. Global memory gives sectors of 32 bytes,
// shared memory one word for each of its 32 banks at a time.

import { html, number, svg } from "/static/common/draw.js";
import { WARP, elementName } from "/static/kernel/walk.js";

const SECTOR = 32;
const WORD = 4;
const CELL = 20;
const GROUPS = 6;

/** A value as it is written: a number, or a text like "NaN". */
export function shown(value) {
  if (value === "inf") return "∞";
  if (value === "-inf") return "−∞";
  return typeof value === "number" ? number(value, 6) : String(value);
}

/** The pictures of all accesses in a step. thread: the selected one. */
export function requestPictures(walk, step, thread) {
  const pictures = walk.accesses(step)
    .filter((access) => access.array.space !== "local")
    .map((access) => (access.array.space === "shared" ? banks : sectors)(walk, access, thread - walk.first));
  const results = walk.results(step);
  if (results) pictures.push(exchange(walk, step, results, thread - walk.first));
  if (pictures.length === 0) {
    pictures.push(html("p", { class: "quiet" }, "No access to global or shared memory in this step by this warp."));
  }
  return pictures;
}

/** Byte addresses of an access, in the order of its lanes. */
export function addresses(access) {
  return access.places.map((place) => access.array.offset + place * access.array.bytes);
}

/** [{ sector, lanes }], the sectors of a request in the order of their addresses. */
export function sectorsOf(access) {
  const found = new Map();
  addresses(access).forEach((address, at) => {
    for (let sector = Math.floor(address / SECTOR); sector * SECTOR < address + access.array.bytes; sector++) {
      if (!found.has(sector)) found.set(sector, []);
      found.get(sector).push(access.lanes[at]);
    }
  });
  return [...found].map(([sector, lanes]) => ({ sector, lanes })).sort((one, other) => one.sector - other.sector);
}

/** [bank][row] = { word, lanes }: the different words that each of the 32 banks has to give. */
export function banksOf(access) {
  const banks = Array.from({ length: WARP }, () => []);
  addresses(access).forEach((address, at) => {
    for (let word = Math.floor(address / WORD); word * WORD < address + access.array.bytes; word++) {
      const bank = banks[word % WARP];
      const known = bank.find((each) => each.word === word);
      if (known) known.lanes.push(access.lanes[at]);
      else bank.push({ word, lanes: [access.lanes[at]] });
    }
  });
  return banks;
}

function sectors(walk, access, own) {
  const found = sectorsOf(access);
  const group = new Map();
  found.forEach(({ lanes }, at) => lanes.forEach((lane) => group.set(lane, at % GROUPS)));
  const perRow = 8;
  const [width, height] = [WARP * CELL, 38 + Math.ceil(found.length / perRow) * 34 + 6];
  const parts = laneRow(access, own, (lane) => `group${group.get(lane)}`);
  const words = SECTOR / WORD;
  const cell = width / perRow / words - 0.75;
  found.forEach(({ sector }, at) => {
    const [left, top] = [(at % perRow) * (width / perRow), 48 + Math.floor(at / perRow) * 34];
    for (let word = 0; word < words; word++) {
      const address = sector * SECTOR + word * WORD;
      const lanes = lanesAt(access, address);
      parts.push(svg("rect", { x: left + word * cell, y: top, width: cell, height: 18, class: lanes.length ? `cell group${at % GROUPS}` : "cell" }));
      if (lanes.includes(own)) parts.push(svg("rect", { x: left + word * cell + 1, y: top + 1, width: cell - 2, height: 16, class: "own" }));
    }
    parts.push(svg("text", { x: left, y: top + 30, "font-size": 11, class: "mute" }, `byte ${sector * SECTOR}`));
  });
  const [count, ideal] = access.cost ?? [found.length, found.length];
  const enough = count > ideal ? `; ${ideal} would do` : "";
  const said = `${plural(count, "sector")} of 32 bytes for ${plural(access.lanes.length, "lane")}${enough}`;
  return picture(walk, access, own, said, svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img",
    "aria-label": `${access.kind} ${access.text}: ${said}` }, ...parts));
}

function banks(walk, access, own) {
  const found = banksOf(access);
  const rows = Math.max(...found.map((bank) => bank.length));
  const [width, height] = [WARP * CELL, 66 + rows * CELL];
  const parts = laneRow(access, own, () => "group0");
  found.forEach((bank, at) => {
    parts.push(svg("text", { x: (at + 0.5) * CELL, y: 58, "font-size": 11, "text-anchor": "middle", class: "mute" }, String(at)));
    bank.forEach(({ lanes }, row) => {
      const [left, top] = [at * CELL, 62 + row * CELL];
      parts.push(svg("rect", { x: left, y: top, width: CELL, height: CELL, class: row ? "cell conflict" : "cell group0" }));
      parts.push(svg("text", { x: left + CELL / 2, y: top + 14, "font-size": 10.5, "text-anchor": "middle" },
        lanes.length === 1 ? String(lanes[0]) : `${lanes.length}×`));
      if (lanes.includes(own)) parts.push(svg("rect", { x: left + 1, y: top + 1, width: CELL - 2, height: CELL - 2, class: "own" }));
    });
    if (bank.length === 0) parts.push(svg("rect", { x: at * CELL, y: 62, width: CELL, height: CELL, class: "cell" }));
  });
  const [passes, ideal] = access.cost ?? [rows, 1];
  const conflict = passes > ideal ? `, ${plural(passes, "pass", "passes")} where ${ideal} would do: a bank conflict` : `, ${plural(passes, "pass", "passes")}, no bank conflict`;
  const said = `${plural(access.lanes.length, "lane")} in ${plural(found.filter((bank) => bank.length).length, "bank")}${conflict}`;
  return picture(walk, access, own, said, svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img",
    "aria-label": `${access.kind} ${access.text}: ${said}` }, ...parts));
}

/** The 32 lanes in a row, those of the access coloured; the own one with a frame. */
function laneRow(access, own, group) {
  const parts = [];
  for (let lane = 0; lane < WARP; lane++) {
    const active = access.lanes.includes(lane);
    parts.push(svg("rect", { x: lane * CELL, y: 12, width: CELL, height: CELL, class: active ? `cell ${group(lane)}` : "cell" }));
    parts.push(svg("text", { x: (lane + 0.5) * CELL, y: 26, "font-size": 12, "text-anchor": "middle", class: active ? "" : "mute" }, String(lane)));
    if (lane === own) parts.push(svg("rect", { x: lane * CELL + 1, y: 13, width: CELL - 2, height: CELL - 2, class: "own" }));
  }
  parts.push(svg("text", { x: 0, y: 9, "font-size": 11, class: "mute" }, "lanes of the warp"));
  parts.push(svg("text", { x: 0, y: 43, "font-size": 11, class: "mute" },
    access.array.space === "shared" ? "banks of shared memory, and the lanes that ask each for a word" : "sectors of global memory, with the words that are asked for"));
  return parts;
}

function exchange(walk, step, results, own) {
  const width = WARP * CELL;
  const parts = [];
  for (let lane = 0; lane < WARP; lane++) {
    const at = results.lanes.indexOf(lane);
    parts.push(svg("rect", { x: lane * CELL, y: 2, width: CELL, height: CELL, class: at < 0 ? "cell" : "cell group2" }));
    parts.push(svg("text", { x: (lane + 0.5) * CELL, y: 16, "font-size": 12, "text-anchor": "middle" }, String(lane)));
    if (lane === own) parts.push(svg("rect", { x: lane * CELL + 1, y: 3, width: CELL - 2, height: CELL - 2, class: "own" }));
  }
  const at = results.lanes.indexOf(own);
  const said = at < 0 ? "This lane takes no part." : `This lane gave ${shown(results.gave[at])} and got ${shown(results.got[at])}.`;
  const name = walk.steps[step].o ?? "exchange";
  return html("div", { class: "picture" }, html("h3", {}, `${name}: ${results.lanes.length} lanes exchange values`),
    html("div", { class: "scroll", tabindex: 0 },
      svg("svg", { viewBox: `0 0 ${width} 26`, width, height: 26, role: "img", "aria-label": `${name}. ${said}` }, ...parts)),
    html("p", { class: "quiet" }, said));
}

function picture(walk, access, own, said, drawing) {
  const at = access.lanes.indexOf(own);
  const element = at < 0 ? "This thread takes no part in it."
    : `This thread: ${elementName(access.array, access.places[at])} = ${shown(access.values[at])}.`;
  const verb = { read: "Reads", write: "Writes", atomic: "Changes atomically" }[access.kind];
  return html("div", { class: "picture" }, html("h3", {}, `${verb} ${access.text}`), html("div", { class: "scroll", tabindex: 0 }, drawing), html("p", { class: "quiet" }, `${said}. ${element}`));
}

function lanesAt(access, address) {
  return addresses(access).flatMap((start, at) => (start < address + WORD && address < start + access.array.bytes ? [access.lanes[at]] : []));
}

/** "1 sector", "4 sectors". */
export function plural(count, one, many = `${one}s`) {
  return `${count} ${count === 1 ? one : many}`;
}
