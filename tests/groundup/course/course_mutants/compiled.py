"""Wrong answers of phase 3."""

from tests.groundup.course.course_mutants import Mutant

MUTANTS = [
    # 6.1 relu_backward
    Mutant("6.1", "z[i] <= 0", "z[i] < 0", "values", "at z = 0 the slope is 0"),
    Mutant("6.1", "i < rows * columns", "i <= rows * columns", "shape", "writes past the end of grad_z (2, 3)"),
    Mutant("6.1", "grad_output[i];", "grad_output[i]", "compile", "activations.c:"),
    Mutant("6.1", "for (size_t i", "for (int i", "compile", "count with size_t, as the sizes are"),
    Mutant("6.1", "(void)output;", 'printf("%g", (double)output[0]);', "compile", "write #include <stdio.h>"),
    Mutant(
        "6.1",
        "for (size_t i = 0;",
        "for (size_t i = 0; i < rows * columns; i++) grad_z[i] = 0;\n    for (size_t i = 0;",
        "agreement",
        "grad_z may be grad_output itself",
    ),
    # 6.2 add_bias
    Mutant("6.2", "values[i * columns + j]", "values[j]", "values", "the first row got every row's bias"),
    Mutant("6.2", "i * columns + j", "i * rows + j", "values", "begins `columns` numbers further on"),
    Mutant("6.2", "i * columns + j", "j * rows + i", "values", "rows and columns have changed places"),
    Mutant("6.2", "+= bias[j]", "= bias[j]", "values", "the bias took the values' place"),
    Mutant("6.2", "bias[j]", "bias[i]", "values", "that of its column j, not of its row i"),
    Mutant("6.2", "columns + j]", "columns + j - 1]", "shape", "writes before the beginning of values (2, 3)"),
    Mutant("6.2", "values[i * ", "values[(i + 1) * 1000000000 * ", "shape", "a read or write outside an array"),
    # 6.3 column_sums
    Mutant(
        "6.3",
        "for (size_t j = 0; j < columns; j++) sums[j] = values[j];\n    for (size_t i = 1;",
        "for (size_t i = 0;",
        "shape",
        "start the sum from 0",
    ),
    Mutant("6.3", "i * columns + j", "i * rows + j", "values", "begins `columns` numbers further on"),
    Mutant("6.3", "i < rows", "i <= rows", "shape", "an index goes past the end of a row or a matrix"),
    # 6.4 matmul_ijk
    Mutant("6.4", "b[p * n + j]", "b[j * k + p]", "values", "b is read as if it were transposed"),
    Mutant("6.4", "real sum", "double sum", "compile", "(real)s says that you mean it"),
    Mutant("6.4", "p < k", "p + 1 < k", "values", "the last product is left out"),
    Mutant("6.4", "c[i * n + j] = sum", "c[i * n + j] += sum", "shape", "start the sum from 0"),
    Mutant("6.4", "a[i * k + p]", "a[i * n + p]", "values", "a's rows are k numbers apart, not n"),
    # 6.5 softmax
    Mutant("6.5", "exp)(z[j] - largest)", "exp)(z[j])", "values", "exp overflows"),
    Mutant("6.5", "largest = z[0]", "largest = 0", "values", "start with z[0]"),
    Mutant(
        "6.5",
        "sum += output[j];\n        }",
        "}\n        for (size_t j = 0; j < columns; j++) sum += REAL_FUNCTION(exp)(z[j] - largest);",
        "agreement",
        "what is read from z after output was written",
    ),
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
        "changes g (6,), which it is only to read",
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
        "innermost has to be j",
    ),
    # 8.1 _prepare_nn
    Mutant("8.1", ", a=a, b=b)", ", a=a)", "memory", "out = b: this has to be refused"),
    Mutant("8.1", 'a, b = _as_pair("matmul", a, b)', "", "values", "_as_pair brings both into that form"),
    Mutant("8.1", "(m, n), a.dtype", "(n, m), a.dtype", "shape", "the rows of a and the columns of b"),
    # 8.2 Dense.forward
    Mutant("8.2", "self._x = x.view()", "", "gradient", "forward keeps x for backward"),
    Mutant(
        "8.2", "matmul(x, self.weights, out)", "out = matmul(x, self.weights)", "memory", "the result is not in out"
    ),
    Mutant(
        "8.2",
        'library.function("add_bias", out.dtype)(*out.shape, self.bias, out)',
        "out += self.bias",
        "memory",
        "is to be two calls into C",
    ),
    # 8.3 tile
    Mutant("8.3", "+= factor", "= factor", "values", "only the last product is kept"),
    Mutant(
        "8.3", "b_row + v * LANES", "b_row", "agreement", "the second register of a row holds the next LANES columns"
    ),
    Mutant("8.3", "i * a.row + p * a.column", "i * a.row + p", "agreement", "a is read by both its strides"),
    # 8.4 backward
    Mutant("8.4", "if (i > 0) through", "if (i > layers) through", "values", "the derivative of the activation"),
    Mutant("8.4", "masks != NULL ? masks[i - 1] : NULL", "NULL", "sizes", "the dropout mask is missing"),
    Mutant("8.4", "i > 0 ? layer[i - 1].grad", "i > 1 ? layer[i - 1].grad", "shape", "a layer's grad is read"),
]
