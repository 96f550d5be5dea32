"""Wrong answers of week 6: pointers and loops."""

from tests.groundup.course.course_mutants import Mutant, RightAnswer

MUTANTS = [
    # 6.1 relu_backward
    Mutant("6.1", "z[i] <= 0", "z[i] < 0", "values", "the slope at z = 0: here it is 0"),
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
    Mutant("6.5", "largest = z[0]", "largest = 0", "values", "softmax of"),
    Mutant(
        "6.5",
        "sum += output[j];\n        }",
        "}\n        for (size_t j = 0; j < columns; j++) sum += REAL_FUNCTION(exp)(z[j] - largest);",
        "agreement",
        "z does not hold its numbers any more",
    ),
    Mutant(  # threshold
        "6.1",
        "z[i] <= 0",
        "z[i] <= (real)1e-6",
        "values",
        "wrong",
    ),
    Mutant(  # cap at 6
        "6.1",
        "z[i] <= 0 ?",
        "z[i] <= 0 || z[i] > 6 ?",
        "values",
        "wrong",
    ),
    Mutant(  # times mask
        "6.1",
        "z[i] <= 0 ? 0 : grad_output[i]",
        "grad_output[i] * (z[i] > 0)",
        "values",
        "0 times infinity is not a number",
    ),
    Mutant(  # rows from 1
        "6.2",
        "size_t i = 0; i < rows",
        "size_t i = 1; i < rows",
        "values",
        "wrong",
    ),
    Mutant(  # int cast
        "6.2",
        "+= bias[j]",
        "+= (real)(int)bias[j]",
        "agreement",
        "wrong",
    ),
    Mutant(  # float cast
        "6.2",
        "+= bias[j]",
        "+= (real)(float)bias[j]",
        "agreement",
        "nearly right, but further off than rounding",
    ),
    Mutant(  # float
        "6.3",
        "sums[j] += values[i * columns + j]",
        "sums[j] = (real)(float)(sums[j] + values[i * columns + j])",
        "agreement",
        "nearly right, but further off than rounding",
    ),
    Mutant(  # float sum
        "6.4",
        "real sum = 0;",
        "float sum = 0;",
        "compile",
        "does not compile",
    ),
    Mutant(  # a of column
        "6.4",
        "a[i * k + p] * b[p * n + j]",
        "a[i * k + p] * b[p * n + i]",
        "values",
        "wrong",
    ),
    Mutant(  # minus
        "6.4",
        "sum += a",
        "sum -= a",
        "values",
        "wrong sign",
    ),
    Mutant(  # first
        "6.5",
        "real largest = z[0];\n        for (size_t j = 1; j < columns; j++) largest = z[j] > largest ? z[j] : largest;",
        "const real largest = z[0];",
        "values",
        "softmax of",
    ),
    Mutant(  # last
        "6.5",
        "real largest = z[0];\n        for (size_t j = 1; j < columns; j++) largest = z[j] > largest ? z[j] : largest;",
        "const real largest = z[columns - 1];",
        "values",
        "softmax of",
    ),
    Mutant(  # max so far
        "6.5",
        "    for (size_t i = 0; i < rows; i++, z += columns, output += columns) {\n"
        "        real largest = z[0];\n"
        "        for (size_t j = 1; j < columns; j++) largest = z[j] > largest ? z[j] : largest;",
        "    real largest = z[0];\n"
        "    for (size_t i = 0; i < rows; i++, z += columns, output += columns) {\n"
        "        for (size_t j = 0; j < columns; j++) largest = z[j] > largest ? z[j] : largest;",
        "values",
        "softmax of",
    ),
    Mutant(  # skips last
        "6.5",
        "real largest = z[0];\n        for (size_t j = 1; j < columns; j++) largest = z[j] > largest ? z[j] : largest;",
        "real largest = z[0];\n"
        "        for (size_t j = 1; j + 1 < columns; j++) largest = z[j] > largest ? z[j] : largest;",
        "values",
        "not every element is written",
    ),
    Mutant(  # min
        "6.5",
        "real largest = z[0];\n        for (size_t j = 1; j < columns; j++) largest = z[j] > largest ? z[j] : largest;",
        "real largest = z[0];\n        for (size_t j = 1; j < columns; j++) largest = z[j] < largest ? z[j] : largest;",
        "values",
        "softmax of",
    ),
    Mutant(  # whole max
        "6.5",
        "    for (size_t i = 0; i < rows; i++, z += columns, output += columns) {\n"
        "        real largest = z[0];\n"
        "        for (size_t j = 1; j < columns; j++) largest = z[j] > largest ? z[j] : largest;",
        "    real largest = z[0];\n"
        "    for (size_t j = 0; j < rows * columns; j++) largest = z[j] > largest ? z[j] : largest;\n"
        "    for (size_t i = 0; i < rows; i++, z += columns, output += columns) {",
        "values",
        "softmax of",
    ),
    Mutant(  # -1000 start
        "6.5",
        "real largest = z[0];\n        for (size_t j = 1; j < columns; j++) largest = z[j] > largest ? z[j] : largest;",
        "real largest = -1000;\n"
        "        for (size_t j = 0; j < columns; j++) largest = z[j] > largest ? z[j] : largest;",
        "values",
        "softmax of",
    ),
    Mutant(
        "6.4",
        "    for (size_t i = 0; i < m; i++) {\n",
        "    NAME(matmul_ikj)(m, k, n, a, b, c);\n    for (size_t i = 0; i < 0 * m; i++) {\n",
        "way",
        "matmul_ijk calls matmul_ikj",
    ),
    Mutant(
        "6.4",
        "    for (size_t i = 0; i < m; i++) {\n",
        "    for (size_t i = 0; i < m; i++) NAME(matmul_restrict)(1, k, n, a + i * k, b, c + i * n);\n"
        "    for (size_t i = 0; i < 0 * m; i++) {\n",
        "way",
        "write it yourself",
    ),
    Mutant(
        "6.1",
        "    (void)output;\n",
        "    NAME(identity_backward)(rows, columns, grad_output, z, output, grad_z);\n",
        "way",
        "relu_backward calls identity_backward",
    ),
    Mutant(
        "6.2",
        "for (size_t i = 0; i < rows; i++)",
        "for (unsigned char i = 0; i < (unsigned char)rows; i++)",
        "sizes",
        "wrong at index",
    ),
    Mutant(
        "6.4",
        "sum += a[i * k + p] * b",
        "if (a[i * k + p] != 0) sum += a[i * k + p] * b",
        "values",
        "products with 0 are left out",
    ),
    # Right once, or for friendly numbers: kept values, clamps, memory that is not the function's.
    Mutant(  # reads one past
        "6.1",
        "    for (size_t i = 0; i < rows * columns; i++) grad_z[i] = z[i] <= 0 ? 0 : grad_output[i];",
        "    volatile real past = z[rows * columns];\n"
        "    (void)past;\n"
        "    for (size_t i = 0; i < rows * columns; i++) grad_z[i] = z[i] <= 0 ? 0 : "
        "grad_output[i];",
        "shape",
        "memory that may not be read",
    ),
    Mutant(  # 16 bit total
        "6.1",
        "i < rows * columns",
        "i < (size_t)(unsigned short)(rows * columns)",
        "sizes",
        "not every element is written: the first that",
    ),
    Mutant(  # static copy
        "6.1",
        "    for (size_t i = 0; i < rows * columns; i++) grad_z[i] = z[i] <= 0 ? 0 : grad_output[i];",
        "    static real last;\n"
        "    for (size_t i = 0; i < rows * columns; i++) { last = grad_output[i]; grad_z[i] = "
        "z[i] <= 0 ? 0 : last; }",
        "way",
        "a static variable is one for all calls, and",
    ),
    Mutant(  # reads before
        "6.2",
        "    for (size_t i = 0; i < rows; i++) {\n        for (size_t j = 0; j < columns; j++) values",
        "    volatile real before = bias[-1];\n"
        "    (void)before;\n"
        "    for (size_t i = 0; i < rows; i++) {\n"
        "        for (size_t j = 0; j < columns; j++) values",
        "shape",
        "memory that may not be read",
    ),
    Mutant(  # nan bias
        "6.2",
        "values[i * columns + j] += bias[j]",
        "values[i * columns + j] += bias[j] == bias[j] ? bias[j] : 0",
        "sizes",
        "wrong at index",
    ),
    Mutant(  # read row past
        "6.3",
        "for (size_t i = 1; i < rows; i++) {\n"
        "        for (size_t j = 0; j < columns; j++) sums[j] += values[i * columns + j];",
        "for (size_t i = 1; i <= rows; i++) {\n"
        "        for (size_t j = 0; j < columns; j++) sums[j] += i < rows ? values[i * columns "
        "+ j] : 0 * values[i * columns + j];",
        "shape",
        "memory that may not be read",
    ),
    Mutant(  # rows 16 bits
        "6.3",
        "i < rows",
        "i < (rows & 0xffff)",
        "sizes",
        "wrong at index",
    ),
    Mutant(  # static sum
        "6.4",
        "real sum = 0;",
        "static real sum;\n            sum = 0;",
        "shape",
        "static and global variables are shared by all",
    ),
    Mutant(  # leak2
        "6.4",
        "    for (size_t i = 0; i < m; i++) {\n        for (size_t j = 0; j < n; j++) {",
        "    extern void *malloc(size_t);\n"
        "    volatile real *row = malloc(k * sizeof(real));\n"
        "    row[0] = 0;\n"
        "    for (size_t i = 0; i < m; i++) {\n"
        "        for (size_t j = 0; j < n; j++) {",
        "again",
        "what malloc gives must go back, on every way",
    ),
    Mutant(  # past read
        "6.4",
        "sum += a[i * k + p] * b[p * n + j];",
        "sum += a[i * k + p] * b[p * n + j];\n            volatile real past = b[k * n + j];\n            (void)past;",
        "shape",
        "memory that may not be read",
    ),
    Mutant(  # max from -1e6
        "6.5",
        "real largest = z[0];",
        "real largest = (real)-1e6;",
        "values",
        "not every element is written: the first that",
    ),
    Mutant(  # static largest
        "6.5",
        "real largest = z[0];",
        "static real largest;\n        largest = z[0];",
        "shape",
        "static and global variables are shared by all",
    ),
    Mutant(  # max first 16
        "6.5",
        "size_t j = 1; j < columns",
        "size_t j = 1; j < columns && j < 16",
        "sizes",
        "not every element is written: the first that",
    ),
    Mutant("6.1", "for (size_t i = 0", "for (uint16_t i = 0", "sizes", "a call in C took seconds of processor time"),
]

