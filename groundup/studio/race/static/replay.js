// The race without a server: the lanes run at recorded speeds, and all clocks run together. What is drawn is read here, by the
// network as it was after as many images; all stages have the same one, so one series serves all lanes.

import { softmax } from "/static/common/activations.js";
import { number } from "/static/common/draw.js";
import { bytes } from "/static/common/embedded.js";
import { scores } from "/static/common/network.js";

const TICK = 25, LONGEST = 0.2; // milliseconds between two states; seconds of a tick at most, as after a hidden tab

/** The numbers of an array as embedded.py packed it. */
const unpacked = ({ scale, base64 }) => Float64Array.from(new Int16Array(bytes(base64).buffer), (whole) => scale * whole);

/** The answer of one of the networks to a drawing: ten probabilities. */
export function answer({ parameters }, pixels) {
  const [W1, b1, W2, b2] = parameters.map(unpacked);
  const network = { sizes: [784, b1.length, 10], weights: [W1, W2], biases: [b1, b2], activation: "relu" };
  return [...softmax(scores(network, Float64Array.from(pixels, (each) => each / 255)), 10)];
}

/** data: as embedded.py makes it; receive: called with each state, which has the form of the server's. */
export function replay({ lap, samples, record, networks }, receive) {
  const end = lap / Math.min(...record.lanes.filter(({ emulated }) => !emulated).map(({ speed }) => speed)); // the slowest lane's first lap
  let [clock, before, running, answers] = [0, 0, false, null];
  const state = () => {
    const lanes = record.lanes.map(({ speed, ...lane }) => {
      const seen = Math.floor(speed * clock + 1e-6);
      const at = networks.findLastIndex((each) => each.seen <= seen);
      return { ...lane, ready: true, why: "", seen, clock, loss: networks[at].loss, accuracy: networks[at].accuracy, answered: answers && answers(at) };
    });
    running &&= clock < end;
    return { running, finished: clock >= end, agreed: [{ seen: record.laps * lap, apart: record.apart }], lanes };
  };
  setInterval(() => {
    const now = performance.now() / 1000;
    const goes = running;
    clock = Math.min(end, clock + (goes ? Math.min(LONGEST, now - before) : 0));
    before = now;
    if (goes) receive(state());
  }, TICK);
  const changed = (change) => async (given) => { change(given); return state(); };
  return {
    lap, samples, state: state(),
    how: `Each lane runs as fast as its stage did in a race on ${record.machine}; all clocks run together. Your browser reads your digit, with the network as it was after as many images, up to ${number(networks.at(-1).seen, 9)}.`,
    run: changed(() => { running = true; }), pause: changed(() => { running = false; }),
    begin: changed(() => { [clock, running] = [0, false]; }),
    draw: changed((pixels) => { const known = []; answers = pixels && ((at) => known[at] ??= answer(networks[at], pixels)); }),
  };
}
