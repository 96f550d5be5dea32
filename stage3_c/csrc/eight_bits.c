/* Products of whole numbers of eight bits: sums (m, n) of 32 bits = left (m, k) times right (k, n), slowest rung first.

       plain     the definition: one sum at a time, one product at a time
       ordered   the two inner loops swapped                    right and the sums are read along their rows
       vectors   the panels and tiles of matmul_packed.c        a lane multiplies one number in one instruction …
       pairs     numbers of 16 bits, two in a lane              … two
       vnni      numbers of 8 bits, four in a lane              … four
       threads   vnni, the sums cut into a rectangle for each thread

   The last ones are one piece of code and differ in how many numbers a lane of 32 bits holds, which is all that an
   instruction asks for. Sums of 32 bits are exact: k is at most 131,071, and then not even (-128)(-128)k leaves them.

   VNNI multiplies numbers from 0 to 255 by numbers from -128 to 127. So 128 is added to every number of left, and every
   sum is too large by 128 times the sum of a column of right:

       sum of (l + 128) r = sum of l r + 128 times the sum of r

   which is why it begins with that much less. On the way a sum may leave 32 bits; it wraps round, and comes back. */

#include "shares.h"

#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

#if defined(__clang__)
#define UNROLL _Pragma("unroll")
#define NO_SIMD
#define NO_SIMD_LOOP _Pragma("clang loop vectorize(disable) interleave(disable)")
#else
#define UNROLL _Pragma("GCC unroll 16")
#define NO_SIMD __attribute__((optimize("no-tree-vectorize")))
#define NO_SIMD_LOOP
#endif

/* Words of k in a panel, and rows of left in a block: they stay in the caches that matmul_packed.c means. */
enum { DEPTH = 1024, ROWS = 1008, WIDEST = 32, PIECE = 16 };

_Static_assert((DEPTH * (WIDEST + ROWS + 7) + PIECE) * 4 <= WORKSPACE_BYTES, "the workspace is too small");

typedef int32_t word __attribute__((may_alias));

typedef struct {
    size_t m, k, n;
    const int8_t *left, *right;
    int32_t *sums;
    size_t bands, stacks;
} whole_product;

/* The end of a tile that lies over the right edge; as in matmul_packed.c, a function of its own. Up to WIDEST - 1 columns
   are copied by a move for each bit of their number. */
static __attribute__((noinline)) void finish(size_t rows, int32_t *from, size_t width, int32_t *to, size_t n,
                                             size_t columns, int added) {
    for (size_t i = 0; i < rows; i++, from += width, to += n) {
        for (size_t j = 0; added && j < columns; j++) from[j] += to[j];
        size_t j = 0;
        UNROLL for (size_t move = WIDEST / 2; move > 0; move /= 2) {
            if (columns & move) {
                memcpy(to + j, from + j, move * sizeof(*to));
                j += move;
            }
        }
    }
}

NO_SIMD void eight_bits_plain(size_t m, size_t k, size_t n, const int8_t *left, const int8_t *right, int32_t *sums) {
    for (size_t i = 0; i < m; i++) {
        for (size_t j = 0; j < n; j++) {
            int32_t sum = 0;
            NO_SIMD_LOOP
            for (size_t p = 0; p < k; p++) sum += left[i * k + p] * right[p * n + j];
            sums[i * n + j] = sum;
        }
    }
}

NO_SIMD void eight_bits_ordered(size_t m, size_t k, size_t n, const int8_t *left, const int8_t *right, int32_t *sums) {
    for (size_t i = 0; i < m; i++) {
        for (size_t j = 0; j < n; j++) sums[i * n + j] = 0;
        for (size_t p = 0; p < k; p++) {
            const int32_t factor = left[i * k + p];
            NO_SIMD_LOOP
            for (size_t j = 0; j < n; j++) sums[i * n + j] += factor * right[p * n + j];
        }
    }
}

/* ---- the instructions ---------------------------------------------------------------------------------------------- */

#define PART(name) vectors_##name
#define TARGET
#define BYTES SIMD_BYTES
#define LEFT int32_t
#define RIGHT int32_t
#define OFFSET 0
#define DOT(sum, left, right) ((sum) + (left) * (right))
#include "eight_bits_packed.h"

