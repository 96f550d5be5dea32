"""Week 8: what Python makes sure of before it calls C, and the dense layer in two calls."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from groundup.course.checks.check import Check, Question, Tally, Wrong
from groundup.course.checks.derivatives import gradient_check
from groundup.course.checks.exercise import Exercise
from groundup.course.checks.exercise_checks import checks_of
from groundup.course.checks.mistakes import Mistake
from groundup.course.checks.repeated import OVERWRITTEN, equal, handed, is_repeating, returned
from groundup.course.grading.calling.c_functions import c_floor, library, numpy_floor
from groundup.course.grading.problems.dense import AGAIN, another_layer, layer_of
from groundup.course.grading.problems.matrices import SIZES, A, B, matrices


def refused(tally: Tally, case: str, call: Callable[[], Any], kind: type[Exception], cause: str) -> None:
    """A call that must raise an error of this kind. What its message says is the learner's own."""
    tally.trying(case)
    try:
        call()
    except (ValueError, TypeError) as error:
        said = f"{type(error).__name__}: {error}"
        what = f"{case}: another error than expected"
        tally.holds(isinstance(error, kind), what, expected=kind.__name__, got=said, cause=WHICH_ERROR)
    else:
        what = f"{case}: this has to be refused, and was not"
        tally.holds(False, what, expected=kind.__name__, got="no error", cause=cause)


WHICH_ERROR = "ValueError for shapes that do not fit and for an out that C cannot write to, TypeError for two dtypes"


