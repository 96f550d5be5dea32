/* A network: forward, backward, and the whole training step, each in one call on memory that the caller keeps.

   What Python does between two calls, some microseconds each time, is as long as a small layer's arithmetic; here there
   is one call for a step. The layers come as a list of operations, in the order of the forward pass; a residual block is
   a FORK before its layers and a JOIN after them. Until they are flattened, images lie side by side (lanes.c); then a
   batch is a matrix with a row for each of them. Python plans which memory each operation writes to (plan.py). Each
   operation keeps its activation's output only: every derivative here can be told from it.

   Images that are only to be judged may be too few to fill the lanes. Then their channels lie side by side (channels.h),
   and so they do where the channels leave no lane empty, because then what follows a convolution, batch normalisation by
   the running statistics and the end of a residual block, is done to its sums while they are in registers. */

#include "vectors.h"

typedef struct {
    pool *threads;
    size_t batch, blocks;
    const real *x;
    const real *const *masks;
    int training, tracking;
    int channels; /* until they are flattened, not the images but their channels lie side by side */
} pass;

/* Up to so many images that are only judged lie with their channels side by side: more would fill the lanes. */
enum { FEW = LANES * 3 / 4 };

static int in_tile(enum activation which) { return which == IDENTITY || which == RELU || which == LEAKY_RELU; }

/* ---- element by element, shared out over the threads --------------------------------------------------------------- */

enum elementwise { ADD, MULTIPLY, COPY, ACTIVATE_ALL, ACTIVATE_BACK };

typedef struct {
    enum elementwise what;
    enum activation which;
    size_t rows, columns;
    const real *a, *b;
    real *to;
} elements;

static void elementwise_share(void *argument, size_t part, size_t parts, void *workspace) {
    (void)workspace;
    const elements *job = argument;
    const size_t first = job->rows * part / parts, rows = job->rows * (part + 1) / parts - first;
    const size_t begin = first * job->columns, size = rows * job->columns;
    if (size == 0) return;
    const real *a = job->a + begin, *b = job->b != NULL ? job->b + begin : NULL;
    real *to = job->to + begin;
    switch (job->what) {
    case ADD:
        NAME(add)(size, a, b, to);
        if (job->which != IDENTITY) NAME(activation_by_number)(job->which)(rows, job->columns, to, to);
        break;
    case MULTIPLY:
        NAME(multiply)(size, a, b, to);
        break;
    case COPY:
        memcpy(to, a, size * sizeof(real));
        break;
    case ACTIVATE_ALL:
        NAME(activation_by_number)(job->which)(rows, job->columns, a, to);
        break;
    case ACTIVATE_BACK: /* every derivative here can be told from the output */
        NAME(activation_backward_by_number)(job->which)(rows, job->columns, a, b, b, to);
        break;
    }
}

/* In how many registers numbers lie of which an image has `size` in so many channels. */
static size_t registers_of(const pass *way, size_t channels, size_t size) {
    const size_t groups = (channels + LANES - 1) / LANES;
    return way->channels ? way->batch * groups * (size / channels) : way->blocks * size;
}

static int elementwise(const pass *way, const NAME(operation) * it, enum elementwise what, size_t size, const real *a,
                    const real *b, real *to) {
    elements job = {what, (enum activation)it->activation, way->batch, size, a, b, to};
    if (it->lanes) { /* rows mean nothing here: shares of whole registers */
        job.rows = registers_of(way, it->kind == CONVOLVE ? it->conv.filters : it->channels, size);
        job.columns = LANES;
    }
    const size_t parts = smaller(threads_worth(way->threads, job.rows * job.columns), job.rows);
    return pool_run(way->threads, elementwise_share, &job, parts);
}

/* ---- forward ------------------------------------------------------------------------------------------------------- */

/* From one after the other to as the images lie now; numbers of the operation's input. */
static int arrange(const pass *way, const NAME(operation) * it, const real *x, real *to) {
    if (!way->channels) return NAME(batch_to_lanes)(way->threads, way->batch, it->in, x, to);
    return NAME(batch_to_channels)(way->threads, way->batch, it->channels, it->in / it->channels, x, to);
}

static const real *dropout_mask(const pass *way, const NAME(operation) * it, int *status) {
    const real *mask = way->masks[it->mask];
    if (!it->lanes) return mask;
    *status = arrange(way, it, mask, it->mask_lanes);
    return it->mask_lanes;
}

