"""Every operation that every stage has: activations, losses, optimizers and the dense layer, forward and backward.

Each contender is called as its users call it: a stage through its room's function, PyTorch through
torch.nn.functional, torch.autograd.grad and torch.optim. All read the same numbers, and each makes the memory for its
result itself, as it does where nobody gives it an `out=`; an optimizer works in place. So an allocation is part of
every time, and of PyTorch's ways back the few microseconds of its autograd engine. A stage's gradient of a loss starts
from the outputs alone, PyTorch's from what it kept of its way forward.

Before anything is timed, every result is compared with stage 2's in float64 on the same numbers.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np

from shared.bench.gpu import NO_REFERENCE, on_gpu, waiter
from shared.bench.rows import BenchRow
from shared.bench.timing import DTYPES, REST, aligned, measure, stage_dtypes, times_as_fast
from shared.checks.tolerance import compare
from shared.contract import ACTIVATIONS, LABEL_LOSSES, LOSSES, OPTIMIZERS, Stage, is_emulated, load_stage
from shared.machine.environment import usable_cores

SHAPES = ((64, 128), (1024, 512))
"""(rows, columns): what lies between the layers of the usual network, and what fills a cache."""

NAMES = (*ACTIVATIONS, *LOSSES, *OPTIMIZERS, "dense")
NUMPY_STAGE, PYTORCH = "stage2_numpy", "pytorch"

FIRST_FLOOR_NUMBERS = 16_384
"""Pure Python works on no more than this many numbers: a thousand rows of a dense layer would take it ten seconds."""

LEARNING_RATE = 0.01
LABEL_BYTES = LOSS_BYTES = 8
"""A label is an integer of 64 bits, a loss a number of 64."""

FEW = 8
"""Roundings in an operation on single numbers: an exponential accurate to two units, a sum, a quotient or two."""

ACTIVATION_FLOPS = {
    "identity": (0, 0),
    "relu": (1, 1),  # a maximum; a comparison
    "leaky_relu": (2, 2),  # slope · z, a maximum; a comparison, slope · g
    "sigmoid": (4, 3),  # −z, exp, 1 +, 1 /; 1 − s, · s, · g
    "tanh": (1, 3),  # tanh; t · t, 1 −, · g
    "softmax": (5, 4),  # a maximum, z − m, exp, a sum, a quotient; g · s, a sum, g −, · s
}
"""Arithmetic operations for each number, forward and backward; exp, tanh, log, a root and a comparison are one each."""

LOSS_FLOPS = {
    "mean_squared_error": (3, 2),  # o − t, its square, a sum; o − t, · 2 / n
    "softmax_cross_entropy": (4, 6),  # a maximum, z − m, exp, a sum; a softmax, / batch
    "sigmoid_cross_entropy": (9, 6),  # max(z, 0), z · t, −, |z|, −, exp, log1p, +, a sum; a sigmoid, − t, / n
    "hinge": (3, 4),  # 1 − s_y + s_j, a maximum, a sum; the margin, a comparison, a sum, / n
}
"""The same for each number of the outputs. What is done once a row, like the logarithm of a sum, is left out."""

OPTIMIZER_FLOPS = {
    "SGD": 2,  # p −= rate · g
    "RMSProp": 9,  # s = a s + (1 − a) g g: 4; p −= rate · g / (√s + e): 5
    "Adam": 13,  # the first moment: 3; the second: 4; p −= rate · m / (√v / c + e): 6
}
"""The same for each parameter and step."""

OPTIMIZER_ARRAYS = {"SGD": 3, "RMSProp": 5, "Adam": 7}
"""Read or written in a step: gradient and parameter in, parameter out, and in and out what the optimizer keeps."""


class Call(NamedTuple):
    """One part of an operation, as somebody does it. results: from what `run` returned to all that it computed."""

    run: Callable[[], Any]
    results: Callable[[Any], Sequence[Any]] = lambda value: [value]


class Work(NamedTuple):
    """What a part costs at least: arithmetic operations, and bytes with each operand read and each result written."""

    flops: int
    bytes: int


class Problem(NamedTuple):
    """One operation on numbers of one shape and dtype.

    shape: (rows, columns), of a dense layer (batch, in_features, out_features). work: part -> what it costs.
    of_stage: a stage and the dtype to compute in -> its parts; of_torch: torch -> its parts.
    terms: as many numbers are added up into one at most.
    uses_threads: whether stages 2 and 3 compute it on several cores; PyTorch does that with all it finds large.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    work: Mapping[str, Work]
    of_stage: Callable[[Stage, str], Mapping[str, Call]]
    of_torch: Callable[[Any], Mapping[str, Call]]
    terms: int
    uses_threads: bool = False


