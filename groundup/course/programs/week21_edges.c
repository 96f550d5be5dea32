/* 21.d  Find the fault, name it, mend it.

   A convolution with one kernel of 3 by 3, such as one that finds edges. The image has a border of one zero on each side,
   which is not in memory, so the result is as large as the image. Rows and columns are counted in the padded image: row 0
   and row rows + 1 are the border.

   In the middle of the image the result is right. At its right end it differs from call to call.

       groundup learn check 21.d      calls it, and shows what goes wrong
       groundup learn answer 21.d LINE KIND
*/

#include "groundup.h"

/* x and out are (rows, columns), w is (3, 3). */
EXPORT void NAME(edges)(size_t rows, size_t columns, const real *restrict x, const real *restrict w,
                        real *restrict out) {
    for (size_t i = 0; i < rows; i++) {
        for (size_t j = 0; j < columns; j++) {
            real sum = 0;
            for (size_t u = 0; u < 3; u++) {
                const size_t row = i + u;
                if (row < 1 || row > rows) continue;
                for (size_t v = 0; v < 3; v++) {
                    const size_t column = j + v;
                    if (column < 1 || column > columns + 1) continue;
                    sum += w[3 * u + v] * x[(row - 1) * columns + column - 1];
                }
            }
            out[i * columns + j] = sum;
        }
    }
}
