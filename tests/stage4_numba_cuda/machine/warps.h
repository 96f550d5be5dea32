// What the C of a kernel (to_c.py) runs on: blocks, warps and threads that wait for one another, and checked memory.
//
// A block's warps take turns in an order drawn by lot, and so do the threads of a warp, each as far as it can go alone.
// A missing barrier therefore gives wrong numbers soon, although one thread runs at a time. Blocks run one after another,
// in an order drawn by lot, too; the blocks of a cooperative launch run together, and each rests now and then.
//
// Every access is checked: it lies in one piece of memory that was asked for, and its address is a multiple of its size.
// Shared memory begins as NaN. A mistake ends the launch: `fault` has the sentence.
#include "kernel.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint16_t u16;
typedef int8_t s8;
typedef int16_t s16;
typedef int32_t s32;
typedef int64_t s64;

#define AS(type, place) (*(type *)&(place))
#define READ(type, memory, i) (((const type *)(memory))[i])
#define WRITE(type, memory, i, value) ((void)(((type *)(memory))[i] = (value)))

enum { RUNS, YIELDS, MEETS_WARP, MEETS_BLOCK, DONE };
enum { REST = 40 };  // rounds that a block of a cooperative launch leaves out at a time: fewer than so many

typedef struct { u8 *to; const u8 *from; } Copy;

typedef struct Thread {
    u32 at, line, state;   // where it goes on, where it stopped, and why
    u32 members, aligned;  // the threads of its warp that it waits for, 0 for those that are here; whether it needs all 32
    u32 vote;              // what it says at a barrier
    u32 carry;             // the carry flag
    u32 number, tid[3];
    u32 copies, groups;    // copies that have been ordered and not made, and the end of each group among them
    Copy copy[64];
    u32 group[16];
} Thread;

typedef struct Block {
    u32 id[3], threads, votes, voters, shared_size;
    u8 *shared;
    char *registers;
    const Launch *launch;
} Block;

static jmp_buf gave_up;
static char *sentence;

static void fault(u32 line, const char *format, ...) {
    va_list values;
    va_start(values, format);
    int begun = line ? snprintf(sentence, 400, "line %u of the PTX: ", line) : 0;
    vsnprintf(sentence + begun, 400 - begun, format, values);
    va_end(values);
    longjmp(gave_up, 1);
}

// Memory.

typedef struct { u64 begin, end, launch; } Piece;  // what an instruction used last, and in which launch
static u64 launched;

#define GLOBAL(address, size, line) ({ static Piece piece; global(b, &piece, address, size, line); })

static inline u8 *global(Block *b, Piece *piece, u64 address, u32 size, u32 line) {
    if (piece->launch != launched || address < piece->begin || address + size > piece->end) {
        piece->launch = launched;
        if (!b->launch->find(address, &piece->begin, &piece->end) || address + size > piece->end) {
            piece->launch = 0;
            fault(line, "%u bytes of global memory at %#llx, which nobody has asked for", size, (long long)address);
        }
    }
    if (address % size) fault(line, "%u bytes of global memory at %#llx, no multiple of them", size, (long long)address);
    return (u8 *)address;
}

static inline u8 *shared(Block *b, u64 address, u32 size, u32 line) {
    address = (u32)address;
    if (address + size > b->shared_size) fault(line, "%u bytes at %llu of %u in shared memory", size, (long long)address, b->shared_size);
    if (address % size) fault(line, "%u bytes at %llu in shared memory, no multiple of them", size, (long long)address);
    return b->shared + address;
}

static inline u8 *local(u8 *memory, u64 all, u64 address, u32 size, u32 line) {
    if (address + size > all) fault(line, "%u bytes at %llu of %llu in local memory", size, (long long)address, (long long)all);
    if (address % size) fault(line, "%u bytes at %llu in local memory, no multiple of them", size, (long long)address);
    return memory + address;
}

static u64 drawn;

// cp.async: a copy is made by the time of the wait for its group, and at the latest then. Some are made at once.
static void copy_later(Block *b, Thread *t, u8 *to, const u8 *from) {
    if (lot(&drawn) & 1) memcpy(to, from, 16);
    else if (t->copies == 64) fault(t->line, "over 64 copies are on their way");
    else t->copy[t->copies++] = (Copy){to, from};
}

static void commit(Thread *t) {
    if (t->groups == 16) fault(t->line, "over 16 groups of copies are on their way");
    t->group[t->groups++] = t->copies;
}