def prepare_nn() -> list[Check]:
    """_prepare_nn: what must hold of a, b and out before C gets their addresses."""
    matmul = c_floor().matmul

    def prepare(a: Any, b: Any, out: Any = None) -> tuple[np.ndarray, np.ndarray, np.ndarray, tuple[int, int, int]]:
        got: Any = matmul._prepare_nn(a, b, out)
        if not isinstance(got, tuple) or len(got) != 4:
            raise Wrong("_prepare_nn: expected (a, b, out, (M, K, N))", got=f"{type(got).__name__}", cause="no return?")
        return got

    def shape(tally: Tally) -> None:
        case = "_prepare_nn of a (2, 3), b (3, 4)"
        tally.trying(case)
        a, b, out, sizes = prepare(np.ones((2, 3)), np.ones((3, 4)))
        tally.holds(
            sizes == (2, 3, 4), f"{case}: the sizes are not (M, K, N)", expected="(2, 3, 4)", got=str(sizes),
            cause="C walks memory by these numbers: M rows of a, K of b, N columns of b",
        )  # fmt: skip
        tally.holds(
            np.shape(out) == (2, 4), f"{case}: out has not the shape of the product", expected="(2, 4)",
            got=str(np.shape(out)), cause="the product has the rows of a and the columns of b: (m, n)",
        )  # fmt: skip
        tally.holds((a.shape, b.shape) == ((2, 3), (3, 4)), f"{case}: a and b keep their shapes")

    def values(tally: Tally) -> None:
        table = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        for matrix, dtype, how in (
            (np.asfortranarray(table), "float64", "column after column in memory"),
            (np.repeat(table, 2, axis=1)[:, ::2], "float64", "with gaps between its numbers"),
            ([[1, 2, 3], [4, 5, 6]], "float32", "a list of lists"),
            (np.array([[1, 2, 3], [4, 5, 6]]), "float32", "whole numbers"),
        ):
            case = f"_prepare_nn of a given as {how}"
            tally.trying(case)
            a, b, out, _ = prepare(matrix, np.ones((3, 2), dtype))
            tally.holds(
                isinstance(a, np.ndarray) and a.flags.c_contiguous and a.dtype == dtype,
                f"{case}: C cannot read a", expected=f"a C-contiguous array of {dtype}", got=_form(a),
                cause="C reads row after row, without gaps, float32 or float64: _as_pair brings both into that form",
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
            cause="return what _as_pair returns: no further copy is needed",
        )  # fmt: skip

    def agreement(tally: Tally) -> None:
        a, b = matrices(np.random.default_rng(1), (5, 7, 4))
        for case, (x, y) in {"a, b": (a, b), "transposed views": (np.asarray(b.T), np.asarray(a.T))}.items():
            for name in ("ijk", "threads"):
                text = f"{name} of {case}, through _prepare_nn"
                tally.trying(text)
                tally.equal(getattr(matmul, name)(x, y), x @ y, case=text, terms=7)
        one, other = (prepare(a, b)[2] for _ in range(2))
        tally.holds(not np.shares_memory(one, other), "_prepare_nn: two calls give the same out", cause=OVERWRITTEN)
        out = np.full((5, 4), np.nan)
        tally.trying("ikj with out=")
        tally.holds(
            matmul.ikj(a, b, out) is out, "ikj(a, b, out): the result is not in out",
            cause="out is what C writes to: hand it on to output_like",
        )  # fmt: skip
        tally.equal(out, a @ b, case="out of ikj(a, b, out)", terms=7)

    def refusals(tally: Tally) -> None:
        a, b = np.ones((4, 4)), np.ones((4, 4))
        wide, both = np.ones((4, 8)), "out is written while a and b are still read: tell output_like of both, by name"
        fits = "C writes M * N numbers of that dtype, one after another, whatever out is: output_like checks it"
        inner = "where a has more columns than b has rows, C reads past the end of b: compare the two"
        pair = "C is told one dtype for all: _as_pair refuses two"
        store, read_only = np.ones((5, 4)), np.ones((4, 4))
        read_only.flags.writeable = False
        cases: list[tuple[str, Any, Any, Any, type[Exception], str]] = [
            ("a (2, 3), b (4, 5)", np.ones((2, 3)), np.ones((4, 5)), None, ValueError, inner),
            ("a (2, 3), b (2, 3)", np.ones((2, 3)), np.ones((2, 3)), None, ValueError, inner),
            ("a (3, 2), b (3, 3)", np.ones((3, 2)), np.ones((3, 3)), None, ValueError, inner),
            ("a (2, 4), b (3, 4)", np.ones((2, 4)), np.ones((3, 4)), None, ValueError, inner),
            ("a float64, b float32", a, b.astype("float32"), None, TypeError, pair),
            ("a with one dimension", np.ones(4), b, None, ValueError, pair),
            ("b with one dimension", a, np.ones(4), None, ValueError, pair),
            ("out (4, 5)", a, b, np.ones((4, 5)), ValueError, fits),
            ("out (5, 4)", a, b, np.ones((5, 4)), ValueError, fits),
            ("out float32", a, b, np.ones((4, 4), "float32"), ValueError, fits),
            ("out with gaps", a, b, wide[:, ::2], ValueError, fits),
            ("out that may not be written", a, b, read_only, ValueError, fits),
            ("out = a", a, b, a, ValueError, both),
            ("out = b", a, b, b, ValueError, both),
            ("out that shares some rows with a", store[:4], b, store[1:], ValueError, both),
        ]
        for case, x, y, out, kind, cause in cases:
            refused(tally, f"_prepare_nn with {case}", partial(prepare, x, y, out), kind, cause)

    def sizes(tally: Tally) -> None:
        for m, k, n in SIZES:
            case = f"_prepare_nn of a {(m, k)}, b {(k, n)}"
            tally.trying(case)
            _, _, out, got = prepare(np.ones((m, k), "float32"), np.ones((k, n), "float32"))
            tally.holds(
                (got, out.shape) == ((m, k, n), (m, n)), f"{case}: sizes or out are wrong",
                expected=f"{(m, k, n)} and out {(m, n)}", got=f"{got} and out {out.shape}",
            )  # fmt: skip

    def prepared(a: np.ndarray, b: np.ndarray) -> dict[str, Any]:
        a, b, out, (m, k, n) = prepare(a, b)
        return {"a": a, "b": b, "the shape of out": np.shape(out), "(M, K, N)": (m, k, n)}

    question = Question(
        call=prepared,
        reference=lambda a, b: {
            "a": a, "b": b, "the shape of out": (len(a), b.shape[1]), "(M, K, N)": (*a.shape, b.shape[1])
        },
        arguments=lambda rng, most: matrices(rng, tuple(rng.integers(1, most, 3))),
        size=9,
    )  # fmt: skip
    checks = [("shape", shape), ("values", values), ("agreement", agreement), ("sizes", sizes), ("memory", refusals)]
    return [Check(name, run, question) for name, run in checks]


def _form(array: Any) -> str:
    if not isinstance(array, np.ndarray):
        return type(array).__name__
    return f"{array.dtype} with strides {array.strides} for shape {array.shape}"


