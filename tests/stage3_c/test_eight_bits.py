"""The integer ladder of stage 3: exact on every rung and by every instruction; what cannot be multiplied is told."""

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stage2_numpy import eight_bits as by_hand
from stage3_c import ceilings, eight_bits, library
from tests.stages import REASONS, USABLE_STAGES

pytestmark = pytest.mark.skipif("stage3_c" not in USABLE_STAGES, reason=REASONS["stage3_c"] or "")

Product = Callable[..., np.ndarray]
POISON = -1234567
INSTRUCTIONS = eight_bits.instructions() if "stage3_c" in USABLE_STAGES else ()


def ways() -> Iterator[tuple[str, Product]]:
    """Every rung, and every instruction that a rung may not have chosen, on one thread and on all."""
    yield from eight_bits.LADDER.items()
    for name in INSTRUCTIONS:
        for most in (1, library.MOST_THREADS):
            yield f"{name} on {most}", partial(eight_bits.by_instruction, name, most_threads=most)


WAYS = dict(ways())


def numbers(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(-128, 128, shape, dtype=np.int8)


def assert_exact(multiply: Product, left: np.ndarray, right: np.ndarray) -> None:
    """Compare with float64, which is exact below 2^53, in an `out` that held something else."""
    out = np.full((left.shape[0], right.shape[1]), POISON, np.int32)
    assert multiply(left, right, out) is out
    assert np.array_equal(out, left.astype(np.float64) @ right.astype(np.float64))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "sizes",
    [
        (1, 1, 1), (1, 5, 1), (3, 1, 2), (7, 4, 15), (8, 8, 16), (9, 3, 17), (6, 33, 31), (31, 63, 32), (33, 65, 33),
        (65, 127, 63), (255, 9, 6), (5, 255, 65), (17, 150, 16), (0, 3, 2), (3, 0, 2), (3, 2, 0), (64, 400, 120),
    ],
    ids=str,
)  # fmt: skip
def test_every_way_is_exact_at_awkward_sizes(way: str, sizes: tuple[int, int, int]) -> None:
    rows, k, columns = sizes
    assert_exact(WAYS[way], numbers(rows, k, seed=k), numbers(k, columns, seed=rows))


@settings(max_examples=20)
@given(
    st.tuples(*[st.integers(0, 70)] * 3),
    st.integers(0, 2**32 - 1),
    st.sampled_from([(-128, -127), (127, 128), (-128, 128)]),
)
def test_every_way_gives_the_same_sums(sizes: tuple[int, int, int], seed: int, ends: tuple[int, int]) -> None:
    rows, k, columns = sizes
    rng = np.random.default_rng(seed)
    left, right = (rng.integers(*ends, shape, dtype=np.int8) for shape in ((rows, k), (k, columns)))
    for multiply in WAYS.values():
        assert_exact(multiply, left, right)


@pytest.mark.parametrize("way", [way for way in WAYS if way not in ("plain", "ordered")])
def test_more_rows_and_terms_than_a_block_holds(way: str) -> None:
    assert_exact(WAYS[way], numbers(1011, 1026), numbers(1026, 17))
    assert_exact(WAYS[way], numbers(3, 4 * 1024 + 2), numbers(4 * 1024 + 2, 33))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("ends", [(-128, -128), (-128, 127), (127, 127)])
def test_the_longest_sum_fits_and_one_term_more_is_refused(way: str, ends: tuple[int, int]) -> None:
    longest = eight_bits.LONGEST_SUM
    left, right = (np.full(shape, end, np.int8) for shape, end in zip(((2, longest), (longest, 3)), ends, strict=True))
    assert WAYS[way](left, right).tolist() == [[ends[0] * ends[1] * longest] * 3] * 2
    assert abs(128 * 128 * (longest + 1)) == 2**31
    with pytest.raises(ValueError, match="product: 131,072 terms; a sum of 32 bits has room for 131,071"):
        WAYS[way](np.ones((1, longest + 1), np.int8), np.ones((longest + 1, 1), np.int8))


