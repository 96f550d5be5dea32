"""The ladder of the tensor cores: every rung exact where nothing is rounded, and as close as rounding allows elsewhere.

And what shows a wrong one: a copy that is read before it was waited for, a barrier that is missing.
"""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from cuda_emulator import KernelError, options
from cuda_emulator.inspection import LIMITS, MOST_SHARED_BYTES, SHARED_BYTES, occupancy
from groundup.kernels.catalogue import CATALOGUE
from shared.checks.rungs import compare_rounded
from stage4_numba_cuda import matmul as products
from stage4_numba_cuda import tensor_cores
from stage4_numba_cuda.arrays import asarray, to_host
from stage4_numba_cuda.backend import BACKEND, BackendError, cuda
from stage4_numba_cuda.kernels import fragments, ptx
from stage4_numba_cuda.kernels import matmul_6_operands as operands
from stage4_numba_cuda.kernels import matmul_8_pipelined as pipelined
from tests.stages import needs_precision
from tests.wide import wide

pytestmark = pytest.mark.skipif(BACKEND.name == "simulator", reason="Numba's simulator has no shuffles")
emulated = pytest.mark.skipif(BACKEND.name != "emulator", reason="a GPU has no check mode, and cannot be asked")

ALL = [(precision, rung) for precision, ladder in tensor_cores.LADDER.items() for rung in ladder]
FIRST = [("bf16", "staged")]
"""The others take the emulator several seconds each to compile, and are wide."""

RUNGS = [each if each in FIRST else pytest.param(*each, marks=wide) for each in ALL]
EXACT_SIZES = [(1, 1, 1), (70, 145, 139), (129, 64, 128), (257, 40, 3)]
"""(M, K, N): one number; several tiles along k, the last not full, and two along N; K of whole tiles, M one beyond; M
one beyond the largest tile."""

SIZES = [(1, 1, 1), (5, 97, 3), (31, 2, 29), (130, 33, 131), (13, 128, 11)]


def poisoned(m: int, n: int) -> Any:
    return cuda.to_device(np.full((m, n), np.nan, np.float32))


# The rungs


@pytest.mark.parametrize(("precision", "rung"), RUNGS)
def test_rungs_are_exact_for_small_whole_numbers(precision: str, rung: str) -> None:
    """Such factors need no rounding, so a result in the wrong place or a k left out shows undiluted."""
    needs_precision(precision)
    for m, k, n in EXACT_SIZES:
        rng = np.random.default_rng(m)
        a, b = rng.integers(-8, 9, (m, k)), rng.integers(-8, 9, (k, n))
        out = poisoned(m, n)
        assert products.TENSOR_LADDER[precision][rung](asarray(a), asarray(b), out) is out
        assert np.array_equal(to_host(out), (a @ b).astype(np.float32)), (m, k, n)


@pytest.mark.parametrize(("precision", "rung"), RUNGS)
def test_rungs_are_as_close_as_their_rounding(precision: str, rung: str) -> None:
    needs_precision(precision)
    for m, k, n in SIZES:
        rng = np.random.default_rng(m * 101 + k)
        a, b = (rng.normal(size=shape).astype(np.float32) for shape in ((m, k), (k, n)))
        out = poisoned(m, n)
        products.TENSOR_LADDER[precision][rung](asarray(a), asarray(b), out)
        compared = compare_rounded(rung, to_host(out), a.astype(np.float64), b.astype(np.float64), precision)
        assert compared.ok, f"{m, k, n}: {compared}"


def test_ready_rounds_once_and_multiplies_as_often_as_it_is_called() -> None:
    needs_precision("bf16")
    a, b = np.eye(20, 33, dtype=np.float32), np.arange(33 * 7, dtype=np.float32).reshape(33, 7) % 100
    given, out = asarray(a), poisoned(20, 7)
    multiply = products.TENSOR_LADDER["bf16"]["staged"].ready(given, asarray(b), out)
    given.copy_to_device(np.zeros_like(a))
    for _ in range(2):
        out.copy_to_device(np.full((20, 7), np.nan, np.float32))
        assert multiply() is out
        assert np.array_equal(to_host(out), b[:20])


