/* The Winograd rungs: a 3 x 3 convolution with fewer multiplications.

   F(2x2, 3x3) computes a tile of 2 x 2 outputs from 4 x 4 inputs with 16 multiplications a channel in place of 36, and
   F(4x4, 3x3) 4 x 4 outputs from 6 x 6 inputs with 36 in place of 144. The tiles of inputs overlap by two. For each of
   the 16 or 36 places of a transformed tile there is one matrix product over the channels:

       V = BT d B       for each channel and tile     (winograd.h has the transforms)
       U = G g GT       for each filter and channel, once a call
       M = U V          (filters, channels) times (channels, tiles), for each place
       y = AT M A       for each filter and tile

   The transforms add and subtract numbers of unlike size, so the result has more rounding than the plain sum.

   A register holds one place of LANES tiles. On images side by side these are the same tile of LANES images, and loading
   and storing are plain. On images one after the other they are neighbouring tiles, and each load collects them. So many
   tiles are taken at a time that V and M stay in the second-level cache. After Lavin and Gray, "Fast Algorithms for
   Convolutional Neural Networks" (2015). */

#include "winograd_tiles.h"

enum {
    PANEL_BYTES = 4096 * TILE_COLUMNS,      /* what matmul_tile may need of the workspace */
    CACHED = 640 << 10,                     /* bytes of V and M that stay in the second-level cache */
    MOST_WEIGHTS_BYTES = 64 << 20,          /* of U */
};

typedef struct {
    const convolution *s;
    size_t outputs;                  /* the side of a tile of y: 2 or 4 */
    size_t rows, depth;              /* planes of y, planes of x */
    ptrdiff_t height, width;         /* of a plane of x */
    ptrdiff_t out_height, out_width; /* of a plane of y */
    ptrdiff_t padding_rows, padding_columns;
    size_t tiles_down, tiles_across, tiles; /* of a plane; of all images, or of all blocks */
    size_t images;                   /* one after the other; 0: side by side */
    const real *w;
    size_t w_row, w_depth;           /* from one plane of y, of x, to the next */
    int flipped;                     /* the kernel is read from its end: backward to x */
    const real *b;
    enum activation activation;
    const real *x;
    real *y, *u;                     /* u: (places, rows, depth), each place u_place numbers after the one before */
    size_t u_place;
} winograd;

static size_t side(size_t outputs) { return outputs + 2; }

/* How many registers full of tiles are taken at a time. */
static size_t tiles_at_a_time(const winograd *job) {
    const size_t one = side(job->outputs) * side(job->outputs) * (job->rows + job->depth) * SIMD_BYTES;
    const size_t fitting = CACHED / one / TILE_VECTORS * TILE_VECTORS;
    return fitting > TILE_VECTORS ? fitting : TILE_VECTORS;
}

/* Numbers from one place to the next in V and in M: one register more than there is, because distances that are powers
   of two would put all places of a tile into the same few lines of the first-level cache. */
static size_t place_size(size_t planes, size_t registers) { return (planes * registers + 1) * LANES; }

/* ---- U: the weights' transform ------------------------------------------------------------------------------------ */

static void transform_weights(void *argument, size_t part, size_t parts, void *workspace) {
    (void)workspace;
    const winograd *job = argument;
    const size_t a = side(job->outputs);
    for (size_t r = job->rows * part / parts; r < job->rows * (part + 1) / parts; r++) {
        for (size_t q = 0; q < job->depth; q += LANES) {
            const size_t count = smaller(LANES, job->depth - q);
            vector kernel[9], places[MOST * MOST];
            kernels_beside(count, job->w + r * job->w_row + q * job->w_depth, job->w_depth, job->flipped, kernel);
            if (job->outputs == 4)
                kernel_to_places(4, kernel, places);
            else
                kernel_to_places(2, kernel, places);
            for (size_t place = 0; place < a * a; place++) {
                real *to = job->u + place * job->u_place + r * job->depth + q;
                if (count == LANES)
                    store(to, places[place]);
                else
                    copy_few(to, (const real *)&places[place], count);
            }
        }
    }
}

