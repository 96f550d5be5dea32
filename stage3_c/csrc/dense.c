/* A dense layer, y = xW + b, forward and backward.

   Forward, the bias and an activation that goes element by element are put on each tile of y while it is still in
   registers: y is written once and never read again. The other activations take a pass of their own, shared out over
   the threads. Backward is two products and the column sums. */

#include "groundup.h"

typedef struct {
    size_t rows, columns;
    enum activation which;
    real *values;
} activation_job;

static void activate_rows(void *argument, size_t part, size_t parts, void *workspace) {
    (void)workspace;
    const activation_job *job = argument;
    const size_t begin = job->rows * part / parts, end = job->rows * (part + 1) / parts;
    real *const values = job->values + begin * job->columns;
    if (begin < end) NAME(activation_by_number)(job->which)(end - begin, job->columns, values, values);
}

int NAME(dense_forward)(pool *threads, size_t batch, size_t in, size_t out, const real *x, const real *w,
                        const real *b, int activation, real *y) {
    const enum activation which = (enum activation)activation;
    const int in_tile = which == IDENTITY || which == RELU || which == LEAKY_RELU;
    const NAME(epilogue) last = {b, in_tile ? which : IDENTITY};
    const int status = NAME(matmul_any)(threads, batch, in, out, (NAME(strided)){x, in, 1}, (NAME(strided)){w, out, 1},
                                        y, last);
    if (status != 0 || in_tile) return status;
    activation_job job = {batch, out, which, y};
    return pool_run(threads, activate_rows, &job, threads_worth(threads, batch * out));
}

int NAME(dense_backward)(pool *threads, size_t batch, size_t in, size_t out, const real *x, const real *w,
                         const real *grad_y, real *grad_w, real *grad_b, real *grad_x) {
    NAME(column_sums)(batch, out, grad_y, grad_b);
    int status = NAME(matmul_tn)(threads, in, batch, out, x, grad_y, grad_w);
    if (status == 0 && grad_x != NULL) status = NAME(matmul_nt)(threads, batch, out, in, grad_y, w, grad_x);
    return status;
}

void NAME(add_bias)(size_t rows, size_t columns, const real *bias, real *values) {
    for (size_t i = 0; i < rows; i++) {
        for (size_t j = 0; j < columns; j++) values[i * columns + j] += bias[j];
    }
}

void NAME(column_sums)(size_t rows, size_t columns, const real *restrict values, real *restrict sums) {
    for (size_t j = 0; j < columns; j++) sums[j] = values[j];
    for (size_t i = 1; i < rows; i++) {
        for (size_t j = 0; j < columns; j++) sums[j] += values[i * columns + j];
    }
}

void NAME(multiply)(size_t size, const real *a, const real *b, real *product) {
    for (size_t i = 0; i < size; i++) product[i] = a[i] * b[i];
}

void NAME(add)(size_t size, const real *a, const real *b, real *sum) {
    for (size_t i = 0; i < size; i++) sum[i] = a[i] + b[i];
}
