"""The checkpoints' conditions on time: 3's, where NumPy is slower and faster than any C; 4's, by a recorded GPU."""

import pytest

from groundup.course.checks.check import Tally, Wrong
from groundup.course.grading.checkpoints import phase3_c, phase4_forward_pass
from shared.bench.on_gpu import gpu_record
from tests.stages import REASONS


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


def by_a_recorded_gpu(monkeypatch: pytest.MonkeyPatch, numpy_times: float) -> list[str]:
    """The notes of checkpoint 4's check where NumPy is this many times as fast as pure Python."""
    monkeypatch.setattr(phase4_forward_pass, "recorded_speed", lambda: None)
    monkeypatch.setattr(
        phase4_forward_pass, "_on_this_cpu", lambda *given: {"NumPy": 1e-6, "pure Python": numpy_times * 1e-6}
    )
    check = phase4_forward_pass.recorded_check()
    assert check is not None
    told: list[str] = []
    check(Tally(lambda event, text: told.append(text) if event == "note" else None))
    return told


def test_without_a_gpu_a_recorded_one_is_named_with_both_of_its_factors(monkeypatch: pytest.MonkeyPatch) -> None:
    (note,) = by_a_recorded_gpu(monkeypatch, 300)
    assert note == (
        "recorded on another machine (NVIDIA H100 80GB HBM3, 2026-11-22, revision aa8f7fd): the project's forward pass "
        "of 784-512-10 for 256 images was 8.64 times as fast as NumPy's there; here NumPy's is 300 times as fast as "
        "pure Python's, which together makes about 2,600 times"
    )


def test_a_recorded_gpu_that_is_not_fast_enough_does_not_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Wrong, match="together makes about 17 times"):
        by_a_recorded_gpu(monkeypatch, 2)


def test_where_no_gpu_is_recorded_there_is_no_such_check(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(phase4_forward_pass, "recorded_speed", lambda: None)
    monkeypatch.setattr(gpu_record, "reference", lambda: None)
    assert phase4_forward_pass.recorded_check() is None
