"""The lens beside its analysis: devices, roofline, occupancy, arguments, and launches that are intercepted."""

from __future__ import annotations

import importlib.util
import json
import os
import pickle
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba import float32, types

from cuda_emulator import cuda
from cuda_emulator.inspection import LIMITS, catch, occupancy
from cuda_emulator.lens.arguments_from_text import arguments_from, value_from
from cuda_emulator.lens.devices import DEVICES, LAUNCH, device
from cuda_emulator.lens.profile import LineOperations, Roofline
from cuda_emulator.lens.roofline import compulsory_bytes, estimate
from cuda_emulator.lens.static import static
from cuda_emulator.lens.summary import roofline_text, static_text
from groundup.compiling import registers
from groundup.compiling.check import CompilerMissing
from tests.cuda_emulator.lens.profile_parts import access, made, reuse

ROOT = Path(__file__).resolve().parents[3]
VECTORS = (types.Array(types.float32, 1, "C"),) * 2


# Devices


@pytest.mark.parametrize(
    ("name", "found"),
    [("H100", "H100"), ("h100", "H100"), ("RTX4090", "RTX 4090"), ("rtx 3080", "RTX 3080"), ("3080", "RTX 3080"),
     ("NVIDIA GeForce RTX 4090, 24 GB", "RTX 4090"), ("nvidia a100", "A100"), (None, "H100")],
)  # fmt: skip
def test_a_device_is_found_by_a_name_as_people_write_it(name: str | None, found: str) -> None:
    assert device(name).name == found


@pytest.mark.parametrize(
    ("name", "said"), [("V100", "no device is called"), ("", "no device is called"), ("RTX", "2 devices fit")]
)
def test_a_device_that_is_none_is_told_the_names(name: str, said: str) -> None:
    with pytest.raises(ValueError, match=f"{said} '{name}'; choose one of T4, RTX 3080, RTX 4090, A100, H100"):
        device(name)


@pytest.mark.parametrize(
    ("name", "teraflops", "float64"),
    [
        ("T4", 8.14, 0.254),
        ("RTX 3080", 29.8, 0.465),
        ("RTX 4090", 82.6, 1.29),
        ("A100", 19.5, 9.7),
        ("H100", 66.9, 33.5),
    ],
)
def test_peaks_are_those_of_the_makers_tables(name: str, teraflops: float, float64: float) -> None:
    assert device(name).peak("float32") / 1e12 == pytest.approx(teraflops, rel=0.005)
    assert device(name).peak("float64") / 1e12 == pytest.approx(float64, rel=0.006)
    with pytest.raises(ValueError, match="expected 'float32' or 'float64', got 'float16'"):
        device(name).peak("float16")


def test_every_device_has_its_limits_and_a_source() -> None:
    for each in DEVICES:
        assert each.capability in LIMITS
        assert "https://" in each.source


# The roofline


def test_the_roofline_of_a_stream_is_its_bandwidth() -> None:
    """256 float32 read and 256 additions in each quarter of the launch: 1/4 operation a byte."""
    profile = made(
        accesses=[access(bytes_used=1024, sectors=32)], operations=[LineOperations("kernels.py", 5, 256, 0, 0)]
    )
    found = estimate(profile, device("H100"))
    assert found is not None
    assert (found.device, found.dtype, found.bound) == ("H100", "float32", "launch")
    assert found.intensity == 0.25
    assert found.attainable == pytest.approx(0.25 * 3352e9)
    assert found.ridge == pytest.approx(19.96, rel=0.001)
    assert seconds_of(found, "memory") == pytest.approx(4 * 32 * 32 / 3352e9)
    assert "2 of 8 blocks traced" in found.source
    assert "as if no cache helped" in found.source
    assert "estimate" in found.source


def seconds_of(found: Roofline | None, name: str) -> float:
    """The time of one part of the device."""
    assert found is not None
    return next(each.seconds for each in found.times if each.name == name)


