/* 8.d  Find the fault, name it, mend it.

   The inner product of two vectors, with four sums that do not wait for each other: each addition takes several cycles,
   and with a single sum every addition waits for the one before it. What is left at the end goes into the first sum.

   The function is right for lengths such as 4 and 400. For others its result is too small or too large.

       groundup learn check 8.d      calls it, and shows what goes wrong
       groundup learn answer 8.d LINE KIND
*/

#include "groundup.h"

/* The sum of a[i] b[i] over the n numbers of both. */
EXPORT real NAME(dot)(size_t n, const real *restrict a, const real *restrict b) {
    real sum0 = 0, sum1 = 0, sum2 = 0, sum3 = 0;
    size_t i = 0;
    for (; i + 4 <= n; i += 4) {
        sum0 += a[i] * b[i];
        sum1 += a[i + 1] * b[i + 1];
        sum2 += a[i + 2] * b[i + 2];
        sum3 += a[i + 3] * b[i + 3];
    }
    for (; i < n; i++) {
        sum0 = a[i] * b[i];
    }
    return (sum0 + sum1) + (sum2 + sum3);
}