/* ---- V: the inputs' transform ------------------------------------------------------------------------------------- */

/* Where a tile lies: its first output, and the first input of its window, which may be outside the image. */
typedef struct {
    size_t image;                 /* or block */
    ptrdiff_t down, across;       /* of y */
    ptrdiff_t top, left;          /* of x */
    int inside, whole;            /* whether all inputs are, and whether all outputs count */
} spot;

static spot find_spot(const winograd *job, size_t tile) {
    const size_t each = job->tiles_down * job->tiles_across, here = tile % each;
    const ptrdiff_t m = (ptrdiff_t)job->outputs, a = m + 2;
    spot at = {tile / each, (ptrdiff_t)(here / job->tiles_across) * m, (ptrdiff_t)(here % job->tiles_across) * m, 0, 0,
               0, 0};
    at.top = at.down - job->padding_rows;
    at.left = at.across - job->padding_columns;
    at.inside = at.top >= 0 && at.left >= 0 && at.top + a <= job->height && at.left + a <= job->width;
    at.whole = at.down + m <= job->out_height && at.across + m <= job->out_width;
    return at;
}

/* Side by side: register t of the chunk is one tile of a block. */
static void lanes_inputs(const winograd *job, size_t first, size_t registers, real *v) {
    const size_t a = side(job->outputs), place = place_size(job->depth, registers);
    const ptrdiff_t plane = job->height * job->width;
    for (size_t t = 0; t < registers; t++) {
        const spot at = find_spot(job, first + t);
        const real *x = job->x + (ptrdiff_t)(at.image * job->depth) * plane * LANES;
        const ptrdiff_t corner = (at.top * job->width + at.left) * LANES;
        for (size_t q = 0; q < job->depth; q++, x += plane * LANES) {
            real *to = v + (q * registers + t) * LANES;
            const real *tile = x + corner;
            size_t row = (size_t)job->width * LANES;
            vector framed[MOST * MOST];
            if (!at.inside) {
                frame_tile(x, job->height, job->width, at.top, at.left, (ptrdiff_t)a, framed);
                tile = (const real *)framed;
                row = a * LANES;
            }
            if (job->outputs == 4)
                inputs_to_places(4, tile, row, to, place);
            else
                inputs_to_places(2, tile, row, to, place);
        }
    }
}

/* to[(i * a + j) * LANES + l] = from[l][i * row[l] + j]: LANES tiles with their numbers of one place beside each other. */
static inline __attribute__((always_inline)) void collect(const size_t a, const real *const *from, const size_t *row,
                                                          real *to) {
    for (size_t i = 0; i < a; i++) {
        for (size_t l = 0; l < LANES && LANES < FOUR; l++) {
            for (size_t j = 0; j < a; j++) to[(i * a + j) * LANES + l] = from[l][i * row[l] + j];
        }
        for (size_t l = 0; l + FOUR <= LANES; l += FOUR) {
            const real *r[FOUR];
            UNROLL for (size_t k = 0; k < FOUR; k++) r[k] = from[l + k] + i * row[l + k];
            transpose_rows(to + (i * a) * LANES + l, LANES, r[0], r[1], r[2], r[3]);
            if (a == MOST)
                transpose_rows(to + (i * a + 2) * LANES + l, LANES, r[0] + 2, r[1] + 2, r[2] + 2, r[3] + 2);
        }
    }
}

