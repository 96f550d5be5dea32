/* Matrix multiplication by plain loops, slowest rung first. c (m, n) = a (m, k) times b (k, n).

       ijk         the definition: one dot product per output             b is read down its columns, a cache line each
       ikj         the two inner loops swapped                            b and c are read along their rows
       blocked     ikj on blocks that stay in the cache                   a block of b is fetched once, not m times
       restrict    the same, and the compiler may use SIMD instructions   one instruction adds a register of products

   The first three are compiled without SIMD, so that each rung shows one change. The next rungs, packed and threads,
   are in matmul_packed.c and matmul_threads.c. */

#include "groundup.h"

/* GCC takes the wish for the whole function, Clang for each loop. A loop of a few instructions that crosses a 64-byte
   boundary can take twice as long to fetch as one that does not; aligned, the rungs do not differ by that chance. */
#if defined(__clang__)
#define NO_SIMD
#define NO_SIMD_LOOP _Pragma("clang loop vectorize(disable) interleave(disable)")
#else
#define NO_SIMD __attribute__((optimize("no-tree-vectorize", "align-loops=64")))
#define NO_SIMD_LOOP
#endif

/* A block of b is DEPTH rows of WIDTH numbers, 64 kB or 128 kB: it fits in the second-level cache of any machine of the
   last ten years, with room for what streams past. */
enum { DEPTH = 64, WIDTH = 256 };

static size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

NO_SIMD void NAME(matmul_ijk)(size_t m, size_t k, size_t n, const real *a, const real *b, real *c) {
    for (size_t i = 0; i < m; i++) {
        for (size_t j = 0; j < n; j++) {
            real sum = 0;
            NO_SIMD_LOOP
            for (size_t p = 0; p < k; p++) sum += a[i * k + p] * b[p * n + j];
            c[i * n + j] = sum;
        }
    }
}

NO_SIMD void NAME(matmul_ikj)(size_t m, size_t k, size_t n, const real *a, const real *b, real *c) {
    for (size_t i = 0; i < m; i++) {
        for (size_t j = 0; j < n; j++) c[i * n + j] = 0;
        for (size_t p = 0; p < k; p++) {
            const real factor = a[i * k + p];
            NO_SIMD_LOOP
            for (size_t j = 0; j < n; j++) c[i * n + j] += factor * b[p * n + j];
        }
    }
}

NO_SIMD void NAME(matmul_blocked)(size_t m, size_t k, size_t n, const real *a, const real *b, real *c) {
    for (size_t i = 0; i < m * n; i++) c[i] = 0;
    for (size_t j0 = 0; j0 < n; j0 += WIDTH) {
        const size_t j1 = smaller(j0 + WIDTH, n);
        for (size_t p0 = 0; p0 < k; p0 += DEPTH) {
            const size_t p1 = smaller(p0 + DEPTH, k);
            for (size_t i = 0; i < m; i++) {
                for (size_t p = p0; p < p1; p++) {
                    const real factor = a[i * k + p];
                    NO_SIMD_LOOP
                    for (size_t j = j0; j < j1; j++) c[i * n + j] += factor * b[p * n + j];
                }
            }
        }
    }
}

/* restrict promises that the three matrices do not overlap. Without it every store to c might change b, and the compiler
   would test the addresses before each inner loop, to choose between SIMD instructions and one number at a time. */
void NAME(matmul_restrict)(size_t m, size_t k, size_t n, const real *restrict a, const real *restrict b,
                           real *restrict c) {
    for (size_t i = 0; i < m * n; i++) c[i] = 0;
    for (size_t j0 = 0; j0 < n; j0 += WIDTH) {
        const size_t j1 = smaller(j0 + WIDTH, n);
        for (size_t p0 = 0; p0 < k; p0 += DEPTH) {
            const size_t p1 = smaller(p0 + DEPTH, k);
            for (size_t i = 0; i < m; i++) {
                for (size_t p = p0; p < p1; p++) {
                    const real factor = a[i * k + p];
                    for (size_t j = j0; j < j1; j++) c[i * n + j] += factor * b[p * n + j];
                }
            }
        }
    }
}