def dense_forward() -> list[Check]:
    """Dense.forward: the product and the bias, written into the caller's out, and x stored for the way back."""
    dense, floor = c_floor().dense.Dense, numpy_floor().dense.Dense

    def call(x: np.ndarray, weights: np.ndarray, bias: np.ndarray) -> Any:
        layer = layer_of(dense, weights, bias)
        x = handed(x)
        y = layer.forward(x)
        returned(y, (x, weights, bias))
        another_layer(dense, layer, -x)
        if is_repeating() and not equal(layer._x, x):
            raise Wrong("Dense.forward does not remember x", cause="forward keeps x for backward, as self._x")
        return y

    def backward_finds_x(w: np.ndarray) -> Any:
        layer = dense(w, np.zeros(w.shape[1]))
        layer.forward(x)
        try:
            layer.backward(grad)
        except ValueError as error:
            raise Wrong(f"backward after forward: {error}", cause="forward keeps x for backward, as self._x") from None
        return layer.grad_weights

    def arguments(rng: np.random.Generator, size: tuple[int, int, int]) -> tuple[np.ndarray, ...]:
        batch, inputs, out = size
        return rng.standard_normal((batch, inputs)), rng.standard_normal((inputs, out)), rng.standard_normal(out)

    def memory(tally: Tally) -> None:
        case = "Dense.forward(x, out=out)"
        tally.trying(case)
        x, weights, bias = arguments(np.random.default_rng(6), (5, 3, 4))
        layer, out, called = dense(weights, bias), np.full((5, 4), np.nan), []
        original = library.function

        def noted(name: str, dtype: Any) -> Any:
            called.append(name)
            return original(name, dtype)

        library.function = noted
        try:
            got = layer.forward(x, out=out)
        finally:
            library.function = original
        tally.holds(
            got is out, f"{case}: the result is not in out",
            cause="matmul takes where to write as its third argument, and forward returns it",
        )  # fmt: skip
        tally.equal(out, x @ weights + bias, case=f"out of {case}", terms=3)
        tally.holds(
            "add_bias" in called and len(called) == 2, f"{case} is to be two calls into C: the product and add_bias",
            got=", ".join(called) or "none",
            cause="NumPy holds the memory here; library.function(name, dtype) gives the C function that computes",
        )  # fmt: skip
        narrow = [array.astype(np.float32) for array in (x, weights, bias)]
        case = "Dense.forward in float32"
        tally.trying(case)
        tally.equal(dense(*narrow[1:]).forward(narrow[0]), x @ weights + bias, case=case, dtype="float32", terms=64)
        refused(
            tally, "Dense.forward of x (5, 4) by weights (3, 4)", lambda: dense(weights, bias).forward(np.ones((5, 4))),
            ValueError, "self._prepare checks x, and makes out where there is none",
        )  # fmt: skip
        refused(
            tally, "Dense.forward with out (5, 3)", lambda: layer.forward(x, out=np.ones((5, 3))),
            ValueError, "self._prepare checks out, too",
        )  # fmt: skip

    x, w, _ = arguments(np.random.default_rng(5), (4, 3, 2))
    grad = np.random.default_rng(7).standard_normal((4, 2))
    return checks_of(
        Exercise(
            call=call,
            reference=lambda x, weights, bias: floor(weights, bias).forward(x),
            show=lambda x, weights, bias: f"Dense.forward for x {x.shape}, weights {weights.shape}",
            hand=[((A, B, np.array([10.0, 100.0])), [[17.0, 99.0], [26.0, 99.0]])],
            arguments=arguments,
            typical=(4, 4, 4),
            sizes=SIZES,
            again=AGAIN,
            gradient=gradient_check(
                lambda w: float(np.sum((x @ w) * grad)),
                backward_finds_x,
                lambda rng: w,
                "sum(y * grad_output) for weights (3, 2): what backward makes of the x that forward kept",
            ),
            terms=lambda x, weights, bias: x.shape[1] + 1,
            scale=lambda x, weights, bias: np.abs(x) @ np.abs(weights) + np.abs(bias),
            mistakes=[
                Mistake("the bias is missing", lambda x, w, b: x @ w),
                Mistake("the bias is added twice", lambda x, w, b: x @ w + 2 * b),
                Mistake("the product is missing: only the bias is there", lambda x, w, b: np.tile(b, (len(x), 1))),
            ],
            memory=memory,
        )
    )


GRADES: dict[str, Callable[[], list[Check]]] = {
    "8.1": prepare_nn,
    "8.2": dense_forward,
}
