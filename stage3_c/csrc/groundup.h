/* The one header: the number type, the machine's registers, and every function of this stage, room by room.

   Every .c file except pool.c, machine.c and eight_bits.c is compiled twice, with GROUNDUP_BITS 32 and 64, so that one source gives
   both precisions: `real` is float or double, and NAME(relu) is relu_f32 or relu_f64.

   Matrices are row-major and contiguous: element (i, j) of a (rows, columns) matrix is at [i * columns + j]. Sizes are
   at least 1. The callers in Python have checked them, and that what is written does not overlap what is read. */

#ifndef GROUNDUP_H
#define GROUNDUP_H

#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32)
#define EXPORT __declspec(dllexport)
#else
#define EXPORT __attribute__((visibility("default"))) /* the library is built with everything else hidden */
#endif

/* ---- machine.c: what this machine can do ----------------------------------------------------------------------- */

/* Bytes in the widest SIMD register that the compiler was allowed to use: 64 with AVX-512, 32 with AVX, 16 with SSE2
   and NEON. The matmul's register block is chosen from it; see matmul_packed.c. */
#if defined(__AVX512F__)
#define SIMD_BYTES 64
#elif defined(__AVX__)
#define SIMD_BYTES 32
#else
#define SIMD_BYTES 16
#endif

EXPORT size_t simd_bytes(void);

/* ---- pool.c: threads that wait for work ------------------------------------------------------------------------ */

typedef struct pool pool;

/* One share of a job: part `part` (from 0) of `parts`. workspace: WORKSPACE_BYTES of memory, aligned to 64, that
   nobody else uses meanwhile; its contents are whatever was there before. */
typedef void (*pool_task)(void *job, size_t part, size_t parts, void *workspace);

/* For packed panels; matmul_packed.c asserts that they fit. */
#define WORKSPACE_BYTES ((size_t)5 << 20)

/* A pool of `threads` (at least 1), the caller of pool_run being one of them. NULL where memory or a thread cannot be
   had. Every call below takes the pool; nothing here is global. */
EXPORT pool *pool_create(size_t threads);
EXPORT void pool_destroy(pool *threads);
EXPORT size_t pool_threads(const pool *threads);

/* How many threads a pass over so many numbers, or so many multiply-adds of whole registers, is worth: with less than
   16,384 of them another thread costs more than it brings. */
size_t threads_worth(const pool *threads, size_t numbers);

/* Run task(job, part, parts, workspace) for every part and return when all are done. Callable from several threads at
   once: the first gets the pool's threads, the others do all their parts themselves meanwhile.
   Returns 0, or -1 where memory for a workspace cannot be had; then nothing was run. */
int pool_run(pool *threads, pool_task task, void *job, size_t parts);

/* The time within a step that is a single call: `pool_note` writes the clock, nanoseconds of the system's time, into the
   next of `notes` while somebody listens and there is room, and otherwise does nothing. A step notes its beginning and
   the end of each of its operations. notes NULL: nobody listens any more. Only one step at a time can be listened to. */
EXPORT void pool_listen(pool *threads, int64_t *notes, size_t room);
void pool_note(pool *threads);
EXPORT void pool_notes(pool *threads, size_t count); /* so many notes, one after the other: what one costs */

/* Memory that several parts of a job share, at least `bytes`, aligned to 64; what it holds is whatever was there
   before. It is kept for the next one who borrows. NULL where it cannot be had. */
typedef struct borrowed borrowed;
borrowed *pool_borrow(pool *threads, size_t bytes);
void *borrowed_memory(borrowed *it);
void pool_return(pool *threads, borrowed *it); /* it may be NULL */

/* ---- eight_bits.c: sums (m, n) = left (m, k) times right (k, n), whole numbers of eight bits; k up to 131,071 -------- */

EXPORT void eight_bits_plain(size_t m, size_t k, size_t n, const int8_t *left, const int8_t *right, int32_t *sums);
EXPORT void eight_bits_ordered(size_t m, size_t k, size_t n, const int8_t *left, const int8_t *right, int32_t *sums);

/* Whether this library and this processor have the instruction of this number. The other calls are only for one that
   they have. */
EXPORT int eight_bits_has(size_t which);

/* By this instruction, on at most `most` threads. Returns as pool_run. */
EXPORT int eight_bits_packed(pool *threads, size_t most, size_t which, size_t m, size_t k, size_t n, const int8_t *left,
                             const int8_t *right, int32_t *sums);

