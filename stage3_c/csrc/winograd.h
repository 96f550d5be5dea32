/* The transforms of Winograd's convolution, written by scripts/derive_winograd.py: change that, not this.

   y = AT [(G g) * (BT d)], * element by element: F(m, 3), m outputs y of m + 2 inputs d and 3 weights g.
   Each function is the product of one of the matrices with a vector, for LANES vectors side by side. */

#ifndef WINOGRAD_H
#define WINOGRAD_H

#include "vectors.h"

/* BT d: 4 inputs */
static inline __attribute__((always_inline)) void winograd2_input(const vector *from, vector *to) {
    to[0] = from[0] - from[2];
    const vector same12 = from[2];
    const vector other12 = from[1];
    to[1] = same12 + other12;
    to[2] = same12 - other12;
    to[3] = from[3] - from[1];
}

/* G g: 3 weights to 4 */
static inline __attribute__((always_inline)) void winograd2_kernel(const vector *from, vector *to) {
    to[0] = from[0];
    const vector same12 = (real)(1.0 / 2) * from[0] + (real)(1.0 / 2) * from[2];
    const vector other12 = (real)(1.0 / 2) * from[1];
    to[1] = same12 + other12;
    to[2] = same12 - other12;
    to[3] = from[2];
}

/* AT m: 4 products to 2 outputs */
static inline __attribute__((always_inline)) void winograd2_output(const vector *from, vector *to) {
    const vector sum12 = from[1] + from[2];
    const vector difference12 = from[1] - from[2];
    to[0] = from[0] + sum12;
    to[1] = difference12 + from[3];
}

/* BT d: 6 inputs */
static inline __attribute__((always_inline)) void winograd4_input(const vector *from, vector *to) {
    to[0] = from[4] + (real)4 * from[0] - (real)5 * from[2];
    const vector same12 = -from[4] + (real)4 * from[2];
    const vector other12 = -from[3] + (real)4 * from[1];
    to[1] = same12 + other12;
    to[2] = same12 - other12;
    const vector same34 = from[4] - from[2];
    const vector other34 = (real)2 * from[3] - (real)2 * from[1];
    to[3] = same34 + other34;
    to[4] = same34 - other34;
    to[5] = from[5] + (real)4 * from[1] - (real)5 * from[3];
}

/* G g: 3 weights to 6 */
static inline __attribute__((always_inline)) void winograd4_kernel(const vector *from, vector *to) {
    to[0] = (real)(1.0 / 4) * from[0];
    const vector same12 = (real)(1.0 / 6) * from[0] + (real)(1.0 / 6) * from[2];
    const vector other12 = (real)(1.0 / 6) * from[1];
    to[1] = same12 + other12;
    to[2] = same12 - other12;
    const vector same34 = (real)(1.0 / 24) * from[0] + (real)(1.0 / 6) * from[2];
    const vector other34 = (real)(1.0 / 12) * from[1];
    to[3] = same34 + other34;
    to[4] = same34 - other34;
    to[5] = from[2];
}

/* AT m: 6 products to 4 outputs */
static inline __attribute__((always_inline)) void winograd4_output(const vector *from, vector *to) {
    const vector sum12 = from[1] + from[2];
    const vector difference12 = from[1] - from[2];
    const vector sum34 = from[3] + from[4];
    const vector difference34 = from[3] - from[4];
    to[0] = from[0] + sum12 + sum34;
    to[1] = difference12 + (real)2 * difference34;
    to[2] = sum12 + (real)4 * sum34;
    to[3] = difference12 + from[5] + (real)8 * difference34;
}

#endif