class Contender(NamedTuple):
    """Somebody who computes. calls: a problem -> its parts; to_host: one of their arrays -> one that NumPy reads;
    stage: None for PyTorch."""

    name: str
    calls: Callable[[Problem], Mapping[str, Call]]
    to_host: Callable[[Any], Any]
    stage: Stage | None = None


Key = tuple[str, int, str]
"""Who does it, the number of the problem in its group, and the part."""

AnyKey = TypeVar("AnyKey", bound=tuple[Any, ...])


def operation_rows(
    stages: Sequence[Stage],
    *,
    shapes: Sequence[tuple[int, int]] = SHAPES,
    dtypes: Sequence[str] = DTYPES,
    names: Sequence[str] = NAMES,
    repeats: int = 7,
    group_limit: float = 2.0,
    minimum_sample: float = 0.002,
    threads: int | None = None,
    torch: Any | None = None,
) -> Iterator[BenchRow]:
    """Time every operation on matrices of every shape, all contenders interleaved: a group is one operation.

    shapes: (rows, columns) of what it works on; a dense layer takes `rows` samples of `columns` features to as many.
    names: which operations, of NAMES. minimum_sample: seconds, as in `measure`; group_limit: its `limit`.
    threads: as in `ladder_rows`. torch: the module, to be measured too; None leaves it out.
    The reference is stage 2 in the same dtype, where it is among the stages; what is emulated is set beside nothing.
    Stage 1 is left out above FIRST_FLOOR_NUMBERS. The layer's shapes are one group, since those who compute on several
    cores rest once a round in each.
    Raises ValueError for an unknown name, or a shape that is not two sizes of at least 1.
    """
    for name in names:
        if name not in NAMES:
            raise ValueError(f"operation_rows: unknown operation {name!r}; choose of {', '.join(NAMES)}")
    for shape in shapes:
        if len(shape) != 2 or min(shape) < 1:
            raise ValueError(f"operation_rows: expected shapes (rows, columns), each at least 1; got {tuple(shape)}")
    threads = threads or usable_cores()
    for dtype in dtypes:
        able = [stage for stage in stages if dtype in stage_dtypes(stage)]
        if not able:
            continue
        contenders = _contenders(able, torch)
        groups = [[(name, shape)] for shape in shapes for name in names if name != "dense"]
        if "dense" in names:
            groups.append([("dense", shape) for shape in shapes])
        if threads > 1:
            time.sleep(REST)  # what was measured before may have left threads that spin
        for group in groups:
            problems = [problem(name, shape, dtype) for name, shape in group]
            yield from _group_rows(problems, contenders, repeats, group_limit, minimum_sample, threads)


