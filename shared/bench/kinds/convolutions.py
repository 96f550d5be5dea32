"""The convolutions of the known networks: every rung forward, and backward, beside PyTorch and the machine's peak.

A form is one convolution of a network at one batch size. Every rung reads the same images and, from the second stage
up, writes into memory that exists already; PyTorch has no `out=` and allocates its result. Backward computes all three
gradients. PyTorch's backward pass contains the few microseconds of its autograd engine.

On a GPU, cuDNN stands beside stage 4, called by PyTorch with TF32 off and on and in both layouts, and the rungs on
tensor cores take part. All of them are timed by the device's own clock.

Before a contender is timed, the first images of its result are compared with stage 2's in float64.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from shared.architectures import NAMED, named
from shared.bench.measuring import gpu
from shared.bench.measuring.compared_candidates import CallLimit, Effort, take_turns
from shared.bench.measuring.rows import NOT_TIMED, BenchRow
from shared.bench.measuring.timing import aligned, stage_dtypes
from shared.checks.convolution_ops import backward_scales, forward_scale
from shared.checks.pair import host
from shared.checks.rungs import ROUNDING
from shared.checks.tolerance import compare, tolerance
from shared.contract import Stage, load_part, load_stage
from shared.layers import Conv
from shared.windows import as_pair

BATCH = 32
EFFORT = Effort(repeats=9, group_limit=6.0, minimum_sample=0.005)
CALL_LIMIT = 2.0
"""Seconds; a rung that takes longer for one call is skipped."""
CHECKED = 2
"""How many images of a result are compared."""
NUMPY_STAGE, PYTORCH = "stage2_numpy", "pytorch"
CUDNN = "cudnn"
"""In `against` of a row on a GPU: PyTorch's convolution there, in the same precision and layout."""
BACKWARD = "backward"

Key = tuple[str, str]
"""Who computes, and by which rung."""


class Form(NamedTuple):
    """One convolution: x (N, C, H, W) by weights (O, C, kh, kw)."""

    x: tuple[int, int, int, int]
    weights: tuple[int, int, int, int]
    stride: tuple[int, int] = (1, 1)
    padding: tuple[int, int] = (0, 0)

    @property
    def name(self) -> str:
        """'64x13x13 by 128 of 3x3, batch 32', and the stride and the padding where they are not 1 and 0."""
        (batch, *image), (filters, _, *window) = self.x, self.weights
        text = f"{'x'.join(map(str, image))} by {filters} of {'x'.join(map(str, window))}"
        text += "" if self.stride == (1, 1) else f", stride {self.stride[0]}x{self.stride[1]}"
        text += "" if self.padding == (0, 0) else f", padding {self.padding[0]}"
        return f"{text}, batch {batch}"

    @property
    def outputs(self) -> tuple[int, int, int, int]:
        """The shape of the result."""
        rows, columns = (
            (extent + 2 * p - window) // s + 1
            for extent, window, s, p in zip(self.x[2:], self.weights[2:], self.stride, self.padding, strict=True)
        )
        return self.x[0], self.weights[0], rows, columns

    @property
    def flops(self) -> int:
        """Operations of the forward pass by its definition, two per multiply-add. Winograd's transforms need fewer."""
        return 2 * int(np.prod(self.outputs)) * int(np.prod(self.weights[1:]))


def forms_of(models: Sequence[str] = tuple(NAMED), batch: int = BATCH) -> list[Form]:
    """Each different convolution of those networks, in order."""
    found = []
    for model in models:
        for each in named(model).placed():
            if isinstance(each.layer, Conv):
                layer = each.layer
                stride, padding, size = (as_pair(value) for value in (layer.stride, layer.padding, layer.size))
                weights = (layer.out_channels, each.input_shape[0], *size)
                found.append(Form((batch, *each.input_shape), weights, stride, padding))  # type: ignore[arg-type]
    return list(dict.fromkeys(found))


def convolution_rows(
    stages: Sequence[Stage],
    *,
    forms: Sequence[Form] | None = None,
    dtype: str = "float32",
    effort: Effort = EFFORT,
    call_limit: float = CALL_LIMIT,
    torch: Any | None = None,
) -> Iterator[BenchRow]:
    """Time every rung of every stage on every form, forward and backward, all contenders of a form in turns.

    forms: None for those of all known networks. Stage 1 is measured in float64, on a single image, beside stage 2.
    The reference is stage 2's last rung. flops are those of the definition, so a share of the peak may exceed 1 where
    Winograd needs fewer. A result that is wrong is not timed; its row says so.
    torch: the module, to be measured too; None leaves it out
    """
    forms = forms_of() if forms is None else forms
    able = [stage for stage in stages if dtype in stage_dtypes(stage) and stage.number > 1]
    limit = CallLimit(call_limit)
    for form in forms if able else ():
        yield from _form_rows(form, able, dtype, limit, effort, torch)
    low = [stage for stage in stages if stage.number <= 2]
    limit = CallLimit(call_limit)
    if any(stage.number == 1 for stage in low):
        for form in forms:
            yield from _form_rows(form._replace(x=(1, *form.x[1:])), low, "float64", limit, effort, None)


