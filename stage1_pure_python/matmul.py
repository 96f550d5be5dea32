"""Matrix multiplication in pure Python, slowest rung first.

    index_loops         three nested loops; every number is looked up by its row and column
    zip_rows_columns    zip pairs a's row with b's rows: one look-up in the inner loop instead of six
    transpose_once      b's columns are gathered first: no look-up in the inner loop
    multiply_in_c       the inner loop moves into the interpreter's C: math.sumprod (3.12+) or sum(map(mul, ...))

Every rung computes c[i][j] = sum over k of a[i][k] * b[k][j]. The arithmetic is the same on all rungs;
a rung saves only the interpreter's work around it. `groundup bench` measures them.

Shapes: a is (M, K), b is (K, N), the result is (M, N).
"""

import math
import sys
from collections.abc import Callable
from operator import mul

from .arrays import Matrix, Vector, matrix_shape


def index_loops(a: Matrix, b: Matrix) -> Matrix:
    """The definition, word for word."""
    m, k_size, n = _check_nn(a, b)
    c = [[0.0] * n for _ in range(m)]
    for i in range(m):
        for j in range(n):
            for k in range(k_size):
                c[i][j] += a[i][k] * b[k][j]
    return c


def zip_rows_columns(a: Matrix, b: Matrix) -> Matrix:
    """zip walks along a's row and down b's rows together; only the column is still looked up by index."""
    m, _, n = _check_nn(a, b)
    c = [[0.0] * n for _ in range(m)]
    for a_row, c_row in zip(a, c, strict=True):
        for j in range(n):
            total = 0.0
            for x, b_row in zip(a_row, b, strict=True):
                total += x * b_row[j]
            c_row[j] = total
    return c


def transpose_once(a: Matrix, b: Matrix) -> Matrix:
    """zip(*b) turns all columns into tuples first, and no index is left in the inner loop."""
    m, _, n = _check_nn(a, b)
    columns = list(zip(*b, strict=True))
    c = [[0.0] * n for _ in range(m)]
    for a_row, c_row in zip(a, c, strict=True):
        for j, column in enumerate(columns):
            total = 0.0
            for x, y in zip(a_row, column, strict=True):
                total += x * y
            c_row[j] = total
    return c


if sys.version_info >= (3, 12):

    def dot(x: Vector, y: Vector) -> float:
        """The sum of x[k] * y[k]: math.sumprod, which also rounds only once (Python 3.12 and later)."""
        return math.sumprod(x, y)

else:

    def dot(x: Vector, y: Vector) -> float:
        """The sum of x[k] * y[k], looping in C: map calls operator.mul, sum adds."""
        return sum(map(mul, x, y))


def multiply_in_c(a: Matrix, b: Matrix) -> Matrix:
    """No Python bytecode runs per multiply-add any more."""
    _check_nn(a, b)
    return _rows_times_rows(a, _transpose(b))


LADDER: dict[str, Callable[[Matrix, Matrix], Matrix]] = {
    "index_loops": index_loops,
    "zip_rows_columns": zip_rows_columns,
    "transpose_once": transpose_once,
    "multiply_in_c": multiply_in_c,
}


def matmul(a: Matrix, b: Matrix) -> Matrix:
    """ab by the fastest rung: a (M, K), b (K, N) -> (M, N). Same as torch.matmul.

    Raises ValueError where a's columns are not b's rows, or a matrix is empty or ragged.
    """
    return multiply_in_c(a, b)


def matmul_tn(a: Matrix, b: Matrix) -> Matrix:
    """aᵀb: a (K, M), b (K, N) -> (M, N). The weights' gradient is one: xᵀ times grad_output."""
    (a_rows, a_columns), (b_rows, b_columns) = matrix_shape("matmul_tn: a", a), matrix_shape("matmul_tn: b", b)
    if a_rows != b_rows:
        raise ValueError(
            f"matmul_tn: a is {(a_rows, a_columns)} but b is {(b_rows, b_columns)}; a's rows must equal b's rows"
        )
    return _rows_times_rows(_transpose(a), _transpose(b))


def matmul_nt(a: Matrix, b: Matrix) -> Matrix:
    """abᵀ: a (M, K), b (N, K) -> (M, N). The input's gradient is one: grad_output times Wᵀ. Nothing is transposed:
    the rows of b are the columns that bᵀ would have."""
    (a_rows, a_columns), (b_rows, b_columns) = matrix_shape("matmul_nt: a", a), matrix_shape("matmul_nt: b", b)
    if a_columns != b_columns:
        raise ValueError(
            f"matmul_nt: a is {(a_rows, a_columns)} but b is {(b_rows, b_columns)}; a's columns must equal b's columns"
        )
    return _rows_times_rows(a, b)


def _rows_times_rows(a: Matrix, b: Matrix) -> Matrix:
    return [[dot(row, other) for other in b] for row in a]


def _transpose(a: Matrix) -> Matrix:
    return [list(column) for column in zip(*a, strict=True)]


def _check_nn(a: Matrix, b: Matrix) -> tuple[int, int, int]:
    (m, a_columns), (b_rows, n) = matrix_shape("matmul: a", a), matrix_shape("matmul: b", b)
    if a_columns != b_rows:
        raise ValueError(f"matmul: a is {(m, a_columns)} but b is {(b_rows, n)}; a's columns must equal b's rows")
    return m, a_columns, n
