"""Wrong answers of week 1: the matrix product on lists."""

from tests.groundup.course.course_mutants import Mutant

MUTANTS = [
    Mutant("1.1", "range(k_size)", "range(k_size - 1)", "values", "the last product is left out"),
    Mutant("1.1", "c[i][j] +=", "c[i][j] =", "values", "only the last product is kept"),
    Mutant("1.1", "[[0.0] * n for _ in range(m)]", "[[0.0] * n] * m", "values", "one and the same list"),
    Mutant("1.2", "total += x", "total = x", "values", "only the last product is kept"),
    Mutant("1.2", "[[0.0] * n for _ in range(m)]", "[[0.0] * n] * m", "values", "one and the same list"),
    Mutant(
        "1.2",
        "        for j in range(n):\n            total = 0.0\n",
        "        total = 0.0\n        for j in range(n):\n",
        "values",
        "what stood before it in its row",
    ),
    Mutant("1.3", "list(zip(*b, strict=True))", "zip(*b, strict=True)", "values", "only the first row is computed"),
    Mutant("1.3", "zip(*b, strict=True)", "zip(*a, strict=True)", "shape", "ValueError"),
    Mutant("1.3", "total += x", "total = x", "values", "only the last product is kept"),
    Mutant(
        "1.3",
        "    return c",
        "    import numpy as np\n    return np.asarray(c)",
        "shape",
        "this floor uses no NumPy: rows are lists",
    ),
    Mutant("1.3", "    return c", "    return [tuple(row) for row in c]", "shape", "rows are lists, [...]"),
    Mutant("1.4", "_transpose(a), _transpose(b)", "a, _transpose(b)", "shape", "the shape is not right"),
    Mutant("1.4", "_transpose(a), _transpose(b)", "_transpose(b), _transpose(a)", "values", "transposed"),
    Mutant("1.4", "_transpose(a), _transpose(b)", "_transpose(a[:-1]), _transpose(b[:-1])", "values", "the last row"),
]
