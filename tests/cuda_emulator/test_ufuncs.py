"""numba.vectorize and numba.guvectorize with target="cuda"."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numba import float32, guvectorize, vectorize

from cuda_emulator import cuda, install, uninstall


@pytest.fixture
def installed() -> Iterator[None]:
    install()
    yield
    uninstall()


def test_vectorize_and_guvectorize_with_target_cuda(installed: None) -> None:
    @vectorize(["float64(float64, float64)", "int32(int32, int32)"], target="cuda")
    def square_and_four(a, b):  # type: ignore[no-untyped-def]
        return a * a + b * 4

    assert square_and_four(np.arange(3.0), np.array([0.0, 1, 3])).tolist() == [0, 5, 16]
    device = square_and_four(cuda.to_device(np.ones((2, 2), np.int32)), np.int32(1))
    assert device.copy_to_host().tolist() == [[5, 5], [5, 5]]
    with pytest.raises(TypeError, match="square_and_four takes 2 arguments, got 1"):
        square_and_four(1.0)
    with pytest.raises(TypeError, match=r"square_and_four: no signature takes \(complex128, float64\)"):
        square_and_four(1j, 1.0)

    @guvectorize(["void(float32[:,:], float32[:,:], float32[:,:])"], "(m,n),(n,p)->(m,p)", target="cuda")
    def product(a, b, c):  # type: ignore[no-untyped-def]
        for i in range(c.shape[0]):
            for j in range(c.shape[1]):
                total = float32(0)
                for k in range(a.shape[1]):
                    total += a[i, k] * b[k, j]
                c[i, j] = total

    a, b = np.ones((5, 2, 3), np.float32), np.full((3, 4), 2, np.float32)
    assert np.array_equal(product(a, b), a @ b)
    with pytest.raises(ValueError, match="product: n is 3 in one argument, 4 in another"):
        product(a, b.T)


@pytest.mark.parametrize(
    ("made", "error", "message"),
    [
        (lambda: vectorize(["f4(f4)"], target="cuda", fast=2), KeyError, "Unrecognized options.*'fast'"),
        (lambda: vectorize(["f4(f4)"], target="cuda", cache=True), TypeError, "caching is not supported"),
        (lambda: guvectorize(["(f4[:],f4[:])"], "(n)->(n)", target="cuda", nopython=False), TypeError, "must be True"),
        (lambda: guvectorize(["(f4[:],f4[:])"], "(n)->(n)", target="cuda", fast=2), TypeError, "not supported: 'fast'"),
        (lambda: guvectorize(["i4(f4[:],f4[:])"], "(n)->(n)", target="cuda"), TypeError, "specifies int32 return type"),
    ],
)
def test_options_that_ufuncs_of_the_target_do_not_have(
    made: Any, error: type[Exception], message: str, installed: None
) -> None:
    with pytest.raises(error, match=message):
        made()(lambda x, y=0: x)


def test_a_gufunc_names_the_numbers_of_arguments_that_it_takes(installed: None) -> None:
    @guvectorize(["(int32[:], int32[:], int32[:])"], "(n),(n)->(n)", target="cuda")
    def added(a, b, c):  # type: ignore[no-untyped-def]
        for i in range(c.size):
            c[i] = a[i] + b[i]

    x = np.arange(4, dtype=np.int32)
    said = r"accepts 2 positional arguments, or 3 positional arguments with its outputs\. Got {} positional argument"
    for number in (1, 4):
        with pytest.raises(TypeError, match=said.format(number)):
            added(*[x] * number)
    with pytest.raises(ValueError, match="cannot specify argument 'out' as both positional and keyword"):
        added(x, x, x, out=x)
    assert added(x, x, out=x.copy()).tolist() == [0, 2, 4, 6]
    with pytest.warns(RuntimeWarning, match="nopython kwarg for cuda target is redundant") as warned:
        vectorize(["float32(float32)"], target="cuda", nopython=True)(lambda x: x)
    assert warned[0].filename == __file__


def test_the_emulators_own_module_makes_ufuncs_where_it_does_not_stand_in_for_numbas() -> None:
    @cuda.vectorize(["float32(float32, float32)"])
    def total(a: Any, b: Any) -> Any:
        return a + b

    @cuda.guvectorize(["void(float32[:], float32[:])"], "(n)->()")
    def summed(x: Any, result: Any) -> None:
        result[0] = 0
        for each in x:
            result[0] += each

    x = np.arange(6, dtype=np.float32)
    np.testing.assert_array_equal(np.asarray(total(x, x)), 2 * x)
    np.testing.assert_array_equal(np.asarray(summed(x.reshape(2, 3))), [3, 12])