/* One after the other: register t of the chunk is LANES neighbouring tiles; beyond the last tile they are zeros. */
static void row_inputs(const winograd *job, size_t first, size_t registers, real *v) {
    const size_t a = side(job->outputs), place = place_size(job->depth, registers);
    const ptrdiff_t plane = job->height * job->width;
    for (size_t t = 0; t < registers; t++) {
        spot at[LANES];
        const size_t begin = (first + t) * LANES, count = smaller(LANES, job->tiles - begin);
        for (size_t l = 0; l < count; l++) at[l] = find_spot(job, begin + l);
        /* Cleared once for all channels: each writes the same places, and nobody those of the padding or of missing
           tiles. */
        real framed[LANES][MOST * MOST] = {{0}};
        real collected[MOST * MOST * LANES];
        for (size_t q = 0; q < job->depth; q++) {
            const real *from[LANES];
            size_t row[LANES];
            for (size_t l = 0; l < LANES; l++) {
                from[l] = framed[l];
                row[l] = a;
                if (l >= count) continue;
                const real *x = job->x + (ptrdiff_t)(at[l].image * job->depth + q) * plane;
                if (at[l].inside) {
                    from[l] = x + at[l].top * job->width + at[l].left;
                    row[l] = (size_t)job->width;
                    continue;
                }
                for (ptrdiff_t i = 0; i < (ptrdiff_t)a; i++) {
                    const ptrdiff_t down = at[l].top + i;
                    if (down < 0 || down >= job->height) continue;
                    for (ptrdiff_t j = 0; j < (ptrdiff_t)a; j++) {
                        const ptrdiff_t across = at[l].left + j;
                        if (across >= 0 && across < job->width)
                            framed[l][i * (ptrdiff_t)a + j] = x[down * job->width + across];
                    }
                }
            }
            real *to = v + (q * registers + t) * LANES;
            if (job->outputs == 4) {
                collect(6, from, row, collected);
                inputs_to_places(4, collected, 6 * LANES, to, place);
            } else {
                collect(4, from, row, collected);
                inputs_to_places(2, collected, 4 * LANES, to, place);
            }
        }
    }
}

/* ---- y: the outputs' transform ------------------------------------------------------------------------------------ */

static inline void any_outputs(const winograd *job, const real *m, size_t place, size_t r, vector *y) {
    const real bias = job->b != NULL ? job->b[r] : 0;
    if (job->outputs == 4) {
        places_to_outputs(4, m, place, y);
        UNROLL for (size_t i = 0; i < 16; i++) y[i] = activate(y[i] + bias, job->activation);
    } else {
        places_to_outputs(2, m, place, y);
        UNROLL for (size_t i = 0; i < 4; i++) y[i] = activate(y[i] + bias, job->activation);
    }
}

static void lanes_outputs(const winograd *job, size_t first, size_t registers, const real *m) {
    const ptrdiff_t plane = job->out_height * job->out_width, size = (ptrdiff_t)job->outputs;
    for (size_t t = 0; t < registers; t++) {
        const spot at = find_spot(job, first + t);
        real *y = job->y + ((ptrdiff_t)(at.image * job->rows) * plane + at.down * job->out_width + at.across) * LANES;
        /* a tile at the edge has outputs beyond it, which are computed and not stored */
        const ptrdiff_t down = size < job->out_height - at.down ? size : job->out_height - at.down;
        const ptrdiff_t across = size < job->out_width - at.across ? size : job->out_width - at.across;
        for (size_t r = 0; r < job->rows; r++, y += plane * LANES) {
            vector tile[16];
            any_outputs(job, m + (r * registers + t) * LANES, place_size(job->rows, registers), r, tile);
            for (ptrdiff_t i = 0; i < down; i++) {
                for (ptrdiff_t j = 0; j < across; j++)
                    store(y + (i * job->out_width + j) * LANES, tile[i * size + j]);
            }
        }
    }
}