def test_what_is_not_contiguous_is_copied_and_inputs_are_left_alone() -> None:
    left, right = numbers(20, 30)[::2, ::-1], np.asfortranarray(numbers(30, 40))
    before = left.copy(), right.copy()
    for multiply in WAYS.values():
        assert_exact(multiply, left, right)
    read_only = before[0]
    read_only.flags.writeable = False
    assert_exact(eight_bits.product, read_only, right)
    assert np.array_equal(left, before[0])
    assert np.array_equal(right, before[1])


@pytest.mark.parametrize("rung", eight_bits.LADDER)
@pytest.mark.parametrize(
    ("left", "right", "error", "message"),
    [
        (np.ones((2, 3)), numbers(3, 2), TypeError, "left: expected an array of int8, got ndarray of float64"),
        (numbers(2, 3), np.ones((3, 2), np.uint8), TypeError, "right: expected an array of int8, got ndarray of uint8"),
        ([[1]], numbers(1, 1), TypeError, "left: expected an array of int8, got list"),
        (np.ma.array(numbers(2, 3)), numbers(3, 2), TypeError, "left: expected an array of int8, got MaskedArray"),
        (numbers(3), numbers(3, 2), ValueError, "left: expected 2 dimensions (rows, columns), got 1 with shape (3,)"),
        (
            numbers(2, 3), numbers(4, 2), ValueError,
            "left is (2, 3) but right is (4, 2); left's columns must equal right's rows",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_multiplied_is_told(
    rung: str, left: Any, right: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=re.escape(f"product: {message}")):
        eight_bits.LADDER[rung](left, right)


def test_an_out_that_does_not_fit_is_told() -> None:
    left, right = numbers(4, 4), numbers(4, 4)
    with pytest.raises(ValueError, match=re.escape("product: out is int64 (4, 4), expected int32 (4, 4)")):
        eight_bits.product(left, right, out=np.empty((4, 4), np.int64))
    with pytest.raises(ValueError, match=re.escape("product: out is not C-contiguous")):
        eight_bits.product(left, right, out=np.empty((4, 8), np.int32)[:, ::2])
    memory = np.zeros((4, 4), np.int32)
    with pytest.raises(ValueError, match="product: out overlaps left, which is still being read"):
        eight_bits.product(memory.reshape(-1).view(np.int8)[:16].reshape(4, 4), right, out=memory)


def test_an_instruction_that_is_not_there_is_told() -> None:
    with pytest.raises(ValueError, match=f"by_instruction: expected one of {', '.join(INSTRUCTIONS)}, got 'mmx'"):
        eight_bits.by_instruction("mmx", numbers(1, 1), numbers(1, 1))


def test_the_processor_is_asked_for_its_instructions() -> None:
    assert INSTRUCTIONS[:2] == ("vectors", "pairs")
    has = library.plain_function("eight_bits_has")
    assert not has(len(eight_bits.INSTRUCTIONS))
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            flags = next(line for line in file if line.startswith("flags")).split()
    except (OSError, StopIteration):
        pytest.skip("this system does not tell the processor's flags in /proc/cpuinfo")
    assert ("vnni256" in INSTRUCTIONS) == ("avx_vnni" in flags and "avx2" in flags)
    assert ("vnni512" in INSTRUCTIONS) == ("avx512_vnni" in flags and "avx512bw" in flags)


def test_the_peak_is_counted() -> None:
    assert ceilings.peak("int8", 1000) == 1000 * ceilings.peak("int8", 1) > 0


@pytest.mark.parametrize("per_channel", [False, True])
def test_a_dense_layer_of_stage_2_has_the_same_numbers_by_this_product(
    per_channel: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    given = rng.standard_normal((64, 100)), rng.standard_normal((100, 33)), rng.standard_normal(33)
    expected = by_hand.dense_in_eight_bits(*given, per_channel)
    calls: list[tuple[int, ...]] = []

    def multiply(left: np.ndarray, right: np.ndarray) -> np.ndarray:
        calls.append(left.shape)
        return eight_bits.product(left, right)

    monkeypatch.setattr(by_hand, "integer_matmul", multiply)
    assert np.array_equal(by_hand.dense_in_eight_bits(*given, per_channel), expected)
    assert calls == [(64, 100)]