def test_the_roofline_of_many_operations_is_the_peak_and_of_float64_its_own() -> None:
    """Eight blocks on the 128 multiprocessors of an RTX 4090: a sixteenth of them works."""
    single, double, both = (
        estimate(
            made(
                accesses=[access(sectors=32)],
                operations=[LineOperations("kernels.py", 5, 10_000_000, 0, 0, double=float64)],
            ),
            device("RTX 4090"),
        )
        for float64 in (0, 10_000_000, 5_000_000)
    )
    assert single is not None
    assert double is not None
    assert both is not None
    assert (single.bound, double.bound, both.bound) == ("compute",) * 3
    assert (single.dtype, double.dtype, both.dtype) == ("float32", "float64", "float64")
    assert single.attainable == single.peak == pytest.approx(64 * double.peak)
    assert double.seconds == pytest.approx(64 * single.seconds) == pytest.approx(2 * both.seconds)
    assert single.seconds == pytest.approx(16 * 40_000_000 / single.peak)


def test_no_launch_is_shorter_than_an_empty_one() -> None:
    nothing = estimate(made(), device())
    assert nothing is not None
    assert (nothing.seconds, nothing.attainable, nothing.bound) == (LAUNCH, 0, "launch")
    assert "2026-11-22" in nothing.source
    with pytest.raises(ValueError, match="at least one traced block"):
        estimate(made(blocks=[]), device())


def test_after_a_fault_there_is_no_estimate_and_the_report_says_why() -> None:
    broken = made(fault="x[100] is out of bounds", accesses=[access(sectors=32)])
    assert estimate(broken, device()) is None
    assert roofline_text(broken) == ["The run ended early, so the counts say nothing about the time of the launch."]


@pytest.mark.parametrize(("blocks", "busiest", "waves"), [(1, 1, 1), (132, 1, 1), (133, 2, 2), (1320, 10, 10)])
def test_times_are_those_of_the_multiprocessor_with_the_most_blocks(blocks: int, busiest: int, waves: int) -> None:
    """1,000 passes of the banks and a load in each block, of which one fits on a multiprocessor."""
    reads = access(sectors=32)
    banked = access(space="shared", wavefronts=1000, ideal_wavefronts=10)
    profile = made(grid=(blocks, 1, 1), grid_blocks=blocks, blocks=[0], block=(1024, 1, 1), accesses=[reads, banked])
    clock = device("H100").clock
    found = estimate(profile, device("H100"))
    assert seconds_of(found, "shared memory") == pytest.approx(busiest * 1000 / clock)
    assert seconds_of(found, "latency") == pytest.approx(waves * 400 / clock)