static void row_outputs(const winograd *job, size_t first, size_t registers, const real *m) {
    const ptrdiff_t plane = job->out_height * job->out_width, size = (ptrdiff_t)job->outputs;
    for (size_t t = 0; t < registers; t++) {
        const size_t begin = (first + t) * LANES, count = smaller(LANES, job->tiles - begin);
        spot at[LANES];
        for (size_t l = 0; l < count; l++) at[l] = find_spot(job, begin + l);
        for (size_t r = 0; r < job->rows; r++) {
            vector tile[16];
            any_outputs(job, m + (r * registers + t) * LANES, place_size(job->rows, registers), r, tile);
            real turned[LANES][16]; /* each tile's outputs in a row */
            for (size_t l = 0; l < LANES && LANES < FOUR; l++) {
                for (size_t i = 0; i < (size_t)(size * size); i++) turned[l][i] = ((const real *)tile)[i * LANES + l];
            }
            for (size_t l = 0; l + FOUR <= LANES; l += FOUR) {
                for (size_t i = 0; i < (size_t)(size * size); i += FOUR)
                    transpose_square(&turned[l][i], 16, (const real *)tile + i * LANES + l, LANES);
            }
            for (size_t l = 0; l < count; l++) {
                real *y = job->y + (ptrdiff_t)(at[l].image * job->rows + r) * plane + at[l].down * job->out_width +
                          at[l].across;
                if (at[l].whole && size == 4) {
                    for (ptrdiff_t i = 0; i < 4; i++) *(four *)(y + i * job->out_width) = *(four *)&turned[l][4 * i];
                    continue;
                }
                for (ptrdiff_t i = 0; i < size && at[l].down + i < job->out_height; i++) {
                    for (ptrdiff_t j = 0; j < size && at[l].across + j < job->out_width; j++)
                        y[i * job->out_width + j] = turned[l][i * size + j];
                }
            }
        }
    }
}

/* ---- the whole ---------------------------------------------------------------------------------------------------- */

/* A share of all registers full of tiles. */
static void convolve_tiles(void *argument, size_t part, size_t parts, void *workspace) {
    const winograd *job = argument;
    const size_t a = side(job->outputs);
    /* Side by side a tile is a register by itself; one after the other a register holds LANES tiles. */
    const size_t total = job->images > 0 ? (job->tiles + LANES - 1) / LANES : job->tiles;
    const size_t begin = total * part / parts, end = total * (part + 1) / parts, most = tiles_at_a_time(job);
    real *const v = (real *)workspace + PANEL_BYTES / sizeof(real);
    for (size_t first = begin; first < end; first += most) {
        const size_t registers = smaller(most, end - first), columns = registers * LANES;
        const size_t place_v = place_size(job->depth, registers), place_m = place_size(job->rows, registers);
        real *const m = v + a * a * place_v;
        if (job->images > 0)
            row_inputs(job, first, registers, v);
        else
            lanes_inputs(job, first, registers, v);
        for (size_t place = 0; place < a * a; place++)
            /* Without an epilogue: bias and activation belong to the outputs, and these are still transformed. */
            NAME(matmul_tile)(job->depth, columns,
                              (NAME(strided)){job->u + place * job->u_place, job->depth, 1},
                              (NAME(strided)){v + place * place_v, columns, 1}, m + place * place_m, 0, job->rows, 0,
                              columns, (NAME(epilogue)){NULL, IDENTITY}, workspace);
        if (job->images > 0)
            row_outputs(job, first, registers, m);
        else
            lanes_outputs(job, first, registers, m);
    }
}

/* The largest chunk that convolve_tiles may take has to fit into the workspace. */
static int fits(const convolution *s, size_t outputs) {
    const size_t places = side(outputs) * side(outputs), planes = s->channels + s->filters;
    if (planes >= WORKSPACE_BYTES / SIMD_BYTES) return 0;
    const size_t chunk = places * (planes * TILE_VECTORS + 2) * SIMD_BYTES;
    return (chunk < CACHED + 2 * places * SIMD_BYTES ? CACHED + 2 * places * SIMD_BYTES : chunk) + PANEL_BYTES <=
               WORKSPACE_BYTES &&
           s->filters <= MOST_WEIGHTS_BYTES / sizeof(real) / places / s->channels;
}

int NAME(winograd_can)(const convolution *s, size_t outputs) {
    return s->kernel_height == 3 && s->kernel_width == 3 && s->stride_rows == 1 && s->stride_columns == 1 &&
           fits(s, outputs);
}

