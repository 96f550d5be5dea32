"""What `groundup bench` is to measure: its options as a plan."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from groundup.stages import stages_for
from shared.architectures import named
from shared.bench.measuring import threads as thread_settings
from shared.bench.measuring.gpu import on_gpu
from shared.bench.running.plan import MODEL_PARTS, PARTS, PASSES, QUICK_PASSES_ON_GPU, Plan
from shared.contract import is_emulated
from shared.data.datasets import DataError, load_dataset

LARGEST_SIZE = 8192


def plan_for(
    stages: str | None,
    only: str | None,
    threads: str | None,
    sizes: str | None,
    quick: bool,
    passes: int | None,
    data_dir: Path | None,
    model: str | None = None,
) -> tuple[Plan, dict[str, str]]:
    """The plan for these options of `groundup bench`, and the reason for each thing that it leaves out.

    passes: None for the usual number: PASSES, or QUICK_PASSES_ON_GPU in a quick run with a stage on a GPU

    Raises ValueError for an impossible value, StageUnavailable for a chosen stage that cannot run.
    """
    if model is not None:
        named(model)  # refuses any other name
    parts, wanted = _parts(only, MODEL_PARTS if model else PARTS), _sizes(sizes)
    count = thread_settings.thread_count(threads or ("1" if quick else "all"))
    if passes is not None and passes < 1:
        raise ValueError(f"passes: expected at least 1, got {passes}")
    chosen, unavailable = stages_for(stages)
    left_out = [stage.name for stage in chosen if is_emulated(stage.name)] if stages is None else []
    for name in left_out:
        reason = "its CUDA kernels are emulated here, which says nothing about a GPU; --stages 4 measures it anyway"
        unavailable[name] = f"{name}: {reason}"
    mnist = None
    if "training" in parts and model is None:
        try:
            load_dataset("mnist", data_dir)
            mnist = str(data_dir or "")
        except DataError as reason:
            if data_dir is not None:
                raise
            missing = str(reason).partition(". ")[0]
            unavailable["mnist"] = f"training on MNIST (name its folder with --data-dir): {missing}"
    if passes is None:
        passes = QUICK_PASSES_ON_GPU if quick and any(map(on_gpu, chosen)) else PASSES
    plan = Plan(
        stages=tuple(stage.name for stage in chosen),
        parts=tuple(parts),
        threads=count,
        quick=quick,
        passes=passes,
        sizes=tuple(wanted),
        mnist=mnist,
        model=model or "",
        emulated=stages is not None,
    )
    return plan, unavailable


def _parts(only: str | None, there: Sequence[str]) -> list[str]:
    if only is None:
        return list(there)
    chosen = [name.strip() for name in only.split(",") if name.strip()]
    unknown = [name for name in chosen if name not in there]
    if unknown or not chosen:
        raise ValueError(f"only: expected some of {', '.join(there)} with commas between, got {only!r}")
    return [name for name in there if name in chosen]


def _sizes(text: str | None) -> list[int]:
    if text is None:
        return []
    sizes = [int(part) if part.strip().isdecimal() else 0 for part in text.split(",")]
    if not all(1 <= size <= LARGEST_SIZE for size in sizes):
        raise ValueError(f"sizes: expected whole numbers from 1 to {LARGEST_SIZE} with commas between, got {text!r}")
    return sorted(set(sizes))
