"""The time of every operation that every stage has: activations, losses, optimizers and the dense layer.

Every contender is called as its users call it: a stage through its room's function, PyTorch as `operation_table` says.
All of them read the same numbers, and each allocates the memory for its result, as it does where a user gives no
`out=`; an optimizer works in place. So an allocation is part of every time, and PyTorch's backward passes contain the
few microseconds of its autograd engine. A stage computes the gradient of a loss from the outputs alone, PyTorch from
what its forward pass has kept.

Before anything is timed, every result is compared with stage 2's in float64 on the same numbers.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from shared.bench.kinds.operation_table import NAMES, Call, Problem, problem
from shared.bench.measuring.compared_candidates import Effort, take_turns
from shared.bench.measuring.gpu import on_gpu
from shared.bench.measuring.rows import NOT_TIMED, BenchRow
from shared.bench.measuring.timing import DTYPES, REST, stage_dtypes
from shared.checks.ops import FEW
from shared.checks.tolerance import compare
from shared.contract import Stage, is_emulated, load_stage

SHAPES = ((64, 128), (1024, 512))
"""(rows, columns): what lies between the layers of the usual network, and what fills a cache."""

EFFORT = Effort(repeats=7, group_limit=2.0, minimum_sample=0.002)
NUMPY_STAGE, PYTORCH = "stage2_numpy", "pytorch"

FIRST_FLOOR_NUMBERS = 16_384
"""Pure Python works on no more than this many numbers: a thousand rows of a dense layer would take it ten seconds."""


class Contender(NamedTuple):
    """A stage or PyTorch.

    calls: a problem -> the calls of its parts
    to_host: one of its arrays -> one that NumPy reads
    stage: None for PyTorch
    """

    name: str
    calls: Callable[[Problem], Mapping[str, Call]]
    to_host: Callable[[Any], Any]
    stage: Stage | None = None


Key = tuple[str, int, str]
"""Who computes, the number of the problem in its group, and the part."""


def operation_rows(
    stages: Sequence[Stage],
    *,
    shapes: Sequence[tuple[int, int]] = SHAPES,
    dtypes: Sequence[str] = DTYPES,
    names: Sequence[str] = NAMES,
    effort: Effort = EFFORT,
    torch: Any | None = None,
) -> Iterator[BenchRow]:
    """Time every operation on matrices of every shape, with all contenders of an operation in turns.

    shapes: (rows, columns) of the matrices; a dense layer takes `rows` samples of `columns` features to as many
    names: which operations, of NAMES
    torch: the module, to be measured too; None leaves it out
    The reference is stage 2 in the same dtype, where it is among the stages. Rows of an emulated stage are compared
    with nothing. Stage 1 is left out above FIRST_FLOOR_NUMBERS. All shapes of the dense layer are measured together,
    because libraries that compute on several cores rest once a round for all of them.
    Raises ValueError for an unknown name, or a shape that is not two sizes of at least 1.
    """
    for name in names:
        if name not in NAMES:
            raise ValueError(f"operation_rows: unknown operation {name!r}; choose of {', '.join(NAMES)}")
    for shape in shapes:
        if len(shape) != 2 or min(shape) < 1:
            raise ValueError(f"operation_rows: expected shapes (rows, columns), each at least 1; got {tuple(shape)}")
    for dtype in dtypes:
        able = [stage for stage in stages if dtype in stage_dtypes(stage)]
        if not able:
            continue
        contenders = _contenders(able, torch)
        groups = [[(name, shape)] for shape in shapes for name in names if name != "dense"]
        if "dense" in names:
            groups.append([("dense", shape) for shape in shapes])
        if effort.most_threads > 1:
            time.sleep(REST)  # what was measured before may have left threads that spin
        for group in groups:
            yield from _group_rows([problem(name, shape, dtype) for name, shape in group], contenders, effort)


def _group_rows(group: Sequence[Problem], contenders: Sequence[Contender], effort: Effort) -> Iterator[BenchRow]:
    calls: dict[Key, Callable[[], object]] = {}
    skipped: dict[Key, str] = {}
    threads: dict[Key, int] = {}
    exact = [_all_results(case.of_stage(load_stage(NUMPY_STAGE), "float64")) for case in group]
    for who in contenders:
        for number, case in enumerate(group):
            reason = _too_much(who, case)
            own = who.calls(case) if reason is None else {}
            wrong = _disagreements(case, exact[number], own, who.to_host)
            for part in case.work:
                key = (who.name, number, part)
                threads[key] = _threads(who.stage, case, effort.most_threads)
                if why := reason or wrong.get(part):
                    skipped[key] = why
                else:
                    calls[key] = own[part].run
    stages = [who.stage for who in contenders if who.stage is not None]
    turns = take_turns(calls, stages, effort, threads=threads, wake_once=True)
    for number, case in enumerate(group):
        for name, part in ((who.name, part) for who in contenders for part in case.work):
            key = (name, number, part)
            opponents = {label: (label, number, part) for label in (NUMPY_STAGE, PYTORCH)}
            compared = turns.columns(
                key, reference=opponents[NUMPY_STAGE], label=f"stage 2, {case.dtype}", opponents=opponents
            )
            yield BenchRow(
                "op",
                name,
                case.name,
                case.dtype,
                case.shape,
                case.work[part].flops,
                skipped=skipped.get(key),
                part=part,
                bytes=case.work[part].bytes,
                **compared,
            )


def _contenders(stages: Sequence[Stage], torch: Any | None) -> list[Contender]:
    def calls_of(stage: Stage) -> Callable[[Problem], Mapping[str, Call]]:
        return lambda case: case.of_stage(stage, case.dtype)

    found = [Contender(stage.name, calls_of(stage), stage.arrays.to_host, stage) for stage in stages]
    if torch is not None:
        found.append(Contender(PYTORCH, lambda case: case.of_torch(torch), lambda tensor: tensor.detach().numpy()))
    return found


def _too_much(who: Contender, case: Problem) -> str | None:
    """Why this contender is left out; None where it is not."""
    if who.stage is not None and who.stage.number == 1 and case.shape[0] * case.shape[1] > FIRST_FLOOR_NUMBERS:
        return f"left out at this size: pure Python is measured on up to {FIRST_FLOOR_NUMBERS:,} numbers"
    return None


def _threads(stage: Stage | None, case: Problem, threads: int) -> int:
    """How many a contender may use; None is PyTorch. The emulator shares out the blocks of every kernel."""
    if stage is None or is_emulated(stage.name):
        return threads
    return threads if case.uses_threads and stage.number > 1 and not on_gpu(stage) else 1


def _all_results(calls: Mapping[str, Call]) -> dict[str, Sequence[Any]]:
    """Part -> everything it computes, done once."""
    return {part: call.results(call.run()) for part, call in calls.items()}


def _disagreements(
    case: Problem, exact: Mapping[str, Sequence[Any]], calls: Mapping[str, Call], to_host: Callable[[Any], Any]
) -> dict[str, str]:
    """Part -> how its results differ, of the parts that differ from stage 2's in float64 by more than rounding."""
    wrong: dict[str, str] = {}
    for part, results in _all_results(calls).items():
        for got, expected in zip(results, exact[part], strict=True):
            host = got if isinstance(got, float) else to_host(got)
            same = compare(f"{case.name} {part}", host, expected, case.dtype, case.terms + FEW)
            if not same.ok:
                wrong.setdefault(part, f"{same}{NOT_TIMED}")
    return wrong