#define PART(name) pairs_##name
#define TARGET
#define BYTES SIMD_BYTES
#define LEFT int16_t
#define RIGHT int16_t
#define OFFSET 0
#if defined(__AVX512BW__)
#define DOT(sum, left, right) ((sum) + (pairs_vector)_mm512_madd_epi16((__m512i)(left), (__m512i)(right)))
#elif defined(__AVX2__) && SIMD_BYTES == 32
#define DOT(sum, left, right) ((sum) + (pairs_vector)_mm256_madd_epi16((__m256i)(left), (__m256i)(right)))
#elif defined(__x86_64__) && SIMD_BYTES == 16
#define DOT(sum, left, right) ((sum) + (pairs_vector)_mm_madd_epi16((__m128i)(left), (__m128i)(right)))
#else /* by hand: the upper halves, and the lower ones moved up, and down again for their sign */
typedef uint32_t bits __attribute__((vector_size(SIMD_BYTES)));
#define LOWER(pair) ((pairs_vector)((bits)(pair) << 16) >> 16)
#define DOT(sum, left, right) ((sum) + ((left) >> 16) * ((right) >> 16) + LOWER(left) * LOWER(right))
#endif
#include "eight_bits_packed.h"

#if defined(__x86_64__) && (defined(__clang__) || __GNUC__ >= 11)
#define HAS_VNNI

#define PART(name) vnni256_##name
#define TARGET __attribute__((target("avx2,avxvnni")))
#define BYTES 32
#define LEFT uint8_t
#define RIGHT int8_t
#define OFFSET 128
#define DOT(sum, left, right)                                                                                          \
    ((vnni256_vector)_mm256_dpbusd_avx_epi32((__m256i)(sum), (__m256i)(left), (__m256i)(right)))
#include "eight_bits_packed.h"

#define PART(name) vnni512_##name
#define TARGET __attribute__((target("avx512f,avx512bw,avx512vnni")))
#define BYTES 64
#define LEFT uint8_t
#define RIGHT int8_t
#define OFFSET 128
#define DOT(sum, left, right)                                                                                          \
    ((vnni512_vector)_mm512_dpbusd_epi32((__m512i)(sum), (__m512i)(left), (__m512i)(right)))
#include "eight_bits_packed.h"

/* Whether the processor has these features, bits of what cpuid says on page 7, and the system keeps the registers of a
   thread that it puts aside. Processors have VNNI for registers of 256 bits without AVX-512, or of 512 with it, or both. */
static int has_vnni(unsigned subpage, unsigned a_bits, unsigned b_bits, unsigned c_bits, unsigned registers) {
    unsigned a = 0, b = 0, c = 0, d = 0, kept, high;
    enum { OSXSAVE = 1 << 27 };
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & OSXSAVE)) return 0;
    __asm__ volatile("xgetbv" : "=a"(kept), "=d"(high) : "c"(0));
    if ((kept & registers) != registers || !__get_cpuid_count(7, subpage, &a, &b, &c, &d)) return 0;
    return (a & a_bits) == a_bits && (b & b_bits) == b_bits && (c & c_bits) == c_bits;
}

static int has_vnni256(void) { return has_vnni(1, 1u << 4, 0, 0, 0x06) && has_vnni(0, 0, 1u << 5, 0, 0x06); }

static int has_vnni512(void) { return has_vnni(0, 0, 1u << 16 | 1u << 30, 1u << 11, 0xe6); }
#endif

static int always(void) { return 1; }

typedef struct {
    size_t wide, tile_rows;
    int (*has)(void);
    pool_task rectangle;
    double (*peak)(size_t rounds, int32_t *sink);
} instruction;

#define INSTRUCTION(name, has)                                                                                         \
    { name##_WIDE, name##_TILE_ROWS, has, name##_rectangle, name##_peak }

/* In the order of eight_bits.py's INSTRUCTIONS. */
static const instruction instructions[] = {
    INSTRUCTION(vectors, always),
    INSTRUCTION(pairs, always),
#if defined(HAS_VNNI)
    INSTRUCTION(vnni256, has_vnni256),
    INSTRUCTION(vnni512, has_vnni512),
#endif
};

int eight_bits_has(size_t which) {
    return which < sizeof(instructions) / sizeof(instructions[0]) && instructions[which].has();
}

double eight_bits_peak(size_t which, size_t rounds, int32_t *sink) { return instructions[which].peak(rounds, sink); }

int eight_bits_packed(pool *threads, size_t most, size_t which, size_t m, size_t k, size_t n, const int8_t *left,
                      const int8_t *right, int32_t *sums) {
    enum { WORTH_A_THREAD = 1 << 20 }; /* multiply-adds */
    const instruction *by = &instructions[which];
    whole_product job = {m, k, n, left, right, sums, 1, 1};
    const size_t tiles = ((m + by->tile_rows - 1) / by->tile_rows) * ((n + by->wide - 1) / by->wide);
    const size_t parts = smaller(smaller(smaller(most, pool_threads(threads)), tiles), m * k * n / WORTH_A_THREAD + 1);
    cut_rectangles(m, n, by->tile_rows, by->wide, parts, &job.bands, &job.stacks);
    return pool_run(threads, by->rectangle, &job, parts);
}
