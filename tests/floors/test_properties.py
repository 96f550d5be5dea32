"""Laws that hold for every input, tried on inputs that hypothesis makes up and shrinks; for every stage.

Derandomized: the same examples every time. Numbers are float64 of moderate size, so that the bounds below
are about rounding and nothing else.
"""

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shared.contract import ACTIVATIONS, LABEL_LOSSES, LOSSES, Stage

few = settings(
    max_examples=20,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],  # the stage is the same for all examples
)
sizes = st.integers(1, 7)
seeds = st.integers(0, 2**32 - 1)
numbers = st.floats(-100, 100, allow_subnormal=False)


@st.composite
def matrices(draw: Any, rows: int, columns: int) -> np.ndarray:
    row = st.lists(numbers, min_size=columns, max_size=columns)
    return np.array(draw(st.lists(row, min_size=rows, max_size=rows)))


@st.composite
def factors(draw: Any) -> tuple[np.ndarray, np.ndarray]:
    """a (M, K) and b (K, N)."""
    m, k, n = draw(sizes), draw(sizes), draw(sizes)
    return draw(matrices(m, k)), draw(matrices(k, n))


@st.composite
def batches(draw: Any) -> np.ndarray:
    return draw(matrices(draw(sizes), draw(sizes)))


def put(stage: Stage, values: np.ndarray) -> Any:
    return stage.arrays.asarray(np.ascontiguousarray(values), "float64")


def host(stage: Stage, array: Any) -> np.ndarray:
    return np.array(stage.arrays.to_host(array))