/* As `peak` below: how many multiplications and additions so many rounds of the instruction do. sink: two words, of
   which the instruction multiplies the groups; the first is written over. */
EXPORT double eight_bits_peak(size_t which, size_t rounds, int32_t *sink);

/* ---- convolution: the sizes, which have no precision ----------------------------------------------------------- */

/* x (batch, channels, height, width), w (filters, channels, kernel_height, kernel_width), y (batch, filters, out_height,
   out_width); out_height = (height + 2 padding_rows - kernel_height) / stride_rows + 1, and out_width likewise. The
   fields are in the order of convolution.py's CConvolution. */
typedef struct {
    size_t channels, height, width;
    size_t filters, kernel_height, kernel_width;
    size_t stride_rows, stride_columns;
    size_t padding_rows, padding_columns;
    size_t out_height, out_width;
} convolution;

/* ---- pooling: the sizes ---------------------------------------------------------------------------------------- */

/* x (planes, height, width), windows of rows by columns, y (planes, out_height, out_width). */
typedef struct {
    size_t height, width;
    size_t rows, columns;
    size_t stride_rows, stride_columns;
    size_t out_height, out_width;
} pooling;

#if defined(GROUNDUP_BITS)

#if GROUNDUP_BITS == 32
typedef float real;
#define NAME(function) function##_f32
#define REAL_FUNCTION(function) function##f /* expf, tanhf, … of math.h */
#elif GROUNDUP_BITS == 64
typedef double real;
#define NAME(function) function##_f64
#define REAL_FUNCTION(function) function
#else
#error "GROUNDUP_BITS must be 32 or 64"
#endif

/* In the order of shared/names.py; plan.py and steps.py pass the index. */
enum activation { IDENTITY, RELU, LEAKY_RELU, SIGMOID, TANH, SOFTMAX, ACTIVATIONS };
enum loss { MEAN_SQUARED_ERROR, SOFTMAX_CROSS_ENTROPY, SIGMOID_CROSS_ENTROPY, HINGE, LOSSES };
enum optimizer { SGD, RMSPROP, ADAM, OPTIMIZERS };

#define LEAKY_SLOPE 0.01

/* Independent multiply-adds in registers for `rounds` rounds, nothing read from memory: the speed that nothing on
   this core can exceed. Returns the number of floating-point operations done; *sink keeps the compiler honest. */
EXPORT double NAME(peak)(size_t rounds, real *sink);

/* triad.c: a = b + scale * c, (size,) each, `rounds` times over, cut into `parts` shares, a thread each: the speed that
   nothing can exceed that has to fetch its numbers from where these arrays lie. Returns as pool_run. */
EXPORT int NAME(triad)(pool *threads, size_t parts, size_t rounds, size_t size, double scale, const real *b,
                       const real *c, real *a);

/* ---- matmul: c (m, n) = a (m, k) times b (k, n), slowest rung first -------------------------------------------- */

/* matmul_loops.c */
EXPORT void NAME(matmul_ijk)(size_t m, size_t k, size_t n, const real *a, const real *b, real *c);
EXPORT void NAME(matmul_ikj)(size_t m, size_t k, size_t n, const real *a, const real *b, real *c);
EXPORT void NAME(matmul_blocked)(size_t m, size_t k, size_t n, const real *a, const real *b, real *c);
EXPORT void NAME(matmul_restrict)(size_t m, size_t k, size_t n, const real *restrict a, const real *restrict b,
                                  real *restrict c);

/* The tile of c that stays in registers: of 32 registers 16 hold the tile, 2 a row of b and 1 a number of a; of 16
   registers 12 hold the tile. */
#if !defined(TILE_ROWS) /* a test may ask for another machine's */
#if SIMD_BYTES == 64 || defined(__aarch64__)
#define TILE_ROWS 8
#else
#define TILE_ROWS 6
#endif
#endif
#define TILE_VECTORS 2
#define TILE_COLUMNS (TILE_VECTORS * SIMD_BYTES / (int)sizeof(real))

/* What happens to a finished tile of c while it is still in registers. */
typedef struct {
    const real *bias;           /* (n,): added to every row; NULL for none */
    enum activation activation; /* IDENTITY, RELU, LEAKY_RELU */
} NAME(epilogue);

