"""Wrong and right answers of week 7's products of matrices."""

from tests.groundup.course.course_mutants import Mutant, RightAnswer

PRODUCTS = [
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
    Mutant("7.2", "p0 < k;", "p0 + DEPTH <= k;", "values", "wrong at index"),
    Mutant("7.2", "j0 < n;", "j0 + WIDTH <= n || j0 == 0;", "sizes", "wrong at index"),
    Mutant("7.2", "smaller(j0 + WIDTH, n)", "j0 + WIDTH", "shape", "writes past the end of c (2, 2)"),
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
    Mutant(  # static
        "7.5",
        "    for (size_t i = 0; i < m * n; i++) c[i] = 0;",
        "    static size_t calls;\n    calls += 1;\n    for (size_t i = 0; i < m * n; i++) c[i] = 0;",
        "shape",
        "static and global variables are shared by all",
    ),
]

RIGHT_PRODUCTS = [
    RightAnswer(  # kij
        "7.1",
        "    for (size_t i = 0; i < m; i++) {\n"
        "        for (size_t j = 0; j < n; j++) c[i * n + j] = 0;\n"
        "        for (size_t p = 0; p < k; p++) {",
        "    for (size_t i = 0; i < m * n; i++) c[i] = 0;\n"
        "    for (size_t p = 0; p < k; p++) {\n"
        "        for (size_t i = 0; i < m; i++) {",
    ),
    RightAnswer(  # first product set
        "7.1",
        "        for (size_t j = 0; j < n; j++) c[i * n + j] = 0;\n        for (size_t p = 0; p < k; p++) {",
        "        for (size_t j = 0; j < n; j++) c[i * n + j] = a[i * k] * b[j];\n"
        "        for (size_t p = 1; p < k; p++) {",
    ),
    RightAnswer("7.1", "factor", "name"),
    RightAnswer(
        "7.2",
        "p0 += DEPTH) {\n            const size_t p1 = smaller(p0 + DEPTH, k)",
        "p0 += 128) {\n            const size_t p1 = smaller(p0 + 128, k)",
    ),
    RightAnswer(
        "7.2",
        "j0 += WIDTH) {\n        const size_t j1 = smaller(j0 + WIDTH, n)",
        "j0 += 64) {\n        const size_t j1 = smaller(j0 + 64, n)",
    ),
    RightAnswer("7.5", "for (size_t j = j0; j < j1; j++)", "for (size_t j = j0; j < j1 && j < n; j++)"),
]
