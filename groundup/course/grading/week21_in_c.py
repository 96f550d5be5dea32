"""Week 21: the loops of a convolution in C, and gathering while packing."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from groundup.course.checks.check import Check, Tally, Wrong, and_then
from groundup.course.checks.exercise import Exercise
from groundup.course.checks.mistakes import Mistake
from groundup.course.grading.calling import fenced_arrays
from groundup.course.grading.calling.c_functions import alike, c_floor, c_function, faster, graded, library
from groundup.course.grading.calling.fenced_arrays import filled, read
from groundup.course.grading.own_work import words_of
from groundup.course.grading.problems import images
from groundup.course.grading.problems.images import CASES, ONE, TYPICAL, Case

BESIDE_THE_IMAGE = (
    "x is read beside the image: a row and a column may lie outside, and both are tested before x is read; the rows of "
    "x are width apart, those of w kernel_width"
)


LANES = Case(2, 2, 13, 11, 3, 3, 3, ONE, ONE)
"""More outputs in a row than a register has numbers, and not a multiple of them."""


def in_c(name: str, mistakes: list[Mistake], sizes: list[Case]) -> Exercise:
    """The exercise of a rung of convolution in C."""
    function, floor = c_function(name), c_floor().convolution

    def call(x: np.ndarray, weights: np.ndarray, bias: np.ndarray, stride: Any, padding: Any) -> np.ndarray:
        struct = floor._sizes("conv2d", x, weights, stride, padding)
        shape = (len(x), len(weights), struct.out_height, struct.out_width)
        arrays = [read("x", x), read("w", weights), read("b", bias)]
        if name == "conv2d_im2col":
            arrays.append(filled("columns", (weights[0].size, struct.out_height * struct.out_width)))
        first = () if name == "conv2d_direct" else (library.pool(),)
        given = (*first, ctypes.byref(struct), len(x), *arrays, filled("y", shape))
        try:
            result: np.ndarray = fenced_arrays.run(name, function, *given)["y"]
        except Wrong as wrong:
            wrong.cause = BESIDE_THE_IMAGE if wrong.cause == fenced_arrays.FROM_OUTSIDE else wrong.cause
            raise
        return result

    return Exercise(
        call=call,
        reference=images.conv_of,
        show=images.conv_shown(name),
        hand=images.CONV_HAND,
        arguments=images.conv_arguments,
        typical=TYPICAL,
        sizes=[*CASES, LANES, *sizes],
        special=(0, 2),
        terms=lambda x, w, *more: w[0].size,
        scale=images.conv_scale,
        mistakes=[*mistakes, *images.conv_mistakes()],
    )


LOOPS, GEMM = "stage3_c/csrc/convolution_loops.c", "stage3_c/csrc/convolution_gemm.c"


def one_output() -> list[Check]:
    """The sum of one output, graded by the convolution that is made of it."""
    return graded(in_c("conv2d_direct", [], [Case(1, 70, 5, 4, 1, 3, 3, ONE, ONE)]))


LONG = Case(1, 130, 4, 5, 3, 3, 3, ONE, ONE)
"""130 times 9 is 1,170 rows of columns: more than one panel, of 512 in float64 and of 1,024 in float32."""


def pack_windows() -> list[Check]:
    """The rows of a panel, gathered from the image; graded by both convolutions that multiply them."""
    name = "conv2d_implicit"

    def first_panel_again(x: Any, w: Any, b: Any, stride: Any, padding: Any) -> Any:
        depth, rows = w[0].size, 512
        if depth <= rows:
            return None
        windows = images.windows_of(x, w.shape[2:], stride, padding).transpose(0, 2, 3, 1, 4, 5)
        rows_again = windows.reshape(*windows.shape[:3], depth)[..., np.arange(depth) % rows]
        return np.moveaxis(rows_again @ w.reshape(len(w), depth).T + b, 3, 1)

    mistakes = [
        Mistake(
            "each panel holds the first rows again: row k stands for k = k_begin to k_end, and its channel and place "
            "follow from k",
            first_panel_again,
        ),
    ]

    def row_by_row(tally: Tally) -> None:
        """conv2d_im2col asks for one row at a time, of one row of outputs."""
        columns = in_c("conv2d_im2col", mistakes, [])
        for s in (TYPICAL, CASES[2], CASES[4], LONG):
            given = images.conv_arguments(np.random.default_rng(8), s)
            case = images.conv_shown("conv2d_im2col")(*given)
            tally.trying(case)
            cause = "rows k_begin to k_end alone are asked for, and row k_begin comes first in panel"
            size = images.conv_scale(*given)
            alike(tally, case, columns.call(*given), images.conv_of(*given), cause, scale=size)
            narrow = [each.astype("float32") for each in given[:3]]
            wide = [each.astype("float64") for each in narrow]
            implicit = exercise.call(*narrow, *given[3:])
            case = f"{images.conv_shown(name)(*given)} in float32"
            alike(tally, case, implicit, images.conv_of(*wide, *given[3:]), cause, "float32", size)

    def way(tally: Tally) -> None:
        tally.holds(
            not any("alloc" in word for word in words_of(GEMM, "pack_windows")),
            "pack_windows makes memory of its own",
            cause="the panel that it fills is all that it needs: the matrix of columns must never exist",
        )

    sizes = [LONG, Case(2, 2, 19, 23, 5, 3, 3), Case(1, 3, 70, 1, 2, 3, 1, ONE, (1, 0))]
    exercise = replace(in_c(name, mistakes, sizes), way=way)
    many = images.conv_arguments(np.random.default_rng(4), Case(4, 32, 14, 14, 32, 3, 3, ONE, ONE))
    x, weights, bias, stride, padding = many
    struct, y = c_floor().convolution._sizes("conv2d", x, weights, stride, padding), np.empty((4, 32, 14, 14))
    implicit, direct = c_function(name), c_function("conv2d_direct")
    speed = faster(
        f"{name} of x {x.shape} and weights {weights.shape}",
        lambda: implicit(library.pool(), ctypes.byref(struct), 4, x, weights, bias, y),
        "conv2d_direct",
        lambda: direct(ctypes.byref(struct), 4, x, weights, bias, y),
        0.5,
        "packing takes longer than the product: find channel and place once for each row k, and copy a run of "
        "neighbours at a time",
    )
    return [*and_then(graded(exercise), "agreement", row_by_row), speed]


GRADES: dict[str, Callable[[], list[Check]]] = {"21.4": one_output, "21.5": pack_windows}