/* A factor by its strides, so that a transpose is only another way of walking the same memory: element (i, j) is at
   values[i * row + j * column]; one of the two strides is 1. */
typedef struct {
    const real *values;
    size_t row, column;
} NAME(strided);

/* matmul_packed.c: rows [row_begin, row_end) and columns [column_begin, column_end) of c (m, n, contiguous), on one
   thread. The edges are multiples of the register block, or m and n. */
void NAME(matmul_tile)(size_t k, size_t n, NAME(strided) a, NAME(strided) b, real *c, size_t row_begin, size_t row_end,
                       size_t column_begin, size_t column_end, NAME(epilogue) last, void *workspace);

/* matmul_packed.c: as many of these columns of c (1, n) as fill whole groups of registers; b's rows are contiguous.
   Returns the first column that is left to do. */
size_t NAME(matmul_row)(size_t k, NAME(strided) a, NAME(strided) b, real *c, size_t column_begin, size_t column_end,
                        NAME(epilogue) last);

/* matmul_packed.c: c (rows, columns <= TILE_COLUMNS, n from one row to the next) = or += a (rows, depth) times a packed
   panel of b: depth rows of TILE_COLUMNS numbers, or of half as many where that is enough for the columns. */
void NAME(matmul_panel)(size_t rows, size_t depth, NAME(strided) a, const real *panel, real *c, size_t n,
                        size_t columns, int added);

/* matmul_threads.c: the same, c cut into one rectangle for each thread. Returns as pool_run. */
int NAME(matmul_any)(pool *threads, size_t m, size_t k, size_t n, NAME(strided) a, NAME(strided) b, real *c,
                     NAME(epilogue) last);

/* The rungs as Python calls them; packed is the last on one thread. nn is ab, tn is aᵀb with a (k, m), nt is abᵀ with
   b (n, k). 0, or -1 where memory cannot be had. */
EXPORT int NAME(matmul_packed)(pool *threads, size_t m, size_t k, size_t n, const real *a, const real *b, real *c);
EXPORT int NAME(matmul_nn)(pool *threads, size_t m, size_t k, size_t n, const real *a, const real *b, real *c);
EXPORT int NAME(matmul_tn)(pool *threads, size_t m, size_t k, size_t n, const real *a, const real *b, real *c);
EXPORT int NAME(matmul_nt)(pool *threads, size_t m, size_t k, size_t n, const real *a, const real *b, real *c);

/* ---- activations.c: each beside its derivative; (rows, columns) all -------------------------------------------- */

/* output may be z itself, and grad_z may be grad_output itself; nothing else may overlap. */
#define DECLARE_ACTIVATION(name)                                                                                   \
    EXPORT void NAME(name)(size_t rows, size_t columns, const real *z, real *output);                              \
    EXPORT void NAME(name##_backward)(size_t rows, size_t columns, const real *grad_output, const real *z,         \
                                      const real *output, real *grad_z)
DECLARE_ACTIVATION(identity);
DECLARE_ACTIVATION(relu);
DECLARE_ACTIVATION(leaky_relu);
DECLARE_ACTIVATION(sigmoid);
DECLARE_ACTIVATION(tanh_activation); /* math.h has taken tanh */
DECLARE_ACTIVATION(softmax);

typedef void (*NAME(activation_function))(size_t rows, size_t columns, const real *z, real *output);
typedef void (*NAME(activation_backward_function))(size_t rows, size_t columns, const real *grad_output,
                                                   const real *z, const real *output, real *grad_z);
NAME(activation_function) NAME(activation_by_number)(enum activation which);
NAME(activation_backward_function) NAME(activation_backward_by_number)(enum activation which);

/* ---- losses.c: each beside its gradient with respect to the first argument, (rows, columns) -------------------- */

/* The values are added up in double whatever `real` is. labels: (rows,), each from 0 to columns - 1. */
EXPORT double NAME(mean_squared_error)(size_t rows, size_t columns, const real *outputs, const real *targets);
EXPORT void NAME(mean_squared_error_backward)(size_t rows, size_t columns, const real *outputs, const real *targets,
                                              real *grad);
EXPORT double NAME(softmax_cross_entropy)(size_t rows, size_t columns, const real *logits, const int64_t *labels);
EXPORT void NAME(softmax_cross_entropy_backward)(size_t rows, size_t columns, const real *logits,
                                                 const int64_t *labels, real *grad);