def _group_rows(
    group: Sequence[Problem],
    contenders: Sequence[Contender],
    repeats: int,
    group_limit: float,
    minimum_sample: float,
    threads: int,
) -> Iterator[BenchRow]:
    candidates: dict[Key, Callable[[], object]] = {}
    skipped: dict[Key, str] = {}
    finish: dict[Key, Callable[[], object]] = {}
    exact = [_all_results(case.of_stage(load_stage(NUMPY_STAGE), "float64")) for case in group]
    for who in contenders:
        for number, case in enumerate(group):
            reason = _too_much(who, case)
            calls = who.calls(case) if reason is None else {}
            wrong = _disagreements(case, exact[number], calls, who.to_host)
            skipped |= {(who.name, number, part): why for part, why in wrong.items()}
            if reason is not None:
                skipped |= {(who.name, number, part): reason for part in case.work}
            candidates |= {(who.name, number, part): call.run for part, call in calls.items() if part not in wrong}
            if who.stage is not None and (wait := waiter(who.stage)) is not None:
                finish |= {(who.name, number, part): wait for part in calls}
    uses = {who.name: _threads(who.stage, group[0], threads) for who in contenders}
    emulated = {who.name for who in contenders if who.stage is not None and is_emulated(who.name)}
    woken = first_of_each(candidates, {name for name, count in uses.items() if count > 1} - emulated)
    measured = (
        measure(
            candidates,
            repeats=repeats,
            limit=group_limit,
            minimum_sample=minimum_sample,
            threaded=woken,
            finish=finish,
            rest=REST if len(woken) > 1 else 0.0,  # one library alone has nobody else's threads to wait for
        )
        if candidates
        else {}
    )
    for number, case in enumerate(group):
        for name, part in ((who.name, part) for who in contenders for part in case.work):
            key = (name, number, part)
            opponents = {label: (label, number, part) for label in (NUMPY_STAGE, PYTORCH)}
            result, reference = measured.get(key), measured.get(opponents[NUMPY_STAGE])
            compared = result if name not in emulated else None
            yield BenchRow(
                "op",
                name,
                case.name,
                case.dtype,
                case.shape,
                case.work[part].flops,
                result,
                NO_REFERENCE if name in emulated else f"stage 2, {case.dtype}" if reference else "",
                compared.median / reference.median if compared and reference else None,
                skipped.get(key),
                part=part,
                bytes=case.work[part].bytes,
                threads=uses[name],
                against=times_as_fast(measured, key, opponents) if compared else {},
                emulated=name in emulated,
            )


def first_of_each(keys: Iterable[AnyKey], who: Collection[str]) -> set[AnyKey]:
    """For `measure`'s `threaded`: the first key of each of those names, with which the keys begin.

    Who computes on several cores is woken once in a round, by the first of its calls, and the others follow at once.
    """
    first: dict[str, AnyKey] = {}
    for key in keys:
        if key[0] in who:
            first.setdefault(key[0], key)
    return set(first.values())


def _contenders(stages: Sequence[Stage], torch: Any | None) -> list[Contender]:
    def calls_of(stage: Stage) -> Callable[[Problem], Mapping[str, Call]]:
        return lambda case: case.of_stage(stage, case.dtype)

    found = [Contender(stage.name, calls_of(stage), stage.arrays.to_host, stage) for stage in stages]
    if torch is not None:
        found.append(Contender(PYTORCH, lambda case: case.of_torch(torch), lambda tensor: tensor.detach().numpy()))
    return found


def _too_much(who: Contender, case: Problem) -> str | None:
    """Why this contender is not even asked."""
    if who.stage is not None and who.stage.number == 1 and case.shape[0] * case.shape[1] > FIRST_FLOOR_NUMBERS:
        return f"left out at this size: pure Python is measured on up to {FIRST_FLOOR_NUMBERS:,} numbers"
    return None


def _threads(stage: Stage | None, case: Problem, threads: int) -> int:
    """How many a contender may use; None is PyTorch. The emulator shares out every kernel's blocks."""
    if stage is None or is_emulated(stage.name):
        return threads
    return threads if case.uses_threads and stage.number > 1 and not on_gpu(stage) else 1


def _all_results(calls: Mapping[str, Call]) -> dict[str, Sequence[Any]]:
    """Part -> everything it computes, done once."""
    return {part: call.results(call.run()) for part, call in calls.items()}


def _disagreements(
    case: Problem, exact: Mapping[str, Sequence[Any]], calls: Mapping[str, Call], to_host: Callable[[Any], Any]
) -> dict[str, str]:
    """Of those parts whose results differ from stage 2's in float64 by more than rounding: how they do."""
    wrong: dict[str, str] = {}
    for part, results in _all_results(calls).items():
        for got, expected in zip(results, exact[part], strict=True):
            host = got if isinstance(got, float) else to_host(got)
            same = compare(f"{case.name} {part}", host, expected, case.dtype, case.terms + FEW)
            if not same.ok:
                wrong.setdefault(part, f"{same}; not timed")
    return wrong


