/* Convolution of images with their channels side by side (see channels.h): direct, the filters in the lanes.

   A tile is TILE_ROWS neighbouring outputs by two registers of filters. Number k of the sum, k = (c * kernel_height + u)
   * kernel_width + v, lies equally far from the corner of every output's window, so a table of these distances and a
   pointer to each window are all that the loop needs: neither kernels nor strides nor the ends of rows leave part of a
   tile empty. Where there is padding, an image is first copied into a frame of zeros. */

#include "channels.h"

typedef struct {
    const convolution *s;
    size_t batch;
    int plain; /* x as it arrives, (batch, channels, height, width) */
    const real *x, *w;
    const NAME(ending) * how;
    real *y;
    rectangles cut;
    size_t frame_height, frame_width, frame; /* of a plane with its padding; numbers of all planes of an image */
    char *memory;                            /* for each part: distances, weights, frame */
    size_t part_bytes;
} direct;

/* Numbers of x beside each other that belong to one place. */
static size_t beside(const direct *job) { return job->plain ? 1 : LANES; }

static size_t depth_of(const convolution *s) { return s->channels * s->kernel_height * s->kernel_width; }

static size_t round_up(size_t bytes) { return (bytes + 63) / 64 * 64; }

/* The image in its frame, or where it is if there is no padding. */
static const real *framed(const direct *job, size_t n, real *frame) {
    const convolution *s = job->s;
    const size_t planes = job->plain ? s->channels : groups_of(s->channels), row = s->width * beside(job);
    const real *x = job->x + n * planes * s->height * row;
    if (s->padding_rows == 0 && s->padding_columns == 0) return x;
    const size_t frame_row = job->frame_width * beside(job);
    memset(frame, 0, job->frame * sizeof(real));
    for (size_t p = 0; p < planes; p++) {
        real *to = frame + (p * job->frame_height + s->padding_rows) * frame_row + s->padding_columns * beside(job);
        for (size_t i = 0; i < s->height; i++, x += row, to += frame_row) memcpy(to, x, row * sizeof(real));
    }
    return frame;
}

static void find_distances(const direct *job, ptrdiff_t *distances) {
    const convolution *s = job->s;
    const size_t width = beside(job), plane = job->frame_height * job->frame_width * width;
    for (size_t c = 0; c < s->channels; c++) {
        for (size_t u = 0; u < s->kernel_height; u++) {
            for (size_t v = 0; v < s->kernel_width; v++)
                *distances++ = (ptrdiff_t)(c / width * plane + (u * job->frame_width + v) * width + c % width);
        }
    }
}

/* The weights of up to `width` filters from `first` on beside each other, (depth, width). */
static void pack_weights(const direct *job, size_t first, size_t width, real *packed) {
    const size_t depth = depth_of(job->s), filters = smaller(width, job->s->filters - first);
    const real *w = job->w + first * depth;
    size_t f = 0;
    for (; f + FOUR <= filters; f += FOUR) {
        size_t k = 0;
        for (; k + FOUR <= depth; k += FOUR) transpose_square(packed + k * width + f, width, w + f * depth + k, depth);
        for (; k < depth; k++) {
            for (size_t i = f; i < f + FOUR; i++) packed[k * width + i] = w[i * depth + k];
        }
    }
    for (; f < width; f++) {
        for (size_t k = 0; k < depth; k++) packed[k * width + f] = f < filters ? w[f * depth + k] : 0;
    }
}

/* One tile. corners: of the outputs' windows; y: the first output of the first register of filters, and `group` numbers
   on that of the second; skip: beside y, or NULL. rows and registers are constants wherever this is called. */
static inline __attribute__((always_inline)) void tile(const size_t rows, const size_t registers, size_t depth,
                                                       const ptrdiff_t *distances, const real *const *corners,
                                                       const real *w, const constants *by, const NAME(ending) * how,
                                                       const real *skip, size_t group, real *y) {
    const real *from[TILE_ROWS];
    vector sum[TILE_ROWS][TILE_VECTORS];
    UNROLL for (size_t r = 0; r < rows; r++) {
        from[r] = corners[r];
        UNROLL for (size_t v = 0; v < registers; v++) sum[r][v] = (vector){0};
    }
    for (size_t k = 0; k < depth; k++, w += registers * LANES) {
        vector weights[TILE_VECTORS];
        UNROLL for (size_t v = 0; v < registers; v++) weights[v] = load(w + v * LANES);
        const ptrdiff_t at = distances[k];
        UNROLL for (size_t r = 0; r < rows; r++) {
            const real number = from[r][at];
            UNROLL for (size_t v = 0; v < registers; v++) sum[r][v] += number * weights[v];
        }
    }
    UNROLL for (size_t v = 0; v < registers; v++) {
        UNROLL for (size_t r = 0; r < rows; r++) {
            const size_t at = v * group + r * LANES;
            store(y + at, end_sum(sum[r][v], by + v, how->gamma != NULL, skip != NULL ? skip + at : NULL,
                                  how->activation));
        }
    }
}