EXPORT double NAME(sigmoid_cross_entropy)(size_t rows, size_t columns, const real *logits, const real *targets);
EXPORT void NAME(sigmoid_cross_entropy_backward)(size_t rows, size_t columns, const real *logits,
                                                 const real *targets, real *grad);
EXPORT double NAME(hinge)(size_t rows, size_t columns, const real *scores, const int64_t *labels);
EXPORT void NAME(hinge_backward)(size_t rows, size_t columns, const real *scores, const int64_t *labels, real *grad);

/* Fused: the exponentials are computed once for the loss and its gradient. Returns the loss. */
EXPORT double NAME(softmax_cross_entropy_fused)(size_t rows, size_t columns, const real *logits,
                                                const int64_t *labels, real *grad);

/* Any loss and its gradient; y is labels or targets, as the loss takes them. */
double NAME(loss_by_number)(enum loss which, size_t rows, size_t columns, const real *outputs, const void *y,
                            real *grad);

/* The first row whose label is not in 0 … columns - 1, or rows where all are. */
EXPORT size_t NAME(first_bad_label)(size_t rows, size_t columns, const int64_t *labels);

/* ---- dense.c: y = xW + b; x (batch, in), w (in, out), b (out,), y (batch, out) --------------------------------- */

/* Forward: the bias added in the matmul's epilogue, and the activation too where it goes element by element; softmax,
   sigmoid and tanh follow in a pass of their own. */
EXPORT int NAME(dense_forward)(pool *threads, size_t batch, size_t in, size_t out, const real *x, const real *w,
                               const real *b, int activation, real *y);

/* Backward: grad_w = xᵀ grad_y, grad_b = column sums of grad_y, grad_x = grad_y wᵀ (left out where it is NULL). */
EXPORT int NAME(dense_backward)(pool *threads, size_t batch, size_t in, size_t out, const real *x, const real *w,
                                const real *grad_y, real *grad_w, real *grad_b, real *grad_x);

/* What one call per op needs beside the products. values: (rows, columns). */
EXPORT void NAME(add_bias)(size_t rows, size_t columns, const real *bias, real *values);
EXPORT void NAME(column_sums)(size_t rows, size_t columns, const real *values, real *sums);
EXPORT void NAME(multiply)(size_t size, const real *a, const real *b, real *product); /* product may be a or b */
EXPORT void NAME(add)(size_t size, const real *a, const real *b, real *sum);          /* sum may be a or b */

/* ---- convolution: y = x correlated with w, plus b; slowest rung first ------------------------------------------ */

/* convolution_loops.c */
EXPORT void NAME(conv2d_direct)(const convolution *s, size_t batch, const real *x, const real *w, const real *b,
                                real *y);

/* convolution_gemm.c. columns: (channels * kernel_height * kernel_width, out_height * out_width), the windows of one
   image. Each returns 0, or -1 where memory cannot be had. */
EXPORT int NAME(conv2d_im2col)(pool *threads, const convolution *s, size_t batch, const real *x, const real *w,
                               const real *b, real *columns, real *y);
EXPORT int NAME(conv2d_implicit)(pool *threads, const convolution *s, size_t batch, const real *x, const real *w,
                                 const real *b, real *y);

/* convolution_winograd.c: F(2x2, 3x3) and F(4x4, 3x3) on one thread. What they cannot do, the rung below does: other
   kernels than 3 x 3, other strides than 1, and more channels than the working space holds. */
EXPORT int NAME(conv2d_winograd2)(pool *threads, const convolution *s, size_t batch, const real *x, const real *w,
                                  const real *b, real *y);
EXPORT int NAME(conv2d_winograd4)(pool *threads, const convolution *s, size_t batch, const real *x, const real *w,
                                  const real *b, real *y);

/* convolution.c: on all threads, by what is fastest for these sizes; and both gradients. grad_x may be NULL. */
EXPORT int NAME(conv2d_threads)(pool *threads, const convolution *s, size_t batch, const real *x, const real *w,
                                const real *b, real *y);
EXPORT int NAME(conv2d_backward)(pool *threads, const convolution *s, size_t batch, const real *grad_y, const real *x,
                                 const real *w, real *grad_w, real *grad_b, real *grad_x);