class _Numbers(NamedTuple):
    """What a form computes with, and the right results of its first images."""

    x: np.ndarray
    weights: np.ndarray
    bias: np.ndarray
    grad: np.ndarray
    output: np.ndarray
    slopes: tuple[np.ndarray, ...]
    sizes: tuple[tuple[int, np.ndarray], ...]
    """(k, scale) of the gradients of weights and bias; those of single images depend on the way to convolve."""


def _numbers(form: Form, dtype: str) -> _Numbers:
    random = np.random.default_rng(0)
    made: list[np.ndarray] = []
    for shape in (form.x, form.weights, (form.weights[0],), form.outputs):
        array = aligned(shape, dtype)
        array[...] = random.standard_normal(shape)
        made.append(array)
    room = load_stage(NUMPY_STAGE).convolution
    x, weights, bias, grad = (each.astype(np.float64) for each in made)
    output = room.conv2d(x[:CHECKED], weights, bias, form.stride, form.padding)
    into, *others = room.conv2d_backward(grad, x, weights, form.stride, form.padding)
    sizes = backward_scales({}, grad, x, weights, form.stride, form.padding)[1:]
    own_x, own_weights, own_bias, own_grad = made
    slopes = (np.array(into[:CHECKED]), *map(np.array, others))
    return _Numbers(own_x, own_weights, own_bias, own_grad, output, slopes, tuple(sizes))


def _form_rows(
    form: Form, stages: Sequence[Stage], dtype: str, limit: CallLimit, effort: Effort, torch: Any | None
) -> Iterator[BenchRow]:
    numbers = _numbers(form, dtype)
    on_device = [stage for stage in stages if gpu.on_gpu(stage)]
    hosts: dict[str, Callable[[Any], np.ndarray]] = {stage.name: partial(host, stage) for stage in stages}
    hosts[PYTORCH] = lambda tensor: np.asarray(tensor.detach().cpu().numpy(), np.float64)
    ladders: dict[str, Mapping[str, Any]] = {stage.name: stage.convolution.CONVOLUTION_LADDER for stage in stages}
    ladders[PYTORCH] = {"winograd_4x4": None}  # oneDNN may choose it
    for part, calls in _contenders(form, stages, numbers, dtype, torch).items():
        reference = max((key for key in calls if key[0] == NUMPY_STAGE), key=list(calls).index, default=None)
        timed, skipped = {}, {}
        for key, call in calls.items():
            if reason := limit.reason((key, part), form.flops):
                skipped[key] = reason
                continue
            begin = time.perf_counter()
            result = call()
            limit.note((key, part), form.flops, time.perf_counter() - begin)
            if reason := _wrong(result, key, part, form, numbers, dtype, hosts[key[0]], ladders[key[0]]):
                skipped[key] = reason
            else:
                timed[key] = call
        devices = {stage.name for stage in on_device}
        there = [key for key in calls if key[0] in devices or (key[0] == PYTORCH and key[1])]
        threads = {key: 1 if key in there else _threads(key, stages, effort.most_threads) for key in calls}
        clock = gpu.samplers(on_device[0], [key for key in there if key in timed]) if there and on_device else {}
        turns = take_turns(
            timed, stages, effort, threads=threads, peak_in=dtype, wake_once=True, own_clock=clock, also_on_device=there
        )
        for key in calls:
            opponents = {PYTORCH: (PYTORCH, "")} | ({NUMPY_STAGE: reference} if reference else {})
            if key in there:
                rounded = "TF32 " if _precision(key, dtype) != dtype else ""
                opponents = {CUDNN: (PYTORCH, f"{rounded}{gpu.ON_GPU}")}
            label = f"stage 2 {reference[1]}, {dtype}" if reference else ""
            compared = turns.columns(key, reference=reference, label=label, opponents=opponents)
            yield BenchRow(
                "convolution",
                key[0],
                form.name,
                _precision(key, dtype),
                (*form.x, form.weights[0], *form.weights[2:]),
                form.flops * (1 if part == "forward" else 2),
                skipped=skipped.get(key),
                variant=key[1],
                part=part,
                bytes=_bytes(form, numbers, part),
                samples=form.x[0],
                **compared,
            )


def _contenders(
    form: Form, stages: Sequence[Stage], numbers: _Numbers, dtype: str, torch: Any | None
) -> dict[str, dict[Key, Callable[[], Any]]]:
    """The calls of everybody who takes part, forward and backward."""
    forward: dict[Key, Callable[[], Any]] = {}
    backward: dict[Key, Callable[[], Any]] = {}
    pairs = [_of_stage(stage, form, numbers, dtype) for stage in stages]
    if torch is not None:
        pairs.append(_of_torch(torch, form, numbers))
    for own_forward, own_backward in pairs:
        forward |= own_forward
        backward |= own_backward
    if dtype == "float32" and any(map(gpu.on_gpu, stages)):
        for way, (forward_call, backward_call) in gpu.cudnn(numbers[:4], form.stride, form.padding).items():
            forward[PYTORCH, way], backward[PYTORCH, way] = forward_call, backward_call
    return {"forward": forward, BACKWARD: backward}


