"""What a GPU report was made for: each goal of stage 4 on a GPU of the H100's class, and what was measured beside it.

    goals(document)     a Goal for every goal, also for those that were not measured
    lines(goals)        the same as lines for the terminal

A ratio compares with what ran in the same process, in turns: cuBLAS, or PyTorch's step in a CUDA graph.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from shared.numbers import duration, three_digits

Row = Mapping[str, Any]

PRODUCTS = (
    *(("float32", 1024, 0.90), ("float32", 2048, 0.92), ("float32", 4096, 0.92)),
    *(("tf32", 4096, 0.42), ("bf16", 4096, 0.42)),
)
"""Precision, size, and the share of cuBLAS's speed that the best rung should reach."""

SMALL, LARGE = (784, 128, 10), (784, 512, 512, 10)

STEPS: tuple[tuple[tuple[int, ...], int, bool, float | None], ...] = (
    *((SMALL, 64, True, 9.0), (SMALL, 256, True, 4.0), (SMALL, 1024, True, 2.0)),
    *((LARGE, 64, True, 1.5), (LARGE, 256, True, 1.2), (LARGE, 1024, True, 1.0)),
    *((SMALL, 64, False, 1.0), (SMALL, 256, False, None), (SMALL, 1024, False, None)),
    *((LARGE, 64, False, None), (LARGE, 256, False, None), (LARGE, 1024, False, None)),
)
"""Network, batch, whether its data lie on the device, and how many times as fast as PyTorch's graph the best rung
should be; None for a step without a goal."""

NETWORK_STEPS = (("lenet5", 2.0), ("fashion_cnn", 1.3), ("residual_cnn", 1.0))
NETWORK_BATCH = 64
"""Known network, and how many times as fast as PyTorch's graph its step in float32 should be, at this batch."""

NETWORK_TRAININGS = (("fashion_cnn", 5.0), ("residual_cnn", 3.0))
"""Known network, and the seconds of training that all epochs of its recipe should take, which reach its accuracy."""

TRAINING = ("mnist", 0.03)
"""Data set, and the seconds of training until its goal."""

WAITS = {"first step": 1.0, "groundup check 4": 20.0, "groundup bench --quick": 120.0}
"""What somebody waits for, as the rows of the part `commands` call it, and the most seconds that it should take."""

NOT_MEASURED = "not measured"


class Goal(NamedTuple):
    """what: 'product in float32 at 4,096'; goal: '0.92 of cuBLAS', "" for none; measured: the number in words

    ratio: the number that the goal is about; None where it was not measured
    met: None where there is nothing to judge
    """

    what: str
    goal: str
    measured: str
    ratio: float | None = None
    met: bool | None = None


def goals(document: Mapping[str, Any]) -> list[Goal]:
    """Every goal beside what a report of a GPU has measured; none for a report of the emulator."""
    if document["emulated"] is not False:
        return []
    parts: Mapping[str, Any] = document["parts"]
    rows = {name: [row for row in part["rows"] if _is_finite(row)] for name, part in parts.items()}
    found = [_product(rows.get("ladder", ()), *wanted) for wanted in PRODUCTS]
    found += [_step(rows.get("steps", ()), *wanted) for wanted in STEPS]
    found.append(_training(rows.get("training", ())))
    found += [_network_step(rows.get("networks", ()), *wanted) for wanted in NETWORK_STEPS]
    found += [_network_training(rows.get("network_training", ()), *wanted) for wanted in NETWORK_TRAININGS]
    found += [_wait(rows.get("commands", ()), name, most) for name, most in WAITS.items()]
    return [
        *found,
        _correctness(parts.get("correctness")),
        *_sanitizer(parts.get("sanitizer")),
        _suite(parts.get("suite")),
    ]


def lines(judged: Iterable[Goal]) -> Iterator[str]:
    """'met      product in float32 at 4,096: 0.93 of cuBLAS, by fitted_tile (goal: 0.92)'."""
    for each in judged:
        verdict = {True: "met", False: "NOT MET", None: "-"}[each.met]
        goal = f" (goal: {each.goal})" if each.goal else ""
        yield f"{verdict:<9}{each.what}: {each.measured}{goal}"


def _is_finite(row: Row) -> bool:
    """Whether the row has no number that JSON has no form for: results.as_json makes words of them."""
    return not any(value in ("nan", "inf", "-inf") for value in row.values() if isinstance(value, str))


def _product(rows: Sequence[Row], precision: str, size: int, least: float) -> Goal:
    what, goal = f"product in {precision} at {size:,}", f"{least:.2f} of cuBLAS"
    mine = [row for row in rows if (row["size"], row["precision"]) == (size, precision) and row["rung"] != "cuBLAS"]
    if not mine:
        return Goal(what, goal, NOT_MEASURED)
    best = max(mine, key=lambda row: row["tflops"])
    said = f"{three_digits(best['tflops'])} TFLOP/s by {best['rung']}"
    share = best["share_of_cublas"]
    if share is None:
        return Goal(what, goal, f"{said}; cuBLAS was not measured")
    return Goal(what, goal, f"{share:.3f} of cuBLAS, {said}", share, share >= least)


