/* How the parameters move once their gradients are known.

       SGD        p -= learning_rate * gradient, optionally with momentum: a running sum of gradients
       RMSProp    each parameter's step is divided by the running size of its own gradient
       Adam       momentum and RMSProp together, both corrected for having started at zero

   Weight decay adds weight_decay * p to the gradient first (the L2 form, as in torch.optim). All three follow
   torch.optim's definitions; each changes p (size,) and its buffers (size,) in place.

   A few operations for every number that is read and written: memory is the limit, so each optimizer goes over its
   arrays once, where NumPy makes one pass for each operation. The hyperparameters come in double and are made `real`
   once: a double in the loop would drag all of it into double. */

#include <math.h>

#include "groundup.h"

/* gradient + weight_decay * p; the gradient itself where there is no decay, for 0 * inf would be NaN. */
static inline real slope_of(real gradient, real p, real weight_decay) {
    return weight_decay != 0 ? gradient + weight_decay * p : gradient;
}

/* Stochastic gradient descent. Same as torch.optim.SGD(lr, momentum, nesterov=…, weight_decay=…).
   g = gradient + weight_decay * p;  v = momentum * v + g;  p -= learning_rate * v
   nesterov: p -= learning_rate * (g + momentum * v), a look ahead along the momentum
   velocity: v, zeros at the start; where momentum is 0 it is neither read nor written, and may be NULL. */
void NAME(sgd)(size_t size, real *restrict p, const real *restrict g, real *restrict velocity, double learning_rate,
               double momentum, int nesterov, double weight_decay) {
    const real rate = (real)learning_rate, keep = (real)momentum, decay = (real)weight_decay;
    if (momentum == 0) {
        for (size_t i = 0; i < size; i++) p[i] -= rate * slope_of(g[i], p[i], decay);
        return;
    }
    for (size_t i = 0; i < size; i++) {
        const real slope = slope_of(g[i], p[i], decay);
        velocity[i] = keep * velocity[i] + slope;
        p[i] -= rate * (nesterov ? slope + keep * velocity[i] : velocity[i]);
    }
}

/* Divide each step by the running root mean square of the gradient. Same as torch.optim.RMSprop(lr, alpha, eps).
   g = gradient + weight_decay * p;  s = alpha * s + (1 - alpha) * g²;  p -= learning_rate * g / (sqrt(s) + epsilon)
   square_average: s, zeros at the start. */
void NAME(rmsprop)(size_t size, real *restrict p, const real *restrict g, real *restrict square_average,
                   double learning_rate, double alpha, double epsilon, double weight_decay) {
    const real rate = (real)learning_rate, keep = (real)alpha, add = (real)(1 - alpha);
    const real tiny = (real)epsilon, decay = (real)weight_decay;
    for (size_t i = 0; i < size; i++) {
        const real slope = slope_of(g[i], p[i], decay);
        square_average[i] = keep * square_average[i] + add * slope * slope;
        p[i] -= rate * (slope / (REAL_FUNCTION(sqrt)(square_average[i]) + tiny));
    }
}

/* Adaptive moments (Kingma & Ba 2015). Same as torch.optim.Adam(lr, betas, eps). At step t = 1, 2, …
   g = gradient + weight_decay * p
   m = beta1 * m + (1 - beta1) * g;   v = beta2 * v + (1 - beta2) * g²
   p -= learning_rate * (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + epsilon)
   first_moment: m, second_moment: v, zeros at the start. step_size = learning_rate / (1 - beta1^t) and
   root_correction = sqrt(1 - beta2^t), the same for every parameter, are the caller's to compute. */
void NAME(adam)(size_t size, real *restrict p, const real *restrict g, real *restrict first_moment,
                real *restrict second_moment, double step_size, double beta1, double beta2, double root_correction,
                double epsilon, double weight_decay) {
    const real step = (real)step_size, keep1 = (real)beta1, add1 = (real)(1 - beta1);
    const real keep2 = (real)beta2, add2 = (real)(1 - beta2);
    const real correction = (real)root_correction, tiny = (real)epsilon, decay = (real)weight_decay;
    for (size_t i = 0; i < size; i++) {
        const real slope = slope_of(g[i], p[i], decay);
        first_moment[i] = keep1 * first_moment[i] + add1 * slope;
        second_moment[i] = keep2 * second_moment[i] + add2 * slope * slope;
        const real denominator = REAL_FUNCTION(sqrt)(second_moment[i]) / correction + tiny;
        p[i] -= step * (first_moment[i] / denominator);
    }
}

/* ---- the chosen one, shared out over the threads -------------------------------------------------------------------- */

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

size_t NAME(optimizer_step_bytes)(void) { return sizeof(optimizer_step); }
