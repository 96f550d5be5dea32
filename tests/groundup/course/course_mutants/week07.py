"""Wrong answers of week 7: memory and caches."""

from tests.groundup.course.course_mutants import Mutant

MUTANTS = [
    # 7.1 matmul_ikj
    Mutant("7.1", "c[i * n + j] = 0", "c[j] = 0", "shape", "depends on what was in memory before the call"),
    Mutant("7.1", "c[i * n + j] += factor", "c[i * n + j] = factor", "values", "only the last product is kept"),
    Mutant(
        "7.1",
        "for (size_t p = 0; p < k; p++) {\n            const real factor = a[i * k + p];\n            NO_SIMD_LOOP\n"
        "            for (size_t j = 0; j < n; j++) c[i * n + j] += factor * b[p * n + j];",
        "for (size_t j = 0; j < n; j++) {\n            NO_SIMD_LOOP\n"
        "            for (size_t p = 0; p < k; p++) c[i * n + j] += a[i * k + p] * b[p * n + j];",
        "speed",
        "still reads down the columns of b",
    ),
    # 7.2 matmul_blocked
    Mutant("7.2", "p0 < k;", "p0 + DEPTH <= k;", "values", "the last block of k is left out"),
    Mutant("7.2", "j0 < n;", "j0 + WIDTH <= n || j0 == 0;", "sizes", "the last block of columns is left out"),
    Mutant("7.2", "smaller(j0 + WIDTH, n)", "j0 + WIDTH", "shape", "writes past the end of c (2, 2)"),
    # 7.3 softmax_cross_entropy_fused
    Mutant("7.3", " / sum / (real)rows", " / sum", "values", "so its gradient is divided by their number"),
    Mutant("7.3", "total / (double)rows", "total", "values", "the mean over its rows, not their sum"),
    Mutant("7.3", "-= sum;", "-= 1;", "values", "e / sum - 1 = (e - sum) / sum"),
    Mutant("7.3", "grad[j] = REAL", "grad[j] += REAL", "shape", "write it with ="),
    # 7.4 sgd
    Mutant("7.4", "p[i] -= rate", "p[i] += rate", "values", "against the gradient"),
    Mutant("7.4", "slope_of(g[i], p[i], decay);\n        v", "g[i];\n        v", "agreement", "decay is missing"),
    Mutant("7.4", "if (momentum == 0)", "if (momentum < 0)", "shape", "a read or write outside an array"),
    Mutant("7.4", "keep * velocity[i] + slope", "keep * velocity[i] + (1 - keep) * slope", "values", "all of g"),
    Mutant(
        "7.4",
        "const real slope = slope_of(g[i], p[i], decay);",
        "((real *)(uintptr_t)g)[i] += decay * p[i];\n        const real slope = g[i];",
        "agreement",
        "changes g (6,), which it may only read",
    ),
    # 7.5 matmul_restrict
    Mutant("7.5", "c[i * n + j] += factor", "c[i * n + j] = factor", "values", "only the last product is kept"),
    Mutant("7.5", "p < p1", "p + 1 < p1", "values", "the last product is left out"),
    Mutant(
        "7.5",
        "for (size_t p = p0; p < p1; p++) {\n                    const real factor = a[i * k + p];\n"
        "                    for (size_t j = j0; j < j1; j++) c[i * n + j] += factor * b[p * n + j];",
        "for (size_t j = j0; j < j1; j++) {\n"
        "                    for (size_t p = p0; p < p1; p++) c[i * n + j] += a[i * k + p] * b[p * n + j];",
        "speed",
        "innermost loop has to be the one over j",
    ),
]