/* Images side by side: a block is LANES images, (size, LANES), where size counts the numbers of one image. So every
   number of an image lies in a SIMD register beside the same number of its neighbours, and whatever is computed for one
   image is computed for all of them at once, however narrow the image is. Lanes without an image hold zeros. */

/* lanes.c: between a block of up to LANES images, one after the other, and the same side by side. */
void NAME(to_lanes)(size_t images, size_t size, const real *x, real *lanes);
void NAME(from_lanes)(size_t images, size_t size, const real *lanes, real *x);
/* The same for a whole batch, blocks one after the other, on all threads. */
int NAME(batch_to_lanes)(pool *threads, size_t batch, size_t size, const real *x, real *lanes);
int NAME(batch_from_lanes)(pool *threads, size_t batch, size_t size, const real *lanes, real *x);

/* convolution_lanes.c: on blocks side by side, on all threads. Each returns as pool_run. The bias may be NULL. */
int NAME(lanes_forward)(pool *threads, const convolution *s, size_t blocks, const real *x, const real *w,
                        const real *b, enum activation activation, real *y);
int NAME(lanes_backward_data)(pool *threads, const convolution *s, size_t blocks, const real *grad_y, const real *w,
                              real *grad_x);
/* added: whether grad_w and grad_b hold sums already. */
int NAME(lanes_backward_weights)(pool *threads, const convolution *s, size_t blocks, const real *grad_y,
                                 const real *x, int added, real *grad_w, real *grad_b);

/* convolution.c: the faster of this and Winograd. grad_x may be NULL. */
int NAME(conv2d_lanes)(pool *threads, const convolution *s, size_t blocks, const real *x, const real *w,
                       const real *b, enum activation activation, real *y);
int NAME(conv2d_lanes_backward)(pool *threads, const convolution *s, size_t blocks, const real *grad_y, const real *x,
                                const real *w, int added, real *grad_w, real *grad_b, real *grad_x);

/* convolution_winograd.c: whether Winograd can do these sizes; then as the functions of
   convolution_lanes.c, and on images one after the other. */
int NAME(winograd_can)(const convolution *s, size_t outputs);
int NAME(winograd_lanes_forward)(pool *threads, const convolution *s, size_t blocks, const real *x, const real *w,
                                 const real *b, enum activation activation, real *y);
int NAME(winograd_lanes_backward_data)(pool *threads, const convolution *s, size_t blocks, const real *grad_y,
                                       const real *w, real *grad_x);
int NAME(winograd_forward)(pool *threads, const convolution *s, size_t outputs, size_t parts, size_t batch,
                           const real *x, const real *w, const real *b, real *y);

/* Channels side by side (channels.h): how images lie that a network is to judge, unless they fill the lanes.

   What happens to a convolution's sums before they are stored: b is added; where there is a gamma, they are normalised
   by these statistics; skip, which lies as y does, is added unless it is NULL; then the activation (IDENTITY, RELU,
   LEAKY_RELU). */
typedef struct {
    const real *b;
    const real *gamma, *beta, *mean, *variance;
    double epsilon;
    const real *skip;
    enum activation activation;
} NAME(ending);

/* channels.c: a batch one after the other to its channels side by side, and back; size: of a plane. Each returns as
   pool_run. Of how, batch_norm_channels reads neither b nor skip. */
int NAME(batch_to_channels)(pool *threads, size_t batch, size_t channels, size_t size, const real *x, real *lanes);
int NAME(batch_from_channels)(pool *threads, size_t batch, size_t channels, size_t size, const real *lanes, real *x);
int NAME(batch_norm_channels)(pool *threads, size_t batch, size_t channels, size_t size, const real *x,
                              const NAME(ending) * how, real *y);

/* convolution_channels.c: by the faster way. plain: whether x lies one image after the other; then not by Winograd. */
int NAME(conv2d_channels)(pool *threads, const convolution *s, size_t batch, int plain, const real *x, const real *w,
                          const NAME(ending) * how, real *y);

/* winograd_channels.c: whether it can do these sizes, and is faster; and the convolution. */
int NAME(winograd_channels_worth)(const convolution *s, size_t batch);
int NAME(winograd_channels)(pool *threads, const convolution *s, size_t batch, const real *x, const real *w,
                            const NAME(ending) * how, real *y);

/* ---- pooling.c: a plane is one channel of one image ------------------------------------------------------------- */

