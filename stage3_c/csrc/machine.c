/* What the compiler was told about this machine. */

#include "groundup.h"

/* Bytes in one SIMD register: 64 are 16 floats or 8 doubles. */
size_t simd_bytes(void) { return SIMD_BYTES; }
