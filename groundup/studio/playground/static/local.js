/**
 * A trainer in the browser, for a page that was exported as one file: the functions of server.js without a server.
 *
 * It computes what stage 2 computes, in float64. Its sets and first weights come from another generator than the
 * library's, so a seed gives other numbers here, but always the same ones.
 */

import { fromParameters } from "/static/common/network.js";
import { OPTIMIZERS } from "/static/playground/optimizers.js";
import { activeShares, batchOf, DRAWN, EDGE, grids, measured } from "/static/playground/pictures.js";
import { dropoutMask, generator, permutation } from "/static/playground/random.js";
import { makeSet } from "/static/playground/sets.js";
import { lossAndGradients, parameters } from "/static/playground/training.js";

export const LARGE = 50;
const REMEMBERED = 400;
const GO_ON = ["stage", "learning_rate", "batch_size", "dropout", "mistake"];

let trainings = 0;

/** Open a training: { scene, step, run, pause, begin, change, close }. onpicture is called with each new picture. */
export async function open(settings, onpicture) {
  let training = begun(settings);
  let [speed, frame] = [1, 0];

  const stop = () => {
    cancelAnimationFrame(frame);
    frame = 0;
  };
  const pictured = () => ({ ...pictureOf(training), running: frame !== 0, training: training.number });
  const play = () => {
    frame = requestAnimationFrame(play);
    take(training, speed);
    onpicture(remembered(training, pictured()));
  };
  const scene = () => ({ ...sceneOf(training), picture: pictured(), curves: [...training.curves] });
  return {
    scene: scene(),
    async step(count = 1) {
      stop();
      take(training, count);
      return remembered(training, pictured());
    },
    async run(stepsAFrame = 1) {
      speed = stepsAFrame;
      if (!frame) frame = requestAnimationFrame(play);
      return pictured();
    },
    async pause() {
      stop();
      return pictured();
    },
    async begin() {
      stop();
      training = begun(training.settings);
      return scene();
    },
    async change(next) {
      if (goesOn(training.settings, next)) {
        training.settings = next;
        training.optimizer.rate = rateOf(next);
      } else {
        training = begun(next);
      }
      return scene();
    },
    close: stop,
  };
}

function goesOn(before, after) {
  const names = Object.keys(after).filter((name) => !GO_ON.includes(name));
  const zero = (settings) => settings.mistake === "zero_initialisation";
  return zero(before) === zero(after) && names.every((name) => JSON.stringify(before[name]) === JSON.stringify(after[name]));
}

function begun(settings) {
  const set = makeSet(settings, settings.points ?? []);
  const sizes = [2, ...settings.layers, set.classes];
  const network = fromParameters(firstParameters(sizes, settings), settings.activation);
  const optimizer = OPTIMIZERS[settings.optimizer](rateOf(settings));
  const position = { steps: 0, epoch: 0, used: 0, order: null };
  trainings += 1;
  return {
    number: trainings, settings, set, network, optimizer, position,
    gradients: [], batchLoss: NaN, seconds: 0, curves: [], every: 1, taken: 0,
  };
}

function rateOf(settings) {
  return settings.learning_rate * (settings.mistake === "large_rate" ? LARGE : 1);
}

/** The first weights of a dense network, as shared/initialize.py draws them; the biases are 0. */
function firstParameters(sizes, { initializer, seed, mistake }) {
  const random = generator(seed, 0);
  const [rule, shape = "normal"] = initializer.split("_");
  return sizes.slice(1).flatMap((width, i) => {
    const variance = 2 / (rule === "he" ? sizes[i] : sizes[i] + width);
    const draw = shape === "normal" ? () => random.normal() * Math.sqrt(variance) : () => (2 * random.uniform() - 1) * Math.sqrt(3 * variance);
    const weight = mistake === "zero_initialisation" ? () => 0 : draw;
    return [Array.from({ length: sizes[i] }, () => Array.from({ length: width }, weight)), new Array(width).fill(0)];
  });
}

/** Take so many steps. */
function take(training, count) {
  for (let i = 0; i < count; i++) {
    const started = performance.now();
    oneStep(training);
    training.seconds = (performance.now() - started) / 1000;
  }
}

function oneStep(training) {
  const { settings, set, network, optimizer, position } = training;
  if (position.used === 0) position.order = permutation(set.train.length, settings.seed, 3, position.epoch);
  const batch = position.order.slice(position.used, position.used + settings.batch_size).map((i) => set.train[i]);
  const masks = settings.dropout
    ? settings.layers.map((width, layer) => dropoutMask(batch.length * width, settings.dropout, settings.seed, position.steps, layer))
    : null;
  const labels = batch.map((point) => point[2]);
  const { loss, gradients } = lossAndGradients(network, batchOf(batch), labels, settings.loss, masks);
  Object.assign(training, { batchLoss: loss, gradients });
  // A planted mistake changes the gradient on its way to the optimizer, as in mistakes.py.
  const factor = { wrong_sign: -1, missing_mean: batch.length }[settings.mistake] ?? 1;
  optimizer.step(parameters(network), factor === 1 ? gradients : gradients.map((each) => each.map((value) => factor * value)));
  position.steps += 1;
  position.used += batch.length;
  if (position.used >= set.train.length) Object.assign(position, { epoch: position.epoch + 1, used: 0 });
}

function sceneOf({ settings, set, network }) {
  const { train, test, classes } = set;
  const { points, ...named } = settings;
  return { settings: named, sizes: network.sizes, classes, samples: [train.length, test.length], points: { train, test }, edge: EDGE };
}

function pictureOf({ settings, set, network, position, gradients, batchLoss, seconds }) {
  const [train, test] = [set.train, set.test].map((part) => measured(network, part, settings.loss));
  const active = activeShares(network, set.train);
  const norm = (array) => Math.sqrt(array.reduce((sum, each) => sum + each * each, 0));
  const rows = (weights, width) => Array.from({ length: Math.min(weights.length / width, DRAWN) }, (_, k) => [
    ...weights.subarray(k * width, k * width + Math.min(width, DRAWN)),
  ]);
  return {
    step: position.steps, epoch: position.epoch + position.used / set.train.length, stage: "JavaScript in this page",
    seconds, batch_loss: batchLoss, loss: [train.loss, test.loss], accuracy: [train.accuracy, test.accuracy],
    gradients: gradients.filter((_, i) => i % 2 === 0).map(norm),
    finite: parameters(network).every((array) => array.every(Number.isFinite)),
    weights: network.weights.map((weights, i) => rows(weights, network.sizes[i + 1])),
    biases: network.biases.map((bias) => [...bias.subarray(0, DRAWN)]),
    active: active.map((each) => each.slice(0, DRAWN)),
    dead: settings.activation === "relu" ? active.map((each) => each.flatMap((share, i) => (share === 0 ? [i] : []))) : null,
    ...grids(network, settings.loss),
  };
}

/** The picture, whose losses and gradients become the newest point of the curves. */
function remembered(training, picture) {
  training.taken += 1;
  if (training.taken % training.every === 0) {
    training.curves.push({ step: picture.step, loss: picture.loss, gradients: picture.gradients });
  }
  if (training.curves.length > REMEMBERED) {
    training.curves = training.curves.filter((_, i) => i % 2 === 0);
    training.every *= 2;
  }
  return picture;
}