static void wait_for_copies(Thread *t, int left) {  // left: groups that may be on their way; -1: nothing may
    u32 groups = left < 0 ? t->groups : (int)t->groups > left ? t->groups - left : 0;
    u32 made = left < 0 ? t->copies : groups ? t->group[groups - 1] : 0;
    for (u32 i = 0; i < made; i++) memcpy(t->copy[i].to, t->copy[i].from, 16);
    for (u32 i = made; i < t->copies; i++) t->copy[i - made] = t->copy[i];
    for (u32 i = groups; i < t->groups; i++) t->group[i - groups] = t->group[i] - made;
    t->copies -= made, t->groups -= groups;
}

// Arithmetic that C has under another name, or not at all.

static inline float float_of(u32 bits) { return AS(float, bits); }
static inline double double_of(u64 bits) { return AS(double, bits); }
static inline u32 bits_of(float x) { return AS(u32, x); }

static inline u64 nanoseconds(void) {  // the clock goes on when somebody looks at it, by a millisecond
    static u64 now;
    return now += 1000000;
}

static inline float flushed(float x) { return fabsf(x) < 0x1p-126f ? copysignf(0, x) : x; }
static inline float saturated(float x) { return x > 0 ? x < 1 ? x : 1 : 0; }  // a NaN becomes 0
static inline double upper_half(double x) { u64 bits = AS(u64, x) & 0xFFFFFFFF00000000ull; return AS(double, bits); }

// a b + c of float32 towards -infinity, infinity and 0. The product is exact in double precision, and so is what rounding
// the sum to it has lost.
static inline float fused_rm(double product, double c) {
    double sum = product + c, part = sum - product, lost = product - (sum - part) + (c - part);
    float y = (float)sum;
    return y > sum || (y == sum && lost < 0) ? nextafterf(y, -INFINITY) : y;
}
static inline float fused_rp(double product, double c) { return -fused_rm(-product, -c); }
static inline float fused_rz(double product, double c) { return product + c > 0 ? fused_rm(product, c) : fused_rp(product, c); }

// Of a number and a NaN the number; -0 is less than 0.
#define LEAST(a, b, sign) ({ __typeof__(a) u = (a), v = (b); u != u ? v : v != v ? u : u == v ? (!signbit(u) sign !signbit(v) ? u : v) : u sign v ? u : v; })

// To a whole number: the nearest that there is, 0 for a NaN.
#define WHOLE(type, x, low, high) ({ double y = (x); y != y ? 0 : y < (low) ? (type)(low) : y >= (high) ? (type)((high) == 0x1p64 ? ~0ull : (u64)(high) - 1) : (type)y; })

// The least number by -1 is itself, with the remainder 0: x86 has a trap for it.
#define quotient(type, x, y) ({ type u = (x), v = (y); v == (type)-1 && (type)-1 < 0 ? (type)(0 - (u64)u) : (type)(u / v); })
#define remainder_of(type, x, y) ({ type s = (x), w = (y); (type)(s - quotient(type, s, w) * w); })
#define divisor(x, line) ({ __typeof__(x) y = (x); if (!y) fault(line, "a whole number is divided by 0"); y; })

static inline u64 ones(u32 length) { return length >= 64 ? ~0ull : (1ull << length) - 1; }

static inline u64 inserted(u64 field, u64 into, u32 at, u32 length, u32 bits) {
    at &= 255, length &= 255;
    u64 mask = at >= bits ? 0 : ones(length) << at & ones(bits);
    return (into & ~mask) | (at >= 64 ? 0 : field << at & mask);
}

static inline u64 extracted(u64 x, u32 at, u32 length, u32 bits) {
    at &= 255, length &= 255;
    return at >= bits ? 0 : x >> at & ones(length);
}

static inline u32 bits_in(u64 x, u32 bits) { return __builtin_popcountll(x & ones(bits)); }
static inline u32 zeros_above(u64 x, u32 bits) { return x ? __builtin_clzll(x) - (64 - bits) : bits; }

static inline u64 reversed(u64 x, u32 bits) {
    u64 found = 0;
    for (u32 i = 0; i < bits; i++) found |= (x >> i & 1) << (bits - 1 - i);
    return found;
}

// The formats of the tensor cores. To the nearest; a tie to the even one, in tf32 away from zero.

