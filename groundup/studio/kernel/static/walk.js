// A walk, read from what groundup/studio/kernel/document.py writes: who is where at a step, and what stands in memory.
//
// Nothing here draws; the other modules ask it.

export const WARP = 32;

/** The list that a shortened one stands for: a value for `count` equal ones, {a, d} for a first one and a difference. */
export function unpacked(given, count) {
  if (Array.isArray(given)) return given;
  if (given !== null && typeof given === "object") return Array.from({ length: count }, (_, at) => given.a + at * given.d);
  return new Array(count).fill(given);
}

/** The index of an element from its place in memory: 35 in an array of (16, 16) is [2, 3]. */
export function indexOf(shape, place) {
  const index = [];
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    index.unshift(place % shape[axis]);
    place = Math.floor(place / shape[axis]);
  }
  return index;
}

/** "tile_a[2, 3]" */
export function elementName(array, place) {
  return `${array.name}[${indexOf(array.shape, place).join(", ")}]`;
}

export class Walk {
  constructor(data) {
    this.data = data;
    this.steps = data.steps;
    this.length = data.steps.length;
    const [x, y, z] = data.block;
    this.threads = x * y * z;
    this.warps = Math.ceil(this.threads / WARP);
    this.first = data.warp * WARP;
    this._memory = { step: -1, arrays: new Map(), read: new Map() };
    this._touched = null;
    this._lanes = [];
  }

  /** [x, y, z] of a thread in its block, from its number. */
  place(thread) {
    const [x, y] = this.data.block;
    return [thread % x, Math.floor(thread / x) % y, Math.floor(thread / (x * y))];
  }

  /** "(3, 1)": a thread by as many numbers as its block has dimensions; "3" for one. */
  threadName(thread) {
    const place = this.place(thread);
    const [, y, z] = this.data.block;
    if (z > 1) return `(${place.join(", ")})`;
    return y > 1 ? `(${place.slice(0, 2).join(", ")})` : String(place[0]);
  }

  /** The numbers of the threads that take a step, as ranges [[first, last], …]. */
  ranges(step) {
    return this.data.active[this.steps[step].l[4]];
  }

  /** How many threads take a step. */
  count(step) {
    return this.ranges(step).reduce((sum, [first, last]) => sum + last - first + 1, 0);
  }

  /** Whether a thread takes a step. */
  takes(step, thread) {
    return this.ranges(step).some(([first, last]) => first <= thread && thread <= last);
  }

  /** The lanes of the walk's warp that take a step. */
  lanes(step) {
    const active = this.steps[step].l[4];
    this._lanes[active] ??= Array.from({ length: WARP }, (_, lane) => lane).filter((lane) => this.takes(step, this.first + lane));
    return this._lanes[active];
  }

  /** All threads that take a step. */
  allThreads(step) {
    return this.ranges(step).flatMap(([first, last]) => Array.from({ length: last - first + 1 }, (_, at) => first + at));
  }

  /** { source, line, depth, phase } of a step. */
  at(step) {
    const [source, line, depth, phase] = this.steps[step].l;
    return { source, line, depth, phase };
  }

  /** The accesses of the warp in a step: [{ text, kind, array, number, lanes, places, values, cost }]. */
  accesses(step) {
    const lanes = this.lanes(step);
    return (this.steps[step].a ?? []).map((each) => {
      const own = each.n ?? lanes;
      return {
        text: this.data.texts[each.t],
        kind: ["read", "write", "atomic"][each.k],
        number: each.m,
        array: this.data.arrays[each.m],
        lanes: own,
        places: unpacked(each.p, own.length),
        values: unpacked(each.x, own.length),
        cost: each.c ?? null,
      };
    });
  }

  /** What a shuffle or a vote gave the lanes: { lanes, gave, got }, or null. */
  results(step) {
    const found = this.steps[step].r;
    if (!found) return null;
    return { lanes: found.n, gave: unpacked(found.g, found.n.length), got: unpacked(found.x, found.n.length) };
  }

  /** The writes of the whole block in a step: [{ number, threads, places, values }]. */
  writes(step) {
    return (this.steps[step].w ?? []).map((each) => {
      const threads = each.n ?? this.allThreads(step);
      return { number: each.m, threads, places: unpacked(each.p, threads.length), values: unpacked(each.x, threads.length) };
    });
  }