@pytest.mark.parametrize(
    ("blocks", "busy", "share"), [(1, 1, 1 / 264), (66, 66, 0.25), (264, 132, 1.0), (5000, 132, 1.0)]
)
def test_the_occupancy_of_few_blocks_is_that_of_the_whole_device(
    monkeypatch: pytest.MonkeyPatch, blocks: int, busy: int, share: float
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    found = static(scaler(2), VECTORS, 1024, 0, device("H100"), blocks)
    assert (found.busy, found.multiprocessors, found.allowed) == (busy, 132, 1.0)
    assert found.occupancy == pytest.approx(share)
    assert found.waves == pytest.approx(blocks / 264)
    assert found.limit == ("grid" if blocks < 264 else "threads")
    told = " ".join(static_text(made(static=found, grid_blocks=blocks)))
    assert f"{busy} of them have work" in told


def test_compulsory_bytes_count_each_element_once_and_both_ways_where_it_is_read_and_written() -> None:
    sized = [access(sectors=32)]
    assert compulsory_bytes(made(accesses=sized, reuse=[reuse(loads=999)])) == 1024 * 4
    assert compulsory_bytes(made(accesses=sized, reuse=[reuse(loads=1, touched=10)])) == 4 * 10 * 4
    assert compulsory_bytes(made(accesses=sized, reuse=[reuse(loads=1, stores=1)])) == 2 * 1024 * 4
    assert compulsory_bytes(made(accesses=sized, reuse=[reuse(atomics=1)])) == 2 * 1024 * 4


# Occupancy and registers


@cuda.jit(device=True)
def squared(x):
    return x * x


def scaler(factor: int) -> Any:
    """A kernel with a closure, a device function and shared memory."""

    @cuda.jit
    def scale(a, b):
        tile = cuda.shared.array(128, float32)
        i = cuda.grid(1)
        tile[cuda.threadIdx.x] = a[i]
        cuda.syncthreads()
        b[i] = squared(tile[cuda.threadIdx.x]) * factor

    return scale


def test_without_the_compiler_occupancy_comes_from_block_and_shared_memory_and_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    found = static(scaler(2), VECTORS, 128, 20_000, device("A100"))
    least = occupancy((8, 0), 128, 1, 20_000)
    assert (found.registers, found.spilled_bytes) == (None, None)
    assert (found.blocks, found.occupancy, found.limit) == (least.blocks, least.share, "shared memory")
    assert found.capability == "8.0"
    assert "an upper limit" in found.source
    assert "python -m pip install -e '.[cu13]'" in found.source


def asked(monkeypatch: pytest.MonkeyPatch, answer: dict[str, Any]) -> list[Any]:
    """As if numba-cuda were installed and its process gave that answer; the questions that it got."""
    questions: list[Any] = []

    def ask(question: bytes, capability: Any, folder: str) -> dict[str, Any]:
        questions.append(pickle.loads(question))
        return answer

    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    monkeypatch.setattr(registers, "_ask", ask)
    return questions


def test_registers_limit_the_occupancy_where_the_compiler_tells_them(monkeypatch: pytest.MonkeyPatch) -> None:
    questions = asked(monkeypatch, {"registers": 128, "stack": 8, "spills": 4, "shared": 512})
    found = static(scaler(2), VECTORS, 256, 512, device("H100"))
    assert (found.registers, found.spilled_bytes, found.blocks, found.limit) == (128, 12, 2, "registers")
    assert found.occupancy == 0.25
    assert found.source == "compiled by numba-cuda for compute capability 9.0"
    assert questions[0][0] == "packed"


def test_registers_that_the_compiler_does_not_tell_are_unknown_for_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    asked(monkeypatch, {"error": "TypingError: cannot add"})
    found = static(scaler(2), VECTORS, 256, 512, device())
    assert found.registers is None
    assert "numba-cuda does not compile scale (TypingError: cannot add)" in found.source


def test_missing_compile_libraries_are_asked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    started = []

    class Missing:
        def __init__(self) -> None:
            started.append(self)

        def wait_until_ready(self) -> None:
            raise CompilerMissing("no libnvvm")

        def close(self) -> None:
            """Nothing was started."""

    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    for name, value in (("_LearnersWorker", Missing), ("_workers", []), ("_missing", [])):
        monkeypatch.setattr(registers, name, value)
    for factor in (5, 6):
        assert "unknown: no libnvvm" in static(scaler(factor), VECTORS, 256, 512, device()).source
    assert len(started) == 1


def test_a_kernel_that_cannot_leave_the_process_has_unknown_registers(monkeypatch: pytest.MonkeyPatch) -> None:
    asked(monkeypatch, {})
    lock = threading.Lock()

    @cuda.jit
    def reads(a, b):
        b[0] = lock.locked()

    found = static(reads, VECTORS, 32, 0, device())
    assert "reads uses something that cannot be handed to the compiler" in found.source


REAL = """
import json, sys
from dataclasses import asdict
from cuda_emulator.lens.devices import device
from cuda_emulator.lens.static import static
from tests.cuda_emulator.lens import test_tools as tools
print(json.dumps([asdict(static(tools.scaler(factor), tools.VECTORS, 128, 512, device("H100"))) for factor in (3, 4)]))
"""


def test_a_closure_is_compiled_for_real_where_numba_cuda_is_installed() -> None:
    if importlib.util.find_spec("numba_cuda") is None:
        pytest.skip("needs numba-cuda and its compile libraries, which are not installed")
    environment = os.environ | {"GROUNDUP_CUDA": "emulator"}
    done = subprocess.run(
        [sys.executable, "-c", REAL], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    for found in json.loads(done.stdout):
        if "unknown" in found["source"] and "compile libraries" in found["source"]:
            pytest.skip(found["source"])
        assert found["source"] == "compiled by numba-cuda for compute capability 9.0"
        assert 8 <= found["registers"] <= 64
        assert found["spilled_bytes"] == 0


# Arguments from text


def test_arguments_stand_in_the_kernels_order_with_the_types_that_were_asked_for() -> None:
    x, n, slope, order, flag = arguments_from(
        "n=5 x=float32[4, 3], slope=float32(0.5) order=int64[6]:arange flag=True",
        ("x", "n", "slope", "order", "flag"),
        "k",
    )
    assert (x.shape, x.dtype) == ((4, 3), np.float32)
    assert 0 <= x.min() < x.max() < 1
    assert (n, type(n), flag) == (5, int, True)
    assert (slope, type(slope)) == (np.float32(0.5), np.float32)
    assert order.tolist() == [0, 1, 2, 3, 4, 5]


def test_arrays_are_the_same_each_time_and_whole_numbers_are_zero() -> None:
    assert np.array_equal(value_from("x", "float64[9]"), value_from("x", "float64[9]"))
    assert not np.array_equal(value_from("x", "float64[9]"), value_from("y", "float64[9]"))
    assert not value_from("x", "int32[9]").any()
    assert value_from("x", "uint8[2]:ones").tolist() == [1, 1]
    assert value_from("x", "int32[50]:random").max() < 100


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x=float32[3]", "k takes x, n; n missing"),
        ("x=float32[3] n=1 m=2", "m unknown"),
        ("x=1 x=2 n=3", "x is given twice"),
        ("float32[3]", "expected name=float32[64,64] or name=5, got 'float32[3]'"),
        ("x=float16[3] n=1", "x: expected one of float32, float64"),
        ("x=float32[,] n=1", "x: expected sizes with commas between, got [,]"),
        ("x=float32[3]:ten n=1", "x: expected one of zeros, ones, arange, random after the colon, got 'ten'"),
        ("x=float32(a) n=1", "x: expected float32[64,64], float32(0.5) or a number, got 'float32(a)'"),
        ("x='a' n=1", "x: expected float32[64,64]"),
    ],
)
def test_arguments_that_cannot_be_read_are_told_by_name(text: str, said: str) -> None:
    with pytest.raises(ValueError) as refused:  # noqa: PT011 - the message is compared below, brackets and all
        arguments_from(text, ("x", "n"), "k")
    assert said in str(refused.value)