@pytest.mark.parametrize("precision", ["f16", pytest.param("bf16", marks=wide), pytest.param("tf32", marks=wide)])
@pytest.mark.parametrize("transposed", [False, pytest.param(True, marks=wide)])
def test_operands_fill_whole_tiles_with_zeros(precision: str, transposed: bool) -> None:
    matrix = np.random.default_rng(0).integers(-9, 10, (19, 37)).astype(np.float32)
    found = tensor_cores.round_operand(asarray(matrix.T.copy() if transposed else matrix), precision, transposed)
    words = to_host(found.words)
    assert (found.rows, found.inner, found.precision) == (19, 37, precision)
    assert words.shape == (128, 48 if precision == "tf32" else 32)
    assert not words[19:].any()
    expected = np.zeros((128, words.shape[1] * operands.NUMBERS[precision]), np.float32)
    expected[:19, :37] = matrix
    assert np.array_equal(numbers_in(words, precision), expected)


@pytest.mark.parametrize("rung", pipelined.RUNGS)
def test_every_architecture_with_these_rungs_has_the_shared_memory_for_them(rung: str) -> None:
    """And the compile check counts what the launch gives."""
    block, given = pipelined.BLOCKS[rung], pipelined.BYTES[rung]
    used = pipelined.STAGES * block.tile * 4
    assert used == given if given else used <= SHARED_BYTES
    assert used <= MOST_SHARED_BYTES
    for capability in LIMITS:
        if capability >= tensor_cores.NEEDS["bf16"]:
            assert occupancy(capability, block.threads, 255, used).blocks >= 1
    lines = [line for line in CATALOGUE if line.kernel.startswith(f"matmul_8_pipelined.multiply('{rung}'")]
    assert {(line.threads, line.launch_shared) for line in lines} == {(block.threads, given)}


