/* The last convolution rung: all threads, and for each size the way that was found to be fastest; then both gradients. */

#include "channels.h"

/* Found by trying: from how many channels and filters on Winograd wins, up to how many images their channels are put side
   by side even where they leave lanes empty, and how many images are taken at a time then. */
enum { WORTH_WINOGRAD = 16, FEW = LANES * 3 / 4, IMAGES = 16 };

static int worth_winograd(const convolution *s) {
    return s->channels >= WORTH_WINOGRAD && s->filters >= WORTH_WINOGRAD && NAME(winograd_can)(s, 4);
}

static int worth_channels(const convolution *s, size_t batch) {
    return batch <= FEW ||
           (s->channels % LANES == 0 && s->filters % LANES == 0 && NAME(winograd_channels_worth)(s, batch));
}

static size_t image_of_x(const convolution *s) { return s->channels * s->height * s->width; }

static size_t image_of_y(const convolution *s) { return s->filters * s->out_height * s->out_width; }

/* Memory for the images x and y of `blocks` blocks side by side; NULL where it cannot be had. */
static borrowed *borrow_blocks(pool *threads, const convolution *s, size_t blocks) {
    const size_t numbers = image_of_x(s) + image_of_y(s);
    if (numbers >= SIZE_MAX / SIMD_BYTES / blocks) return NULL;
    return pool_borrow(threads, numbers * SIMD_BYTES * blocks);
}

static int forward_in_lanes(pool *threads, const convolution *s, size_t batch, const real *x, const real *w,
                            const real *b, real *y) {
    const size_t at_a_time = smaller(pool_threads(threads), (batch + LANES - 1) / LANES);
    borrowed *memory = borrow_blocks(threads, s, at_a_time);
    if (memory == NULL) return -1;
    real *const x_lanes = borrowed_memory(memory), *const y_lanes = x_lanes + image_of_x(s) * LANES * at_a_time;
    int status = 0;
    for (size_t n = 0; n < batch && status == 0; n += at_a_time * LANES) {
        const size_t images = smaller(at_a_time * LANES, batch - n), blocks = (images + LANES - 1) / LANES;
        status = NAME(batch_to_lanes)(threads, images, image_of_x(s), x + n * image_of_x(s), x_lanes);
        if (status == 0) status = NAME(lanes_forward)(threads, s, blocks, x_lanes, w, b, IDENTITY, y_lanes);
        if (status == 0) status = NAME(batch_from_lanes)(threads, images, image_of_y(s), y_lanes, y + n * image_of_y(s));
    }
    pool_return(threads, memory);
    return status;
}

/* Some images at a time, their channels side by side. */
static int forward_in_channels(pool *threads, const convolution *s, size_t batch, const real *x, const real *w,
                               const real *b, real *y) {
    const size_t x_plane = s->height * s->width, y_plane = s->out_height * s->out_width;
    const size_t at_a_time = smaller(batch, IMAGES);
    const int plain = !NAME(winograd_channels_worth)(s, at_a_time);
    const size_t x_registers = plain ? 0 : groups_of(s->channels) * x_plane;
    const size_t y_registers = groups_of(s->filters) * y_plane;
    if (x_registers + y_registers >= SIZE_MAX / SIMD_BYTES / at_a_time) return -1;
    borrowed *memory = pool_borrow(threads, (x_registers + y_registers) * SIMD_BYTES * at_a_time);
    if (memory == NULL) return -1;
    real *const y_lanes = borrowed_memory(memory), *const x_lanes = y_lanes + y_registers * LANES * at_a_time;
    const NAME(ending) how = {.b = b, .activation = IDENTITY};
    int status = 0;
    for (size_t n = 0; n < batch && status == 0; n += at_a_time) {
        const size_t images = smaller(at_a_time, batch - n);
        const real *from = x + n * image_of_x(s);
        if (!plain) status = NAME(batch_to_channels)(threads, images, s->channels, x_plane, from, x_lanes);
        if (status == 0)
            status = NAME(conv2d_channels)(threads, s, images, plain, plain ? from : x_lanes, w, &how, y_lanes);
        if (status == 0)
            status = NAME(batch_from_channels)(threads, images, s->filters, y_plane, y_lanes, y + n * image_of_y(s));
    }
    pool_return(threads, memory);
    return status;
}

int NAME(conv2d_threads)(pool *threads, const convolution *s, size_t batch, const real *x, const real *w,
                         const real *b, real *y) {
    if (worth_channels(s, batch)) return forward_in_channels(threads, s, batch, x, w, b, y);
    if (worth_winograd(s))
        return NAME(winograd_forward)(threads, s, 4, pool_threads(threads), batch, x, w, b, y);
    return forward_in_lanes(threads, s, batch, x, w, b, y);
}

int NAME(conv2d_lanes)(pool *threads, const convolution *s, size_t blocks, const real *x, const real *w,
                       const real *b, enum activation activation, real *y) {
    if (worth_winograd(s)) return NAME(winograd_lanes_forward)(threads, s, blocks, x, w, b, activation, y);
    return NAME(lanes_forward)(threads, s, blocks, x, w, b, activation, y);
}

int NAME(conv2d_lanes_backward)(pool *threads, const convolution *s, size_t blocks, const real *grad_y, const real *x,
                                const real *w, int added, real *grad_w, real *grad_b, real *grad_x) {
    int status = NAME(lanes_backward_weights)(threads, s, blocks, grad_y, x, added, grad_w, grad_b);
    if (status != 0 || grad_x == NULL) return status;
    if (worth_winograd(s)) return NAME(winograd_lanes_backward_data)(threads, s, blocks, grad_y, w, grad_x);
    return NAME(lanes_backward_data)(threads, s, blocks, grad_y, w, grad_x);
}

/* A block for each thread at a time, side by side, so that no memory of the size of the batch is needed. The gradient
   of x takes the place of x. */
int NAME(conv2d_backward)(pool *threads, const convolution *s, size_t batch, const real *grad_y, const real *x,
                          const real *w, real *grad_w, real *grad_b, real *grad_x) {
    const size_t at_a_time = smaller(pool_threads(threads), (batch + LANES - 1) / LANES);
    borrowed *memory = borrow_blocks(threads, s, at_a_time);
    if (memory == NULL) return -1;
    real *const x_lanes = borrowed_memory(memory), *const y_lanes = x_lanes + image_of_x(s) * LANES * at_a_time;
    int status = 0;
    for (size_t n = 0; n < batch && status == 0; n += at_a_time * LANES) {
        const size_t images = smaller(at_a_time * LANES, batch - n), blocks = (images + LANES - 1) / LANES;
        status = NAME(batch_to_lanes)(threads, images, image_of_x(s), x + n * image_of_x(s), x_lanes);
        if (status == 0) status = NAME(batch_to_lanes)(threads, images, image_of_y(s), grad_y + n * image_of_y(s), y_lanes);
        if (status == 0)
            status = NAME(conv2d_lanes_backward)(threads, s, blocks, y_lanes, x_lanes, w, n > 0, grad_w, grad_b,
                                                 grad_x != NULL ? x_lanes : NULL);
        if (status == 0 && grad_x != NULL)
            status = NAME(batch_from_lanes)(threads, images, image_of_x(s), x_lanes, grad_x + n * image_of_x(s));
    }
    pool_return(threads, memory);
    return status;
}