/* indices: where in its plane each maximum was, the first of equals; the last of several NaN, which count as the largest. */
EXPORT int NAME(max_pool2d)(pool *threads, const pooling *s, size_t planes, const real *x, real *y, int64_t *indices);
EXPORT int NAME(max_pool2d_backward)(pool *threads, const pooling *s, size_t planes, const real *grad_y,
                                     const int64_t *indices, real *grad_x);
EXPORT int NAME(average_pool2d)(pool *threads, const pooling *s, size_t planes, const real *x, real *y);
EXPORT int NAME(average_pool2d_backward)(pool *threads, const pooling *s, size_t planes, const real *grad_y,
                                         real *grad_x);

/* The first of `count` indices that is not in 0 … size - 1, or count where all are. */
EXPORT size_t NAME(first_bad_index)(size_t count, size_t size, const int64_t *indices);

/* ---- batch_norm.c: x (batch, channels, size), size = height * width or 1 ----------------------------------------- */

/* training: by the batch's own mean and variance, which are also mixed into the running ones; else by the running ones.
   mean, inverse: (channels,), what was subtracted, and 1 / sqrt(variance + epsilon), for the way back.
   whole: NULL, or, where other processes have rows of the batch, too, what all rows have: on the way forward the count,
   then mean and sum of squared deviations, (channels,) each; on the way back what batch_norm_sums gives. */
EXPORT int NAME(batch_norm)(pool *threads, size_t batch, size_t channels, size_t size, const real *x,
                            const real *gamma, const real *beta, real *running_mean, real *running_var, int training,
                            double momentum, double epsilon, double *whole, real *y, double *mean, double *inverse);
EXPORT int NAME(batch_norm_backward)(pool *threads, size_t batch, size_t channels, size_t size, const real *grad_y,
                                     const real *x, const real *gamma, int training, double *mean, double *inverse,
                                     double *whole, real *grad_x, real *grad_gamma, real *grad_beta);

/* moments: mean and sum of squared deviations of these rows; sums: of dy, and of dy times x - mean rounded to x's type.
   Both (2, channels). */
EXPORT int NAME(batch_norm_moments)(pool *threads, size_t batch, size_t channels, size_t size, const real *x,
                                    double *moments);
EXPORT int NAME(batch_norm_sums)(pool *threads, size_t batch, size_t channels, size_t size, const real *grad_y,
                                 const real *x, double *mean, double *sums);

/* ---- optimizers.c: p (size,) changed in place by its gradient g ------------------------------------------------ */

EXPORT void NAME(sgd)(size_t size, real *p, const real *g, real *velocity, double learning_rate, double momentum,
                      int nesterov, double weight_decay); /* velocity may be NULL where momentum is 0 */
EXPORT void NAME(rmsprop)(size_t size, real *p, const real *g, real *square_average, double learning_rate,
                          double alpha, double epsilon, double weight_decay);
EXPORT void NAME(adam)(size_t size, real *p, const real *g, real *first_moment, real *second_moment,
                       double step_size, double beta1, double beta2, double root_correction, double epsilon,
                       double weight_decay); /* step_size = rate / (1 - beta1^t), root_correction = sqrt(1 - beta2^t) */

/* The optimizer of this step; which of the numbers count depends on the kind. */
typedef struct {
    int kind;     /* enum optimizer */
    int nesterov; /* SGD */
    double learning_rate, weight_decay;
    double momentum;             /* SGD */
    double alpha;                /* RMSProp */
    double epsilon;              /* RMSProp, Adam */
    double beta1, beta2;         /* Adam */
    double step_size, root_correction; /* Adam; see NAME(adam) */
} optimizer_step;

/* One parameter's share of the optimizer's step, on all threads. Returns as pool_run. */
int NAME(optimize)(pool *threads, const optimizer_step *how, size_t size, real *p, const real *g, real *first,
                   real *second);

EXPORT size_t NAME(optimizer_step_bytes)(void); /* for Python to compare with what it thinks they are */

/* ---- pooling_lanes.c, batch_norm_lanes.c: of images side by side, planes of all blocks ---------------------------- */

/* indices: as large as y, for the way back. The activation is applied to y, and by the way back to grad_y. */
int NAME(max_pool_lanes)(pool *threads, const pooling *s, size_t planes, const real *x, enum activation activation,
                         real *y, real *indices);
