/* A whole training step in one call: forward, loss, backward and the optimizer, on memory that the caller keeps.

   What Python does between two calls, some microseconds each time, is as long as a small layer's arithmetic; here there
   is one call for a step. Each layer keeps its activation's output only: every derivative here can be told from it. */

#include "groundup.h"

static const real *input_of(const NAME(layer) * layer, size_t i, const real *x, const real *const *masks) {
    if (i == 0) return x;
    return masks != NULL ? layer[i - 1].dropped : layer[i - 1].output;
}

int NAME(network_forward)(pool *threads, size_t layers, const NAME(layer) * layer, int activation, size_t batch,
                          const real *x, const real *const *masks) {
    for (size_t i = 0; i < layers; i++) {
        const NAME(layer) *l = &layer[i];
        const int last = i + 1 == layers;
        const int status = NAME(dense_forward)(threads, batch, l->in, l->out, input_of(layer, i, x, masks), l->w, l->b,
                                               last ? IDENTITY : activation, l->output);
        if (status != 0) return status;
        if (masks != NULL && !last) NAME(multiply)(batch * l->out, l->output, masks[i], l->dropped);
        pool_note(threads);
    }
    return 0;
}

/* From dL/d(input of layer i + 1), which is in layer i's grad, to dL/d(xW + b) of layer i, in the same place. */
static void through_activation(const NAME(layer) * l, int activation, size_t batch, const real *mask) {
    if (mask != NULL) NAME(multiply)(batch * l->out, l->grad, mask, l->grad);
    /* relu and leaky_relu ask for the sign of z, which is the sign of the output; the others use the output alone. */
    NAME(activation_backward_by_number)((enum activation)activation)(batch, l->out, l->grad, l->output, l->output,
                                                                     l->grad);
}

static int backward(pool *threads, size_t layers, const NAME(layer) * layer, int activation, size_t batch,
                    const real *x, const real *const *masks) {
    for (size_t i = layers; i-- > 0;) {
        const NAME(layer) *l = &layer[i];
        const int status =
            NAME(dense_backward)(threads, batch, l->in, l->out, input_of(layer, i, x, masks), l->w, l->grad, l->grad_w,
                                 l->grad_b, i > 0 ? layer[i - 1].grad : NULL);
        if (status != 0) return status;
        pool_note(threads);
        if (i > 0) through_activation(&layer[i - 1], activation, batch, masks != NULL ? masks[i - 1] : NULL);
    }
    return 0;
}

typedef struct {
    const optimizer_step *how;
    size_t size;
    real *p, *first, *second;
    const real *g;
} update;

static void update_share(void *argument, size_t part, size_t parts, void *workspace) {
    (void)workspace;
    const update *job = argument;
    const optimizer_step *how = job->how;
    const size_t begin = job->size * part / parts, size = job->size * (part + 1) / parts - begin;
    real *const p = job->p + begin;
    real *const first = job->first != NULL ? job->first + begin : NULL;
    real *const second = job->second != NULL ? job->second + begin : NULL;
    const real *const g = job->g + begin;
    switch ((enum optimizer)how->kind) {
    case SGD:
        NAME(sgd)(size, p, g, first, how->learning_rate, how->momentum, how->nesterov, how->weight_decay);
        break;
    case RMSPROP:
        NAME(rmsprop)(size, p, g, first, how->learning_rate, how->alpha, how->epsilon, how->weight_decay);
        break;
    case ADAM:
        NAME(adam)(size, p, g, first, second, how->step_size, how->beta1, how->beta2, how->root_correction,
                   how->epsilon, how->weight_decay);
        break;
    case OPTIMIZERS:
        break;
    }
}

int NAME(optimize)(pool *threads, const optimizer_step *how, size_t size, real *p, const real *g, real *first,
                   real *second) {
    update job = {how, size, p, first, second, g};
    return pool_run(threads, update_share, &job, threads_worth(threads, size));
}

int64_t NAME(network_step)(pool *threads, size_t layers, const NAME(layer) * layer, int activation, int loss_kind,
                           size_t batch, const real *x, const void *y, const real *const *masks,
                           const optimizer_step *optimizer, double *loss) {
    const NAME(layer) *last = &layer[layers - 1];
    if (loss_kind == SOFTMAX_CROSS_ENTROPY || loss_kind == HINGE) {
        const size_t bad = NAME(first_bad_label)(batch, last->out, y);
        if (bad < batch) return 1 + (int64_t)bad;
    }
    pool_note(threads);
    if (NAME(network_forward)(threads, layers, layer, activation, batch, x, masks) != 0) return -1;
    *loss = NAME(loss_by_number)((enum loss)loss_kind, batch, last->out, last->output, y, last->grad);
    pool_note(threads);
    if (backward(threads, layers, layer, activation, batch, x, masks) != 0) return -1;
    for (size_t i = 0; i < layers && optimizer != NULL; i++) {
        const NAME(layer) *l = &layer[i];
        if (NAME(optimize)(threads, optimizer, l->in * l->out, l->w, l->grad_w, l->w_first, l->w_second) != 0) return -1;
        if (NAME(optimize)(threads, optimizer, l->out, l->b, l->grad_b, l->b_first, l->b_second) != 0) return -1;
        pool_note(threads);
    }
    return 0;
}

size_t NAME(layer_bytes)(void) { return sizeof(NAME(layer)); }

size_t NAME(optimizer_step_bytes)(void) { return sizeof(optimizer_step); }

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
