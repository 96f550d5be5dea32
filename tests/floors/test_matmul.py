"""Every rung of every stage's ladder multiplies matrices, and says what is wrong with what it cannot multiply."""

import re
from typing import Any

import numpy as np
import pytest

from shared.contract import Stage, load_stage
from tests.floors.ladders import rungs
from tests.stages import AWKWARD_SIZES

RUNGS = rungs("matmul", "LADDER")
PRODUCTS = ("matmul", "matmul_tn", "matmul_nt")


def host(stage: Stage, array: Any) -> np.ndarray:
    return np.asarray(stage.arrays.to_host(array))


def random_pair(m: int, k: int, n: int, dtype: str, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """a (m, k) and b (k, n), rounded to the dtype so that rounding the inputs is no part of what is tested."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(m, k)).astype(dtype), rng.normal(size=(k, n)).astype(dtype)


def assert_product(stage: Stage, got: Any, a: np.ndarray, b: np.ndarray, dtype: str) -> None:
    """Each of the K terms of a sum may be rounded by eps of itself, whatever the order of the summation."""
    a, b = a.astype(np.float64), b.astype(np.float64)
    bound = 2 * (a.shape[1] + 1) * np.finfo(dtype).eps * (np.abs(a) @ np.abs(b))
    values = host(stage, got)
    assert values.shape == (a.shape[0], b.shape[1])
    error = np.abs(values - a @ b)
    assert (error <= bound).all(), f"off by up to {(error / bound).max()} times what rounding explains"


@pytest.mark.parametrize(("m", "k", "n"), AWKWARD_SIZES)
@pytest.mark.parametrize(("stage_name", "rung"), RUNGS)
def test_every_rung_multiplies_at_awkward_sizes(stage_name: str, rung: str, dtype: str, m: int, k: int, n: int) -> None:
    stage = load_stage(stage_name)
    a, b = random_pair(m, k, n, dtype, seed=m * k * n)
    got = stage.matmul.LADDER[rung](stage.arrays.asarray(a, dtype), stage.arrays.asarray(b, dtype))
    assert_product(stage, got, a, b, dtype)


@pytest.mark.parametrize(("m", "k", "n"), AWKWARD_SIZES)
def test_matmul_tn_and_nt_multiply_by_the_transpose(stage: Stage, dtype: str, m: int, k: int, n: int) -> None:
    a, b = random_pair(m, k, n, dtype)
    as_stage = {
        name: stage.arrays.asarray(np.ascontiguousarray(x), dtype)
        for name, x in {"a": a, "b": b, "aT": a.T, "bT": b.T}.items()
    }
    assert_product(stage, stage.matmul.matmul(as_stage["a"], as_stage["b"]), a, b, dtype)
    assert_product(stage, stage.matmul.matmul_tn(as_stage["aT"], as_stage["b"]), a, b, dtype)
    assert_product(stage, stage.matmul.matmul_nt(as_stage["a"], as_stage["bT"]), a, b, dtype)


def test_ladder_has_several_rungs_and_ends_in_what_matmul_uses(stage: Stage) -> None:
    a, b = random_pair(13, 97, 11, "float64")
    a, b = stage.arrays.asarray(a, "float64"), stage.arrays.asarray(b, "float64")
    *others, last = stage.matmul.LADDER.values()
    assert len(others) >= 3
    assert np.array_equal(host(stage, last(a, b)), host(stage, stage.matmul.matmul(a, b)))


@pytest.mark.parametrize(("stage_name", "rung"), RUNGS)
def test_every_rung_and_the_transposed_products_leave_their_inputs_alone(stage_name: str, rung: str) -> None:
    stage, (a, b) = load_stage(stage_name), random_pair(3, 4, 4, "float64")
    as_a, as_b = stage.arrays.asarray(a, "float64"), stage.arrays.asarray(b, "float64")
    for multiply in (stage.matmul.LADDER[rung], stage.matmul.matmul_nt):
        multiply(as_a, as_b)
    stage.matmul.matmul_tn(as_b, as_b)
    assert np.array_equal(host(stage, as_a), a)
    assert np.array_equal(host(stage, as_b), b)


@pytest.mark.parametrize(("stage_name", "rung"), RUNGS)
def test_every_rung_rejects_mismatched_inner_dimensions_naming_both_shapes(stage_name: str, rung: str) -> None:
    stage = load_stage(stage_name)
    a, b = stage.arrays.asarray(np.ones((3, 4))), stage.arrays.asarray(np.ones((5, 2)))
    with pytest.raises(ValueError, match=re.escape("a is (3, 4) but b is (5, 2); a's columns must equal b's rows")):
        stage.matmul.LADDER[rung](a, b)


@pytest.mark.parametrize(
    ("function", "rule"),
    [("matmul_tn", "a's rows must equal b's rows"), ("matmul_nt", "a's columns must equal b's columns")],
)
def test_transposed_products_reject_mismatched_shapes_naming_the_rule(stage: Stage, function: str, rule: str) -> None:
    a, b = stage.arrays.asarray(np.ones((3, 4))), stage.arrays.asarray(np.ones((5, 2)))
    message = re.escape(f"{function}: a is (3, 4) but b is (5, 2); {rule}")
    with pytest.raises(ValueError, match=message):
        getattr(stage.matmul, function)(a, b)


WRONG_MATRICES = {
    "ragged": [[1.0, 2.0], [3.0]],
    "one-dimensional": [1.0, 2.0],
    "no columns": [[], []],
    "text": [["1", "2"], ["3", "4"]],
    "None": None,
}


def as_given(stage: Stage, values: Any) -> Any:
    """The wrong values in the stage's own type where such an array exists: NumPy has no ragged ones."""
    if stage.name == "stage1_pure_python":
        return values
    try:
        return np.array(values)
    except ValueError:
        return values


@pytest.mark.parametrize("side", ["a", "b"])
@pytest.mark.parametrize("function", PRODUCTS)
@pytest.mark.parametrize("kind", WRONG_MATRICES)
def test_products_reject_what_is_no_matrix_and_name_the_argument(
    stage: Stage, kind: str, function: str, side: str
) -> None:
    good, wrong = stage.arrays.asarray([[1.0, 2.0], [3.0, 4.0]]), as_given(stage, WRONG_MATRICES[kind])
    arguments = (wrong, good) if side == "a" else (good, wrong)
    with pytest.raises((ValueError, TypeError), match=rf"{function}: {side}\b"):
        getattr(stage.matmul, function)(*arguments)


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")  # NumPy's word on inf - inf, which is meant
@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize(("stage_name", "rung"), RUNGS)
def test_nan_and_inf_reach_their_row_of_the_product_and_no_other(stage_name: str, rung: str, special: float) -> None:
    stage = load_stage(stage_name)
    a, b = random_pair(4, 5, 3, "float64")
    a[1, 2] = special
    got = host(stage, stage.matmul.LADDER[rung](stage.arrays.asarray(a, "float64"), stage.arrays.asarray(b, "float64")))
    with np.errstate(invalid="ignore"):
        expected = a @ b
    np.testing.assert_allclose(got, expected, rtol=1e-12)
    assert not np.isfinite(got[1]).any()


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")  # NumPy's word on inf - inf, which is meant
def test_infinities_that_cancel_make_nan(stage: Stage) -> None:
    a, b = stage.arrays.asarray([[np.inf, -np.inf]], "float64"), stage.arrays.asarray([[1.0], [1.0]], "float64")
    assert np.isnan(host(stage, stage.matmul.matmul(a, b))).all()
    zero = stage.arrays.asarray([[0.0], [0.0]], "float64")
    assert np.isnan(host(stage, stage.matmul.matmul(a, zero))).all()


@pytest.mark.parametrize(("m", "k", "n"), AWKWARD_SIZES)
def test_stage_2_fills_a_poisoned_out_completely(dtype: str, m: int, k: int, n: int) -> None:
    stage, (a, b) = load_stage("stage2_numpy"), random_pair(m, k, n, dtype)
    left, right = np.ascontiguousarray(a.T), np.ascontiguousarray(b.T)
    for function, factors in {"matmul": (a, b), "matmul_tn": (left, b), "matmul_nt": (a, right)}.items():
        out = np.full((m, n), np.nan, dtype)
        assert getattr(stage.matmul, function)(*factors, out=out) is out
        assert_product(stage, out, a, b, dtype)


@pytest.mark.parametrize("function", PRODUCTS)
def test_stage_2_names_mixed_dtypes_and_an_out_that_does_not_fit(function: str) -> None:
    multiply, ones = getattr(load_stage("stage2_numpy").matmul, function), np.ones((2, 2))
    with pytest.raises(TypeError, match=r"float32.*float64"):
        multiply(ones.astype("float32"), ones)
    for out in (np.zeros((2, 3)), np.zeros((2, 2), dtype=np.float32)):
        with pytest.raises((ValueError, TypeError), match="out"):
            multiply(ones, ones, out=out)