static inline u16 bf16(float x) {
    u32 bits = bits_of(x);
    return x != x ? 0x7FFF : (bits + 0x7FFF + (bits >> 16 & 1)) >> 16;
}

static inline u32 tf32(float x) {  // what becomes of a NaN is not said: no NaN, so that nobody counts on it
    u32 bits = bits_of(x);
    return x != x ? 0x3F800000 : isinf(x) ? bits : (bits + 0x1000) & 0xFFFFE000;
}

static inline u16 f16(float x) {
    u32 sign = bits_of(x) >> 16 & 0x8000;
    double size = fabs((double)x);
    if (x != x) return 0x7FFF;
    if (size >= 65520) return sign | 0x7C00;
    int exponent = size < 0x1p-14 ? -14 : ilogb(size);
    u32 units = (u32)nearbyint(ldexp(size, 10 - exponent));  // 1024 of them make the next power of two
    return sign | (size < 0x1p-14 ? units : ((u32)(exponent + 15) << 10) + units - 1024);
}

static inline float float_of_f16(u16 bits) {
    u32 exponent = bits >> 10 & 31, units = bits & 1023;
    double size = exponent == 31 ? units ? NAN : INFINITY
                  : exponent ? ldexp(1024 + units, (int)exponent - 25) : ldexp(units, -24);
    return (float)(bits >> 15 ? -size : size);
}

// d = a b + c for a warp. Fragments as in the manual, "Matrix fragments for mma.m16n8k8" and ".m16n8k16": of the lane
// 4 g + p, rows g and g + 8 of a, column g of b, and columns 2 p and 2 p + 1 of c. The products are exact; how the
// device adds them is not said, and here it is in double precision.

static void product(int depth, double left[16][16], double right[16][8], float (*c)[4]) {
    for (int lane = 0; lane < 32; lane++)
        for (int i = 0; i < 4; i++) {
            int row = lane / 4 + 8 * (i / 2), column = lane % 4 * 2 + i % 2;
            double sum = c[lane][i];
            for (int k = 0; k < depth; k++) sum += left[row][k] * right[k][column];
            c[lane][i] = (float)sum;
        }
}

static void multiply_tf32(u32 (*a)[4], u32 (*b)[2], float (*c)[4]) {
    double left[16][16], right[16][8];
    for (int lane = 0; lane < 32; lane++) {
        int g = lane / 4, p = lane % 4;
        for (int i = 0; i < 4; i++) left[g + 8 * (i % 2)][p + 4 * (i / 2)] = float_of(a[lane][i] & 0xFFFFE000);
        for (int i = 0; i < 2; i++) right[p + 4 * i][g] = float_of(b[lane][i] & 0xFFFFE000);
    }
    product(8, left, right, c);
}

static double of_bf16(u16 half) { return float_of((u32)half << 16); }
static double of_f16(u16 half) { return float_of_f16(half); }

// Two numbers in a word, the lower one first. words: of a, those of the rows g and g + 8, then the same 8 columns on.
static void halves(int words, double (*value)(u16), u32 (*a)[4], u32 (*b)[2], float (*c)[4]) {
    double left[16][16], right[16][8];
    for (int lane = 0; lane < 32; lane++) {
        int g = lane / 4, p = lane % 4;
        for (int i = 0; i < words; i++)
            for (int h = 0; h < 2; h++) left[g + 8 * (i % 2)][2 * p + h + 8 * (i / 2)] = value(a[lane][i] >> 16 * h);
        for (int i = 0; i < words / 2; i++)
            for (int h = 0; h < 2; h++) right[2 * p + h + 8 * i][g] = value(b[lane][i] >> 16 * h);
    }
    product(4 * words, left, right, c);
}

static void multiply_bf16(u32 (*a)[4], u32 (*b)[2], float (*c)[4]) { halves(4, of_bf16, a, b, c); }
static void multiply_f16(u32 (*a)[4], u32 (*b)[2], float (*c)[4]) { halves(2, of_f16, a, b, c); }

// shfl.sync: the lane to read from, and whether it is inside the segment (manual, "shfl.sync").
static inline u32 source(u32 lane, s32 from, int inside, u32 *valid) { return *valid = inside, inside ? (u32)from : lane; }

// The last lane of its segment; for `up`, whose clamp is 0, the first.
static inline u32 reach(u32 lane, u32 clamp) {
    u32 segment = clamp >> 8 & 31;
    return (lane & segment) | (clamp & 31 & ~segment);
}

