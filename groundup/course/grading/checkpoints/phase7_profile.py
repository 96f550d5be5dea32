"""Checkpoint 7, its last part: the residual CNN, profiled. Which operation would you mend first, and which then?

RECORDED is a profile of its step on a GPU. The learner's first_to_mend reads it as a person would: by what each kernel
takes, and by what its roof would allow.
"""

from __future__ import annotations

from groundup.course.checks.check import Check, Tally
from groundup.course.grading.checkpoints.learners_training import TOGETHER, each_alone
from shared.architectures import residual_cnn
from shared.profile import gain
from shared.profile.operations import BACKWARD, FORWARD, Operation, plain

DEVICE, BATCH = "NVIDIA H200", 64
STEP = 2135.26e-6
"""Seconds of a step, of which its kernels work 1,702 µs."""

RECORDED = {
    "correlate": 764.96,
    "correlate_weights": 329.55,
    "forward": 126.65,
    "normalise": 117.10,
    "backward": 105.57,
    "sums": 70.72,
    "max_backward": 61.75,
    "statistics": 51.22,
    "add_parts": 18.30,
    "max_pool": 15.59,
}
"""The kernels that take longest, µs a step, of all their launches: docs/benchmarks/gpu/nvidia-h200-2026-11-26."""

PEAK, BANDWIDTH = 67e12, 4.8e12
"""Operations a second in float32, and bytes a second: NVIDIA H200 Tensor Core GPU, data sheet."""


def profile_read() -> list[Check]:
    """What the learner's function says of the recorded profile."""
    return [each_alone("24.7"), Check("the residual CNN, profiled", _read)]


def roofs() -> dict[str, float]:
    """The least seconds that the device allows the kernels whose work is known, in a step."""
    operations = plain(residual_cnn(), BATCH, 4, copies=False)
    convolutions = [each for each in operations if each.kind == "conv"]
    forward = [each for each in convolutions if each.direction == FORWARD]
    back = [each for each in convolutions if each.direction == BACKWARD]
    # Backward has two products of the same size, for the weights and for x; the first layer's x needs none.
    first, others = back[-1].flops, sum(each.flops for each in back[:-1])
    work = {
        "correlate": sum(each.flops for each in forward) + others / 2,
        "correlate_weights": first + others / 2,
    }
    return {
        **{kernel: flops / PEAK for kernel, flops in work.items()},
        "forward": _least([each for each in operations if each.kind == "dense" and each.direction == FORWARD]),
        "normalise": _least([each for each in operations if each.kind == "norm" and each.direction == FORWARD]),
        "backward": _least([each for each in operations if each.kind == "norm" and each.direction == BACKWARD]),
    }


def _least(operations: list[Operation]) -> float:
    return sum(max(each.flops / PEAK, each.bytes / BANDWIDTH) for each in operations)


def _read(tally: Tally) -> None:
    names, known = list(RECORDED), roofs()
    seconds, least = [1e-6 * RECORDED[name] for name in names], [known.get(name) for name in names]
    step = STEP
    tally.trying(f"the profile of a step of the residual CNN on an {DEVICE}")
    for place in ("first", "next"):
        found = gain.first_to_mend(seconds, least, step)
        right = max(range(len(names)), key=lambda i: seconds[i] - (seconds[i] if least[i] is None else least[i] or 0.0))
        after = step - (seconds[right] - (least[right] or 0.0))
        got = None if found is None else (names[found[0]], found[1])
        what = f"what to mend {place} in a step of {1e6 * step:,.0f} µs"
        tally.holds(got is not None, f"{what}: nothing", expected=names[right], got="None", cause=TOGETHER)
        assert got is not None
        tally.holds(got[0] == names[right], what, expected=names[right], got=got[0], cause=TOGETHER)
        same = abs(got[1] - after) <= 1e-9 * step
        tally.holds(same, what, expected=f"{1e6 * after:,.1f} µs", got=f"{1e6 * got[1]:,.1f} µs", cause=TOGETHER)
        tally.note(
            f"to mend {place}: {got[0]}, {1e6 * seconds[right]:,.0f} µs of a step of {1e6 * step:,.0f}, at "
            f"{100 * (least[right] or 0.0) / seconds[right]:.0f} % of its roof; there the step would take "
            f"{1e6 * after:,.0f} µs, {step / after:.2f} times as fast"
        )
        seconds[right], step = least[right] or 0.0, after
    tally.note(f"recorded on an {DEVICE} at batch {BATCH}, 2026-11-26: is it the sentence that you had written down?")