RIGHT_ANSWERS = [
    RightAnswer("6.1", "z[i] <= 0 ? 0 : grad_output[i]", "z[i] > 0 ? grad_output[i] : 0"),
    RightAnswer(  # if else
        "6.1",
        "    for (size_t i = 0; i < rows * columns; i++) grad_z[i] = z[i] <= 0 ? 0 : grad_output[i];",
        "    const real *end = z + rows * columns;\n"
        "    while (z < end) {\n"
        "        if (*z > 0) *grad_z = *grad_output;\n"
        "        else *grad_z = 0;\n"
        "        z++, grad_output++, grad_z++;\n"
        "    }",
    ),
    RightAnswer(  # mod
        "6.2",
        "    for (size_t i = 0; i < rows; i++) {\n"
        "        for (size_t j = 0; j < columns; j++) values[i * columns + j] += bias[j];\n"
        "    }",
        "    for (size_t i = 0; i < rows * columns; i++) values[i] += bias[i % columns];",
    ),
    RightAnswer(
        "6.3",
        "for (size_t j = 0; j < columns; j++) sums[j] = values[j];\n    for (size_t i = 1;",
        "for (size_t j = 0; j < columns; j++) sums[j] = 0;\n    for (size_t i = 0;",
    ),
    RightAnswer(  # the bias's function adds a row
        "6.3",
        "for (size_t j = 0; j < columns; j++) sums[j] += values[i * columns + j];",
        "NAME(add_bias)(1, columns, values + i * columns, sums);",
    ),
    RightAnswer(  # column by column
        "6.3",
        "    for (size_t j = 0; j < columns; j++) sums[j] = values[j];\n"
        "    for (size_t i = 1; i < rows; i++) {\n"
        "        for (size_t j = 0; j < columns; j++) sums[j] += values[i * columns + j];\n"
        "    }",
        "    for (size_t j = 0; j < columns; j++) {\n"
        "        real sum = 0;\n"
        "        for (size_t i = 0; i < rows; i++) sum += values[i * columns + j];\n"
        "        sums[j] = sum;\n"
        "    }",
    ),
    RightAnswer(  # double sum
        "6.4",
        "            real sum = 0;\n"
        "            NO_SIMD_LOOP\n"
        "            for (size_t p = 0; p < k; p++) sum += a[i * k + p] * b[p * n + j];\n"
        "            c[i * n + j] = sum;\n",
        "            double sum = 0;\n"
        "            NO_SIMD_LOOP\n"
        "            for (size_t p = 0; p < k; p++) sum += (double)a[i * k + p] * (double)b[p "
        "* n + j];\n"
        "            c[i * n + j] = (real)sum;\n",
    ),
    RightAnswer(
        "6.5",
        "            output[j] = REAL_FUNCTION(exp)(z[j] - largest);\n            sum += output[j];\n        }\n"
        "        for (size_t j = 0; j < columns; j++) output[j] /= sum;",
        "            sum += REAL_FUNCTION(exp)(z[j] - largest);\n        }\n"
        "        for (size_t j = 0; j < columns; j++) output[j] = REAL_FUNCTION(exp)(z[j] - largest) / sum;",
    ),
    RightAnswer(  # from -inf
        "6.5",
        "real largest = z[0];\n        for (size_t j = 1;",
        "real largest = -INFINITY;\n        for (size_t j = 0;",
    ),
    RightAnswer("6.5", "largest", "peak"),
]