static inline u32 source_of_up(u32 lane, u32 by, u32 clamp, u32 *valid) {
    s32 from = (s32)lane - (s32)(by & 31);
    return source(lane, from, from >= (s32)reach(lane, clamp), valid);
}

static inline u32 source_of_down(u32 lane, u32 by, u32 clamp, u32 *valid) {
    u32 from = lane + (by & 31);
    return source(lane, from, from <= reach(lane, clamp), valid);
}

static inline u32 source_of_bfly(u32 lane, u32 by, u32 clamp, u32 *valid) {
    u32 from = lane ^ (by & 31);
    return source(lane, from, from <= reach(lane, clamp), valid);
}

static inline u32 source_of_idx(u32 lane, u32 by, u32 clamp, u32 *valid) {
    u32 segment = clamp >> 8 & 31, from = (lane & segment) | (by & 31 & ~segment);
    return source(lane, from, from <= reach(lane, clamp), valid);
}

#define EACH for (u32 lane = 0; lane < 32; lane++) if (members >> lane & 1)

// What a lane reads from one that takes no part is undefined (manual, "shfl.sync"): here any number.
static inline void fill_with_unknown(u32 *values) {
    for (u32 lane = 0; lane < 32; lane++) values[lane] = (u32)lot(&drawn);
}

// match: the lanes whose value is that of this one.
static inline u32 like(const u64 *values, u32 members, u32 lane) {
    u32 found = 0;
    for (u32 other = 0; other < 32; other++)
        if (members >> other & 1 && values[other] == values[lane]) found |= 1u << other;
    return found;
}

// Launches.

static Thread *thread(const Kernel *kernel, Block *b, u32 i) { return (Thread *)(b->registers + i * kernel->registers); }

static void begin(const Kernel *kernel, Block *b, const Launch *launch, u32 index) {
    u32 x = launch->block[0], y = launch->block[1];
    memset(b, 0, sizeof *b);
    b->launch = launch, b->threads = x * y * launch->block[2];
    b->id[0] = index % launch->grid[0], b->id[1] = index / launch->grid[0] % launch->grid[1];
    b->id[2] = index / launch->grid[0] / launch->grid[1];
    b->shared_size = kernel->shared + launch->dynamic;
    b->shared = aligned_alloc(128, b->shared_size / 128 * 128 + 128);
    memset(b->shared, 0xFF, b->shared_size);
    b->registers = malloc(kernel->registers * b->threads);
    memset(b->registers, 0xFF, kernel->registers * b->threads);
    for (u32 i = 0; i < b->threads; i++) {
        Thread *t = thread(kernel, b, i);
        memset(t, 0, offsetof(Thread, copy));
        t->number = i, t->tid[0] = i % x, t->tid[1] = i / x % y, t->tid[2] = i / x / y;
    }
}

// activemask: the lanes that wait where this one does. Nothing says that they go on together, so that some may be left out.
static u32 present(Thread **lanes, u32 here, u32 first) {
    u32 members = 0;
    for (u32 lane = 0; lane < here; lane++)
        members |= (u32)(lanes[lane]->state == MEETS_WARP && !lanes[lane]->members && lanes[lane]->at == lanes[first]->at) << lane;
    return lot(&drawn) & 1 ? members : members & ((u32)lot(&drawn) | 1u << first);
}

// Whether the threads of a warp that one of them waits for all wait at the same place; then they act. "All non-exited
// threads corresponding to membermask" (manual, "shfl.sync"): those that have ended, or never were, are not waited for.
static int meet(const Kernel *kernel, Block *b, Thread **lanes, u32 here) {
    int met = 0;
    u32 there = 0;
    for (u32 lane = 0; lane < here; lane++) there |= (u32)(lanes[lane]->state != DONE) << lane;
    for (u32 first = 0; first < here; first++) {
        Thread *t = lanes[first];
        if (t->state != MEETS_WARP) continue;
        u32 members = t->members, ready = 1;
        if (!members) members = present(lanes, here, first);
        else if (!(members >> first & 1)) fault(t->line, "a thread waits for threads of its warp, and is none of them");
        if (t->aligned && members & ~there) fault(t->line, "an instruction for a whole warp, of which threads have ended or are missing");
        members &= there;
        for (u32 lane = 0; lane < here && ready; lane++)
            if (members >> lane & 1)
                ready = lanes[lane]->state == MEETS_WARP && lanes[lane]->at == t->at && lanes[lane]->members == t->members;
        if (!ready) continue;
        kernel->together(lanes, b, members, t->at);
        for (u32 lane = 0; lane < here; lane++)
            if (members >> lane & 1) lanes[lane]->state = RUNS;
        met = 1;
    }
    return met;
}

