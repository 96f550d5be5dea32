/**
 * The playground's sets for a page without a server: the formulas of shared/data/synthetic.py with random numbers of
 * their own, in the square from -1 to 1.
 *
 * A set is { train, test, classes }, each part a list of points [x1, x2, class].
 */

import { generator, permutation } from "/static/playground/random.js";

const TEST_SHARE = 1 / 3;
const SCALE = { xor: 0.75, clouds: 3, round: 1.1 };

/** By its name, (i, samples, random, noise) -> point number i of the set. */
const POINTS = {
  xor(i, samples, random, noise) {
    const [a, b] = [i % 2, Math.floor(i / 2) % 2];
    return moved([(a - 0.5) / SCALE.xor, (b - 0.5) / SCALE.xor, a ^ b], random, noise);
  },
  /** Two disks of radius 1.5, on either side of a line with a margin of 0.5. */
  clouds(i, samples, random, noise) {
    const side = i % 2 ? 1 : -1;
    const centre = side * 2 * Math.SQRT1_2;
    const [x1, x2] = polar(1.5 * Math.sqrt(random.uniform()), 2 * Math.PI * random.uniform());
    return moved([(centre + x1) / SCALE.clouds, (centre + x2) / SCALE.clouds, i % 2], random, noise);
  },
  /** A disk of radius 0.5 and a ring from 0.7 to 1; the square root makes the points even over the area. */
  circles(i, samples, random, noise) {
    const [inner, outer] = i % 2 ? [0.7, 1] : [0, 0.5];
    const radius = Math.sqrt(inner ** 2 + random.uniform() * (outer ** 2 - inner ** 2));
    const [x1, x2] = polar(radius / SCALE.round, 2 * Math.PI * random.uniform());
    return moved([x1, x2, i % 2], random, noise);
  },
  /** Three arms, each turning three quarters of a circle on its way from the middle to radius 1. */
  spirals(i, samples, random, noise) {
    const label = i % 3;
    const radius = (Math.floor(i / 3) + 1) / Math.ceil(samples / 3);
    const angle = 2 * Math.PI * (label / 3 + 0.75 * radius) + noise * random.normal();
    return [...polar(radius / SCALE.round, angle), label];
  },
};

/** The set that the settings name; points: those of the set "own". */
export function makeSet(settings, points) {
  const { data, samples, seed, noise } = settings;
  const random = generator(seed, 1);
  const all = data === "own" ? points : Array.from({ length: samples }, (_, i) => POINTS[data](i, samples, random, noise));
  const order = permutation(all.length, seed, 2);
  const held = Math.round(all.length * TEST_SHARE);
  return {
    train: order.slice(held).map((i) => all[i]),
    test: order.slice(0, held).map((i) => all[i]),
    classes: Math.max(...all.map((point) => point[2])) + 1,
  };
}

function polar(radius, angle) {
  return [radius * Math.cos(angle), radius * Math.sin(angle)];
}

function moved([x1, x2, label], random, noise) {
  return [x1 + noise * random.normal(), x2 + noise * random.normal(), label];
}
