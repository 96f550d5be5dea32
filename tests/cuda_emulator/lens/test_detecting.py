"""Check mode with the lens's detector: it finds every kind of mistake on its line, and accuses no correct kernel.

A short run has a few kernels, since each of them is compiled twice.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator

import numpy as np
import pytest

from cuda_emulator import KernelError, cuda, hooks, options
from cuda_emulator.lens import detecting
from cuda_emulator.runtime import check_report
from tests.cuda_emulator.lens.checked import (
    correct,
    correct_atomics,
    correct_patterns,
    wrong_memory,
    wrong_patterns,
    wrong_races,
)
from tests.wide import wide, widened

CORRECT = {**correct.CORRECT, **correct_atomics.CORRECT, **correct_patterns.CORRECT}
WRONG = {**wrong_races.WRONG, **wrong_memory.WRONG, **wrong_patterns.WRONG}
SHORT = {"lost_update", "a_local_sum_without_a_start", "maximum_by_compare_and_swap", "places_from_a_counter"}


@pytest.fixture(autouse=True)
def _the_detector_is_the_lens() -> Iterator[None]:
    hooks.register_detector(detecting.detect)
    check_report.reset()
    yield
    check_report.reset()


def some(names: list[str]) -> list[object]:
    return [name if name in SHORT else widened(name) for name in names]


def test_the_collections_hold_what_they_promise() -> None:
    assert set(CORRECT) | set(WRONG) >= SHORT


@pytest.mark.filterwarnings("ignore::cuda_emulator.errors.KernelWarning")
@pytest.mark.parametrize("name", some(list(CORRECT)))
def test_a_correct_kernel_is_not_accused(name: str) -> None:
    with options(check=True):
        CORRECT[name].launch()
    assert "looked at every access of 1" in check_report.report()


@pytest.mark.parametrize("name", some(list(WRONG)))
def test_a_mistake_is_found_on_its_line(name: str) -> None:
    case = WRONG[name]
    with options(check=True), pytest.raises(KernelError, match=re.escape(case.says)) as raised:
        case.launch()
    assert raised.value.line == case.line
    assert any(note.endswith("shows more") for note in raised.value.__notes__)


def test_a_sample_has_the_neighbours_in_each_direction() -> None:
    assert detecting.neighbours((1, 1, 1)) == [0]
    assert detecting.neighbours((3, 1, 1)) == [0, 1, 2]
    assert detecting.neighbours((10, 10, 10)) == [0, 1, 10, 100, 500, 501, 999]


@cuda.jit
def overlaps(x):  # type: ignore[no-untyped-def]
    i = cuda.blockIdx.y * 64 + cuda.threadIdx.x
    for _ in range(x.size // 64):
        x[i] += 1


def test_of_a_large_launch_a_sample_is_looked_at_and_the_report_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(detecting, "MOST_EVENTS", 7_000)
    given = (np.zeros(64 * 8, np.float32),)
    found = detecting.detect(overlaps, (1, 8, 1), (64, 1, 1), given, 0)
    assert (found.races, found.grid_blocks, found.complete) == ((), 8, False)
    assert (found.blocks, found.cut) == (6, False)
    check_report.of("overlaps").launches += 1
    check_report.looked("overlaps", found)
    assert f"looked at the accesses of 1 in a sample ({found.blocks} of 8 blocks)" in check_report.report()
    (race,) = detecting.detect(overlaps, (2, 4, 1), (64, 1, 1), given, 0).races
    assert "thread (0, 0, 0) of block (1, 0, 0)" in race.sentence


def test_a_block_that_does_not_fit_is_looked_at_in_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(detecting, "MOST_EVENTS", 500)
    found = detecting.detect(overlaps, (1, 2, 1), (64, 1, 1), (np.zeros(64 * 8, np.float32),), 0)
    assert (found.blocks, found.cut, found.complete) == (1, True, False)


def test_later_launches_like_earlier_ones_are_looked_at_more_and_more_rarely() -> None:
    case = CORRECT["places_from_a_counter"]
    with options(check=True):
        for _ in range(9):
            case.launch()
    assert "9 launches; looked at every access of 9" in check_report.report()  # results differ: each is looked at


def test_the_command_names_the_script_and_the_launch(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "script.py").write_text("")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["script.py"])
    monkeypatch.setattr(sys.modules["__main__"], "__spec__", None)
    assert detecting.command(overlaps, 1) == f"{hooks.extensions().command} lens script.py:overlaps"
    assert detecting.command(overlaps, 3) == f"{hooks.extensions().command} lens script.py:overlaps --launch 3"
    monkeypatch.setattr("sys.argv", ["pytest"])
    assert detecting.command(overlaps, 1) == "overlaps.profile(grid, block, ...)"
    monkeypatch.setattr("sys.argv", ["script.py"])  # -m MODULE, whose file the lens cannot run
    monkeypatch.setattr(sys.modules["__main__"], "__spec__", sys.__spec__)
    assert detecting.command(overlaps, 1) == "overlaps.profile(grid, block, ...)"


@cuda.jit
def halves(x, out):  # type: ignore[no-untyped-def]
    i = cuda.grid(1)
    out[i] = 0.5 * x[i]


@cuda.jit
def halves_in_float32(x, out):  # type: ignore[no-untyped-def]
    i = cuda.grid(1)
    out[i] = x.dtype.type(0.5) * x[i]


def test_float64_on_float32_arrays_is_a_remark_with_its_line_and_the_command_of_the_lens(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sys.argv", ["pytest"])
    x = np.ones(64, np.float32)
    with options(check=True):
        halves[2, 32](x, x.copy())
        halves[2, 32](x, x.copy())
    report = check_report.report()
    line = halves.py_func.__code__.co_firstlineno + 3
    assert f"line {line} computes in float64, and the arrays are float32: write np.float32(0.5) for 0.5" in report
    assert report.count("halves.profile(grid, block, ...) shows more") == 1
    assert "no mistake found in 2 launches" in report


def test_float64_is_no_remark_where_the_arrays_are_float64_or_all_is_float32() -> None:
    x = np.ones(64, np.float32)
    with options(check=True):
        halves[2, 32](x.astype(np.float64), np.ones(64))
        halves_in_float32[2, 32](x, x.copy())
    assert "float64" not in check_report.report()


@wide
def test_what_is_read_before_it_is_written_and_changes_nothing_is_a_remark() -> None:
    with options(check=True):
        CORRECT["tiles_whose_outer_rows_nobody_writes"].launch()
    assert "reads what nobody has written, which changes no result: left[" in check_report.report()