def numbers_in(words: np.ndarray, precision: str) -> np.ndarray:
    """The float32 numbers in words of 32 bits."""
    if precision == "f16":
        return words.view(np.float16).astype(np.float32)
    if precision == "bf16":
        return (words.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    return words.view(np.float32)


def test_operands_with_more_words_than_32_bits_count_are_refused() -> None:
    with pytest.raises(
        ValueError, match=r"an operand of 100,000 x 100,000 has 5,0\S* words in whole tiles, and 2,147,"
    ):
        tensor_cores.round_operand(SimpleNamespace(shape=(100_000, 100_000)), "bf16", False)


@pytest.mark.parametrize("precision", tensor_cores.LADDER)
def test_every_rung_refuses_float64(precision: str) -> None:
    a = asarray(np.ones((2, 2)), "float64")
    for rung in products.TENSOR_LADDER[precision].values():
        with pytest.raises(TypeError, match=f"{precision}: a and b are float64; tensor cores round float32"):
            rung(a, a)


@pytest.mark.parametrize(("capability", "known"), [((7, 0), []), ((7, 5), ["f16"]), ((8, 0), ["tf32", "bf16", "f16"])])
def test_a_gpu_is_asked_for_what_its_tensor_cores_know(
    monkeypatch: pytest.MonkeyPatch, capability: tuple[int, int], known: list[str]
) -> None:
    device = SimpleNamespace(compute_capability=capability)
    monkeypatch.setattr(tensor_cores, "BACKEND", SimpleNamespace(name="gpu", reason="a GPU"))
    monkeypatch.setattr(tensor_cores.cuda, "get_current_device", lambda: device)
    assert products.tensor_precisions() == known
    for precision in set(tensor_cores.LADDER) - set(known):
        with pytest.raises(BackendError, match=rf"{precision}: needs compute capability \d.\d; a GPU is older"):
            products.TENSOR_CORES[precision](asarray(np.ones((2, 2))), asarray(np.ones((2, 2))))
    assert [tensor_cores.in_use(precision) for precision in ("tf32", "bf16", "f16")] == [
        *("pipelined", "pipelined", "swizzled"),
    ]


# Rounding


@cuda.jit
def as_tf32(x, words):  # type: ignore[no-untyped-def]
    i = cuda.grid(1)
    if i < x.size:
        words[i] = ptx.word_tf32(x[i])


@cuda.jit
def as_bf16(x, words):  # type: ignore[no-untyped-def]
    i = cuda.grid(1)
    if 2 * i < x.size:
        words[i] = ptx.word_bf16(x[2 * i], x[2 * i + 1])


@cuda.jit
def as_f16(x, words):  # type: ignore[no-untyped-def]
    i = cuda.grid(1)
    if 2 * i < x.size:
        words[i] = ptx.word_f16(x[2 * i], x[2 * i + 1])


KERNELS = {"tf32": as_tf32, "bf16": as_bf16, "f16": as_f16}


def interesting() -> np.ndarray:
    """Numbers of every size and near f16's range, exact ties, their neighbours, and the ends of the range."""
    rng = np.random.default_rng(5)
    anywhere = rng.integers(0, 2**32, 20_000, dtype=np.uint32)
    small = np.float32(rng.normal(size=4_000) * 2.0 ** rng.integers(-28, 18, 4_000)).view(np.uint32)
    masks = [np.uint32(2**bits - 1) for bits in (13, 16)]
    ties = [(numbers & ~mask) | (mask + np.uint32(1)) >> 1 for mask in masks for numbers in (anywhere, small)]
    bits = np.concatenate([anywhere, small, *ties, *(each + np.uint32(1) for each in ties)])
    edges = np.array(
        [0.0, -0.0, 2.0**-25, 3 * 2.0**-25, 65504, 65519.996, 65520, -65520, 1e-45, 3.4028235e38, np.inf, -np.inf],
        np.float32,
    )
    values = np.concatenate([bits.view(np.float32), edges])
    values = values[~np.isnan(values)]
    return values[: len(values) // 2 * 2]


def expected_words(x: np.ndarray, precision: str) -> np.ndarray:
    """x rounded, from NumPy's own float16, or from the bits of float32."""
    if precision == "f16":
        with np.errstate(over="ignore"):
            return x.astype(np.float16).view(np.int32)
    bits = x.view(np.uint32).astype(np.uint64)
    if precision == "tf32":
        return ((bits + 0x1000) & 0xFFFFE000).astype(np.uint32).view(np.int32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16).view(np.int32)


@pytest.mark.parametrize("precision", KERNELS)
def test_words_are_rounded_exactly_to_the_bit(precision: str) -> None:
    x = interesting()
    expected = expected_words(x, precision)
    words = cuda.to_device(np.zeros(expected.size, np.int32))
    KERNELS[precision][-(-expected.size // 256), 256](asarray(x), words)
    assert np.array_equal(to_host(words), expected)


@pytest.mark.parametrize("precision", KERNELS)
def test_words_keep_nan(precision: str) -> None:
    x = np.array([0x7FC00000, 0x7FFFFFFF, 0xFFFFFFFF, 0x7F800001, 0xFF801000, 0x7FC00000], np.uint32).view(np.float32)
    words = cuda.to_device(np.zeros(x.size // operands.NUMBERS[precision], np.int32))
    KERNELS[precision][1, 32](asarray(x), words)
    assert np.isnan(numbers_in(to_host(words), precision)).all()


@pytest.mark.parametrize(("precision", "size"), [("f16", 3e-6), ("f16", 1.0), ("bf16", 1e-9)])
def test_derived_tolerance_knows_small_numbers(precision: str, size: float) -> None:
    """What compare_rounded allows is what NumPy's own rounding does, and not three times as much."""
    rng = np.random.default_rng(1)
    a, b = (np.float32(size) * rng.normal(size=(20, 20)).astype(np.float32) for _ in range(2))
    if precision == "f16":
        rounded = [each.astype(np.float16).astype(np.float64) for each in (a, b)]
    else:
        rounded = [numbers_in(expected_words(each.ravel(), "bf16"), "bf16").reshape(20, 20) for each in (a, b)]
    exact = [each.astype(np.float64) for each in (a, b)]
    product = (rounded[0].astype(np.float64) @ rounded[1].astype(np.float64)).astype(np.float32)
    assert compare_rounded("product", product, *exact, precision).ok
    apart = 40 * (product - exact[0] @ exact[1])
    assert not compare_rounded("product", exact[0] @ exact[1] + apart, *exact, precision).ok


# Copies that arrive later, and what a wrong kernel does


COPIES = 2
"""Of a thread of `pipe`, on their way at the same time."""

KEPT, NOTES = COPIES + 1, fragments.NOTES
"""The shape of a thread's notes about them: numba-cuda wants plain names in a shape."""


def pipe(waits: bool = True, meets: bool = True, leaves: bool = True) -> Any:
    """A kernel (source, out) of 32 threads that copies rows of 128 numbers through two rows of shared memory, a row
    ahead, and writes what other threads have copied. waits: for the copies; meets: the other threads before it reads;
    leaves: only when all have read."""

    @cuda.jit
    def kernel(source, out):  # type: ignore[no-untyped-def]
        tile = cuda.shared.array(256, np.int32, alignment=16)
        flight = cuda.local.array((KEPT, NOTES), np.int32)
        lane = np.int32(cuda.threadIdx.x)
        column = np.int32(lane * 4)
        ptx.nothing_on_its_way(flight)
        ptx.copy4(tile, column, source, column, flight)
        ptx.send(flight)
        row = np.int32(0)
        while row < source.shape[0]:
            ahead = np.int32(row + 1)
            if ahead < source.shape[0]:
                to = np.int32((ahead & 1) * 128 + column)
                ptx.copy4(tile, to, source, np.int32(ahead * 128 + column), flight)
            ptx.send(flight)
            if waits:
                ptx.wait_for_all_but_one(tile, flight)
            if meets:
                cuda.syncthreads()
            for i in range(4):
                out[row, column + i] = tile[(row & 1) * 128 + 124 - column + i]
            if leaves:
                cuda.syncthreads()
            row = ahead

    return kernel


def piped(kernel: Any) -> tuple[np.ndarray, np.ndarray]:
    """(what the kernel wrote, what it should have written)."""
    source = np.arange(5 * 128, dtype=np.int32).reshape(5, 128)
    out = cuda.to_device(np.zeros_like(source))
    kernel[1, 32](cuda.to_device(source), out)
    return to_host(out), source.reshape(5, 32, 4)[:, ::-1].reshape(5, 128)


def test_copies_arrive_at_their_wait() -> None:
    got, expected = piped(pipe())
    assert np.array_equal(got, expected)


@wide
@emulated
def test_a_right_pipe_has_no_race() -> None:
    with options(check=True):
        got, expected = piped(pipe())
    assert np.array_equal(got, expected)


@emulated
def test_a_copy_that_was_not_waited_for_has_not_arrived() -> None:
    got, _ = piped(pipe(waits=False))
    assert (got == fragments.IN_FLIGHT).all()


@wide
@emulated
@pytest.mark.parametrize("missing", ["meets", "leaves"])
def test_a_missing_barrier_around_copies_is_a_race(missing: str) -> None:
    with options(check=True), pytest.raises(KernelError, match="race"):
        piped(pipe(**{missing: False}))


@wide
@emulated
@pytest.mark.parametrize(("precision", "rung"), [each for each in ALL if each[1] != "mma"])
def test_rungs_have_no_races(precision: str, rung: str) -> None:
    needs_precision(precision)
    a, b = np.ones((9, 150), np.float32), np.ones((150, 7), np.float32)
    with options(check=True):
        got = products.TENSOR_LADDER[precision][rung](asarray(a), asarray(b))
    assert (to_host(got) == 150).all()
