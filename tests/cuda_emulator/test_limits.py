"""What no device would launch is refused with a sentence, and the settings say what they take."""

import numpy as np
import pytest

from cuda_emulator import KernelError, cuda, current, options
from cuda_emulator.runtime.limits import shared_memory, together
from cuda_emulator.runtime.tracing import trace_launch
from cuda_emulator.settings import Settings, from_environment
from cuda_emulator.walking.walked_launch import Launched


@cuda.jit
def kernel(a):  # type: ignore[no-untyped-def]
    a[0] = 1


@pytest.mark.parametrize(
    ("configuration", "message"),
    [
        ((1, 1025), "a block of 1025 threads along x is more than the 1024 that a device allows: use smaller blocks"),
        ((1, (32, 33)), "a block of 32 x 33 = 1056 threads is more than the 1024"),
        ((1, (1, 1, 65)), "a block of 65 threads along z is more than the 64"),
        (((1, 65536), 32), "a grid of 65536 blocks along y is more than the 65535 that a device allows: use fewer"),
        ((2**31, 32), "a grid of 2147483648 blocks along x is more than the 2147483647"),
        ((0, 32), r"the grid must have at least 1 along x, got \(0, 1, 1\); where there is nothing to compute"),
        ((1, (8, -2)), r"the block must have at least 1 along y, got \(8, -2, 1\)"),
        (((1, 1, 1, 1), 32), r"the grid must be an int or a tuple of 1 to 3 ints, got \(1, 1, 1, 1\)"),
        (((), 32), r"the grid must be an int or a tuple of 1 to 3 ints, got \(\)"),
        ((None, 32), "the grid must be an int or a tuple of 1 to 3 ints, got None"),
        ((1, 32, 0, 49153), r"a block may use 49152 bytes of shared memory, this launch needs 49153"),
        ((1, 32, 0, -4), "the dynamic shared memory must be at least 0 bytes, got -4"),
        ((1,), r"expected kernel\[blocks, threads\]"),
        ((1, 32, 0, 0, 0), r"expected kernel\[blocks, threads\]"),
    ],
)
def test_a_launch_that_no_device_takes_is_a_kernel_error_at_its_line(configuration: tuple, message: str) -> None:
    with pytest.raises(KernelError, match=message) as raised:
        kernel[configuration]
    assert raised.value.filename == __file__
    assert "kernel[configuration]" in str(raised.value)


@pytest.mark.parametrize(
    ("configuration", "message"),
    [
        ((4.0, 32), "got 4.0, a float; divide with //, not with /"),
        ((4, (8.0, 8)), "the block must be an int or a tuple of 1 to 3 ints, got 8.0, a float"),
        (([4], 32), r"got \[4\], a list"),
        ((True, 32), "got True, a bool"),
        ((4, 32, "stream"), "stream: expected 0 or a stream of cuda.stream"),
        ((4, 32, 0, 8.0), "the dynamic shared memory must be a whole number of bytes, got 8.0"),
    ],
)
def test_a_launch_with_something_that_is_no_number_is_a_type_error(configuration: tuple, message: str) -> None:
    kernel[4, 32]  # the same in whole numbers must not let the others through
    kernel[4, (8, 8)]
    kernel[1, 32]
    with pytest.raises(TypeError, match=message):
        kernel[configuration]


def test_the_largest_launches_are_allowed() -> None:
    for configuration in [(2**31 - 1, 1024), ((1, 65535, 65535), (1, 16, 64)), (1, (32, 32), 0, 49152)]:
        kernel[configuration]
    assert kernel[np.int64(2), (np.int32(8), 4)].blockdim == (8, 4, 1)
    assert kernel[np.int64(2), 8].griddim == (2, 1, 1)


def test_static_and_dynamic_shared_memory_count_together() -> None:
    shared_memory(40_000, 9_152, "kernel")
    with pytest.raises(KernelError, match=r"needs 50000 \(40000 bytes in shared arrays and 10000 dynamic ones\)"):
        shared_memory(40_000, 10_000, "kernel")


