"""Phase 3: the products, from three loops to the micro-kernel, and what Python makes sure of before it calls them.

`tile`, the micro-kernel, is `static`: it has no name outside its file, and is graded through the products made of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from groundup.course.checks import Check, Exercise, Tally, Wrong, checks_of
from groundup.course.grading import guarded
from groundup.course.grading.c_functions import alike, and_then, c_floor, c_function, faster, refused, walked
from groundup.course.grading.guarded import filled, read
from groundup.course.likely import Guess, likely_cause
from shared.contract import load_part

library: Any = load_part("stage3_c", "library")

SIZES = [(1, 1, 1), (1, 7, 3), (2, 3, 5), (13, 17, 11), (5, 31, 2), (31, 2, 29)]
"""(M, K, N): ones, primes, K much larger than N and the reverse."""

A, B = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), np.array([[1.0, 0.0], [0.0, 1.0], [2.0, -1.0]])
AB, BA = [[7.0, -1.0], [16.0, -1.0]], [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [-2.0, -1.0, 0.0]]

BLOCK_DEPTH, BLOCK_WIDTH = 64, 256
"""DEPTH and WIDTH of matmul_loops.c."""

WALK = (8, 512, 512)
"""A product in which walking down b's columns costs several times as much as walking along its rows: every number is
in another cache line, and they are 4 kB apart."""


def product(name: str, sizes: Sequence[Any] = (), guesses: Sequence[Guess] = ()) -> Exercise:
    """A rung of the matmul ladder: c (m, n) = a (m, k) times b (k, n)."""
    return Exercise(
        call=product_call(name),
        reference=np.matmul,
        show=lambda a, b: f"{name}(m={a.shape[0]}, k={a.shape[1]}, n={b.shape[1]})",
        hand=[((A, B), AB), ((B, A), BA)],
        arguments=factors,
        typical=(4, 4, 4),
        sizes=[*SIZES, *sizes],
        terms=lambda a, b: a.shape[1],
        scale=lambda a, b: np.abs(a) @ np.abs(b),
        guesses=[*guesses, *PRODUCT_GUESSES],
    )


def product_call(name: str, dtype: str = "float64") -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """A product as a function of a and b. Those of matmul_loops.c work alone, the others take the threads' handle."""
    function = c_function(name, dtype)
    first = () if name in LOOPS else (library.pool(),)

    def call(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        m, k, n = _sizes(name, a, b)
        arguments = (*first, m, k, n, read("a", a), read("b", b), filled("c", (m, n)))
        result: np.ndarray = guarded.run(name, function, *arguments, dtype=dtype)["c"]
        return result

    return call


LOOPS = ("matmul_ijk", "matmul_ikj", "matmul_blocked", "matmul_restrict")


def _sizes(name: str, a: np.ndarray, b: np.ndarray) -> tuple[int, int, int]:
    if name == "matmul_tn":
        return a.shape[1], a.shape[0], b.shape[1]
    return a.shape[0], a.shape[1], b.shape[0] if name == "matmul_nt" else b.shape[1]


def factors(rng: np.random.Generator, size: tuple[int, int, int]) -> tuple[np.ndarray, np.ndarray]:
    """Random a (M, K) and b (K, N)."""
    m, k, n = size
    return rng.standard_normal((m, k)), rng.standard_normal((k, n))


def _times(a: np.ndarray | None, b: np.ndarray | None) -> np.ndarray | None:
    return None if a is None or b is None else a @ b


PRODUCT_GUESSES = [
    Guess(
        "the last product is left out: does p run to the end of the row?",
        lambda a, b: a[:, :-1] @ b[:-1] if a.shape[1] > 1 else None,
    ),
    Guess("only the last product is kept: add to the sum, do not assign", lambda a, b: a[:, -1:] @ b[-1:]),
    *(
        Guess("a sum goes on from one output to the next: each starts from 0", wrong)
        for wrong in (
            lambda a, b: np.cumsum(a @ b, axis=1),
            lambda a, b: np.cumsum(a @ b).reshape(len(a), -1),
        )
    ),
    Guess(
        "b is read as if it were transposed: element (p, j) is at [p * n + j]",
        lambda a, b: _times(a, walked(b, 1, len(b))),
    ),
    Guess("b's rows are n numbers apart, not k", lambda a, b: _times(a, walked(b, len(b), 1))),
    Guess("b's rows are n numbers apart, not m", lambda a, b: _times(a, walked(b, len(a), 1))),
    Guess(
        "a is read as if it were transposed: element (i, p) is at [i * k + p]",
        lambda a, b: _times(walked(a, 1, len(a)), b),
    ),
    Guess("a's rows are k numbers apart, not n", lambda a, b: _times(walked(a, b.shape[1], 1), b)),
    Guess("a's rows are k numbers apart, not m", lambda a, b: _times(walked(a, len(a), 1), b)),
    Guess(
        "c is written as if it were transposed: element (i, j) is at [i * n + j]",
        lambda a, b: (a @ b).T.reshape(len(a), -1),
    ),
    Guess("only the first row is right: do a and c move on to row i?", lambda a, b: np.tile(a[:1] @ b, (len(a), 1))),
]


def along_rows(name: str) -> Check:
    """The time of a rung that reads memory in order, against the one that walks down b's columns."""
    (m, k, n), function, ijk = WALK, c_function(name), c_function("matmul_ijk")
    a, b = factors(np.random.default_rng(4), WALK)
    c = np.empty((m, n))
    return faster(
        f"{name}(m={m}, k={k}, n={n})",
        lambda: function(m, k, n, a, b, c),
        "matmul_ijk",
        lambda: ijk(m, k, n, a, b, c),
        0.5,
        "the innermost loop still reads down the columns of b: with j innermost each access is to the next number",
    )


# Loops


def matmul_ijk() -> list[Check]:
    """The definition."""
    return checks_of(product("matmul_ijk"))


def matmul_ikj() -> list[Check]:
    """The two inner loops swapped."""
    made = checks_of(product("matmul_ikj", guesses=[ONE_ROW_SET]))
    return [*made, along_rows("matmul_ikj")]


ONE_ROW_SET = Guess(
    "every row of c has the rows before it added in: is it row i that is set to 0, and added to?",
    lambda a, b: np.cumsum(a @ b, axis=0),
)


def matmul_blocked() -> list[Check]:
    """Blocks of b that stay in the cache."""
    return [*checks_of(in_blocks("matmul_blocked")), along_rows("matmul_blocked")]


def matmul_restrict() -> list[Check]:
    """The same where the compiler may use SIMD: it has to find loops in which it can."""
    (m, k, n), name = (32, 256, 256), "matmul_restrict"
    function, blocked = c_function(name, "float32"), c_function("matmul_blocked", "float32")
    a, b = (each.astype("float32") for each in factors(np.random.default_rng(4), (m, k, n)))
    c = np.empty((m, n), "float32")
    speed = faster(
        f"{name}(m={m}, k={k}, n={n}) in float32",
        lambda: function(m, k, n, a, b, c),
        "matmul_blocked",
        lambda: blocked(m, k, n, a, b, c),
        0.7,
        "the compiler found no register full of numbers to work on at a time: innermost has to be j, which goes along "
        "the rows of b and c, and nothing in it may depend on the round before",
    )
    return [*checks_of(in_blocks(name)), speed]


def in_blocks(name: str) -> Exercise:
    """A product that goes over b in blocks: sizes that are no multiple of a block matter here."""

    def last_columns_left_out(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        found: np.ndarray = a @ b
        found[:, b.shape[1] // BLOCK_WIDTH * BLOCK_WIDTH :] = 0
        return found

    whole = "sizes need not be multiples of a block: the last one is as large as what is left"
    guesses = [
        Guess(f"the last block of k is left out; {whole}", lambda a, b: _first_products(a, b, _whole(a.shape[1]))),
        Guess(f"the last block of columns is left out; {whole}", last_columns_left_out),
        Guess(
            "only the last block's sums are kept: c is set to 0 once, before all blocks",
            lambda a, b: a[:, _last(a.shape[1]) :] @ b[_last(a.shape[1]) :],
        ),
        Guess(
            "only the first block of k is there: the loop over the blocks ends after one",
            lambda a, b: _first_products(a, b, BLOCK_DEPTH),
        ),
    ]
    # Within one block, one past one in either direction, and both at once.
    sizes = [(3, BLOCK_DEPTH, BLOCK_WIDTH), (2, BLOCK_DEPTH + 1, 5), (3, 5, BLOCK_WIDTH + 1), (5, 150, 520)]
    return product(name, sizes, guesses)


def _whole(k: int) -> int:
    return k // BLOCK_DEPTH * BLOCK_DEPTH


def _last(k: int) -> int:
    return (k - 1) // BLOCK_DEPTH * BLOCK_DEPTH


def _first_products(a: np.ndarray, b: np.ndarray, count: int) -> np.ndarray:
    return a[:, :count] @ b[:count]


# ctypes, and the micro-kernel


def prepare_nn() -> list[Check]:
    """_prepare_nn: what is sure about a, b and out once C gets their addresses."""
    matmul = c_floor().matmul

    def prepare(a: Any, b: Any, out: Any = None) -> tuple[np.ndarray, np.ndarray, np.ndarray, tuple[int, int, int]]:
        got: Any = matmul._prepare_nn(a, b, out)
        if not isinstance(got, tuple) or len(got) != 4:
            raise Wrong(
                "_prepare_nn: expected (a, b, out, (M, K, N))", got=f"{type(got).__name__}", likely="no return?"
            )
        return got

    def shape(tally: Tally) -> None:
        case = "_prepare_nn of a (2, 3), b (3, 4)"
        tally.trying(case)
        a, b, out, sizes = prepare(np.ones((2, 3)), np.ones((3, 4)))
        tally.holds(
            sizes == (2, 3, 4), f"{case}: the sizes are not (M, K, N)", expected="(2, 3, 4)", got=str(sizes),
            likely="C walks memory by these numbers: M rows of a, K of b, N columns of b",
        )  # fmt: skip
        tally.holds(
            np.shape(out) == (2, 4), f"{case}: out has not the shape of the product", expected="(2, 4)",
            got=str(np.shape(out)), likely="the product has the rows of a and the columns of b: (m, n)",
        )  # fmt: skip
        tally.holds((a.shape, b.shape) == ((2, 3), (3, 4)), f"{case}: a and b keep their shapes")

    def values(tally: Tally) -> None:
        table = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        for given, dtype, how in (
            (np.asfortranarray(table), "float64", "column after column in memory"),
            (np.repeat(table, 2, axis=1)[:, ::2], "float64", "with gaps between its numbers"),
            ([[1, 2, 3], [4, 5, 6]], "float32", "a list of lists"),
            (np.array([[1, 2, 3], [4, 5, 6]]), "float32", "whole numbers"),
        ):
            case = f"_prepare_nn of a given as {how}"
            tally.trying(case)
            a, b, out, _ = prepare(given, np.ones((3, 2), dtype))
            tally.holds(
                isinstance(a, np.ndarray) and a.flags.c_contiguous and a.dtype == dtype,
                f"{case}: C cannot read a", expected=f"a C-contiguous array of {dtype}", got=_form(a),
                likely="C reads row after row, without gaps, float32 or float64: _as_pair brings both into that form",
            )  # fmt: skip
            tally.equal(a, table, case=f"a of {case}")
            tally.holds(
                out.dtype == b.dtype == dtype, f"{case}: the result has another dtype", expected=dtype,
                got=f"out {out.dtype}, b {b.dtype}",
            )  # fmt: skip
        a, b = np.ones((2, 3)), np.ones((3, 2))
        got = prepare(a, b)
        tally.holds(
            got[0] is a and got[1] is b, "_prepare_nn: arrays that C can read as they are were copied",
            likely="what _as_pair returns is all there is to do",
        )  # fmt: skip

    def agreement(tally: Tally) -> None:
        a, b = factors(np.random.default_rng(1), (5, 7, 4))
        for case, (x, y) in {"a, b": (a, b), "transposed views": (np.asarray(b.T), np.asarray(a.T))}.items():
            for name in ("ijk", "threads"):
                text = f"{name} of {case}, through _prepare_nn"
                tally.trying(text)
                tally.equal(getattr(matmul, name)(x, y), x @ y, case=text, terms=7)
        out = np.full((5, 4), np.nan)
        tally.trying("ikj with out=")
        tally.holds(
            matmul.ikj(a, b, out) is out, "ikj(a, b, out): the result is not in out",
            likely="out is what C writes to: hand it on to output_like",
        )  # fmt: skip
        tally.equal(out, a @ b, case="out of ikj(a, b, out)", terms=7)

    def refusals(tally: Tally) -> None:
        a, b = np.ones((4, 4)), np.ones((4, 4))
        wide, both = np.ones((4, 8)), "out is written while a and b are still read: tell output_like of both, by name"
        fits = "C writes M * N numbers of that dtype, one after another, whatever out is: output_like checks it"
        inner = "where a has more columns than b has rows, C reads past the end of b: compare the two"
        pair = "C is told one dtype for all: _as_pair refuses two"
        cases: list[tuple[str, Any, Any, Any, type[Exception], Sequence[str], str]] = [
            ("a (2, 3), b (4, 5)", np.ones((2, 3)), np.ones((4, 5)), None, ValueError, ("(2, 3)", "(4, 5)"), inner),
            ("a (2, 3), b (2, 3)", np.ones((2, 3)), np.ones((2, 3)), None, ValueError, ("(2, 3)",), inner),
            ("a (3, 2), b (3, 3)", np.ones((3, 2)), np.ones((3, 3)), None, ValueError, ("(3, 2)", "(3, 3)"), inner),
            ("a float64, b float32", a, b.astype("float32"), None, TypeError, ("float32", "float64"), pair),
            ("a with one dimension", np.ones(4), b, None, ValueError, ("2 dimensions",), pair),
            ("out (4, 5)", a, b, np.ones((4, 5)), ValueError, ("(4, 5)", "(4, 4)"), fits),
            ("out float32", a, b, np.ones((4, 4), "float32"), ValueError, ("float32", "float64"), fits),
            ("out with gaps", a, b, wide[:, ::2], ValueError, ("contiguous",), fits),
            ("out = a", a, b, a, ValueError, ("overlaps",), both),
            ("out = b", a, b, b, ValueError, ("overlaps",), both),
        ]
        for case, x, y, out, kind, words, likely in cases:
            refused(tally, f"_prepare_nn with {case}", partial(prepare, x, y, out), kind, words, likely)

    def sizes(tally: Tally) -> None:
        for m, k, n in SIZES:
            case = f"_prepare_nn of a {(m, k)}, b {(k, n)}"
            tally.trying(case)
            _, _, out, got = prepare(np.ones((m, k), "float32"), np.ones((k, n), "float32"))
            tally.holds(
                (got, out.shape) == ((m, k, n), (m, n)), f"{case}: sizes or out are wrong",
                expected=f"{(m, k, n)} and out {(m, n)}", got=f"{got} and out {out.shape}",
            )  # fmt: skip

    made = [("shape", shape), ("values", values), ("agreement", agreement), ("sizes", sizes), ("memory", refusals)]
    return [Check(name, run) for name, run in made]


def _form(array: Any) -> str:
    if not isinstance(array, np.ndarray):
        return type(array).__name__
    return f"{array.dtype} with strides {array.strides} for shape {array.shape}"


def tile() -> list[Check]:
    """The micro-kernel, through the products that are made of its tiles."""
    name = "matmul_packed"
    width = tile_columns()

    def second_register(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        j = np.arange(b.shape[1])
        return (a @ b)[:, np.where(j // (width // 2) % 2 == 1, j - width // 2, j)]

    def more(tally: Tally) -> None:
        rng = np.random.default_rng(6)
        strides = "a is read by both its strides: element (i, p) is a.values[i * a.row + p * a.column]"
        # aᵀb with few columns reads a where it lies, column by column, with many it is packed; abᵀ packs b.
        for form, (m, k, n) in (("tn", (9, 5, 33)), ("tn", (9, 5, 520)), ("nt", (9, 5, 33))):
            a, b = factors(rng, (m, k, n))
            given = (np.ascontiguousarray(a.T), b) if form == "tn" else (a, np.ascontiguousarray(b.T))
            case = f"matmul_{form}(m={m}, k={k}, n={n})"
            tally.trying(case)
            got = product_call(f"matmul_{form}")(*given)
            likely = likely_cause(got, a @ b, "", [*guesses, *PRODUCT_GUESSES], (a, b)) or strides
            alike(tally, case, got, a @ b, likely, scale=np.abs(a) @ np.abs(b))
        a, b = (each.astype("float32") for each in factors(rng, (13, 40, 70)))
        case = f"{name}(m=13, k=40, n=70) in float32"
        tally.trying(case)
        scale = np.abs(a) @ np.abs(b)
        alike(tally, case, product_call(name, "float32")(a, b), a.astype("float64") @ b, "", "float32", scale)

    def with_bias(tally: Tally) -> None:
        function = c_function("dense_forward")
        rng = np.random.default_rng(7)
        (x, w), bias = factors(rng, (9, 600, 21)), rng.standard_normal(21)
        case = "dense_forward of x (9, 600), weights (600, 21), with relu"
        tally.trying(case)
        arguments = (read("x", x), read("w", w), read("b", bias), RELU, filled("y", (9, 21)))
        got = guarded.run("dense_forward", function, library.pool(), 9, 600, 21, *arguments)["y"]
        likely = "put_away needs added, bias and activation as they came: they say what is in c, and what goes on top"
        alike(tally, case, got, np.maximum(x @ w + bias, 0), likely, scale=np.abs(x) @ np.abs(w) + np.abs(bias))

    guesses = [
        Guess(
            "b's rows are b_row numbers apart: where b is read from where it lies, that is not a tile's width",
            lambda a, b: _times(a, walked(b, width, 1)),
        ),
        Guess(
            "the second register of a row holds the next LANES columns: load from v * LANES further on", second_register
        ),
    ]
    sizes = [(5, 3, 2 * width), (2, 9, width + 1), (17, 33, 70), (9, 600, 40), (260, 3, width + 3)]
    made = checks_of(product(name, sizes, guesses))
    m, k, n = 32, 256, 256
    a, b = factors(np.random.default_rng(4), (m, k, n))
    c, packed, ikj, handle = np.empty((m, n)), c_function(name), c_function("matmul_ikj"), library.pool()
    speed = faster(
        f"{name}(m={m}, k={k}, n={n})",
        lambda: packed(handle, m, k, n, a, b, c),
        "matmul_ikj",
        lambda: ikj(m, k, n, a, b, c),
        0.8,
        "the sums are stored and loaded again for every product: they stay in `sum`, in registers, until the end",
    )
    return [*and_then(and_then(made, "agreement", more), "sizes", with_bias), speed]


RELU = 1
"""In `enum activation` of groundup.h."""


def tile_columns() -> int:
    """How many float64 a tile is wide: two registers."""
    c_floor()
    return 2 * library.plain_function("simd_bytes")() // 8