static int forward_one(const pass *way, const NAME(operation) * it) {
    const enum activation which = (enum activation)it->activation;
    const enum activation inside = in_tile(which) ? which : IDENTITY;
    const real *input = it->input != NULL ? it->input : way->x;
    const size_t planes = it->lanes ? registers_of(way, it->channels, it->channels) : 0;
    int status = 0;
    switch ((enum operation_kind)it->kind) {
    case ARRANGE:
        return arrange(way, it, input, it->output);
    case CONVOLVE:
        status = NAME(conv2d_lanes)(way->threads, &it->conv, way->blocks, input, it->w, it->b, inside, it->output);
        break;
    case MAX_POOL:
        status = NAME(max_pool_lanes)(way->threads, &it->window, planes, input, inside, it->output, it->indices);
        break;
    case AVERAGE_POOL:
        return NAME(average_pool_lanes)(way->threads, &it->window, planes, input, it->output);
    case NORMALISE:
        if (it->lanes) {
            status = NAME(batch_norm_lanes)(way->threads, way->batch, it->channels, it->in / it->channels, input, it->w,
                                            it->b, it->running_mean, it->running_var, way->training, way->tracking,
                                            it->momentum, it->epsilon, inside, it->output, it->mean, it->inverse);
            break;
        }
        /* A momentum of 0 leaves the running statistics as they are. */
        return NAME(batch_norm)(way->threads, way->batch, it->channels, 1, input, it->w, it->b, it->running_mean,
                                it->running_var, way->training, way->tracking ? it->momentum : 0, it->epsilon,
                                NULL, it->output, it->mean, it->inverse);
    case ACTIVATE:
        return elementwise(way, it, ACTIVATE_ALL, it->in, input, NULL, it->output);
    case FLATTEN:
        if (!it->lanes) return elementwise(way, it, COPY, it->in, input, NULL, it->output);
        if (way->channels)
            return NAME(batch_from_channels)(way->threads, way->batch, it->channels, it->in / it->channels, input,
                                             it->output);
        return NAME(batch_from_lanes)(way->threads, way->batch, it->in, input, it->output);
    case CONNECT:
        return NAME(dense_forward)(way->threads, way->batch, it->in, it->out, input, it->w, it->b,
                                   (int)which, it->output);
    case DROP: {
        if (way->masks == NULL) return elementwise(way, it, COPY, it->in, input, NULL, it->output);
        const real *mask = dropout_mask(way, it, &status);
        return status != 0 ? status : elementwise(way, it, MULTIPLY, it->in, input, mask, it->output);
    }
    case FORK:
        return 0;
    case JOIN:
        return elementwise(way, it, ADD, it->in, input, it->skip != NULL ? it->skip : way->x, it->output);
    case OPERATIONS:
        break;
    }
    if (status == 0 && inside != which) status = elementwise(way, it, ACTIVATE_ALL, it->out, it->output, NULL, it->output);
    return status;
}

/* The running statistics of a batch normalisation into what happens to each sum. */
static void normalise_by(NAME(ending) * how, const NAME(operation) * it) {
    how->gamma = it->w;
    how->beta = it->b;
    how->mean = it->running_mean;
    how->variance = it->running_var;
    how->epsilon = it->epsilon;
}

/* Whether the first operation, which arranges the images, is left out because a convolution reads them as they are. */
static int reads_plain(size_t count, const NAME(operation) * operations, size_t batch) {
    return count > 1 && operations[0].kind == ARRANGE && operations[1].kind == CONVOLVE &&
           !NAME(winograd_channels_worth)(&operations[1].conv, batch);
}

/* Whether channels side by side leave no lane empty; then they need no more memory than images side by side. */
static int channels_fill_lanes(size_t count, const NAME(operation) * operations, size_t batch) {
    for (size_t i = reads_plain(count, operations, batch) ? 2 : 0; i < count; i++) {
        if (operations[i].lanes && operations[i].channels % LANES != 0) return 0;
    }
    return 1;
}

