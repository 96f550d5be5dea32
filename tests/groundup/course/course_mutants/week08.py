"""Wrong answers of week 8: ctypes and the micro-kernel."""

from tests.groundup.course.course_mutants import Mutant

MUTANTS = [
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
