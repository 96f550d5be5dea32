/* 7.d  Find the fault, name it, mend it.

   Max pooling in one dimension: of every two neighbours in a row the larger one is kept. A row with an odd number of
   columns ends in a number without a neighbour, which is kept as it is.

       1 5 2 2 9      becomes      5 2 9

   The function is right for rows of even length. For rows of odd length its results differ from call to call.

       groundup learn check 7.d      calls it, and shows what goes wrong
       groundup learn answer 7.d LINE KIND
*/

#include "groundup.h"

/* x is (rows, columns); out is (rows, (columns + 1) / 2). */
EXPORT void NAME(pair_maxima)(size_t rows, size_t columns, const real *restrict x, real *restrict out) {
    const size_t pairs = (columns + 1) / 2;
    for (size_t i = 0; i < rows; i++) {
        const real *row = x + i * columns;
        for (size_t j = 0; j < pairs; j++) {
            const real left = row[2 * j];
            const real right = row[2 * j + 1];
            out[i * pairs + j] = left > right ? left : right;
        }
    }
}
