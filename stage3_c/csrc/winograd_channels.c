/* Winograd's F(4x4, 3x3) of images with their channels side by side (see channels.h, convolution_winograd.c).

   V (tiles, channels) times U (channels, filters) for each of the 36 places: the tiles are the rows of the product, so
   that a single image of 14 x 14 numbers, which has 16 tiles, leaves no register of it empty; and all the transforms
   load and store whole registers. Every part makes what it needs of U and V for itself, so no part waits for another. */

#include "channels.h"
#include "winograd_tiles.h"

enum {
    SIDE = 4,
    PLACES = MOST * MOST,
    CACHED = 512 << 10,            /* bytes of V and M that stay in the second-level cache */
    MOST_WEIGHTS_BYTES = 64 << 20, /* of U */
    /* What a register costs in multiply-adds, about: the transforms of one tile, and of the kernels. */
    TRANSFORM = 160,
};

typedef struct {
    const convolution *s;
    size_t batch, tiles_down, tiles_across;
    const real *x, *w;
    const NAME(ending) * how;
    real *y, *u;
    size_t u_part; /* numbers of U that a part has room for */
    rectangles cut;
} winograd;

static size_t tiles_along(size_t outputs) { return (outputs + SIDE - 1) / SIDE; }

/* Numbers from one place to the next: no power of two (see place_size in convolution_winograd.c). */
static size_t place_size(size_t rows, size_t columns) { return rows * columns + LANES; }

/* How many tiles are taken at a time. */
static size_t tiles_at_a_time(const convolution *s) {
    const size_t one = PLACES * (groups_of(s->channels) * LANES + TILE_COLUMNS) * sizeof(real);
    const size_t fitting = CACHED / one / TILE_ROWS * TILE_ROWS;
    return fitting > TILE_ROWS ? fitting : TILE_ROWS;
}

/* Where a tile lies in its image. */
typedef struct {
    size_t image, down, across;
} spot;

static spot find_spot(const winograd *job, size_t tile) {
    const size_t each = job->tiles_down * job->tiles_across, here = tile % each;
    return (spot){tile / each, here / job->tiles_across * SIDE, here % job->tiles_across * SIDE};
}

/* u[place * u_place + c * width + filter] of the filters of a panel. */
static void transform_weights(const winograd *job, size_t panel, size_t registers, real *u) {
    const convolution *s = job->s;
    const size_t width = registers * LANES, place = place_size(s->channels, width);
    for (size_t v = 0; v < registers; v++) {
        const size_t first = (panel + v) * LANES, count = smaller(LANES, s->filters - first);
        for (size_t c = 0; c < s->channels; c++) {
            vector kernel[9], places[PLACES];
            kernels_beside(count, job->w + (first * s->channels + c) * 9, s->channels * 9, 0, kernel);
            kernel_to_places(SIDE, kernel, places);
            for (size_t p = 0; p < PLACES; p++) store(u + p * place + c * width + v * LANES, places[p]);
        }
    }
}

/* v[place * v_place + tile * depth + c], depth being whole registers of channels. */
static void transform_inputs(const winograd *job, size_t begin, size_t end, real *v) {
    const convolution *s = job->s;
    const size_t groups = groups_of(s->channels), depth = groups * LANES, place = place_size(end - begin, depth);
    const ptrdiff_t height = (ptrdiff_t)s->height, width = (ptrdiff_t)s->width;
    for (size_t t = begin; t < end; t++) {
        const spot at = find_spot(job, t);
        const ptrdiff_t top = (ptrdiff_t)at.down - (ptrdiff_t)s->padding_rows;
        const ptrdiff_t left = (ptrdiff_t)at.across - (ptrdiff_t)s->padding_columns;
        const int inside = top >= 0 && left >= 0 && top + MOST <= height && left + MOST <= width;
        const real *x = job->x + at.image * groups * s->height * s->width * LANES;
        for (size_t g = 0; g < groups; g++, x += height * width * LANES) {
            real *to = v + (t - begin) * depth + g * LANES;
            if (inside) {
                inputs_to_places(SIDE, x + (top * width + left) * LANES, (size_t)width * LANES, to, place);
            } else {
                vector framed[PLACES];
                frame_tile(x, height, width, top, left, MOST, framed);
                inputs_to_places(SIDE, (const real *)framed, MOST * LANES, to, place);
            }
        }
    }
}