def problem(name: str, shape: tuple[int, int], dtype: str) -> Problem:
    """The operation of that name on (rows, columns) numbers of that dtype."""
    kinds = dict.fromkeys(ACTIVATIONS, _activation) | dict.fromkeys(LOSSES, _loss)
    kinds |= dict.fromkeys(OPTIMIZERS, _optimizer) | {"dense": _dense}
    return kinds[name](name, shape, dtype)


def numbers(shape: tuple[int, ...], dtype: str, seed: int) -> np.ndarray:
    """Normal random numbers, deviation 2, rounded to multiples of 1/256.

    Both dtypes hold these exactly, and differences of them too: where a number decides, as in relu and hinge, everyone
    decides alike.
    """
    array = aligned(shape, dtype)
    array[...] = np.round(512 * np.random.default_rng(seed).standard_normal(shape)) / 256
    return array


def _activation(name: str, shape: tuple[int, int], dtype: str) -> Problem:
    z, grad = numbers(shape, dtype, 0), numbers(shape, dtype, 1)
    forward, backward = ACTIVATION_FLOPS[name]
    read_back = 1 if name == "identity" else 2  # the gradient, and z or the output

    def of_stage(stage: Stage, dtype: str) -> dict[str, Call]:
        room = stage.activations
        activate, slope = getattr(room, name), getattr(room, f"{name}_backward")
        own_z, own_grad = (stage.arrays.asarray(each, dtype) for each in (z, grad))
        output = activate(own_z)
        return {"forward": Call(partial(activate, own_z)), "backward": Call(partial(slope, own_grad, own_z, output))}

    def of_torch(torch: Any) -> dict[str, Call]:
        own_z, own_grad = torch.from_numpy(z), torch.from_numpy(grad)
        if name == "identity":  # autograd would hand on the gradient itself
            return {"forward": Call(own_z.clone), "backward": Call(own_grad.clone)}
        function = torch.nn.functional
        activate = {
            "relu": function.relu,
            "leaky_relu": function.leaky_relu,
            "sigmoid": torch.sigmoid,
            "tanh": torch.tanh,
            "softmax": partial(torch.softmax, dim=1),
        }[name]
        leaf = own_z.detach().requires_grad_()
        slope = partial(torch.autograd.grad, activate(leaf), leaf, own_grad, retain_graph=True)
        return {"forward": Call(partial(activate, own_z)), "backward": Call(slope, list)}

    work = {
        "forward": Work(forward * z.size, 2 * z.nbytes),
        "backward": Work(backward * z.size, (read_back + 1) * z.nbytes),
    }
    return Problem(name, shape, dtype, work, of_stage, of_torch, terms=shape[1])


def _loss(name: str, shape: tuple[int, int], dtype: str) -> Problem:
    rows, columns = shape
    outputs = numbers(shape, dtype, 0)
    labels = np.random.default_rng(1).integers(0, columns, rows)
    targets = aligned(shape, dtype)
    targets[...] = np.random.default_rng(2).random(shape)
    takes_labels = name in LABEL_LOSSES
    forward, backward = LOSS_FLOPS[name]
    target_bytes = LABEL_BYTES * rows if takes_labels else targets.nbytes

    def of_stage(stage: Stage, dtype: str) -> dict[str, Call]:
        own = stage.arrays.asarray(outputs, dtype)
        y = labels if takes_labels else stage.arrays.asarray(targets, dtype)
        loss, slope = getattr(stage.losses, name), getattr(stage.losses, f"{name}_backward")
        return {"forward": Call(partial(loss, own, y)), "backward": Call(partial(slope, own, y))}

    def of_torch(torch: Any) -> dict[str, Call]:
        function = torch.nn.functional
        loss = {
            "mean_squared_error": function.mse_loss,
            "softmax_cross_entropy": function.cross_entropy,
            "sigmoid_cross_entropy": function.binary_cross_entropy_with_logits,
            "hinge": function.multi_margin_loss,
        }[name]
        own, y = torch.from_numpy(outputs), torch.from_numpy(labels if takes_labels else targets)
        leaf = own.detach().requires_grad_()
        slope = partial(torch.autograd.grad, loss(leaf, y), leaf, retain_graph=True)
        return {"forward": Call(lambda: float(loss(own, y).item())), "backward": Call(slope, list)}

    work = {
        "forward": Work(forward * outputs.size, outputs.nbytes + target_bytes + LOSS_BYTES),
        "backward": Work(backward * outputs.size, 2 * outputs.nbytes + target_bytes),
    }
    return Problem(name, shape, dtype, work, of_stage, of_torch, terms=outputs.size)


