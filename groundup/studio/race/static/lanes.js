// A lane: its track with the runner, a square for each lap, its numbers, and its answer to the drawing.

import { colour, html, number, replace } from "/static/common/draw.js";
import { percent, winnerOf } from "/static/digits/answers.js";

const TRACK = 16, CELLS = [12, 10, 8, 7, 6, 5, 4, 3, 2]; // pixels: the track's height, and the sides of a lap's square
const SLOWEST = 800; // milliseconds that a runner takes at most from one known place to the next

/** Make the lane of a stage. lap: images of a lap */
export function makeLane(lap, { number: stage, title }) {
  const [times, facts, answer, picture] = [html("small"), html("p"), html("p"), html("canvas", { role: "img" })];
  const bars = Array.from({ length: 10 }, () => html("span"));
  const columns = bars.map((bar, digit) => html("li", {}, bar, String(digit)));
  const node = html("article", { class: "lane" }, html("h3", {}, `${stage} ${title}`, times), picture,
    html("ol", { class: "bars", "aria-hidden": "true" }, columns), facts, answer);
  node.style.setProperty("--own", `var(--stage${stage})`);
  const way = { from: 0, to: 0, start: 0, span: 1 };
  let [lane, painted, before] = [null, "", 0];
  const laps = (seen) => Math.floor(seen / lap);

  /** Where the runner is: on its way to the newest place that is known, for as long as the news of it took. */
  const at = (now) => way.from + (way.to - way.from) * Math.min(1, (now - way.start) / way.span);

  /** Take a new state. */
  function know(next, now) {
    if (next.seen < way.to) [before, way.from, way.to] = [next.seen, next.seen, next.seen]; // back at the start
    else if (next.seen > way.to) Object.assign(way, { from: at(now), to: next.seen, span: Math.min(SLOWEST, now - way.start), start: now });
    lane = next;
    const winner = lane.answered ? winnerOf(lane.answered) : -1;
    bars.forEach((bar, digit) => { bar.style.height = `${75 * (lane.answered?.[digit] ?? 0)}%`; });
    columns.forEach((column, digit) => column.classList.toggle("winner", digit === winner));
    replace(answer, lane.answered && [html("b", {}, lane.seen ? `It is ${winner}: ` : `A guess, ${winner}: `), percent(lane.answered[winner])]);
  }

  const rows = (side) => Math.floor((picture.clientHeight - TRACK - 3) / side);

  /** The side of a lap's square with which all of this lane's fit. */
  const cell = () => CELLS.find((side) => Math.floor(picture.clientWidth / side) * rows(side) >= laps(way.to)) ?? 2;

  /** Paint the lane; returns whether it has changed. marks: the images at which all lanes were compared */
  function paint(now, side, marks) {
    const [seen, width, ratio] = [at(now), picture.clientWidth, Math.min(3, devicePixelRatio || 1)];
    const [own, ink, rule] = [`stage${stage}`, "ink", "rule"].map(colour);
    const key = [seen, width, side, marks.length, ink].join();
    if (key === painted) return false;
    painted = key;
    [picture.width, picture.height] = [width * ratio, picture.clientHeight * ratio];
    const pen = picture.getContext("2d");
    pen.scale(ratio, ratio);
    const place = (images) => TRACK / 2 + (width - TRACK) * (images / lap);
    const fill = (style, alpha, from, to) => { Object.assign(pen, { fillStyle: style, globalAlpha: alpha }); pen.fillRect(from, 0, to - from, TRACK); };
    const [here, tail] = [seen % lap, seen - before >= lap ? 0 : before % lap]; // from tail to here it ran since the last picture
    before = seen;
    fill(rule, 1, 0, width);
    fill(own, 0.3, 0, place(here));
    if (tail > here) fill(own, 0.6, place(tail), place(lap));
    fill(own, 0.6, place(tail > here ? 0 : tail), place(here));
    marks.forEach((images) => fill(ink, 1, place(images), place(images) + 1));
    Object.assign(pen, { fillStyle: ink, strokeStyle: own, globalAlpha: 1 });
    pen.beginPath();
    pen.arc(place(here), TRACK / 2, TRACK / 2, 0, 7);
    pen.fill();
    pen.fillStyle = own;
    for (let i = 0; i < laps(seen); i++) {
      const [x, y] = [Math.floor(i / rows(side)) * side, TRACK + 3 + (i % rows(side)) * side];
      if (lane.emulated && side > 3) pen.strokeRect(x + 0.5, y + 0.5, side - 2, side - 2);
      else pen.fillRect(x, y, side - 1, side - 1);
    }
    return true;
  }

  /** The numbers in words. base: the first lane, with which the others are compared; a recorded race may lack pure Python */
  function tell(base) {
    const [speed, first] = [lane, base].map(({ seen, clock }) => seen / clock || 0);
    const known = (value, words) => (value === null ? "–" : words(value));
    const than = lane.emulated ? " · emulated on the CPU: not the time of a GPU" : stage > base.number && first && speed ? html("b", {}, ` · ${number(speed / first)} × ${base.title.replace("pure ", "")}`) : "";
    replace(times, `lap ${number(laps(lane.seen) + 1, 9)}`, than);
    picture.setAttribute("aria-label", `${title}: ${laps(lane.seen)} laps`);
    const more = html("span", { class: "more" }, `${number(lane.seen, 9)} images, ${number(speed)} a second · `);
    const words = `clock ${lane.clock.toFixed(1)} s · loss ${known(lane.loss, (value) => number(value))} · ${known(lane.accuracy, percent)} right`;
    replace(facts, lane.why || (lane.ready ? [more, words] : "is being prepared …"));
  }

  return { node, know, paint, tell, cell };
}