/* y of one register of filters, from m[place * m_place + tile * row]. */
static void transform_outputs(const winograd *job, size_t begin, size_t end, size_t group, const real *m, size_t place,
                              size_t row) {
    const convolution *s = job->s;
    constants by;
    find_constants(job->how, group, s->filters, &by);
    const int normalised = job->how->gamma != NULL;
    const enum activation activation = job->how->activation;
    for (size_t t = begin; t < end; t++, m += row) {
        const spot at = find_spot(job, t);
        const size_t first = (at.image * groups_of(s->filters) + group) * s->out_height * s->out_width +
                             at.down * s->out_width + at.across;
        const size_t down = smaller(SIDE, s->out_height - at.down), across = smaller(SIDE, s->out_width - at.across);
        real *y = job->y + first * LANES;
        const real *skip = job->how->skip != NULL ? job->how->skip + first * LANES : NULL;
        vector tile[SIDE * SIDE];
        places_to_outputs(SIDE, m, place, tile);
        for (size_t i = 0; i < down; i++) {
            for (size_t j = 0; j < across; j++) {
                const size_t to = (i * s->out_width + j) * LANES;
                store(y + to, end_sum(tile[i * SIDE + j], &by, normalised, skip != NULL ? skip + to : NULL, activation));
            }
        }
    }
}

/* A share of the filters for a share of the tiles. */
static void convolve(void *argument, size_t part, size_t parts, void *workspace) {
    (void)parts;
    const winograd *job = argument;
    const convolution *s = job->s;
    const size_t depth = groups_of(s->channels) * LANES, most = tiles_at_a_time(s);
    const rectangle mine = find_rectangle(job->cut, part, groups_of(s->filters),
                                          job->batch * job->tiles_down * job->tiles_across);
    for (size_t begin = mine.begin; begin < mine.end; begin += most) {
        const size_t end = smaller(begin + most, mine.end), tiles = end - begin, v_place = place_size(tiles, depth);
        real *const v = workspace, *const m = v + PLACES * v_place;
        real *u = job->u + part * job->u_part;
        transform_inputs(job, begin, end, v);
        for (size_t panel = mine.band_begin; panel < mine.band_end; panel += TILE_VECTORS) {
            const size_t registers = smaller(TILE_VECTORS, mine.band_end - panel), width = registers * LANES;
            const size_t u_place = place_size(s->channels, width), m_place = place_size(tiles, width);
            if (begin == mine.begin) transform_weights(job, panel, registers, u);
            for (size_t p = 0; p < PLACES; p++)
                NAME(matmul_panel)(tiles, s->channels, (NAME(strided)){v + p * v_place, depth, 1}, u + p * u_place,
                                   m + p * m_place, width, width, 0);
            for (size_t r = 0; r < registers; r++)
                transform_outputs(job, begin, end, panel + r, m + r * LANES, m_place, width);
            u += PLACES * u_place;
        }
    }
}

/* Numbers of U for so many registers of filters. */
static size_t u_numbers(const convolution *s, size_t registers) {
    return PLACES * (s->channels * LANES * registers + LANES * ((registers + TILE_VECTORS - 1) / TILE_VECTORS));
}

/* Whether a chunk fits into the workspace, and U into what it may have. */
static int fits(const convolution *s) {
    const size_t depth = groups_of(s->channels) * LANES;
    if (depth >= WORKSPACE_BYTES / sizeof(real) / PLACES) return 0;
    const size_t tiles = tiles_at_a_time(s);
    return PLACES * (place_size(tiles, depth) + place_size(tiles, TILE_COLUMNS)) * sizeof(real) <= WORKSPACE_BYTES &&
           groups_of(s->filters) <= MOST_WEIGHTS_BYTES / sizeof(real) / PLACES / LANES / (s->channels + 1);
}

int NAME(winograd_channels_worth)(const convolution *s, size_t batch) {
    enum { CHANNELS = 16, DIRECT = 9 };
    if (s->kernel_height != 3 || s->kernel_width != 3 || s->stride_rows != 1 || s->stride_columns != 1) return 0;
    if (s->channels < CHANNELS || !fits(s)) return 0;
    const size_t tiles = batch * tiles_along(s->out_height) * tiles_along(s->out_width);
    return DIRECT * batch * s->out_height * s->out_width > PLACES * tiles + TRANSFORM;
}

int NAME(winograd_channels)(pool *threads, const convolution *s, size_t batch, const real *x, const real *w,
                            const NAME(ending) * how, real *y) {
    winograd job = {.s = s, .batch = batch, .tiles_down = tiles_along(s->out_height),
                    .tiles_across = tiles_along(s->out_width), .x = x, .w = w, .how = how, .y = y};
    const size_t registers = groups_of(s->filters), tiles = batch * job.tiles_down * job.tiles_across;
    const size_t each = PLACES * s->channels + TRANSFORM;
    const size_t parts = threads_worth(threads, registers * tiles * each);
    job.cut = cut(parts, registers, tiles, each, groups_of(s->channels) * TRANSFORM, s->channels * TRANSFORM);
    job.u_part = u_numbers(s, (registers + job.cut.bands - 1) / job.cut.bands);
    if (job.u_part > SIZE_MAX / 2 / sizeof(real) / parts) return -1;
    borrowed *memory = pool_borrow(threads, parts * job.u_part * sizeof(real));
    if (memory == NULL) return -1;
    job.u = borrowed_memory(memory);
    const int status = pool_run(threads, convolve, &job, parts);
    pool_return(threads, memory);
    return status;
}