def _optimizer(name: str, shape: tuple[int, int], dtype: str) -> Problem:
    start, grad = numbers(shape, dtype, 0), numbers(shape, dtype, 1)

    def of_stage(stage: Stage, dtype: str) -> dict[str, Call]:
        parameters, gradients = [stage.arrays.asarray(start.copy(), dtype)], [stage.arrays.asarray(grad, dtype)]
        optimizer = getattr(stage.optimizers, name)(LEARNING_RATE)
        return {"step": Call(partial(optimizer.step, parameters, gradients), lambda _: parameters)}

    def of_torch(torch: Any) -> dict[str, Call]:
        parameter = torch.nn.Parameter(torch.from_numpy(start.copy()))
        parameter.grad = torch.from_numpy(grad)
        kind = getattr(torch.optim, "RMSprop" if name == "RMSProp" else name)
        optimizer = kind([parameter], lr=LEARNING_RATE)
        return {"step": Call(optimizer.step, lambda _: [parameter])}

    work = {"step": Work(OPTIMIZER_FLOPS[name] * start.size, OPTIMIZER_ARRAYS[name] * start.nbytes)}
    return Problem(name, shape, dtype, work, of_stage, of_torch, terms=1)


def _dense(name: str, shape: tuple[int, int], dtype: str) -> Problem:
    batch, features = shape
    x, grad = numbers(shape, dtype, 0), numbers(shape, dtype, 1)
    weights, bias = numbers((features, features), dtype, 2), numbers((features,), dtype, 3)

    def of_stage(stage: Stage, dtype: str) -> dict[str, Call]:
        own_x, own_grad, *own = (stage.arrays.asarray(each, dtype) for each in (x, grad, weights, bias))
        layer = stage.dense.Dense(*own)
        layer.forward(own_x)
        return {
            "forward": Call(partial(layer.forward, own_x)),
            "backward": Call(
                partial(layer.backward, own_grad), lambda grad_x: [grad_x, layer.grad_weights, layer.grad_bias]
            ),
        }

    def of_torch(torch: Any) -> dict[str, Call]:
        linear = torch.nn.functional.linear
        own_x, own_grad, own_bias = (torch.from_numpy(each) for each in (x, grad, bias))
        own_weights = torch.from_numpy(weights.T.copy())  # torch keeps (out_features, in_features)
        leaves = [each.detach().requires_grad_() for each in (own_x, own_weights, own_bias)]
        slope = partial(torch.autograd.grad, linear(*leaves), leaves, own_grad, retain_graph=True)
        return {
            "forward": Call(partial(linear, own_x, own_weights, own_bias)),
            "backward": Call(slope, lambda grads: [grads[0], grads[1].T, grads[2]]),
        }

    work = dense_work(batch, features, features, x.itemsize)
    layer = (batch, features, features)
    return Problem(name, layer, dtype, work, of_stage, of_torch, terms=max(shape), uses_threads=True)


def dense_work(
    batch: int, in_features: int, out_features: int, itemsize: int, needs_grad_input: bool = True
) -> dict[str, Work]:
    """What a dense layer costs: one product and a bias forward, two products (one for a first layer) and the column
    sums backward."""
    product = 2 * batch * in_features * out_features
    x, output, weights = batch * in_features, batch * out_features, in_features * out_features
    products, inputs = (2, 2 * x + weights) if needs_grad_input else (1, x)  # without dL/dx the weights are not read
    return {
        "forward": Work(product + output, itemsize * (x + weights + out_features + output)),
        "backward": Work(products * product + output, itemsize * (inputs + output + weights + out_features)),
    }