/* Of channels side by side, operation i and those after it that it does on its way: next is the first that is left to do. */
static int forward_channels(const pass *way, size_t count, const NAME(operation) * operations, size_t i, size_t *next) {
    const NAME(operation) *it = &operations[i], *after = i + 1 < count ? it + 1 : NULL;
    const real *input = it->input;
    const int plain = i == 0 && reads_plain(count, operations, way->batch);
    int status;
    *next = i + 1;
    if (plain) {
        it = after;
        after = ++*next < count ? it + 1 : NULL;
        input = way->x;
    }
    if (it->kind != CONVOLVE && !(it->kind == NORMALISE && it->lanes)) return forward_one(way, it);
    const NAME(operation) *last = it;
    NAME(ending) how = {.b = it->b, .activation = IDENTITY};
    if (it->kind == NORMALISE) normalise_by(&how, it);
    if (it->kind == CONVOLVE && last->activation == IDENTITY && after != NULL && after->kind == NORMALISE) {
        normalise_by(&how, after);
        last = after;
        after = ++*next < count ? last + 1 : NULL;
    }
    if (it->kind == CONVOLVE && last->activation == IDENTITY && after != NULL && after->kind == JOIN) {
        how.skip = after->skip;
        last = after;
        ++*next;
    }
    if (in_tile((enum activation)last->activation)) how.activation = (enum activation)last->activation;
    if (it->kind == CONVOLVE)
        status = NAME(conv2d_channels)(way->threads, &it->conv, way->batch, plain, input, it->w, &how, last->output);
    else
        status = NAME(batch_norm_channels)(way->threads, way->batch, it->channels, it->in / it->channels, input, &how,
                                           it->output);
    if (status == 0 && how.activation != (enum activation)last->activation)
        status = elementwise(way, last, ACTIVATE_ALL, last->out, last->output, NULL, last->output);
    return status;
}

static int forward(const pass *way, size_t count, const NAME(operation) * operations) {
    int status = 0;
    for (size_t i = 0, next; i < count && status == 0; i = next) {
        next = i + 1;
        status = way->channels ? forward_channels(way, count, operations, i, &next) : forward_one(way, &operations[i]);
        pool_note(way->threads);
    }
    return status;
}

/* ---- backward ------------------------------------------------------------------------------------------------------ */

/* From dL/d(output) to dL/d(what the activation was applied to), in grad_z, which may be grad_output. */
static int through_activation(const pass *way, const NAME(operation) * it) {
    if (it->activation == IDENTITY) return 0;
    return elementwise(way, it, ACTIVATE_BACK, it->out, it->grad_output, it->output, it->grad_z);
}

static int backward_one(const pass *way, const NAME(operation) * it) {
    const enum activation which = (enum activation)it->activation;
    const real *input = it->input != NULL ? it->input : way->x;
    const real *slope = which == IDENTITY ? it->grad_output : it->grad_z;
    const size_t planes = it->lanes ? way->blocks * it->channels : 0;
    int status = 0;
    if (it->grad_output == NULL) return 0; /* nothing before this operation has parameters */
    switch ((enum operation_kind)it->kind) {
    case CONVOLVE:
        status = through_activation(way, it);
        if (status != 0) return status;
        return NAME(conv2d_lanes_backward)(way->threads, &it->conv, way->blocks, slope, input, it->w, 0, it->grad_w,
                                           it->grad_b, it->grad_input);
    case NORMALISE:
        if (!it->lanes)
            return NAME(batch_norm_backward)(way->threads, way->batch, it->channels, 1, it->grad_output, input, it->w,
                                             way->training, it->mean, it->inverse, NULL, it->grad_input, it->grad_w,
                                             it->grad_b);
        if (!in_tile(which)) status = through_activation(way, it);
        if (status != 0) return status;
        return NAME(batch_norm_lanes_backward)(
            way->threads, way->batch, it->channels, it->in / it->channels, in_tile(which) ? it->grad_output : slope,
            input, it->output, it->w, way->training, in_tile(which) ? which : IDENTITY, it->mean, it->inverse,
            it->grad_input, it->grad_w, it->grad_b);
    case CONNECT:
        status = through_activation(way, it);
        if (status != 0) return status;
        return NAME(dense_backward)(way->threads, way->batch, it->in, it->out, input, it->w, slope, it->grad_w,
                                    it->grad_b, it->grad_input);
    case JOIN:
        return it->grad_z != NULL ? through_activation(way, it) : 0;
    default:
        break;
    }
    if (it->grad_input == NULL) return 0;
    switch ((enum operation_kind)it->kind) {
    case MAX_POOL:
        return NAME(max_pool_lanes_backward)(way->threads, &it->window, planes, it->grad_output, it->output, which,
                                             it->indices, it->grad_input);
    case AVERAGE_POOL:
        return NAME(average_pool_lanes_backward)(way->threads, &it->window, planes, it->grad_output, it->grad_input);
    case ACTIVATE:
        return elementwise(way, it, ACTIVATE_BACK, it->in, it->grad_output, it->output, it->grad_input);
    case FLATTEN:
        if (!it->lanes) return elementwise(way, it, COPY, it->in, it->grad_output, NULL, it->grad_input);
        return NAME(batch_to_lanes)(way->threads, way->batch, it->in, it->grad_output, it->grad_input);
    case DROP: {
        if (way->masks == NULL) return elementwise(way, it, COPY, it->in, it->grad_output, NULL, it->grad_input);
        const real *mask = it->lanes ? it->mask_lanes : way->masks[it->mask];
        return elementwise(way, it, MULTIPLY, it->in, it->grad_output, mask, it->grad_input);
    }
    case FORK:
        return elementwise(way, it, ADD, it->in, it->grad_output, it->skip, it->grad_input);
    default:
        return 0;
    }
}

