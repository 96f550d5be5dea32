"""Week 22: Winograd's F(2, 3) with a pencil and in C, how much it rounds, and what Fourier's way costs."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import log, log2
from typing import Any

import numpy as np

from groundup.course.checks.check import Check, Tally, Wrong
from groundup.course.checks.exercise import Exercise
from groundup.course.checks.exercise_checks import checks_of
from groundup.course.checks.mistakes import Mistake
from groundup.course.grading.calling import fenced_arrays
from groundup.course.grading.calling.c_functions import graded
from groundup.course.grading.calling.c_harness import harness
from groundup.course.grading.calling.fenced_arrays import filled, read
from groundup.course.grading.own_work import text_of
from shared.checks import winograd
from shared.profile import multiplications

INPUT = np.array([[1.0, 0, -1, 0], [0, 1, 1, 0], [0, -1, 1, 0], [0, -1, 0, 1]])
WEIGHT = np.array([[1.0, 0, 0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0, 0, 1]])
OUTPUT = np.array([[1.0, 1, 1, 0], [0, 1, -1, 1]])
"""BT, G and AT of F(2, 3)."""


@dataclass(frozen=True)
class Counted:
    """A number that counts the products of which an input is a factor. of_input: whether it was made of inputs."""

    value: Fraction
    of_input: bool
    products: list[int]

    def _with(self, other: Any, value: Fraction) -> Counted:
        return Counted(value, self.of_input or getattr(other, "of_input", False), self.products)

    def __add__(self, other: Any) -> Counted:
        return self._with(other, self.value + _value(other))

    def __sub__(self, other: Any) -> Counted:
        return self._with(other, self.value - _value(other))

    def __rsub__(self, other: Any) -> Counted:
        return self._with(other, _value(other) - self.value)

    def __mul__(self, other: Any) -> Counted:
        made = self._with(other, self.value * _value(other))
        self.products[0] += made.of_input
        return made

    def __truediv__(self, other: Any) -> Counted:
        self.products[0] += self.of_input
        return self._with(other, self.value / _value(other))

    def __neg__(self) -> Counted:
        return Counted(-self.value, self.of_input, self.products)

    __radd__, __rmul__ = __add__, __mul__


def _value(number: Any) -> Fraction:
    return number.value if isinstance(number, Counted) else Fraction(number)


def two_outputs() -> list[Check]:
    """F(2, 3): right sums, and four products that an input takes part in."""
    function = winograd.two_outputs

    def call(d: np.ndarray, g: np.ndarray) -> np.ndarray:
        inputs, weights = d.tolist(), g.tolist()
        result = np.array([float(each) for each in function(inputs, weights)])
        if not (np.array_equal(inputs, d, equal_nan=True) and np.array_equal(weights, g, equal_nan=True)):
            raise Wrong(
                "two_outputs changes the lists that it gets", cause="a tile's last inputs are the next one's first"
            )
        return result

    def reference(d: np.ndarray, g: np.ndarray) -> np.ndarray:
        return np.array([d[:3] @ g, d[1:] @ g])

    def products(d: np.ndarray, g: np.ndarray) -> tuple[Any, ...]:
        total = g.sum()
        return (
            (d[0] - d[2]) * g[0],
            (d[1] + d[2]) * total / 2,
            (d[2] - d[1]) * (total - 2 * g[1]) / 2,
            (d[3] - d[1]) * g[2],
        )

    def put_together(first: int, same: int, other: int, last: int, again: int, off: int) -> Callable[..., Any]:
        """y0 = first m1 + same m2 + other m3 and y1 = again m2 + off m3 + last m4."""

        def wrong(d: np.ndarray, g: np.ndarray) -> np.ndarray:
            m1, m2, m3, m4 = products(d, g)
            return np.array([first * m1 + same * m2 + other * m3, again * m2 + off * m3 + last * m4])

        return wrong

    def way(tally: Tally) -> None:
        count = [0]
        d, g = (
            [Counted(Fraction(number), of_input, count) for number in numbers]
            for of_input, numbers in ((True, (3, -2, 5, 7)), (False, (2, 11, -3)))
        )
        tally.trying("two_outputs of numbers that count their products")
        got = [_value(each) for each in function(d, g)]
        tally.holds(got == [-31, 30], "two_outputs of whole numbers is not exact", expected="[-31, 30]", got=str(got))
        tally.holds(
            count[0] <= 4,
            f"two_outputs multiplies {count[0]} times by an input, or a sum of inputs",
            expected="4 times",
            cause="the definition takes six. Each of the four is a sum of inputs times a sum of weights; halves are "
            "taken of the weights, whose sums are made once",
        )

    exercise = Exercise(
        call=call,
        reference=reference,
        show=lambda d, g: f"two_outputs(inputs {np.round(d, 3).tolist()}, weights {np.round(g, 3).tolist()})",
        hand=[
            ((np.array([0.0, 3, 1, 2]), np.array([1.0, 2, 3])), [9.0, 11.0]),
            ((np.array([1.0, 0, 0, 0]), np.array([5.0, 6, 7])), [5.0, 0.0]),
            ((np.array([0.0, 0, 0, 1]), np.array([5.0, 6, 7])), [0.0, 7.0]),
        ],
        arguments=lambda rng, size: (rng.standard_normal(4), rng.standard_normal(3)),
        typical=1,
        sizes=[1, 2, 3, 4],
        again=[1, 2, 1],
        infinite=False,
        scale=lambda d, g: 4 * np.abs(d).sum() * np.abs(g).sum(),
        way=way,
        mistakes=[
            Mistake("m2 and m3 are twice as large: halve the sums of the weights", put_together(1, 2, 2, 1, 2, -2)),
            Mistake("m3 is added in y0 and taken off in y1", put_together(1, 1, 1, 1, 1, 1)),
            Mistake(
                "m3 has the wrong sign: it is (d2 - d1) times half of g0 - g1 + g2", put_together(1, 1, -1, 1, 1, 1)
            ),
            Mistake("m4 has the wrong sign: it is (d3 - d1) g2", put_together(1, 1, 1, -1, 1, -1)),
            Mistake("m1 has the wrong sign: it is (d0 - d2) g0", put_together(-1, 1, 1, 1, 1, -1)),
            Mistake("m1 is missing in y0", put_together(0, 1, 1, 1, 1, -1)),
            Mistake("m4 is missing in y1", put_together(1, 1, 1, 0, 1, -1)),
            Mistake("the two outputs have changed places", lambda d, g: reference(d, g)[::-1]),
            Mistake("the weights are turned round: y0 is d0 g0 + d1 g1 + d2 g2", lambda d, g: reference(d, g[::-1])),
            Mistake(
                "the two sums of weights have changed places: g1 is added in m2 and taken off in m3",
                lambda d, g: reference(d, g * [1, -1, 1]),
            ),
        ],
    )
    return checks_of(exercise)


BESIDE = (
    '#include "winograd_tiles.h"\n'
    "#include <math.h>\n"
    "/* Up to LANES numbers of each of `places` rows beside each other; `apart` from one row to the next. */\n"
    "static void beside(size_t places, size_t tiles, const real *from, size_t count, size_t apart, real *to) {\n"
    "    for (size_t i = 0; i < places; i++) memcpy(to + i * apart, from + i * tiles, count * sizeof(real));\n"
    "}\n"
)

INPUT_HARNESS = (
    BESIDE
    + """