def test_a_kernel_may_be_allowed_more_shared_memory() -> None:
    larger = cuda.jit(kernel.py_func)
    larger.allow_shared(64 * 1024)
    assert larger[1, 32, 0, 64 * 1024].sharedmem == 64 * 1024
    with pytest.raises(KernelError, match="a block may use 65536 bytes of shared memory, this launch needs 65537"):
        larger[1, 32, 0, 64 * 1024 + 1]
    with pytest.raises(KernelError, match="cannot be allowed 101377 bytes of shared memory for a block; 101376"):
        larger.allow_shared(99 * 1024 + 1)


def test_a_block_that_no_multiprocessor_holds_is_not_told_to_use_fewer_blocks() -> None:
    with pytest.raises(KernelError, match=r"holds 40 blocks of 32 threads and 65536 .* has 41\. Use fewer blocks"):
        together((41, 1, 1), (32, 1, 1), 64 * 1024, "meeting")
    with pytest.raises(KernelError, match=r"holds 0 blocks .* has 1\. Use smaller tiles, .* has 65536 bytes"):
        together((1, 1, 1), (32, 1, 1), 64 * 1024 + 4, "meeting")


@cuda.jit
def with_both(out):  # type: ignore[no-untyped-def]
    own = cuda.shared.array(1024, np.int32)
    given = cuda.shared.array(0, np.int32)
    i = cuda.threadIdx.x
    own[i] = given[i] = i
    out[i] = own[i] + given[i]


@pytest.mark.parametrize("way", ["fast", "check", "step", "trace", "walk"])
def test_the_shared_arrays_of_a_kernel_that_is_allowed_more_count_alike_in_every_way_to_run_it(way: str) -> None:
    larger, out = cuda.jit(with_both.py_func), np.zeros(32, np.int32)
    larger.allow_shared(52 * 1024)
    if way == "trace":
        assert trace_launch(larger, 1, 32, (out,), 48 * 1024).fault == ""
    elif way == "walk":
        assert Launched(larger, 1, 32, (out,), 48 * 1024).walk().fault == ""
    else:
        with options(check=way == "check", step=way == "step"):
            larger[1, 32, 0, 48 * 1024](out)
            assert out.tolist() == list(range(0, 64, 2))
            with pytest.raises(
                KernelError, match="a block may use 53248 bytes of shared memory, this launch needs 53252"
            ):
                larger[1, 32, 0, 48 * 1024 + 4](out)


def test_launch_bounds_hold() -> None:
    bounded = cuda.jit(launch_bounds=(128, 2))(kernel.py_func)
    bounded[1, 128]
    with pytest.raises(KernelError, match="a block of 256 threads is more than the 128 that launch_bounds promised"):
        bounded[1, (16, 16)]


def test_options_hold_inside_the_with() -> None:
    with options(check=True, threads=1) as inside:
        assert (inside.check, inside.cores) == (True, 1)
        with options(threads=3):
            assert current() == Settings(check=True, threads=3)
    assert not current().check


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"threads": 0}, ValueError, "threads: expected a number of cores of at least 1"),
        ({"divergence": "ignore"}, ValueError, "expected 'error' or 'warn', got 'ignore'"),
        ({"check": True, "step": True}, ValueError, "choose one of them"),
        ({"bounds": 1}, TypeError, "bounds: expected True or False, got 1"),
        ({"seed": -1}, ValueError, "seed: expected a whole number"),
        ({"speed": 1}, TypeError, "expected some of bounds, check, .* got 'speed'"),
    ],
)
def test_a_wrong_option_is_named(changes: dict, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message), options(**changes):
        pass


def test_the_environment_sets_the_options(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GROUNDUP_EMULATOR", "nobounds, check,source")
    monkeypatch.setenv("GROUNDUP_THREADS", "3")
    assert from_environment() == Settings(bounds=False, check=True, show_source=True, threads=3)
    monkeypatch.setenv("GROUNDUP_EMULATOR", "fast")
    with pytest.raises(ValueError, match=r"GROUNDUP_EMULATOR: expected some of nobounds, check.* got 'fast'"):
        from_environment()
    monkeypatch.setenv("GROUNDUP_EMULATOR", "")
    monkeypatch.setenv("GROUNDUP_THREADS", "many")
    with pytest.raises(ValueError, match="GROUNDUP_THREADS: expected a whole number of at least 1, got 'many'"):
        from_environment()
