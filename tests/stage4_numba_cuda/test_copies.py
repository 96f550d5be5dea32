"""stage4_numba_cuda.copies: Python's copy and pickle for arrays that cannot be copied by themselves, played here by a
class of the test. tests/floors/test_layered.py copies networks on every backend, a GPU's too."""

import copy
import copyreg
import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from stage4_numba_cuda import copies


class OnDevice:
    """Stands for numba-cuda's array: it holds on to something that refuses to be copied."""

    def __init__(self, values: np.ndarray) -> None:
        self.values, self.context = values, vars(OnDevice)

    def copy_to_host(self) -> np.ndarray:
        return self.values.copy()


def to_device(values: np.ndarray) -> OnDevice:
    return OnDevice(values)


@pytest.fixture
def installed() -> Iterator[None]:
    copies.install(OnDevice, to_device)
    yield
    del copyreg.dispatch_table[OnDevice]


@pytest.mark.parametrize("make", [copy.deepcopy, lambda each: pickle.loads(pickle.dumps(each))], ids=["copy", "pickle"])
def test_a_copy_has_the_numbers_in_memory_of_its_own(installed: None, make: Any) -> None:
    array = OnDevice(np.arange(6.0).reshape(2, 3))
    first, second = make([array, array])
    assert first is second is not array  # one array that is held twice stays one
    np.testing.assert_array_equal(first.values, array.values)
    first.values[...] = 0
    assert array.values.sum() == 15


def test_without_it_such_an_array_has_no_copy() -> None:
    with pytest.raises(TypeError, match="mappingproxy"):
        copy.deepcopy(OnDevice(np.zeros(1)))