int NAME(max_pool_lanes_backward)(pool *threads, const pooling *s, size_t planes, const real *grad_y, const real *y,
                                  enum activation activation, real *indices, real *grad_x);
int NAME(average_pool_lanes)(pool *threads, const pooling *s, size_t planes, const real *x, real *y);
int NAME(average_pool_lanes_backward)(pool *threads, const pooling *s, size_t planes, const real *grad_y,
                                      real *grad_x);

/* As batch_norm; tracking: whether the running statistics are changed. grad_x may be grad_y. */
int NAME(batch_norm_lanes)(pool *threads, size_t batch, size_t channels, size_t size, const real *x, const real *gamma,
                           const real *beta, real *running_mean, real *running_var, int training, int tracking,
                           double momentum, double epsilon, enum activation activation, real *y, double *mean,
                           double *inverse);
int NAME(batch_norm_lanes_backward)(pool *threads, size_t batch, size_t channels, size_t size, const real *grad_y,
                                    const real *x, const real *y, const real *gamma, int training,
                                    enum activation activation, double *mean, double *inverse, real *grad_x,
                                    real *grad_gamma, real *grad_beta);

/* ---- network.c: a network in one call ------------------------------------------------------------------------------ */

enum operation_kind {
    ARRANGE, CONVOLVE, MAX_POOL, AVERAGE_POOL, NORMALISE, ACTIVATE, FLATTEN, CONNECT, DROP, FORK, JOIN, OPERATIONS
};

/* One operation and the memory that it needs for the largest batch, all of it the caller's. What an operation has no use
   for is 0 or NULL. grad_input is NULL, too, where nobody needs it. What the optimizer keeps of each parameter is
   velocity, or square average, or first and second moment; NULL where it keeps nothing. */
typedef struct {
    int kind, activation; /* the activation is applied to the output */
    int lanes;            /* whether the input lies side by side, or in rows */
    size_t in, out;       /* numbers of one image */
    size_t channels, mask, w_size, b_size;
    convolution conv;
    pooling window;
    real *w, *b, *grad_w, *grad_b; /* or gamma and beta */
    real *w_first, *w_second, *b_first, *b_second;
    real *running_mean, *running_var;
    double momentum, epsilon;
    double *mean, *inverse;  /* (channels,), from the forward pass to the way back */
    const real *input;       /* NULL: x */
    real *output;
    const real *skip;        /* JOIN: what FORK saw; FORK: dL/d(output of JOIN) */
    real *indices;           /* MAX_POOL */
    real *mask_lanes;        /* DROP, of images side by side */
    real *grad_output, *grad_z, *grad_input;
} NAME(operation);

/* x: (batch, numbers), images one after the other; masks: NULL, or one (batch, numbers) for each DROP. In training, and
   on the way back, any stretch of the operations can be a call of its own after the one before. Returns as pool_run. */
EXPORT int NAME(network_forward)(pool *threads, size_t count, const NAME(operation) * operations, size_t batch,
                                 const real *x, const real *const *masks, int training, int tracking);

/* From the last operation's grad_output back into every grad_w and grad_b, after a forward pass in training. */
EXPORT int NAME(network_backward)(pool *threads, size_t count, const NAME(operation) * operations, size_t batch,
                                  const real *x, const real *const *masks);

/* Forward by the batch's own statistics, loss, backward, and the optimizer unless it is NULL. y: labels or targets, as the
   loss takes them; *loss is the loss before the step. Returns 0; -1 where memory cannot be had; or 1 + the first row
   whose label is out of range, before anything was changed. */
EXPORT int64_t NAME(network_step)(pool *threads, size_t count, const NAME(operation) * operations, int loss_kind,
                                  size_t batch, const real *x, const void *y, const real *const *masks, int tracking,
                                  const optimizer_step *optimizer, double *loss);

EXPORT size_t NAME(operation_bytes)(void);

/* Up to so many images lie with their channels side by side while they are judged, even where that leaves lanes empty:
   the memory of operations on images has to have room for them. */
EXPORT size_t NAME(few_images)(void);

/* The class of each row: the column of its largest output, the first of several; a NaN counts as the largest. With one
   column, 1 where the output is above the threshold, else 0. classes: (rows,). */
EXPORT void NAME(predict)(size_t rows, size_t columns, const real *outputs, double threshold, int64_t *classes);

#endif /* GROUNDUP_BITS */
#endif