def _step(rows: Sequence[Row], network: tuple[int, ...], batch: int, resident: bool, least: float | None) -> Goal:
    where = "data on the GPU" if resident else "x and y given"
    what = f"step of {'-'.join(map(str, network))}, {where}, batch {batch:,}"
    goal = "" if least is None else f"{'' if least == 1 else f'{least:g} times '}as fast as PyTorch's graph"
    cases = [row for row in rows if (tuple(row["network"]), row["batch"]) == (network, batch)]
    mine = [row for row in cases if row["resident"] is resident and not row["who"].startswith("PyTorch")]
    if not mine:
        return Goal(what, goal, NOT_MEASURED)
    best = min(mine, key=lambda row: row["median"])
    said = f"{duration(best['median'])} by {best['who']}"
    ratio = (best["against"] or {}).get("graph")
    if ratio is None:
        return Goal(what, goal, f"{said}; PyTorch's graph was not measured")
    met = None if least is None else ratio >= least
    return Goal(what, goal, f"{three_digits(ratio)} times as fast as PyTorch's graph, {said}", ratio, met)


def _network_step(rows: Sequence[Row], model: str, least: float) -> Goal:
    what = f"step of {model}, batch {NETWORK_BATCH}"
    goal = f"{'' if least == 1 else f'{least:g} times '}as fast as PyTorch's graph"
    cases = [row for row in rows if (row["kind"], row["model"], row["batch"]) == ("step", model, NETWORK_BATCH)]
    mine = [row for row in cases if row["precision"] == "float32" and not row["who"].startswith("PyTorch")]
    if not mine:
        return Goal(what, goal, NOT_MEASURED)
    best = min(mine, key=lambda row: row["median"])
    ratio = (best["against"] or {}).get("graph")
    said = f"{duration(best['median'])} by {best['who']}"
    if ratio is None:
        return Goal(what, goal, f"{said}; PyTorch's graph was not measured")
    return Goal(what, goal, f"{three_digits(ratio)} times as fast as PyTorch's graph, {said}", ratio, ratio >= least)


def _network_training(rows: Sequence[Row], model: str, most: float) -> Goal:
    what, goal = f"training of {model} by its recipe", duration(most)
    row = next((row for row in rows if row["kind"] == "summary" and row["model"] == model), None)
    if row is None:
        return Goal(what, goal, NOT_MEASURED)
    said = f"{row['test_accuracy']:.2%} after {row['epochs']} epochs, {duration(row['seconds'])}"
    reached = row["test_accuracy"] >= row["goal"]
    return Goal(what, f"{row['goal']:.0%} in {goal}", said, row["seconds"], reached and row["seconds"] <= most)


def _training(rows: Sequence[Row]) -> Goal:
    name, most = TRAINING
    what = f"training of {name} until its goal"
    summary = next((row for row in rows if row["kind"] == "summary" and row["dataset"] == name), None)
    if summary is None:
        return Goal(what, duration(most), NOT_MEASURED)
    what, seconds = f"training of {name} until {summary['goal']:.0%}", summary["seconds_to_goal"]
    if seconds is None:
        said = f"{summary['test_accuracy']:.2%} after all {summary['epochs']} epochs"
        return Goal(what, duration(most), f"not reached: {said}", None, False)
    return Goal(what, duration(most), duration(seconds), seconds, seconds <= most)


def _wait(rows: Sequence[Row], name: str, most: float) -> Goal:
    what = "first step of a second process, after its imports" if name == "first step" else name
    row = next((row for row in rows if row["what"] == name), None)
    if row is None:
        return Goal(what, duration(most), NOT_MEASURED)
    if not row["ok"]:
        return Goal(what, duration(most), f"failed after {duration(row['seconds'])}: {row['said']}", None, False)
    return Goal(what, duration(most), duration(row["seconds"]), row["seconds"], row["seconds"] <= most)


def _correctness(part: Row | None) -> Goal:
    what, goal = "every rung against float64", "all agree"
    if not part or not part["rows"]:
        return Goal(what, goal, NOT_MEASURED)
    wrong = [row for row in part["rows"] if not row["ok"]]
    comparisons = sum(row["comparisons"] for row in part["rows"])
    said = f"{comparisons:,} comparisons of {len(part['rows'])} checks, {len(wrong) or 'none'} of the checks failed"
    return Goal(what, goal, f"{said}{_ended(part)}", None, _verdict(bool(wrong), part))


def _sanitizer(part: Row | None) -> list[Goal]:
    rows = part["rows"] if part else []
    if not rows:
        return [Goal("compute-sanitizer", "nothing found", NOT_MEASURED)]
    return [
        Goal(
            f"compute-sanitizer, {row['tool']}",
            "nothing found",
            "nothing found" if row["clean"] else row["summary"],
            None,
            # a tool that was stopped, or could not begin, has found nothing, and cleared nothing
            True if row["clean"] else False if row.get("found", row["exit_code"] is not None) else None,
        )
        for row in rows
    ]


def _suite(part: Row | None) -> Goal:
    what, goal = "the tests of stage 4", "none fails"
    counts = next((row for row in part["rows"] if "passed" in row), None) if part else None
    if part is None or counts is None:
        return Goal(what, goal, NOT_MEASURED)
    said = ", ".join(f"{counts[name]} {name}" for name in ("passed", "failed", "skipped"))
    wrong = counts["failed"] > 0 or counts["passed"] == 0
    return Goal(what, goal, f"{said}{_ended(part)}", None, _verdict(wrong, part))


def _verdict(wrong: bool, part: Row) -> bool | None:
    """False where something was wrong; None where nothing was until the part ended too early."""
    return False if wrong else True if part["status"] == "ok" else None


def _ended(part: Row) -> str:
    return "" if part["status"] in ("ok", "failed") else f" until the part ended: {part['status']}"
