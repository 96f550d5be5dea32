"""Wrong answers of week 6: pointers and loops."""

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
        "z does not hold its numbers any more",
    ),
]
