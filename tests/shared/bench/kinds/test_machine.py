"""shared.bench.kinds.machine: the two roofs, what is counted for them, and that a wrong triad has no speed."""

import importlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shared import contract
from shared.bench.kinds import machine
from shared.bench.measuring import device_roofs, timing
from shared.bench.measuring.timing import Measurement
from tests.fake_stages import fake_stage
from tests.stages import REASONS, USABLE_STAGES

needs_c = pytest.mark.skipif("stage3_c" not in USABLE_STAGES, reason=REASONS.get("stage3_c") or "stage 3 is not here")


def with_triad(triad: Callable[..., Any]) -> contract.Stage:
    return fake_stage({}, "stage3_c", triad=triad)


def triad(b: Any, c: Any, scale: float, out: Any, rounds: int = 1, threads: int = 1) -> Any:
    """By NumPy, once instead of `rounds` times."""
    out[...] = b + scale * c
    return out


@pytest.fixture
def two_seconds_a_call(monkeypatch: pytest.MonkeyPatch) -> None:
    def measure(candidates: Any, **settings: Any) -> dict[Any, Measurement]:
        return {name: Measurement(2.0, 1.0, 3.0, 1.0, 5, 1, True) for name in candidates}

    monkeypatch.setattr(machine, "measure", measure)


@pytest.mark.usefixtures("two_seconds_a_call")
def test_three_arrays_are_counted_once_each_and_a_call_is_many_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "CALL_BYTES", 4096)
    one, two = machine.bandwidth_rows([with_triad(triad)], threads=2, sizes=[1000], dtypes=["float64"])
    assert [row.threads for row in (one, two)] == [1, 2]
    # 1000 bytes are five cache lines for each of three arrays, of eight numbers each; 4096 // 1000 rounds a call
    assert (one.kind, one.name, one.shape, one.bytes, one.flops) == ("bandwidth", "triad", (960,), 960, 2 * 40)
    assert (one.seconds, one.gigabytes) == (0.5, 960 / 0.5 / 1e9)
    assert one.measurement is not None
    assert (one.measurement.fastest, one.measurement.calls) == (0.25, 4)


def test_a_wrong_triad_is_not_timed() -> None:
    def forgets_the_end(b: Any, c: Any, scale: float, out: Any, rounds: int, threads: int) -> Any:
        end = None if threads == 1 else -1
        out[:end] = (b + scale * c)[:end]

    right, wrong = machine.bandwidth_rows([with_triad(forgets_the_end)], threads=2, repeats=1, sizes=[1000])
    assert right.skipped is None
    assert (wrong.threads, wrong.measurement) == (2, None)
    assert wrong.skipped == "its result is not 2.5 everywhere; not timed"


def test_a_size_without_a_cache_line_for_each_array_is_an_error() -> None:
    with pytest.raises(ValueError, match="expected sizes of at least 192 bytes, got 191"):
        list(machine.bandwidth_rows([with_triad(triad)], threads=1, sizes=[191]))


@needs_c
def test_stage_3_has_both_roofs() -> None:
    stage = contract.load_stage("stage3_c")
    (peak,) = machine.peak_rows([stage], dtypes=["float32"], repeats=1)
    assert peak.peak is not None
    assert peak.peak > 1e8
    (row,) = machine.bandwidth_rows([stage], threads=1, repeats=1, sizes=[4096])
    assert row.skipped is None
    assert row.gigabytes is not None
    assert row.gigabytes > 0.1


@pytest.mark.parametrize(
    ("caches", "expected"),
    [
        ([], machine.MEMORY_SIZE),
        (["32K", "1024K", "32768K"], machine.MEMORY_SIZE),
        (["32K", "2048K", "107520K"], 4 * 107520 << 10),
        (["1048576K"], machine.MOST_MEMORY),
        (["32K", "a lot"], machine.MEMORY_SIZE),
    ],
)
def test_memory_is_measured_beyond_the_last_cache(tmp_path: Path, caches: list[str], expected: int) -> None:
    for i, size in enumerate(caches):
        (tmp_path / f"index{i}").mkdir()
        (tmp_path / f"index{i}" / "size").write_text(f"{size}\n")
    assert machine.beyond_the_caches(tmp_path) == expected


# ---- stage 3's triad


@pytest.fixture
def two_threads(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A pool of two threads, whatever this process has."""
    library = importlib.import_module("stage3_c.library")
    pool = library.plain_function("pool_create")(2)
    monkeypatch.setattr(library, "pool", lambda: pool)
    yield
    library.plain_function("pool_destroy")(pool)


@needs_c
@pytest.mark.usefixtures("two_threads")
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("size", [1, 2, 7, 15, 16, 17, 31, 97, 1000, 4099])
@pytest.mark.parametrize("dtype", timing.DTYPES)
def test_the_triad_is_numpys_at_awkward_sizes(dtype: str, size: int, threads: int) -> None:
    random = np.random.default_rng(size)
    b, c = (random.standard_normal(size).astype(dtype) for _ in range(2))
    room = np.full(size + 2, np.nan, dtype)
    out = room[1:-1]
    assert contract.load_stage("3").ceilings.triad(b, c, 0.75, out, rounds=3, threads=threads) is out
    np.testing.assert_allclose(out, b + np.dtype(dtype).type(0.75) * c, rtol=4 * np.finfo(dtype).eps, atol=1e-6)
    assert np.isnan(room[[0, -1]]).all()


# ---- a GPU's roofs, as far as the emulator can tell


def test_the_roofs_kernels_compute_what_they_say() -> None:
    roofs = device_roofs
    arrays = contract.load_stage("4").arrays
    for dtype in timing.DTYPES:
        assert roofs.peak(dtype, rounds=3, blocks=1)() == 2 * 8 * 16 * 256 * 3
        numbers, sums = arrays.asarray([1.0, 0.25], dtype), arrays.asarray(np.full(256, np.nan), dtype)
        roofs.multiply_add[1, 256](np.int64(3), numbers, sums)
        begun = [0.25, 1.0, 0.5, 2.0, 1.25, 2.0, 1.5, 3.0]
        expected = sum(begun) + 8 * 48 * 0.25  # each of them 48 times x -> x + 0.25, without rounding
        np.testing.assert_array_equal(arrays.to_host(sums), np.full(256, expected))
        for size in (1, 97, 1000):
            random = np.random.default_rng(size)
            b, c = (random.standard_normal(size).astype(dtype) for _ in range(2))
            out = arrays.asarray(np.full(size, np.nan), dtype)
            roofs.triad(arrays.asarray(b, dtype), arrays.asarray(c, dtype), 0.75, out)
            np.testing.assert_allclose(arrays.to_host(out), b + 0.75 * c, rtol=1e-5, atol=1e-6)