/* The tile with its sizes as constants. Returns how many outputs it took. */
static size_t any_tile(size_t rows, size_t registers, size_t depth, const ptrdiff_t *distances,
                       const real *const *corners, const real *w, const constants *by, const NAME(ending) * how,
                       const real *skip, size_t group, real *y) {
#define TILE(taken)                                                                                                    \
    do {                                                                                                               \
        if (registers == TILE_VECTORS)                                                                                 \
            tile(taken, TILE_VECTORS, depth, distances, corners, w, by, how, skip, group, y);                          \
        else                                                                                                           \
            tile(taken, 1, depth, distances, corners, w, by, how, skip, group, y);                                     \
        return taken;                                                                                                  \
    } while (0)
    if (rows >= TILE_ROWS) TILE(TILE_ROWS);
    if (rows >= 4) TILE(4);
    if (rows >= 2) TILE(2);
    TILE(1);
#undef TILE
}

/* Outputs begin … end - 1 of image n, for one panel of filters. */
static void some_outputs(const direct *job, const real *image, size_t n, size_t begin, size_t end, size_t panel,
                         size_t registers, const ptrdiff_t *distances, const real *w) {
    const convolution *s = job->s;
    const size_t outputs = s->out_height * s->out_width, depth = depth_of(s);
    const size_t first = (n * groups_of(s->filters) + panel) * outputs * LANES;
    constants by[TILE_VECTORS];
    for (size_t v = 0; v < registers; v++) find_constants(job->how, panel + v, s->filters, &by[v]);
    for (size_t at = begin, taken; at < end; at += taken) {
        const real *corners[TILE_ROWS];
        const size_t rows = smaller(TILE_ROWS, end - at);
        size_t i = at / s->out_width, j = at % s->out_width;
        for (size_t r = 0; r < rows; r++) {
            corners[r] = image + (i * s->stride_rows * job->frame_width + j * s->stride_columns) * beside(job);
            if (++j == s->out_width) {
                j = 0;
                i++;
            }
        }
        taken = any_tile(rows, registers, depth, distances, corners, w, by, job->how,
                         job->how->skip != NULL ? job->how->skip + first + at * LANES : NULL, outputs * LANES,
                         job->y + first + at * LANES);
    }
}

static void correlate(void *argument, size_t part, size_t parts, void *workspace) {
    (void)parts;
    (void)workspace;
    const direct *job = argument;
    const convolution *s = job->s;
    const size_t outputs = s->out_height * s->out_width, depth = depth_of(s);
    const rectangle mine = find_rectangle(job->cut, part, groups_of(s->filters), job->batch * outputs);
    if (mine.begin == mine.end || mine.band_begin == mine.band_end) return;
    ptrdiff_t *const distances = (ptrdiff_t *)(void *)(job->memory + part * job->part_bytes);
    real *const weights = (real *)(void *)((char *)distances + round_up(depth * sizeof(ptrdiff_t)));
    real *const frame = weights + (mine.band_end - mine.band_begin) * LANES * depth;
    find_distances(job, distances);
    for (size_t panel = mine.band_begin; panel < mine.band_end; panel += TILE_VECTORS)
        pack_weights(job, panel * LANES, smaller(TILE_VECTORS, mine.band_end - panel) * LANES,
                     weights + (panel - mine.band_begin) * LANES * depth);
    for (size_t at = mine.begin, end; at < mine.end; at = end) {
        const size_t n = at / outputs, before = n * outputs;
        end = smaller(before + outputs, mine.end);
        const real *const image = framed(job, n, frame);
        for (size_t panel = mine.band_begin; panel < mine.band_end; panel += TILE_VECTORS)
            some_outputs(job, image, n, at - before, end - before, panel,
                         smaller(TILE_VECTORS, mine.band_end - panel), distances,
                         weights + (panel - mine.band_begin) * LANES * depth);
    }
}

int NAME(conv2d_channels)(pool *threads, const convolution *s, size_t batch, int plain, const real *x, const real *w,
                          const NAME(ending) * how, real *y) {
    if (!plain && NAME(winograd_channels_worth)(s, batch))
        return NAME(winograd_channels)(threads, s, batch, x, w, how, y);
    direct job = {.s = s, .batch = batch, .plain = plain, .x = x, .w = w, .how = how, .y = y};
    const size_t depth = depth_of(s), registers = groups_of(s->filters);
    const size_t outputs = batch * s->out_height * s->out_width;
    const size_t parts = threads_worth(threads, registers * outputs * depth);
    job.frame_height = s->height + 2 * s->padding_rows;
    job.frame_width = s->width + 2 * s->padding_columns;
    const size_t planes = plain ? s->channels : groups_of(s->channels) * LANES;
    job.frame = job.frame_height > SIZE_MAX / job.frame_width / planes ? SIZE_MAX
                                                                       : job.frame_height * job.frame_width * planes;
    job.cut = cut(parts, registers, outputs, depth, 0, depth * LANES);
    const size_t band = (registers + job.cut.bands - 1) / job.cut.bands;
    const size_t most = SIZE_MAX / 4 / sizeof(real) / parts;
    if (job.frame > most || depth > most / (band + 1) / LANES) return -1;
    const int padded = s->padding_rows > 0 || s->padding_columns > 0;
    job.part_bytes = round_up(depth * sizeof(ptrdiff_t)) +
                     round_up((band * LANES * depth + (padded ? job.frame : 0)) * sizeof(real));
    borrowed *memory = pool_borrow(threads, parts * job.part_bytes);
    if (memory == NULL) return -1;
    job.memory = borrowed_memory(memory);
    const int status = pool_run(threads, correlate, &job, parts);
    pool_return(threads, memory);
    return status;
}