// A round of a block: each thread that can goes on. Returns whether any did; *left: those that have not ended.
static int round_of(const Kernel *kernel, Block *b, u32 *left) {
    int moved = 0;
    u32 warps = (b->threads + 31) / 32, first = lot(&drawn) % warps, waiting = 0, ended = 0, line = 0;
    for (u32 w = 0; w < warps; w++) {
        Thread *lanes[32];
        u32 warp = (first + w) % warps, here = b->threads - warp * 32 < 32 ? b->threads - warp * 32 : 32;
        for (u32 i = 0; i < here; i++) lanes[i] = thread(kernel, b, warp * 32 + i);
        do {
            u32 start = lot(&drawn) % here;
            for (u32 i = 0; i < here; i++) {
                Thread *t = lanes[(start + i) % here];
                if (t->state == RUNS) moved = 1, kernel->go(t, b);
            }
        } while (meet(kernel, b, lanes, here) && (moved = 1));
        for (u32 i = 0; i < here; i++) {
            if (lanes[i]->state == YIELDS) lanes[i]->state = RUNS, moved = 1;
            if (lanes[i]->state == MEETS_BLOCK) waiting++, line = lanes[i]->line;
            if (lanes[i]->state == DONE) ended++;
        }
    }
    *left = b->threads - ended;
    // "Enforced per thread": a barrier waits for all threads that have not ended (CUDA C++ Programming Guide, "Volta").
    if (waiting && waiting + ended == b->threads) {
        u32 at = 0;
        b->votes = 0, b->voters = waiting;
        for (u32 i = 0; i < b->threads; i++) {
            Thread *t = thread(kernel, b, i);
            if (t->state == DONE) continue;
            if (at && t->at != at) fault(line, "threads wait at different barriers");
            at = t->at, b->votes += t->vote, t->state = RUNS;
        }
        moved = 1;
    }
    if (!moved && *left) fault(line, "%u threads wait for ever", *left);
    return moved;
}

static void finish(const Kernel *kernel, Block *b) {
    for (u32 i = 0; i < b->threads; i++) {
        Thread *t = thread(kernel, b, i);
        if (t->copies) fault(t->line, "copies are on their way when a thread ends");
    }
    free(b->shared), free(b->registers);
}

// The rounds that a block of a cooperative launch leaves out, often none: others get ahead of it.
static char rest(void) {
    return lot(&drawn) % 4 ? 0 : lot(&drawn) % REST;
}

extern const Kernel kernels[];

// Run a launch. 0, or 1 where it ended by a mistake: launch->said.
int launch(int number, const Launch *launch) {
    const Kernel *kernel = &kernels[number];
    u32 blocks = launch->grid[0] * launch->grid[1] * launch->grid[2], first, step = 1, left;
    sentence = launch->said, drawn = launch->seed * 2 + 1, launched++;
    if (setjmp(gave_up)) return 1;
    if (!launch->cooperative) {
        Block b;
        for (u32 i = 0, at = lot(&drawn) % blocks; i < blocks; i++, at = (at + 1) % blocks) {
            begin(kernel, &b, launch, at);
            do round_of(kernel, &b, &left);
            while (left);
            finish(kernel, &b);
        }
        return 0;
    }
    Block *all = malloc(blocks * sizeof *all);
    char *ended = calloc(blocks, 1), *rests = calloc(blocks, 1);
    for (u32 i = 0; i < blocks; i++) begin(kernel, &all[i], launch, i), rests[i] = rest();
    for (u32 going = blocks; going;) {
        first = lot(&drawn) % blocks;
        for (u32 i = 0; i < blocks; i++) {
            u32 at = (first + i) % blocks;
            if (ended[at]) continue;
            if (rests[at] && rests[at]--) continue;
            round_of(kernel, &all[at], &left);
            if (!left) ended[at] = 1, going--, finish(kernel, &all[at]);
            rests[at] = rest();
        }
    }
    free(all), free(ended), free(rests);
    return 0;
}
