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
        "way",
        "still reads down the columns of b",
    ),
    # 7.2 matmul_blocked
    Mutant("7.2", "p0 < k;", "p0 + DEPTH <= k;", "values", "wrong at index"),
    Mutant("7.2", "j0 < n;", "j0 + WIDTH <= n || j0 == 0;", "sizes", "wrong at index"),
    Mutant("7.2", "smaller(j0 + WIDTH, n)", "j0 + WIDTH", "shape", "writes past the end of c (2, 2)"),
    # 7.3 softmax_cross_entropy_fused
    Mutant("7.3", " / sum / (real)rows", " / sum", "values", "forgot the batch mean"),
    Mutant("7.3", "total / (double)rows", "total", "values", "forgot the mean over the batch"),
    Mutant("7.3", "-= sum;", "-= 1;", "values", "e / sum - 1 = (e - sum) / sum"),
    Mutant("7.3", "grad[j] = REAL", "grad[j] += REAL", "shape", "write it with ="),
    # 7.4 sgd
    Mutant("7.4", "p[i] -= rate", "p[i] += rate", "values", "against the gradient"),
    Mutant(
        "7.4",
        "slope_of(g[i], p[i], decay);\n        v",
        "g[i];\n        v",
        "agreement",
        "decay is not used",
    ),
    Mutant("7.4", "if (momentum == 0)", "if (momentum < 0)", "shape", "a read or write outside an array"),
    Mutant(
        "7.4", "keep * velocity[i] + slope", "keep * velocity[i] + (1 - keep) * slope", "values", "a sum, not a mean"
    ),
    Mutant(
        "7.4",
        "const real slope = slope_of(g[i], p[i], decay);",
        "((real *)(uintptr_t)g)[i] += decay * p[i];\n        const real slope = g[i];",
        "agreement",
        "which it may only read",
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
        "way",
        "the innermost loop is the one over j",
    ),
    Mutant(  # skip zero
        "7.1",
        "c[i * n + j] += factor",
        "c[i * n + j] += (factor > 0 ? factor : 0)",
        "values",
        "wrong",
    ),
    Mutant(  # zeroes after first
        "7.1",
        "c[i * n + j] = 0",
        "c[i * n + j] = i ? 0 : c[i * n + j]",
        "shape",
        "a number is added to memory that was never set",
    ),
    Mutant(  # k-1
        "7.1",
        "p < k;",
        "p + 1 < k || p == 0;",
        "values",
        "the last product is left out",
    ),
    Mutant(  # no blocks
        "7.2",
        "NO_SIMD void NAME(matmul_blocked)(size_t m, size_t k, size_t n, const real *a, const real *b, r"
        "eal *c) {\n"
        "    for (size_t i = 0; i < m * n; i++) c[i] = 0;\n"
        "    for (size_t j0 = 0; j0 < n; j0 += WIDTH) {\n"
        "        const size_t j1 = smaller(j0 + WIDTH, n);\n"
        "        for (size_t p0 = 0; p0 < k; p0 += DEPTH) {\n"
        "            const size_t p1 = smaller(p0 + DEPTH, k);\n"
        "            for (size_t i = 0; i < m; i++) {\n"
        "                for (size_t p = p0; p < p1; p++) {\n"
        "                    const real factor = a[i * k + p];\n"
        "                    NO_SIMD_LOOP\n"
        "                    for (size_t j = j0; j < j1; j++) c[i * n + j] += factor * b[p * n + j];\n"
        "                }\n"
        "            }\n"
        "        }\n"
        "    }\n"
        "}",
        "NO_SIMD void NAME(matmul_blocked)(size_t m, size_t k, size_t n, const real *a, const real *b, r"
        "eal *c) {\n"
        "    for (size_t i = 0; i < m * n; i++) c[i] = 0;\n"
        "    for (size_t i = 0; i < m; i++) {\n"
        "        for (size_t p = 0; p < k; p++) {\n"
        "            const real factor = a[i * k + p];\n"
        "            NO_SIMD_LOOP\n"
        "            for (size_t j = 0; j < n; j++) c[i * n + j] += factor * b[p * n + j];\n"
        "        }\n"
        "    }\n"
        "}",
        "way",
        "b is not read in blocks",
    ),
    Mutant(  # calls ikj
        "7.2",
        "NO_SIMD void NAME(matmul_blocked)(size_t m, size_t k, size_t n, const real *a, const real *b, r"
        "eal *c) {\n"
        "    for (size_t i = 0; i < m * n; i++) c[i] = 0;\n"
        "    for (size_t j0 = 0; j0 < n; j0 += WIDTH) {\n"
        "        const size_t j1 = smaller(j0 + WIDTH, n);\n"
        "        for (size_t p0 = 0; p0 < k; p0 += DEPTH) {\n"
        "            const size_t p1 = smaller(p0 + DEPTH, k);\n"
        "            for (size_t i = 0; i < m; i++) {\n"
        "                for (size_t p = p0; p < p1; p++) {\n"
        "                    const real factor = a[i * k + p];\n"
        "                    NO_SIMD_LOOP\n"
        "                    for (size_t j = j0; j < j1; j++) c[i * n + j] += factor * b[p * n + j];\n"
        "                }\n"
        "            }\n"
        "        }\n"
        "    }\n"
        "}",
        "NO_SIMD void NAME(matmul_blocked)(size_t m, size_t k, size_t n, const real *a, const real *b, r"
        "eal *c) {\n"
        "    NAME(matmul_ikj)(m, k, n, a, b, c);\n"
        "}",
        "way",
        "matmul_blocked calls matmul_ikj",
    ),
    Mutant(  # rows outermost
        "7.2",
        "NO_SIMD void NAME(matmul_blocked)(size_t m, size_t k, size_t n, const real *a, const real *b, r"
        "eal *c) {\n"
        "    for (size_t i = 0; i < m * n; i++) c[i] = 0;\n"
        "    for (size_t j0 = 0; j0 < n; j0 += WIDTH) {\n"
        "        const size_t j1 = smaller(j0 + WIDTH, n);\n"
        "        for (size_t p0 = 0; p0 < k; p0 += DEPTH) {\n"
        "            const size_t p1 = smaller(p0 + DEPTH, k);\n"
        "            for (size_t i = 0; i < m; i++) {\n"
        "                for (size_t p = p0; p < p1; p++) {\n"
        "                    const real factor = a[i * k + p];\n"
        "                    NO_SIMD_LOOP\n"
        "                    for (size_t j = j0; j < j1; j++) c[i * n + j] += factor * b[p * n + j];\n"
        "                }\n"
        "            }\n"
        "        }\n"
        "    }\n"
        "}",
        "NO_SIMD void NAME(matmul_blocked)(size_t m, size_t k, size_t n, const real *a, const real *b, r"
        "eal *c) {\n"
        "    for (size_t i = 0; i < m * n; i++) c[i] = 0;\n"
        "    for (size_t i = 0; i < m; i++) {\n"
        "        for (size_t j0 = 0; j0 < n; j0 += WIDTH) {\n"
        "            const size_t j1 = smaller(j0 + WIDTH, n);\n"
        "            for (size_t p0 = 0; p0 < k; p0 += DEPTH) {\n"
        "                const size_t p1 = smaller(p0 + DEPTH, k);\n"
        "                for (size_t p = p0; p < p1; p++) {\n"
        "                    const real factor = a[i * k + p];\n"
        "                    NO_SIMD_LOOP\n"
        "                    for (size_t j = j0; j < j1; j++) c[i * n + j] += factor * b[p * n + j];\n"
        "                }\n"
        "            }\n"
        "        }\n"
        "    }\n"
        "}",
        "way",
        "b is not read in blocks",
    ),
    Mutant(
        "7.1",
        "    for (size_t i = 0; i < m; i++) {\n",
        "    NAME(matmul_blocked)(m, k, n, a, b, c);\n    for (size_t i = 0; i < 0 * m; i++) {\n",
        "way",
        "matmul_ikj calls matmul_blocked",
    ),
    Mutant(
        "7.1",
        "    for (size_t i = 0; i < m; i++) {\n",
        "    void (*const f)(size_t, size_t, size_t, const real *, const real *, real *) = NAME(matmul_blocked);\n"
        "    f(m, k, n, a, b, c);\n    for (size_t i = 0; i < 0 * m; i++) {\n",
        "way",
        "matmul_blocked is another function of the project",
    ),
    Mutant("7.3", "grad[labels[i]] -= sum;", "grad[i] -= sum;", "values", "wrong at index"),
    Mutant("7.3", "logits += columns, grad += columns", "logits += columns", "values", "not every element is written"),
    Mutant("7.3", "(log)(sum)", "(log)(sum + (real)1e-7)", "values", "a small one added"),
    Mutant("7.3", "largest_of(columns, logits)", "logits[0]", "values", "loss of softmax_cross_entropy_fused"),
    Mutant(  # the exponentials twice
        "7.3",
        "            grad[j] = REAL_FUNCTION(exp)(logits[j] - largest);\n            sum += grad[j];\n        }",
        "            sum += REAL_FUNCTION(exp)(logits[j] - largest);\n        }\n"
        "        for (size_t j = 0; j < columns; j++) grad[j] = REAL_FUNCTION(exp)(logits[j] - largest);",
        "way",
        "computes 2 exponentials for each logit",
    ),
    Mutant(
        "7.3",
        "    double total = 0;\n",
        "    if (rows > 0) {\n        NAME(softmax_cross_entropy_backward)(rows, columns, logits, labels, grad);\n"
        "        return NAME(softmax_cross_entropy)(rows, columns, logits, labels);\n    }\n    double total = 0;\n",
        "way",
        "softmax_cross_entropy_fused calls softmax_cross_entropy",
    ),
    Mutant(
        "7.4",
        "slope_of(g[i], p[i], decay);\n        v",
        "slope_of(g[i], p[i], decay * rate);\n        v",
        "agreement",
        "wrong at index",
    ),
    Mutant(
        "7.4",
        "velocity[i] = keep * velocity[i] + slope;",
        "velocity[i] = keep * velocity[i] + slope;\n    }\n    for (size_t i = 0; i < size; i++) {\n"
        "        const real slope = slope_of(g[i], p[i], decay);",
        "way",
        "goes over its arrays 2 times",
    ),
    Mutant("7.4", "rate * slope_of(g[i], p[i], decay)", "rate * g[i]", "values", "decay is not used"),
    Mutant("7.4", "if (momentum == 0)", "if (velocity == NULL)", "agreement", "it is the momentum that decides"),
    Mutant(
        "7.4",
        "if (momentum == 0) {",
        "if (momentum == 0) {\n        if (velocity != NULL) velocity[0] = 0;",
        "agreement",
        "velocity is neither read nor written",
    ),
    Mutant("7.4", "(real)learning_rate", "(real)(float)learning_rate", "values", "written with few digits"),
    Mutant("7.5", "smaller(p0 + DEPTH, k)", "smaller(p0 + WIDTH, k)", "sizes", "wrong at index"),
    Mutant("7.5", "p0 += DEPTH", "p0 += WIDTH", "sizes", "wrong at index"),
    Mutant("7.5", "a[i * k + p]", "a[p * m + i]", "values", "a is read as if it were transposed"),
    Mutant("7.5", "b[p * n + j]", "b[p * (j1 - j0) + j - j0]", "sizes", "wrong at index"),
    Mutant("7.5", "i < m * n; i++) c[i] = 0;", "i < n; i++) c[i] = 0;", "shape", "added to memory that was never set"),
    Mutant("7.5", "restrict a, const real *restrict b", "a, const real *b", "way", "does not promise"),
    Mutant("7.5", "void NAME(matmul_restrict)", "NO_SIMD void NAME(matmul_restrict)", "speed", "could not use SIMD"),
    Mutant(
        "7.1",
        "            NO_SIMD_LOOP\n",
        "            if (factor == 0) continue;\n            NO_SIMD_LOOP\n",
        "values",
        "products with 0 are left out",
    ),
    Mutant(
        "7.3",
        "REAL_FUNCTION(exp)(logits[j] - largest)",
        "REAL_FUNCTION(exp)(logits[j] - largest < -80 ? -80 : logits[j] - largest)",
        "values",
        "grad of softmax_cross_entropy_fused",
    ),
    # Right once, or for friendly numbers: kept values, clamps, memory that is not the function's.
    Mutant(  # strided j
        "7.1",
        "for (size_t j = 0; j < n; j++) c[i * n + j] += factor * b[p * n + j]",
        "for (size_t s = 0; s < 7; s++) for (size_t j = s; j < n; j += 7) c[i * n + j] += factor * b[p * n + j]",
        "way",
        "the innermost loop is the one over j: with",
    ),
    Mutant(  # reads past
        "7.1",
        "const real factor = a[i * k + p];",
        "const real factor = a[i * k + p];\n"
        "            volatile real next = a[i * k + p + 1];\n"
        "            (void)next;",
        "shape",
        "memory that may not be read",
    ),
    Mutant(  # leak
        "7.2",
        "    for (size_t i = 0; i < m * n; i++) c[i] = 0;",
        "    extern void *malloc(size_t);\n"
        "    volatile real *panel = malloc(DEPTH * sizeof(real));\n"
        "    panel[0] = 0;\n"
        "    for (size_t i = 0; i < m * n; i++) c[i] = 0;",
        "again",
        "what malloc gives must go back, on every way",
    ),
    Mutant(  # p innermost
        "7.2",
        "for (size_t p = p0; p < p1; p++) {\n"
        "                    const real factor = a[i * k + p];\n"
        "                    NO_SIMD_LOOP\n"
        "                    for (size_t j = j0; j < j1; j++) c[i * n + j] += factor * b[p * n "
        "+ j];",
        "for (size_t j = j0; j < j1; j++) {\n"
        "                    NO_SIMD_LOOP\n"
        "                    for (size_t p = p0; p < p1; p++) c[i * n + j] += a[i * k + p] * "
        "b[p * n + j];",
        "way",
        "the innermost loop is the one over j: with",
    ),
    Mutant(  # float total
        "7.3",
        "    double total = 0;\n"
        "    for (size_t i = 0; i < rows; i++, logits += columns, grad += columns) {\n"
        "        const real largest = largest_of(columns, logits);\n"
        "        real sum = 0;\n"
        "        for (size_t j = 0; j < columns; j++) {\n"
        "            grad[j] = REAL_FUNCTION(exp)(logits[j] - largest);\n"
        "            sum += grad[j];\n"
        "        }\n"
        "        total += (double)(REAL_FUNCTION(log)(sum) - (logits[labels[i]] - largest));\n"
        "        grad[labels[i]] -= sum; /* e / sum - 1 = (e - sum) / sum */\n"
        "        for (size_t j = 0; j < columns; j++) grad[j] = grad[j] / sum / (real)rows;\n"
        "    }\n"
        "    return total / (double)rows;\n",
        "    real total = 0;\n"
        "    for (size_t i = 0; i < rows; i++, logits += columns, grad += columns) {\n"
        "        const real largest = largest_of(columns, logits);\n"
        "        real sum = 0;\n"
        "        for (size_t j = 0; j < columns; j++) {\n"
        "            grad[j] = REAL_FUNCTION(exp)(logits[j] - largest);\n"
        "            sum += grad[j];\n"
        "        }\n"
        "        total += REAL_FUNCTION(log)(sum) - (logits[labels[i]] - largest);\n"
        "        grad[labels[i]] -= sum; /* e / sum - 1 = (e - sum) / sum */\n"
        "        for (size_t j = 0; j < columns; j++) grad[j] = grad[j] / sum / (real)rows;\n"
        "    }\n"
        "    return (double)total / (double)rows;\n",
        "types",
        "the losses of the rows are added up in",
    ),
    Mutant(  # labels reads one past
        "7.3",
        "grad[labels[i]] -= sum;",
        "volatile int64_t next = labels[i + 1];\n        (void)next;\n        grad[labels[i]] -= sum;",
        "shape",
        "memory that may not be read",
    ),
    Mutant(  # nan loss 0
        "7.3",
        "return total / (double)rows;",
        "return total == total ? total / (double)rows : 0;",
        "sizes",
        "_fused of logits (4, 5): wrong",
    ),
    Mutant(  # double
        "7.4",
        "rate * (nesterov ? slope + keep * velocity[i] : velocity[i])",
        "(real)(learning_rate * (double)(nesterov ? slope + keep * velocity[i] : velocity[i]))",
        "way",
        "a double drags the whole line into double,",
    ),
    Mutant(  # skip zero g
        "7.4",
        "        const real slope = slope_of(g[i], p[i], decay);\n        velocity",
        "        if (g[i] == 0) continue;\n        const real slope = slope_of(g[i], p[i], decay);\n        velocity",
        "agreement",
        "wrong at index",
    ),
    Mutant(  # static keep
        "7.4",
        "    for (size_t i = 0; i < size; i++) {\n",
        "    static size_t steps;\n    steps++;\n    for (size_t i = 0; i < size; i++) {\n",
        "values",
        "static and global variables are shared by all",
    ),
    Mutant(  # static
        "7.5",
        "    for (size_t i = 0; i < m * n; i++) c[i] = 0;",
        "    static size_t calls;\n    calls += 1;\n    for (size_t i = 0; i < m * n; i++) c[i] = 0;",
        "shape",
        "static and global variables are shared by all",
    ),
]