static int backward(const pass *way, size_t count, const NAME(operation) * operations) {
    int status = 0;
    for (size_t i = count; i-- > 0 && status == 0;) {
        status = backward_one(way, &operations[i]);
        pool_note(way->threads);
    }
    return status;
}

/* ---- the calls ----------------------------------------------------------------------------------------------------- */

int NAME(network_forward)(pool *threads, size_t count, const NAME(operation) * operations, size_t batch, const real *x,
                          const real *const *masks, int training, int tracking) {
    const int channels = !training && (batch <= FEW || channels_fill_lanes(count, operations, batch));
    const pass way = {threads, batch, (batch + LANES - 1) / LANES, x, masks, training, tracking, channels};
    return forward(&way, count, operations);
}

/* A pass by the batch's own statistics. tracking: whether the running ones are changed. */
static pass in_training(pool *threads, size_t batch, const real *x, const real *const *masks, int tracking) {
    return (pass){threads, batch, (batch + LANES - 1) / LANES, x, masks, 1, tracking, 0};
}

int NAME(network_backward)(pool *threads, size_t count, const NAME(operation) * operations, size_t batch, const real *x,
                           const real *const *masks) {
    const pass way = in_training(threads, batch, x, masks, 0);
    return backward(&way, count, operations);
}

int64_t NAME(network_step)(pool *threads, size_t count, const NAME(operation) * operations, int loss_kind,
                           size_t batch, const real *x, const void *y, const real *const *masks, int tracking,
                           const optimizer_step *optimizer, double *loss) {
    const NAME(operation) *last = &operations[count - 1];
    const pass way = in_training(threads, batch, x, masks, tracking);
    if (loss_kind == SOFTMAX_CROSS_ENTROPY || loss_kind == HINGE) {
        const size_t bad = NAME(first_bad_label)(batch, last->out, y);
        if (bad < batch) return 1 + (int64_t)bad;
    }
    pool_note(threads);
    if (forward(&way, count, operations) != 0) return -1;
    *loss = NAME(loss_by_number)((enum loss)loss_kind, batch, last->out, last->output, y, last->grad_output);
    pool_note(threads);
    if (backward(&way, count, operations) != 0) return -1;
    for (size_t i = 0; i < count && optimizer != NULL; i++) {
        const NAME(operation) *it = &operations[i];
        if (it->grad_w == NULL) continue;
        if (NAME(optimize)(threads, optimizer, it->w_size, it->w, it->grad_w, it->w_first, it->w_second) != 0) return -1;
        if (NAME(optimize)(threads, optimizer, it->b_size, it->b, it->grad_b, it->b_first, it->b_second) != 0) return -1;
        pool_note(threads);
    }
    return 0;
}

size_t NAME(few_images)(void) { return FEW; }

size_t NAME(operation_bytes)(void) { return sizeof(NAME(operation)); }

void NAME(predict)(size_t rows, size_t columns, const real *outputs, double threshold, int64_t *classes) {
    for (size_t i = 0; i < rows; i++) {
        const real *row = outputs + i * columns;
        size_t largest = 0;
        for (size_t j = 1; j < columns && row[largest] == row[largest]; j++) {
            if (!(row[j] <= row[largest])) largest = j;
        }
        classes[i] = columns == 1 ? row[0] > (real)threshold : (int64_t)largest;
    }
}
