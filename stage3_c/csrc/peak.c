/* The ceiling: how many multiply-adds this core can do when nothing has to be fetched. */

#include "groundup.h"

/* A multiply-add takes about four cycles, and one to four can begin in each, so up to sixteen must be under way. Machines
   with sixteen registers begin at most two; more than twelve chains would there be kept in memory in part. */
#if SIMD_BYTES == 64 || defined(__aarch64__)
enum { CHAINS = 16 };
#else
enum { CHAINS = 12 };
#endif
enum { LANES = SIMD_BYTES / (int)sizeof(real) };

typedef real vector __attribute__((vector_size(SIMD_BYTES)));

double NAME(peak)(size_t rounds, real *sink) {
    const real half = *sink; /* from memory, so that the compiler cannot work out the result; 0.5 keeps it near 2 */
    vector value[CHAINS];
#if defined(__clang__)
#define UNROLL _Pragma("unroll")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif
    UNROLL for (int i = 0; i < CHAINS; i++) value[i] = (vector){0} + (real)i;
    for (size_t round = 0; round < rounds; round++) {
        UNROLL for (int i = 0; i < CHAINS; i++) value[i] = value[i] * half + 1;
    }
    vector sum = {0};
    UNROLL for (int i = 0; i < CHAINS; i++) sum += value[i];
    *sink = sum[0];
    return 2.0 * (double)((int)CHAINS * (int)LANES) * (double)rounds;
}
