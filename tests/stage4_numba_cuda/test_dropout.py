"""Dropout masks of stage 4: the same bits as shared.dropout's, whatever the rate, the key and the shape."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared import dropout as reference
from stage4_numba_cuda.arrays import empty
from stage4_numba_cuda.backend import cuda
from stage4_numba_cuda.dropout import write_mask

DTYPES = ["float32", "float64"]


def dropout_mask(rows: int, columns: int, rate: float, seed: int, step: int, layer: int, dtype: str) -> np.ndarray:
    mask = empty((rows, columns), dtype)
    write_mask(seed, cuda.to_device(np.array([step], np.int64)), layer, rate, mask)
    return mask.copy_to_host()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1, 1), (1, 77), (9, 31), (8, 32), (257, 33), (64, 128)])
def test_masks_are_the_other_stages_bit_for_bit(shape: tuple[int, int], dtype: str) -> None:
    for rate, seed, step, layer in [(0.5, 0, 0, 0), (0.2, 1, 2, 3), (0.999, 2**63, 10**12, 7), (0.0, 5, 1, 2**40)]:
        mask = dropout_mask(*shape, rate, seed, step, layer, dtype)
        assert mask.dtype == dtype
        assert np.array_equal(mask, reference.dropout_mask(*shape, rate, seed, step, layer, dtype))


@settings(max_examples=40, deadline=None)
@given(
    rate=st.floats(0, 1, exclude_max=True),
    seed=st.integers(0, 2**70),
    step=st.integers(0, 2**63 - 1),
    layer=st.integers(0, 2**64 - 1),
    dtype=st.sampled_from(DTYPES),
)
def test_any_rate_and_key_gives_the_same_bits(rate: float, seed: int, step: int, layer: int, dtype: str) -> None:
    mask = dropout_mask(7, 13, rate, seed, step, layer, dtype)
    assert np.array_equal(mask, reference.dropout_mask(7, 13, rate, seed, step, layer, dtype))


def test_a_rate_that_is_an_element_s_own_fraction_keeps_it_and_the_next_rate_drops_it() -> None:
    bits = reference.random_bits(reference.mask_key(1, 2, 3), 0) >> 11
    rate = bits * 2.0**-53
    assert dropout_mask(1, 1, rate, 1, 2, 3, "float64")[0, 0] > 0
    assert dropout_mask(1, 1, np.nextafter(rate, 1.0), 1, 2, 3, "float64")[0, 0] == 0


def test_the_step_count_is_read_from_the_device_at_every_launch() -> None:
    steps = cuda.to_device(np.array([4], np.int64))
    mask = empty((5, 9), "float32")
    for step in (4, 5):
        steps.copy_to_device(np.array([step], np.int64))
        write_mask(3, steps, 1, 0.5, mask)
        assert np.array_equal(mask.copy_to_host(), reference.dropout_mask(5, 9, 0.5, 3, step, 1))