  /**
   * What the block has written up to and with a step: Map of an array's number to { values, by, step }, each a Map from
   * the place: the value, the thread that wrote it, and when.
   */
  memory(step) {
    let from = this._memory.step + 1;
    if (step < this._memory.step) {
      this._memory.arrays = new Map();
      this._memory.read = new Map();
      from = 0;
    }
    for (let at = from; at <= step; at++) {
      for (const { number, places } of this.accesses(at)) {
        if (!this._memory.read.has(number)) this._memory.read.set(number, new Set());
        places.forEach((place) => this._memory.read.get(number).add(place));
      }
      for (const { number, threads, places, values } of this.writes(at)) {
        if (!this._memory.arrays.has(number)) {
          this._memory.arrays.set(number, { values: new Map(), by: new Map(), step: new Map() });
        }
        const array = this._memory.arrays.get(number);
        places.forEach((place, i) => {
          array.values.set(place, values[i]);
          array.by.set(place, threads[i]);
          array.step.set(place, at);
        });
      }
    }
    this._memory.step = step;
    return this._memory.arrays;
  }

  /** The elements of an array that the warp has touched up to and with a step: a Set of places. */
  touchedUntil(step, number) {
    this.memory(step);
    return this._memory.read.get(number) ?? new Set();
  }

  /**
   * The variables of the warp after a step, for the functions that lane `lane` is in: [{ depth, name, values, changed }],
   * the innermost function first; values: Map from the lane.
   */
  variables(step, lane) {
    const stacks = [];
    const drop = (depth) => { stacks.length = Math.min(stacks.length, depth + 1); };
    for (let at = 0; at <= step; at++) {
      if (!this.takes(at, this.first + lane)) continue;
      drop(this.steps[at].l[2]);
      const active = this.lanes(at);
      for (const [depth, name, lanes, values] of this.steps[at].v ?? []) {
        const own = lanes ?? active;
        stacks[depth] ??= new Map();
        if (!stacks[depth].has(name)) stacks[depth].set(name, { values: new Map(), at: -1 });
        const variable = stacks[depth].get(name);
        unpacked(values, own.length).forEach((value, i) => variable.values.set(own[i], value));
        if (own.includes(lane)) variable.at = at;
      }
    }
    return stacks.flatMap((variables, depth) => [...(variables ?? [])].map(([name, { values, at }]) => (
      { depth, name, values, changed: at === step }
    ))).filter(({ values }) => values.has(lane)).sort((one, other) => other.depth - one.depth);
  }

  /** The step at which the block waits next, after `step`; the last step if there is none. */
  nextBarrier(step) {
    for (let at = step + 1; at < this.length; at++) {
      if ((this.steps[at].o ?? "").startsWith("syncthreads")) return at;
    }
    return this.length - 1;
  }

  /** The step of the next access to global or shared memory by the warp, after `step`; the last step if there is none. */
  nextAccess(step) {
    const reaches = (each) => (each.a ?? []).some(({ m }) => this.data.arrays[m].space !== "local");
    const found = this.steps.findIndex((each, at) => at > step && reaches(each));
    return found < 0 ? this.length - 1 : found;
  }

  /** The steps with a barrier. */
  barrierSteps() {
    return this.steps.flatMap((step, at) => ((step.o ?? "").startsWith("syncthreads") ? [at] : []));
  }

  /** Who writes each element of an array in the whole walk: Map from the place to the last thread that does. */
  writers(number) {
    if (this._writers === undefined) {
      this._writers = new Map();
      for (let at = 0; at < this.length; at++) {
        for (const write of this.writes(at)) {
          if (!this._writers.has(write.number)) this._writers.set(write.number, new Map());
          write.places.forEach((place, i) => this._writers.get(write.number).set(place, write.threads[i]));
        }
      }
    }
    return this._writers.get(number) ?? new Map();
  }

  /** Places of an array that the walk touches at any time: Set of places; reads are those of the warp only. */
  touched(number) {
    if (this._touched === null) {
      this._touched = new Map();
      const add = (array, places) => {
        if (!this._touched.has(array)) this._touched.set(array, new Set());
        places.forEach((place) => this._touched.get(array).add(place));
      };
      for (let at = 0; at < this.length; at++) {
        this.accesses(at).forEach((access) => add(access.number, access.places));
        this.writes(at).forEach((write) => add(write.number, write.places));
      }
    }
    return this._touched.get(number) ?? new Set();
  }
}