EXPORT void NAME(one_input)(size_t tiles, const real *from, real *to) {
    for (size_t t = 0; t < tiles; t += LANES) {
        const size_t count = smaller(LANES, tiles - t);
        real numbers[4 * LANES] = {0};
        beside(4, tiles, from + t, count, LANES, numbers);
        vector d[4], v[4];
        for (size_t i = 0; i < 4; i++) {
            d[i] = load(numbers + i * LANES);
            v[i] = (vector){0} + (real)NAN;
        }
        winograd2_input(d, v);
        for (size_t i = 0; i < 4; i++) memcpy(to + i * tiles + t, &v[i], count * sizeof(real));
    }
}
"""
)

OUTPUT_HARNESS = (
    BESIDE
    + """
EXPORT void NAME(one_output)(size_t outputs, size_t tiles, const real *from, real *to) {
    const size_t places = (outputs + 2) * (outputs + 2);
    for (size_t t = 0; t < tiles; t += LANES) {
        const size_t count = smaller(LANES, tiles - t);
        real numbers[MOST * MOST * 3 * LANES];
        for (size_t i = 0; i < MOST * MOST * 3 * LANES; i++) numbers[i] = 1000;
        beside(places, tiles, from + t, count, 3 * LANES, numbers);
        vector y[16];
        for (size_t i = 0; i < 16; i++) y[i] = (vector){0} + (real)NAN;
        if (outputs == 4)
            places_to_outputs(4, numbers, 3 * LANES, y);
        else
            places_to_outputs(2, numbers, 3 * LANES, y);
        for (size_t i = 0; i < outputs * outputs; i++) memcpy(to + i * tiles + t, &y[i], count * sizeof(real));
    }
}
"""
)

HEADER, TILES = "stage3_c/csrc/winograd.h", "stage3_c/csrc/winograd_tiles.h"


def winograd2_input() -> list[Check]:
    """BT d for registers full of tiles, by additions alone."""
    name = "winograd2_input"
    library, function = harness(INPUT_HARNESS, "one_input", "saa", "winograd.h")

    def call(d: np.ndarray) -> np.ndarray:
        arguments = (d.shape[1], read("from", d), filled("to", d.shape))
        result: np.ndarray = fenced_arrays.run(name, function, *arguments, library=library)["to"]
        return result

    def right(d: np.ndarray) -> np.ndarray:
        return np.stack([d[0] - d[2], d[1] + d[2], d[2] - d[1], d[3] - d[1]])

    def way(tally: Tally) -> None:
        body = text_of(HEADER, name).partition("{")[2]
        body = re.sub(r"\bvector\s*\*\s*(?:const\s+|restrict\s+)*\w+", "", body)
        # A * without an operand before it multiplies nothing: it follows a pointer.
        tally.holds(
            not re.search(r"(?:[\w)\]]|\+\+|--)\s*[*/]", body),
            f"{name} multiplies or divides",
            cause="all numbers of BT are 0, 1 and -1: the transform of the inputs is additions and subtractions",
        )

    def with_row(row: int, made: Callable[[np.ndarray], Any]) -> Callable[[np.ndarray], Any]:
        def wrong(d: np.ndarray) -> Any:
            result = right(d)
            result[row] = made(d)
            return result

        return wrong

    exercise = Exercise(
        call=call,
        reference=right,
        show=lambda d: f"{name} of {d.shape[1]} tiles beside each other",
        hand=[
            ((np.array([[0.0], [3], [1], [2]]),), [[-1.0], [4], [-2], [-1]]),
            ((np.array([[1.0, 0], [0, 0], [0, 10], [0, 1]]),), [[1.0, -10], [0, 10], [0, 10], [0, 1]]),
        ],
        arguments=lambda rng, tiles: (rng.standard_normal((4, tiles)),),
        typical=3,
        sizes=[1, 7, 8, 16, 17, 33],
        scale=lambda d: np.abs(INPUT) @ np.abs(d),
        way=way,
        mistakes=[
            Mistake("to[0] is d0 - d2, not d0 + d2", with_row(0, lambda d: d[0] + d[2])),
            Mistake("to[0] has the wrong sign: it is d0 - d2", with_row(0, lambda d: d[2] - d[0])),
            Mistake("to[2] has the wrong sign: it is d2 - d1", with_row(2, lambda d: d[1] - d[2])),
            Mistake("to[3] has the wrong sign: it is d3 - d1", with_row(3, lambda d: d[1] - d[3])),
            Mistake("to[3] is d3 - d1, not d3 alone", with_row(3, lambda d: d[3])),
            Mistake("to[1] and to[2] have changed places", lambda d: right(d)[[0, 2, 1, 3]]),
            Mistake("this is B d: the matrix is transposed", lambda d: INPUT.T @ d),
            Mistake("the tile is read from its end", lambda d: right(d[::-1])),
        ],
    )
    return graded(exercise)


def places_to_outputs() -> list[Check]:
    """AT M A, for tiles of 2 by 2 and of 4 by 4 outputs."""
    name = "places_to_outputs"
    library, function = harness(OUTPUT_HARNESS, "one_output", "ssaa", "winograd_tiles.h")

    def call(m: np.ndarray) -> np.ndarray:
        outputs = len(m) - 2
        given = (outputs, m.shape[2], read("m", m), filled("y", (outputs, outputs, m.shape[2])))
        result: np.ndarray = fenced_arrays.run(name, function, *given, library=library)["y"]
        return result

    def back(m: np.ndarray) -> np.ndarray:
        return np.array(winograd.matrices(len(m) - 2)[0], float)

    def right(m: np.ndarray) -> np.ndarray:
        at = back(m)
        with np.errstate(all="ignore"):
            columns = np.stack([_sums(at, column) for column in m.swapaxes(0, 1)], axis=1)
            return np.stack([_sums(at, row) for row in columns])

    exercise = Exercise(
        call=call,
        reference=right,
        show=lambda m: f"{name} of {m.shape[2]} tiles of {len(m)} by {len(m)} products",
        hand=[
            ((np.arange(16.0).reshape(4, 4, 1),), [[[45.0], [18]], [[27], [10]]]),
            ((np.eye(4)[:, :, np.newaxis],), [[[3.0], [0]], [[0], [3]]]),
        ],
        arguments=lambda rng, size: (rng.standard_normal((size[0], size[0], size[1])),),
        typical=(4, 2),
        sizes=[(4, 1), (6, 1), (4, 17), (6, 3), (6, 33)],
        scale=lambda m: np.einsum("ia,abt,jb->ijt", np.abs(back(m)), np.abs(m), np.abs(back(m))),
        mistakes=[
            Mistake(
                "rows and columns have changed places: place (i, j) is at (i * a + j) * place, output (i, j) at "
                "y[i * outputs + j]",
                lambda m: right(m).swapaxes(0, 1),
            ),
            Mistake(
                "only the columns are transformed: the rows follow",
                lambda m: np.einsum("ia,abt->ibt", back(m), m)[:, : len(m) - 2],
            ),
            Mistake(
                "only the rows are transformed: the columns come first",
                lambda m: np.einsum("jb,abt->ajt", back(m), m)[: len(m) - 2],
            ),
            Mistake("all rows of outputs are the first one", lambda m: np.repeat(right(m)[:1], len(m) - 2, 0)),
            Mistake(
                "all columns of the tile are the first one: column j begins at j * place",
                lambda m: right(np.repeat(m[:, :1], len(m), 1)),
            ),
            Mistake(
                "all rows of the tile are the first one: row i begins at i * a * place",
                lambda m: right(np.repeat(m[:1], len(m), 0)),
            ),
        ],
    )
    return graded(exercise)


def _sums(at: np.ndarray, values: np.ndarray) -> np.ndarray:
    """AT times a column or row, without the products with 0, which make NaN of infinities."""
    return np.stack([sum(weight * value for weight, value in zip(row, values, strict=True) if weight) for row in at])


def with_points(points: np.ndarray, function: Callable[[int], Any]) -> Any:
    """A function of the outputs of F(m, 3), m = len(points) - 1, with these points for it."""
    outputs, before = len(points) - 1, dict(winograd.POINTS)
    winograd.POINTS[outputs] = tuple(points.tolist())
    try:
        return function(outputs)
    finally:
        winograd.POINTS.clear()
        winograd.POINTS.update(before)


def growth() -> list[Check]:
    """The rounding of F(m x m, 3 x 3) against that of the plain sum, for other points, too."""
    function = winograd.growth

    def sizes(points: np.ndarray, signed: str = "", without: str = "") -> np.ndarray:
        """How large each output may be. signed: matrices whose signs stay; without: those that are left out."""
        made = zip("AGB", with_points(points, winograd.matrices), strict=True)
        of = {name: np.array(each, float) if name in signed else np.abs(np.array(each, float)) for name, each in made}
        g, bt = (of[name].sum(axis=1) ** (name not in without) for name in "GB")  # a power of 0 leaves it out
        terms = g * bt if "A" in signed else np.abs(g * bt)
        result: np.ndarray = terms if "A" in without else of["A"] @ terms
        return result

    def bound(largest: Any) -> Any:
        return (largest / 3) ** 2

    no_signs = "signs cancel: rounding has no sign, so the absolute values are added up"
    no_outputs = "AT is missing: the outputs add up the products, times |AT|"
    exercise = Exercise(
        call=lambda points: float(with_points(points, function)),
        reference=lambda points: bound(sizes(points).max()),
        show=lambda points: f"growth({len(points) - 1}) for the points {points.tolist()} and infinity",
        hand=[
            ((np.array([0, 1, -1]),), 64 / 9),
            ((np.array([0, 1, -1, 2, -2]),), 256.0),
            ((np.array([0, 0.5, -0.5]),), (15.5 / 3) ** 2),
        ],
        arguments=lambda rng, count: (rng.permutation(np.arange(-4, 5))[:count],),
        typical=5,
        sizes=[3, 4, 5, 6],
        again=[5, 3, 5],
        mistakes=[
            Mistake("that is one dimension: in two the factor comes in twice", lambda points: sizes(points).max() / 3),
            Mistake("the plain sum has three terms, too: give the ratio", lambda points: sizes(points).max() ** 2),
            Mistake("the mean of the outputs was taken, not the largest", lambda points: bound(sizes(points).mean())),
            Mistake("the first output was taken, not the largest", lambda points: bound(sizes(points)[0])),
            Mistake("the last output was taken, not the largest", lambda points: bound(sizes(points)[-1])),
            Mistake(no_signs, lambda points: bound(np.abs(sizes(points, "AGB")).max())),
            Mistake(no_signs, lambda points: bound(sizes(points, "A").max())),
            Mistake(no_signs, lambda points: bound(sizes(points, "GB").max())),
            Mistake(no_outputs, lambda points: bound(sizes(points, without="A").max())),
            Mistake(no_outputs, lambda points: bound(sizes(points, without="A").sum())),
            Mistake("G is missing: its rows are factors, too", lambda points: bound(sizes(points, without="G").max())),
            Mistake("BT is missing: its rows are factors, too", lambda points: bound(sizes(points, without="B").max())),
        ],
    )
    return checks_of(exercise)


def by_fourier() -> list[Check]:
    """The multiplications of the Fourier rung."""
    function = multiplications.by_fourier

    def call(x: Any, weights: Any, padding: Any) -> float:
        return float(function(x, weights, padding))

    def counted(
        x: Any, w: Any, padding: Any, parts: Any = (1, 1, 1), each: float = 4, share: float = 0.5, by: Any = log2
    ) -> float:
        (n, c, height, width), o = x, w[0]
        pixels = (height + 2 * padding[0]) * (width + 2 * padding[1])
        planes = parts[0] * n * c + parts[1] * o * c + parts[2] * n * o
        return float(planes * pixels * by(pixels) + each * share * pixels * n * c * o)

    def with_other(**changed: Any) -> Callable[..., Any]:
        return lambda x, w, padding: counted(x, w, padding, **changed)

    def arguments(rng: np.random.Generator, size: int) -> tuple[Any, ...]:
        n, c, o, height, width, rows, columns = map(int, rng.integers(1, size + 1, 7))
        return (n, c, height + 2, width + 3), (o, c, 3, 3), (rows, columns)

    exercise = Exercise(
        call=call,
        reference=counted,
        show=lambda x, w, padding: f"by_fourier(x {x}, weights {w}, padding {padding})",
        hand=[
            (((1, 1, 4, 4), (1, 1, 3, 3), (0, 0)), 224.0),
            (((2, 3, 2, 6), (5, 3, 1, 1), (1, 1)), 6880.0),
        ],
        arguments=arguments,
        typical=9,
        sizes=[1, 2, 5, 40],
        again=[9, 3, 9],
        mistakes=[
            Mistake(
                "the planes are as large as the images alone: they are padded first",
                lambda x, w, padding: counted(x, w, (0, 0)),
            ),
            Mistake("a transform of real numbers has half as many frequencies as pixels", with_other(share=1.0)),
            Mistake("a product of two complex numbers takes 4 multiplications of real ones", with_other(each=1)),
            Mistake("a product of two complex numbers takes 4 multiplications of real ones", with_other(each=2)),
            Mistake("the kernels are transformed, too: O C planes", with_other(parts=(1, 0, 1))),
            Mistake("the outputs are transformed back, too: N O planes", with_other(parts=(1, 1, 0))),
            Mistake("the images are transformed, too: N C planes", with_other(parts=(0, 1, 1))),
            Mistake("the logarithm is the one to the base 2: a fast transform halves its length", with_other(by=log)),
            Mistake("the products are missing: one for each frequency, image, channel and filter", with_other(each=0)),
        ],
    )
    return checks_of(exercise)


GRADES: dict[str, Callable[[], list[Check]]] = {
    "22.1": two_outputs,
    "22.2": winograd2_input,
    "22.3": places_to_outputs,
    "22.4": growth,
    "22.5": by_fourier,
}
