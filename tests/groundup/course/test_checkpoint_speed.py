"""The checkpoints' conditions on time: 3's, where NumPy is slower and faster than any C; 4's, by an estimate."""

import pytest

from groundup.course.checks.check import Tally, Wrong
from groundup.course.grading.checkpoints import phase3_c, phase4_forward_pass
from tests.stages import REASONS
from tests.wide import wide


def checked(monkeypatch: pytest.MonkeyPatch, mine: float, numpys: float, theirs: float | None) -> list[str]:
    """The notes of the check, for these seconds of a step."""
    monkeypatch.setattr(phase3_c, "beside_numpy", lambda: (mine, numpys, mine / numpys))
    monkeypatch.setattr(phase3_c, "projects_seconds", lambda: theirs)
    told: list[str] = []
    phase3_c.faster_than_numpy(Tally(lambda event, text: told.append(text) if event == "note" else None))
    return told


def test_a_step_faster_than_numpys_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    (note,) = checked(monkeypatch, 0.001, 0.002, None)
    assert "1 ms in your C and 2 ms in NumPy, 0.5 times as long" in note


def test_where_numpy_is_faster_than_the_projects_own_c_a_right_answer_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    (note,) = checked(monkeypatch, 0.002, 0.001, 0.0019)
    assert "NumPy is faster than the project's own C, too, with which a step takes 1.9 ms" in note


@pytest.mark.parametrize("theirs", [0.0005, None])
def test_a_slow_step_does_not_pass(monkeypatch: pytest.MonkeyPatch, theirs: float | None) -> None:
    with pytest.raises(Wrong, match="2 ms in your C and 1 ms in NumPy, 2 times as long") as wrong:
        checked(monkeypatch, 0.002, 0.001, theirs)
    assert wrong.value.expected.startswith("less than 1 times")


@pytest.mark.skipif(bool(REASONS.get("stage3_c")), reason=str(REASONS.get("stage3_c")))
def test_the_projects_own_c_is_measured_whatever_c_this_process_is_told_to_build(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("GROUNDUP_CSRC", "/nowhere")
    seconds = phase3_c.projects_seconds()
    assert seconds is not None
    assert 1e-6 < seconds < 10


def estimated(monkeypatch: pytest.MonkeyPatch, python: float, naive: float = 20e-6) -> list[str]:
    """The notes of checkpoint 4's estimate, where pure Python takes so long for an image; the tiled product takes 1 µs
    for each of 256 images, all launches together."""
    monkeypatch.setattr(phase4_forward_pass, "_on_this_cpu", lambda *given: {"pure Python": python})
    monkeypatch.setattr(phase4_forward_pass, "_estimate", lambda profile: profile)
    forward = type("Forward", (), {"batch_of_images": lambda self: None})
    kernels = {name: type("Kernel", (), {"profile": lambda self, *given, seconds=seconds, **more: seconds})()
               for name, seconds in (("naive", 256 * naive), ("tiled", 256e-6))}  # fmt: skip
    forward.launches = lambda self, product: [(kernels[product], 1, 32, ())]  # type: ignore[attr-defined]
    monkeypatch.setattr(phase4_forward_pass, "Forward", lambda *given: forward())
    told: list[str] = []
    phase4_forward_pass._estimated(Tally(lambda event, text: told.append(text) if event == "note" else None))
    return told


def test_without_a_gpu_the_learners_kernels_are_estimated(monkeypatch: pytest.MonkeyPatch) -> None:
    (note,) = estimated(monkeypatch, 3e-3)
    assert note == (
        "by the lens's estimate, your forward pass on an NVIDIA T4 is about 3,000 times as fast as pure Python's on "
        "this machine, for 784-512-10 and 256 images; with the naive product it takes 20 times as long, by the same "
        "estimate"
    )


def test_kernels_that_move_too_much_do_not_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Wrong, match="is about 10 times as fast as pure Python's") as wrong:
        estimated(monkeypatch, 10e-6)
    assert wrong.value.expected == "at least 20 times"


def test_a_tiled_product_that_reads_as_much_as_the_naive_one_does_not_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Wrong, match="with the naive product it takes 3 times as long") as wrong:
        estimated(monkeypatch, 1.0, naive=3e-6)
    assert wrong.value.expected == "at least 10 times"


@pytest.mark.skipif(bool(REASONS.get("stage4_numba_cuda")), reason=str(REASONS.get("stage4_numba_cuda")))
@wide
def test_the_projects_own_kernels_pass_by_their_estimate() -> None:
    told: list[str] = []
    phase4_forward_pass._estimated(Tally(lambda event, text: told.append(text) if event == "note" else None))
    assert "with the naive product it takes 30 times as long" in told[0]
