"""The matmul ladder beside cuBLAS: every rung at 1,024, 2,048 and 4,096, in TFLOP/s and as a share of cuBLAS.

All rungs of one size and their references are measured in turns, on the device's own clock (timing.py). The
FP32 rungs are set beside cuBLAS with TF32 switched off. The tensor-core rungs stand apart, each beside cuBLAS in its
own precision; ours read float32 and round on the way, cuBLAS gets bf16 operands ready made.

Each result is checked before it is timed, some of its rows against float64.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from typing import Any

import numpy as np

from shared.bench.gpu import Cublas, cublas

from .. import matmul
from ..arrays import asarray, empty, to_host
from ..backend import BACKEND
from .part import NO_GPU, Part
from .timing import measure_device

SIZES = (1024, 2048, 4096)
QUICK_SIZES = (1024,)
TINY_SIZES = (40,)
CHECKED_ROWS = 32

ALLOWED = {"float32": 1e-5, "tf32": 2e-3, "bf16": 1e-2}
"""Norm of the error over that of the result, for normal random numbers: a tenth of it is usual."""

SLOWEST = 0.5
"""Seconds of one call above which a rung is left out at the larger sizes: it has been seen how slow it is."""

REFERENCE = "cuBLAS"


def run(part: Part) -> None:
    """A row for each size, precision and rung, fastest sizes first."""
    tensor = getattr(matmul, "TENSOR_CORES", {})
    precisions = {"float32": dict(matmul.LADDER)} | {name: {"mma": multiply} for name, multiply in tensor.items()}
    sizes = TINY_SIZES if part.plan.tiny else QUICK_SIZES if part.plan.quick else SIZES
    if BACKEND.emulated:
        part.skip("cuBLAS and the tensor-core rungs' speed", NO_GPU)
    too_slow: dict[str, float] = {}
    wrong = []
    for i, size in enumerate(sizes):
        random = np.random.default_rng(size)
        a, b = (random.standard_normal((size, size)).astype(np.float32) for _ in range(2))
        on_device = [asarray(a), asarray(b), empty((size, size), np.float32)]
        candidates: dict[tuple[str, str], Callable[[], object]] = {}
        libraries: dict[str, str] = {}
        for precision, rungs in precisions.items():
            if BACKEND.emulated and precision != "float32":
                continue
            reference = None if BACKEND.emulated else cublas(a, b, precision)
            if reference is not None:
                candidates[precision, REFERENCE] = reference.multiply
                libraries[precision] = reference.library
                wrong += _check(a, b, precision, REFERENCE, reference)
            elif not BACKEND.emulated:
                part.skip(f"cuBLAS in {precision}", "neither PyTorch nor CuPy is here to call it")
            for rung, multiply in rungs.items():
                if too_slow.get(rung, 0.0) * 8 > SLOWEST:
                    part.skip(f"{rung} at {size}", f"one call took {too_slow[rung]:.2g} s at half the size")
                    continue
                candidates[precision, rung] = partial(multiply, on_device[0], on_device[1], on_device[2])
                wrong += _check(a, b, precision, rung, _own(multiply, on_device))
        measured = measure_device(
            candidates, repeats=5 if part.plan.tiny or part.plan.quick else 15, limit=part.left / (len(sizes) - i) / 2
        )
        for (precision, rung), result in measured.items():
            too_slow[rung] = result.median
            beside = measured.get((precision, REFERENCE))
            share = beside.median / result.median if beside else None
            tflops = 2 * size**3 / result.median / 1e12
            said = f", {share:.3f} of cuBLAS" if share and rung != REFERENCE else ""
            part.add(
                f"{size}, {precision}, {rung}: {tflops:.3g} TFLOP/s{said}",
                size=size, precision=precision, rung=rung, tflops=tflops, share_of_cublas=share,
                reference=libraries.get(precision), **asdict(result),
            )  # fmt: skip
    part.finish("failed" if wrong else "ok", "; ".join(wrong))


def _own(multiply: Any, arrays: list[Any]) -> Cublas:
    """One of our rungs in the same form as a reference."""
    a, b, out = arrays
    out.copy_to_device(np.full(out.shape, np.nan, np.float32))
    return Cublas("", lambda: multiply(a, b, out), lambda: to_host(out))


def _check(a: np.ndarray, b: np.ndarray, precision: str, rung: str, product: Cublas) -> list[str]:
    """What is wrong with the product, in a list of none or one."""
    product.multiply()
    rows = np.unique(np.linspace(0, len(a) - 1, CHECKED_ROWS).astype(int))
    expected = a[rows].astype(np.float64) @ b
    whole = product.result().astype(np.float64)
    error = np.linalg.norm(whole[rows] - expected) / np.linalg.norm(expected)
    if np.isfinite(whole).all() and error <= ALLOWED[precision]:
        return []
    return [f"{rung} at {len(a)} in {precision} is off by {error:.2g} of the result"]
