"""Wrong answers of phase 1."""

from course_mutants import Mutant

MUTANTS = [
    Mutant("1.1", "range(k_size)", "range(k_size - 1)", "values", "the last product is left out"),
    Mutant("1.1", "c[i][j] +=", "c[i][j] =", "values", "only the last product is kept"),
    Mutant("3.2", "[sum(column) for", "[sum(column) / len(column) for", "agreement", "forgot the batch"),
    Mutant("3.2", "matmul_tn(self._x, grad_output)", "matmul_tn(grad_output, self._x)", "shape", "transposed"),
]
