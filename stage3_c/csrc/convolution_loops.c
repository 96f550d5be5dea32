/* The first rung of convolution: the definition.

   y[n][o][i][j] = b[o] + sum over c, u, v of x[n][c][i stride - padding + u][j stride - padding + v] w[o][c][u][v],
   where x is 0 outside the image. Seven loops, one sum at a time. */

#include "groundup.h"

/* One output: the window whose upper left corner is at (top, left), which may lie outside the image. */
static real one_output(const convolution *s, const real *x, const real *w, ptrdiff_t top, ptrdiff_t left) {
    const ptrdiff_t height = (ptrdiff_t)s->height, width = (ptrdiff_t)s->width;
    real sum = 0;
    for (size_t c = 0; c < s->channels; c++) {
        for (size_t u = 0; u < s->kernel_height; u++) {
            const ptrdiff_t row = top + (ptrdiff_t)u;
            if (row < 0 || row >= height) continue;
            for (size_t v = 0; v < s->kernel_width; v++) {
                const ptrdiff_t column = left + (ptrdiff_t)v;
                if (column < 0 || column >= width) continue;
                sum += x[((ptrdiff_t)c * height + row) * width + column] *
                       w[(c * s->kernel_height + u) * s->kernel_width + v];
            }
        }
    }
    return sum;
}

void NAME(conv2d_direct)(const convolution *s, size_t batch, const real *x, const real *w, const real *b, real *y) {
    const size_t image = s->channels * s->height * s->width;
    const size_t filter = s->channels * s->kernel_height * s->kernel_width;
    for (size_t n = 0; n < batch; n++) {
        for (size_t o = 0; o < s->filters; o++) {
            for (size_t i = 0; i < s->out_height; i++) {
                for (size_t j = 0; j < s->out_width; j++) {
                    const ptrdiff_t top = (ptrdiff_t)(i * s->stride_rows) - (ptrdiff_t)s->padding_rows;
                    const ptrdiff_t left = (ptrdiff_t)(j * s->stride_columns) - (ptrdiff_t)s->padding_columns;
                    *y++ = b[o] + one_output(s, x + n * image, w + o * filter, top, left);
                }
            }
        }
    }
}
