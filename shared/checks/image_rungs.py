"""Every rung of the convolution ladder alone, its gradients, pooling and batch normalisation, for a device.

    convolution               every rung of CONVOLUTION_LADDER, forward
    convolution gradients     every rung of BACKWARD, and those in use: by the images, the weights and the bias
    convolution, tensor cores
                              both in every precision that the device knows
    pooling, batch norm       all their operations

What rungs.py is for the other rooms. Every result is written into an array full of NaN, where an operation takes one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from shared.checks import batch_norm_ops, convolution_ops, pooling_ops
from shared.checks.convolution_ops import Form, backward_scales, forward_scale
from shared.checks.pair import Pair
from shared.checks.rungs import ROUNDING, RungCheck, part_of, written
from shared.checks.tolerance import Comparison, tolerance
from shared.contract import Stage
from shared.windows import output_size

FORMS = (*convolution_ops.FORMS, *convolution_ops.MORE_FORMS)
TINY_FORMS = (convolution_ops.FORMS[1], convolution_ops.FORMS[4])
TINY_POOLS, TINY_SHAPES = (pooling_ops.FORMS[2],), ((3, 2, 5, 7),)
GRADIENTS = ("grad_input", "grad_weights", "grad_bias")


def image_rung_checks(stage: Stage, reference: Stage, dtype: str, tiny: bool = False) -> Iterator[RungCheck]:
    """A check for each rung. Nothing is computed until a check runs.

    reference: computes in float64; dtype: what the stage computes in; the tensor cores are checked with float32
    tiny: few sizes, as for a device under compute-sanitizer
    """
    pair, room = Pair(stage, reference, dtype), stage.convolution
    forms = TINY_FORMS if tiny else FORMS
    pools = TINY_POOLS if tiny else (*pooling_ops.FORMS, *pooling_ops.MORE_FORMS)
    shapes = TINY_SHAPES if tiny else (*batch_norm_ops.SHAPES, *batch_norm_ops.MORE_SHAPES)

    def check(operation: str, rung: str, compare: Callable[..., Any], *arguments: Any) -> RungCheck:
        return RungCheck(operation, rung, dtype, partial(compare, pair, *arguments))

    for rung, convolve in room.CONVOLUTION_LADDER.items():
        yield check("convolution", rung, forward, rung, convolve, forms)
    passes: Any = part_of(stage, "convolution_passes")
    for rung, backward in getattr(passes, "BACKWARD", {}).items():
        yield check("convolution gradients", rung, unchecked_gradients, backward, forms)
    yield check("convolution gradients", "in use", gradients, forms)
    if dtype == "float32":
        known: list[str] = getattr(stage.matmul, "tensor_precisions", list)()
        for precision in (name for name in getattr(room, "TENSOR_CORES", ()) if name in known):
            convolve, backward = room.TENSOR_CORES[precision], partial(passes.backward_into, precision=precision)
            yield check("convolution, tensor cores", precision, forward, precision, convolve, forms)
            yield check("gradients, tensor cores", precision, unchecked_gradients, backward, forms, precision)
    yield check("pooling", "all operations", pooling_ops.pooling_checks, _random(), pools)
    yield check("batch norm", "all operations", batch_norm_ops.batch_norm_checks, _random(), shapes)


def forward(pair: Pair, rung: str, convolve: Any, forms: Sequence[Form]) -> Iterator[Comparison]:
    """One rung at every form, beside the reference's simplest loops."""
    ladder = pair.stage.convolution.CONVOLUTION_LADDER
    simplest = next(iter(pair.reference.convolution.CONVOLUTION_LADDER.values()))
    for form in forms:
        x, weights, bias, _ = numbers(pair, form)
        window = form.stride, form.padding
        expected = pair.from_reference(simplest(*map(pair.to_reference, (x, weights, bias)), *window))
        known = rung if rung in ladder else next(iter(ladder))
        k, scale = forward_scale(ladder, known, x, weights, bias, *window)
        own = [pair.to_stage(each) for each in (x, weights, bias)]
        run = partial(written, pair, expected.shape, partial(convolve, *own, *window))
        yield pair.check("conv2d", run, expected, k, scale * coarser(rung, k), case=form.name)


def gradients(pair: Pair, forms: Sequence[Form]) -> Iterator[Comparison]:
    """`conv2d_backward` of the room at every form."""

    def run(grad: Any, x: Any, weights: Any, form: Form) -> Sequence[Any]:
        return pair.stage.convolution.conv2d_backward(grad, x, weights, form.stride, form.padding)

    for form in forms:
        yield from _compared(pair, form, run, "")


def unchecked_gradients(pair: Pair, backward: Any, forms: Sequence[Form], precision: str = "") -> Iterator[Comparison]:
    """One way to all gradients, (grad, x, weights, geometry, grad_input, grad_weights, grad_bias), at every form."""

    def run(grad: Any, x: Any, weights: Any, form: Form) -> Sequence[Any]:
        g = pair.stage.convolution.geometry("check", x, weights, form.stride, form.padding)
        out = [pair.to_stage(np.full(shape, np.nan)) for shape in (form.x, form.weights, form.weights[:1])]
        backward(grad, x, weights, g, *out)
        return out

    for form in forms:
        yield from _compared(pair, form, run, precision)


def _compared(pair: Pair, form: Form, run: Callable[..., Sequence[Any]], precision: str) -> Iterator[Comparison]:
    """The three gradients of a form. run(grad, x, weights, form): arrays of the stage in, its three gradients out"""
    x, weights, _, grad = numbers(pair, form)
    window = form.stride, form.padding
    given = [pair.to_reference(each) for each in (grad, x, weights)]
    expected = [pair.from_reference(each) for each in pair.reference.convolution.conv2d_backward(*given, *window)]
    rules = backward_scales(pair.stage.convolution.CONVOLUTION_LADDER, grad, x, weights, *window)
    found: list[Any] = []

    def number(which: int) -> Any:
        if not found:
            found.extend(run(*(pair.to_stage(each) for each in (grad, x, weights)), form))
        return found[which]

    for i, (name, right, (k, scale)) in enumerate(zip(GRADIENTS, expected, rules, strict=True)):
        yield pair.check(name, partial(number, i), right, k, scale * coarser(precision, k), case=form.name)


def numbers(pair: Pair, form: Form) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """x, weights, bias and dL/doutput of a form: normal random numbers that the dtype holds exactly, in float64."""
    rng = _random()
    outputs = output_size("check", form.x, form.weights[2:], form.stride, form.padding)
    shapes = form.x, form.weights, form.weights[:1], (form.x[0], form.weights[0], *outputs)
    x, weights, bias, grad = (pair.rounded(rng.standard_normal(shape)) for shape in shapes)
    return x, weights, bias, grad


def coarser(precision: str, k: float) -> float:
    """How many times float32's tolerance is allowed where both factors are rounded to this precision; 1 for none."""
    unit = ROUNDING.get(precision, 0.0)
    return 1 + (2 * unit + unit**2) / float(tolerance("float32", k, 1.0))


def _random() -> np.random.Generator:
    return np.random.default_rng(0)