static int run_winograd(pool *threads, winograd *job, size_t parts) {
    const size_t m = job->outputs, images = job->images > 0 ? job->images : job->tiles; /* job->tiles: blocks until now */
    job->tiles_down = ((size_t)job->out_height + m - 1) / m;
    job->tiles_across = ((size_t)job->out_width + m - 1) / m;
    job->tiles = images * job->tiles_down * job->tiles_across;
    job->u_place = job->rows * job->depth + LANES; /* no power of two: see place_size */
    borrowed *memory = pool_borrow(threads, side(m) * side(m) * job->u_place * sizeof(real));
    if (memory == NULL) return -1;
    job->u = borrowed_memory(memory);
    int status = pool_run(threads, transform_weights, job, smaller(parts, job->rows));
    if (status == 0) status = pool_run(threads, convolve_tiles, job, smaller(parts, job->tiles));
    pool_return(threads, memory);
    return status;
}

static winograd forward_job(const convolution *s, size_t outputs, const real *x, const real *w, const real *b,
                            enum activation activation, real *y) {
    return (winograd){
        .s = s, .outputs = outputs, .rows = s->filters, .depth = s->channels,
        .height = (ptrdiff_t)s->height, .width = (ptrdiff_t)s->width,
        .out_height = (ptrdiff_t)s->out_height, .out_width = (ptrdiff_t)s->out_width,
        .padding_rows = (ptrdiff_t)s->padding_rows, .padding_columns = (ptrdiff_t)s->padding_columns,
        .w = w, .w_row = 9 * s->channels, .w_depth = 9, .b = b, .activation = activation, .x = x, .y = y,
    };
}

int NAME(winograd_forward)(pool *threads, const convolution *s, size_t outputs, size_t parts, size_t batch,
                           const real *x, const real *w, const real *b, real *y) {
    winograd job = forward_job(s, outputs, x, w, b, IDENTITY, y);
    job.images = batch;
    return run_winograd(threads, &job, parts);
}

int NAME(winograd_lanes_forward)(pool *threads, const convolution *s, size_t blocks, const real *x, const real *w,
                                 const real *b, enum activation activation, real *y) {
    winograd job = forward_job(s, 4, x, w, b, activation, y);
    job.tiles = blocks;
    return run_winograd(threads, &job, pool_threads(threads));
}

/* dx is dy, framed by 2 - padding, correlated with each kernel turned by half a turn. */
int NAME(winograd_lanes_backward_data)(pool *threads, const convolution *s, size_t blocks, const real *grad_y,
                                       const real *w, real *grad_x) {
    winograd job = {
        .s = s, .outputs = 4, .rows = s->channels, .depth = s->filters,
        .height = (ptrdiff_t)s->out_height, .width = (ptrdiff_t)s->out_width,
        .out_height = (ptrdiff_t)s->height, .out_width = (ptrdiff_t)s->width,
        .padding_rows = 2 - (ptrdiff_t)s->padding_rows, .padding_columns = 2 - (ptrdiff_t)s->padding_columns,
        .tiles = blocks, .w = w, .w_row = 9, .w_depth = 9 * s->channels, .flipped = 1, .activation = IDENTITY,
        .x = grad_y, .y = grad_x,
    };
    return run_winograd(threads, &job, pool_threads(threads));
}

static int one_thread(pool *threads, const convolution *s, size_t outputs, size_t batch, const real *x, const real *w,
                      const real *b, real *y) {
    return NAME(winograd_forward)(threads, s, outputs, 1, batch, x, w, b, y);
}

int NAME(conv2d_winograd2)(pool *threads, const convolution *s, size_t batch, const real *x, const real *w,
                           const real *b, real *y) {
    if (!NAME(winograd_can)(s, 2)) return NAME(conv2d_implicit)(threads, s, batch, x, w, b, y);
    return one_thread(threads, s, 2, batch, x, w, b, y);
}

int NAME(conv2d_winograd4)(pool *threads, const convolution *s, size_t batch, const real *x, const real *w,
                           const real *b, real *y) {
    if (!NAME(winograd_can)(s, 4)) return NAME(conv2d_winograd2)(threads, s, batch, x, w, b, y);
    return one_thread(threads, s, 4, batch, x, w, b, y);
}