# Launches


@cuda.jit
def add_one(a):
    a[cuda.grid(1)] += 1


def test_a_launch_is_caught_before_it_is_made_with_its_arguments_as_they_were() -> None:
    a, after = np.zeros(32, np.float32), []

    def program() -> None:
        for _ in range(3):
            add_one[1, 32, 0, 64](a)
        after.append("not reached")

    launch, seen = catch(program, lambda kernel: kernel is add_one, number=2)
    assert launch is not None
    assert (launch.name, launch.grid, launch.block, launch.sharedmem) == ("add_one", (1, 1, 1), (32, 1, 1), 64)
    assert launch.arguments[0] is a
    assert a.tolist() == [1] * 32
    assert (seen, after) == ({"add_one": 2}, [])
    add_one[1, 32](a)
    assert a.tolist() == [2] * 32  # a launch is a launch again


def test_a_launch_that_does_not_come_is_none_and_a_handler_of_the_programs_does_not_meet_the_catch() -> None:
    def program() -> None:
        try:
            add_one[1, 32](np.zeros(32, np.float32))
        except Exception as error:
            raise AssertionError("the program saw it") from error

    assert catch(program, lambda kernel: False) == (None, {"add_one": 1})
    assert catch(program, lambda kernel: True)[0] is not None
    with pytest.raises(ValueError, match="expected a number of at least 1, got 0"):
        catch(program, lambda kernel: True, 0)