def rounding(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """How far two orders of summation of a @ b may lie apart."""
    return 4 * a.shape[1] * np.finfo(np.float64).eps * (np.abs(a) @ np.abs(b)) + 1e-300


@few
@given(pair=factors())
def test_the_transpose_of_a_product_is_the_product_of_the_transposes_reversed(
    stage: Stage, pair: tuple[np.ndarray, np.ndarray]
) -> None:
    a, b = pair
    for rung in stage.matmul.LADDER.values():
        left = host(stage, rung(put(stage, a), put(stage, b))).T
        right = host(stage, rung(put(stage, b.T), put(stage, a.T)))
        assert (np.abs(left - right) <= rounding(a, b).T).all()


@few
@given(pair=factors())
def test_matmul_tn_and_nt_are_matmul_of_explicit_transposes(stage: Stage, pair: tuple[np.ndarray, np.ndarray]) -> None:
    a, b = pair
    expected = host(stage, stage.matmul.matmul(put(stage, a), put(stage, b)))
    tn = host(stage, stage.matmul.matmul_tn(put(stage, a.T), put(stage, b)))
    nt = host(stage, stage.matmul.matmul_nt(put(stage, a), put(stage, b.T)))
    assert (np.abs(tn - expected) <= rounding(a, b)).all()
    assert (np.abs(nt - expected) <= rounding(a, b)).all()


@few
@given(z=batches())
def test_softmax_rows_are_positive_and_sum_to_one(stage: Stage, z: np.ndarray) -> None:
    output = host(stage, stage.activations.softmax(put(stage, z)))
    assert (output >= 0).all()
    np.testing.assert_allclose(output.sum(axis=1), 1.0, rtol=1e-14)


@few
@given(z=batches(), shift=st.integers(-1000, 1000))
def test_softmax_and_its_loss_do_not_change_when_a_constant_is_added(stage: Stage, z: np.ndarray, shift: int) -> None:
    z = np.round(z * 64) / 64  # multiples of 1/64: adding the shift is exact, so both sides see the same differences
    labels = np.zeros(len(z), dtype=np.int64)
    plain, shifted = put(stage, z), put(stage, z + shift)
    assert np.array_equal(
        host(stage, stage.activations.softmax(plain)), host(stage, stage.activations.softmax(shifted))
    )
    difference = stage.losses.softmax_cross_entropy(plain, labels) - stage.losses.softmax_cross_entropy(shifted, labels)
    assert abs(difference) <= 1e-12


@few
@given(z=batches(), seed=seeds)
def test_softmax_passes_no_gradient_along_a_constant(stage: Stage, z: np.ndarray, seed: int) -> None:
    """The other face of shift invariance: each row of dL/dz sums to zero."""
    output = stage.activations.softmax(put(stage, z))
    grad_output = np.random.default_rng(seed).normal(size=z.shape)
    grad_z = host(stage, stage.activations.softmax_backward(put(stage, grad_output), put(stage, z), output))
    np.testing.assert_allclose(grad_z.sum(axis=1), 0.0, atol=1e-13)


def make_case(stage: Stage, seed: int, batch: int, hidden: int, activation: str, loss: str) -> tuple[Any, Any, Any]:
    """A random network, x and answers, as NumPy arrays."""
    rng = np.random.default_rng(seed)
    parameters = [rng.normal(size=shape) for shape in ((3, hidden), (hidden,), (hidden, 4), (4,))]
    network = stage.network.Network.from_parameters(parameters, activation, loss, "float64")
    x = rng.normal(size=(batch, 3))
    y = rng.integers(0, 4, batch) if loss in LABEL_LOSSES else rng.random((batch, 4))
    return network, x, y


@pytest.mark.parametrize(("activation", "loss"), list(product(ACTIVATIONS, LOSSES)))
@settings(few, max_examples=4)
@given(seed=seeds, batch=st.integers(1, 4), hidden=st.integers(1, 4))
def test_gradients_are_the_slopes_of_the_loss(
    stage: Stage, activation: str, loss: str, seed: int, batch: int, hidden: int
) -> None:
    """Along a random direction d, (L(p + hd) - L(p - hd)) / 2h is the gradient times d, up to h² and eps / h.

    A relu, leaky_relu or hinge network has kinks. Where the slopes of the two halves differ, one lies between the two
    points and the loss has no single slope there: the gradient must then lie between the halves.
    """
    network, x, y = make_case(stage, seed, batch, hidden, activation, loss)
    x, y = put(stage, x), y if loss in LABEL_LOSSES else put(stage, y)
    rng, h = np.random.default_rng(seed + 1), 1e-5
    parameters = [host(stage, p) for p in network.parameters]
    direction = [rng.normal(size=p.shape) for p in parameters]

    def loss_at(t: float) -> float:
        moved = [p + t * d for p, d in zip(parameters, direction, strict=True)]
        return stage.network.Network.from_parameters(moved, activation, loss, "float64").loss(x, y)

    gradients = [host(stage, g) for g in network.gradients(x, y)]
    analytic = sum(float(np.sum(g * d)) for g, d in zip(gradients, direction, strict=True))
    before, here, after = loss_at(-h), loss_at(0.0), loss_at(h)
    halves = sorted([(here - before) / h, (after - here) / h])
    tolerance = 1e-7 * (1 + abs(analytic))
    if activation in ("relu", "leaky_relu") or loss == "hinge":
        slack = 1e-3 * (1 + abs(analytic))  # each half alone is only exact to h times the curvature
        assert halves[0] - slack <= analytic <= halves[1] + slack
    else:
        assert abs((after - before) / (2 * h) - analytic) <= tolerance


@pytest.mark.parametrize("loss", LOSSES)
@few
@given(seed=seeds, batch=sizes)
def test_permuting_a_batch_permutes_the_outputs_and_changes_neither_loss_nor_gradients(
    stage: Stage, loss: str, seed: int, batch: int
) -> None:
    network, x, y = make_case(stage, seed, batch, 5, "tanh", loss)
    order = np.random.default_rng(seed + 1).permutation(batch)

    def answers(values: np.ndarray) -> Any:
        return values if loss in LABEL_LOSSES else put(stage, values)

    outputs = host(stage, network.forward(put(stage, x)))
    permuted = host(stage, network.forward(put(stage, x[order])))
    np.testing.assert_allclose(permuted, outputs[order], rtol=1e-12, atol=1e-13)
    assert list(network.predict(put(stage, x[order]))) == list(np.array(network.predict(put(stage, x)))[order])
    assert network.loss(put(stage, x[order]), answers(y[order])) == pytest.approx(
        network.loss(put(stage, x), answers(y)), rel=1e-12
    )
    gradients = [host(stage, g) for g in network.gradients(put(stage, x), answers(y))]
    for got, expected in zip(network.gradients(put(stage, x[order]), answers(y[order])), gradients, strict=True):
        np.testing.assert_allclose(host(stage, got), expected, rtol=1e-10, atol=1e-13)
