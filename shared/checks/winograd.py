"""Winograd's convolution in fractions: its transforms derived from their points, proven, and what rounding they cost.

F(m, 3) computes m outputs of a correlation with 3 weights from a = m + 2 inputs, with a multiplications in place of 3m:

    y = AT [(G g) * (BT d)]        d: a inputs, g: 3 weights, y: m outputs; * is element by element

This is Toom and Cook's multiplication of polynomials turned round (transposed). Each of a - 1 points p is a number at
which polynomials are evaluated; the last is infinity, where a polynomial's value is its highest coefficient.

    AT   column of a point p: 1, p, p^2, … p^(m-1)                       of infinity: 0, … 0, 1
    G    row of a point p: (1, p, p^2) / N(p), N(p) the product of p - q over the other points q
                                                                         of infinity: 0, 0, 1
    BT   row of a point p: the coefficients of the product of x - q over the other points q
                                                                         of infinity: over all points

In two dimensions the same transform goes along the columns and then along the rows. scripts/derive_winograd.py writes
the transforms as C for stage 3. two_outputs is F(2, 3) without matrices, as a pencil finds it.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

Matrix = list[list[Fraction]]

POINTS: dict[int, tuple[int | Fraction, ...]] = {2: (0, 1, -1), 4: (0, 1, -1, 2, -2)}
"""The finite points of F(m, 3) by m. Small ones, because their powers are what rounding is multiplied by; and each
with its negative, because the two then share half of their arithmetic."""

KERNEL = 3


def two_outputs(inputs: Sequence[Any], weights: Sequence[Any]) -> list[Any]:
    """F(2, 3): the two sums d0 g0 + d1 g1 + d2 g2 and d1 g0 + d2 g1 + d3 g2, by four products.

    inputs: d, four numbers; weights: g, three. Each product is of a sum of inputs and a sum of weights. The sums of the
    weights are made once for all windows, so their halves cost nothing.
    """
    d0, d1, d2, d3 = inputs
    g0, g1, g2 = weights
    first, last = (d0 - d2) * g0, (d3 - d1) * g2
    same = (d1 + d2) * ((g0 + g1 + g2) / 2)
    other = (d2 - d1) * ((g0 - g1 + g2) / 2)
    return [first + same + other, same - other + last]


def matrices(outputs: int) -> tuple[Matrix, Matrix, Matrix]:
    """AT (m, a), G (a, 3) and BT (a, a) of F(m, 3), a = m + 2."""
    points = [Fraction(point) for point in POINTS[outputs]]
    size = outputs + KERNEL - 1
    at = [[point**power for point in points] + [Fraction(int(power == outputs - 1))] for power in range(outputs)]
    g, bt = [], []
    for point in points:
        others = [other for other in points if other != point]
        divisor = Fraction(1)
        for other in others:
            divisor *= point - other
        sign = 1 if divisor > 0 else -1  # the sign may stand in G or in BT: this way G has the fewer minuses
        g.append([point**power * sign / divisor for power in range(KERNEL)])
        bt.append([sign * coefficient for coefficient in product_of_roots(others)] + [Fraction(0)])
    g.append([Fraction(int(power == KERNEL - 1)) for power in range(KERNEL)])
    bt.append(product_of_roots(points))
    assert all(len(row) == size for row in bt)
    return at, g, bt


def product_of_roots(roots: list[Fraction]) -> list[Fraction]:
    """The coefficients of the product of x - root, lowest power first."""
    coefficients = [Fraction(1)]
    for root in roots:
        shifted = [Fraction(0), *coefficients]
        coefficients = [s - root * c for s, c in zip(shifted, [*coefficients, Fraction(0)], strict=True)]
    return coefficients


def is_exact(outputs: int) -> bool:
    """Whether AT [(G g) * (BT d)] is the correlation y_i = sum of d_(i+k) g_k, for every i, input and weight."""
    at, g, bt = matrices(outputs)
    size = len(bt)
    return all(
        sum(at[i][t] * g[t][k] * bt[t][j] for t in range(size)) == int(j == i + k)
        for i in range(outputs)
        for k in range(KERNEL)
        for j in range(size)
    )


def transposed(matrix: Matrix) -> Matrix:
    return [list(column) for column in zip(*matrix, strict=True)]


def growth(outputs: int) -> float:
    """How many times larger the rounding of F(m x m, 3 x 3) may be than that of the plain sum.

    The plain sum of one output rounds products of a size of at most |d| |g|, 9 for each channel. Winograd rounds
    AT [(G g) * (BT d)], whose terms are as large as the absolute values of the three matrices make them, though they
    cancel in the end. The ratio of the two, for inputs and weights of one size, is the largest over the outputs of
    (sum over the points of |AT| times the sums of |G|'s and |BT|'s rows) / 3, squared for two dimensions.
    """
    at, g, bt = matrices(outputs)
    terms = [sum(map(abs, g_row)) * sum(map(abs, bt_row)) for g_row, bt_row in zip(g, bt, strict=True)]
    largest = max(sum(abs(weight) * term for weight, term in zip(row, terms, strict=True)) for row in at)
    return float((largest / KERNEL) ** 2)
