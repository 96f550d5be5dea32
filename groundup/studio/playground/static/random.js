/**
 * Random numbers from a counter: number `index` of the sequence named by `key` is a fixed function of both.
 *
 * It is the generator of shared/dropout.py (SplitMix64), so that the masks of a seed are the same here and on every
 * floor. JavaScript's own Math.random cannot be given a seed.
 */

const GAMMA = 0x9e3779b97f4a7c15n;
const MASK = (1n << 64n) - 1n;

/** 64 random bits as a BigInt; key a BigInt, index a number. */
export function randomBits(key, index) {
  let z = (key + BigInt(index + 1) * GAMMA) & MASK;
  z = ((z ^ (z >> 30n)) * 0xbf58476d1ce4e5b9n) & MASK;
  z = ((z ^ (z >> 27n)) * 0x94d049bb133111ebn) & MASK;
  return z ^ (z >> 31n);
}

/** The key that some whole numbers of at least 0 lead to: each goes through the generator in turn. */
export function keyOf(...numbers) {
  return numbers.reduce((key, each) => randomBits(key, each), 0n);
}

/** A number from 0 to below 1. */
export function uniform(key, index) {
  return Number(randomBits(key, index) >> 11n) * 2 ** -53;
}

/** A generator that counts by itself: { uniform(), normal() }. */
export function generator(...numbers) {
  const key = keyOf(...numbers);
  let index = 0;
  const next = () => uniform(key, index++);
  /** Box and Muller: a normal number from two uniform ones. 1 - next() is never 0, so its logarithm is finite. */
  const normal = () => Math.sqrt(-2 * Math.log(1 - next())) * Math.cos(2 * Math.PI * next());
  return { uniform: next, normal };
}

/** The whole numbers below count in random order (Fisher and Yates). */
export function permutation(count, ...numbers) {
  const random = generator(...numbers);
  const order = Array.from({ length: count }, (_, i) => i);
  for (let i = count - 1; i > 0; i--) {
    const j = Math.floor(random.uniform() * (i + 1));
    [order[i], order[j]] = [order[j], order[i]];
  }
  return order;
}

/** The mask of one hidden layer at one step: 0 for dropped neurons, else 1 / (1 - rate). */
export function dropoutMask(size, rate, seed, step, layer) {
  const key = keyOf(seed, step, layer);
  return Float64Array.from({ length: size }, (_, i) => (uniform(key, i) >= rate ? 1 / (1 - rate) : 0));
}