def _of_stage(
    stage: Stage, form: Form, numbers: _Numbers, dtype: str
) -> tuple[dict[Key, Callable[[], Any]], dict[Key, Callable[[], Any]]]:
    room = stage.convolution
    x, weights, bias, grad = (stage.arrays.asarray(each, dtype) for each in numbers[:4])
    window = (form.stride, form.padding)
    into = {} if stage.number == 1 else {"out": stage.arrays.asarray(aligned(form.outputs, dtype), dtype)}
    forward: dict[Key, Callable[[], Any]] = {
        (stage.name, rung): partial(convolve, x, weights, bias, *window, **into)
        for rung, convolve in room.CONVOLUTION_LADDER.items()
    }
    if gpu.on_gpu(stage) and dtype == "float32":
        known = load_part(stage.name, "matmul").tensor_precisions()
        for precision in (each for each in room.TENSOR_CORES if each in known):
            forward[stage.name, precision] = partial(room.TENSOR_CORES[precision], x, weights, bias, *window, **into)
    return forward, {(stage.name, ""): partial(room.conv2d_backward, grad, x, weights, *window)}


def _of_torch(
    torch: ModuleType, form: Form, numbers: _Numbers
) -> tuple[dict[Key, Callable[[], Any]], dict[Key, Callable[[], Any]]]:
    convolve = torch.nn.functional.conv2d
    own = [torch.from_numpy(each) for each in numbers[:3]]
    leaves = [each.detach().requires_grad_() for each in own]
    window = (form.stride, form.padding)
    output = convolve(*leaves, *window)
    slope = partial(torch.autograd.grad, output, leaves, torch.from_numpy(numbers.grad), retain_graph=True)

    def forward() -> Any:
        with torch.no_grad():
            return convolve(*own, *window)

    return {(PYTORCH, ""): forward}, {(PYTORCH, ""): slope}


def _wrong(
    result: Any,
    key: Key,
    part: str,
    form: Form,
    numbers: _Numbers,
    dtype: str,
    to_host: Callable[[Any], np.ndarray],
    ladder: Mapping[str, Any],
) -> str | None:
    """Why a contender is not timed; None where its result is right.

    cuDNN chooses among algorithms that round in ways of their own, so it is allowed what rounded factors are.
    """
    precision = "tf32" if key[0] == PYTORCH and key[1] else _precision(key, dtype)
    x, weights, bias, grad = (np.asarray(array, np.float64) for array in numbers[:4])
    window = (form.stride, form.padding)
    if part == "forward":
        rung = key[1] or "conv2d"
        k, scale = forward_scale(ladder, rung, x[:CHECKED], weights, bias, *window)
        comparisons = [
            compare(rung, to_host(result)[:CHECKED], numbers.output, dtype, k, scale=scale * _coarser(precision, k))
        ]
    else:
        rules = [backward_scales(ladder, grad[:CHECKED], x[:CHECKED], weights, *window)[0], *numbers.sizes]
        names, got = ("grad_input", "grad_weights", "grad_bias"), [to_host(gradient) for gradient in result]
        got[0] = got[0][:CHECKED]
        comparisons = [
            compare(name, ours, right, dtype, k, scale=scale * _coarser(precision, k))
            for name, ours, right, (k, scale) in zip(names, got, numbers.slopes, rules, strict=True)
        ]
    return next((f"{comparison}{NOT_TIMED}" for comparison in comparisons if not comparison.ok), None)


def _precision(key: Key, dtype: str) -> str:
    """What the factors are rounded to: by the tensor cores' rungs, and by cuDNN where it may use them."""
    return key[1] if key[1] in ROUNDING else gpu.precision_of(key[1], dtype)


def _coarser(precision: str, k: int) -> float:
    """How many times float32's tolerance is allowed where both factors are rounded to this precision.

    A tensor core that is given float32 numbers cuts them off: twice the error of rounding.
    """
    cut = 2 * ROUNDING.get(precision, 0.0)
    return 1 + (2 * cut + cut**2) / float(tolerance("float32", k, 1.0))


def _threads(key: Key, stages: Sequence[Stage], most: int) -> int:
    """Stage 1 has one thread; of stages 2 and 3 the last rung uses all, as do backward passes and PyTorch."""
    numbers = {stage.name: stage for stage in stages}
    if key[0] == PYTORCH or not key[1]:
        return 1 if key[0] in numbers and numbers[key[0]].number == 1 else most
    stage = numbers[key[0]]
    if stage.number == 1:
        return 1
    return most if stage.number == 2 or key[1] == list(stage.convolution.CONVOLUTION_LADDER)[-1] else 1


def _bytes(form: Form, numbers: _Numbers, part: str) -> int:
    """Each operand read once and each result written once: forward x, weights, bias, output; backward x, weights and
    dL/doutput, and the three gradients."""
    x, weights, bias, grad = (each.nbytes for each in numbers[:4])
    return x + weights + bias + grad if part == "forward" else 2 * (x + weights) + bias + grad
