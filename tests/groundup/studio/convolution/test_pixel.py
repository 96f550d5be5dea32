"""The numbers of a clicked pixel against plain loops in float64, and the way back of the gradient."""

from __future__ import annotations

import numpy as np
import pytest

from groundup.studio.convolution.field import geometry
from groundup.studio.convolution.pixel import pixel
from shared.layers import Activate, AveragePool, BatchNorm, Conv, MaxPool, Residual
from tests.groundup.studio.convolution.made_networks import EVERY_KIND, made
from tests.groundup.studio.digits.made_runs import a_drawing

NETWORK = made(EVERY_KIND)
PASSED = NETWORK.passed(a_drawing(5).tobytes(), 3)
MAPS = [number for number, placed in NETWORK.placed.items() if len(placed.output_shape) == 3]


def source(number):
    before = NETWORK.origins[number].before
    return (PASSED.outputs[before] if before else PASSED.x).astype(np.float64)


def by_hand(number, c, r, s):
    """The number at a place of a layer's output in float64, from the layer's input, one multiplication at a time."""
    layer, own, x = NETWORK.placed[number].layer, NETWORK.layer(number), source(number)
    (high, wide), (down, across), (p, q) = geometry(layer)
    places = [(i, j, r * down + i - p, s * across + j - q) for i in range(high) for j in range(wide)]
    inside = [(i, j, row, column) for i, j, row, column in places if 0 <= row < x.shape[1] and 0 <= column < x.shape[2]]
    if isinstance(layer, Conv):
        total = float(own.bias[c])
        for channel in range(len(x)):
            for i, j, row, column in inside:
                total += float(own.weights[c, channel, i, j]) * x[channel, row, column]
        return total
    values = [x[c, row, column] for _, _, row, column in inside]
    if isinstance(layer, BatchNorm):
        mean, variance, gamma, beta = (float(a[c]) for a in (own.running_mean, own.running_var, own.gamma, own.beta))
        return (values[0] - mean) / (variance + 1e-5) ** 0.5 * gamma + beta
    if isinstance(layer, Residual):
        return values[0] + PASSED.outputs[NETWORK.origins[number].past].astype(np.float64)[c, r, s]
    if isinstance(layer, Activate):
        return max(values[0], 0.0)
    return sum(values) / len(values) if isinstance(layer, AveragePool) else max(values)


@pytest.mark.parametrize("number", MAPS)
def test_the_number_is_that_of_plain_loops_in_float64(number):
    channels, rows, columns = NETWORK.placed[number].output_shape
    for c in range(channels):
        for r, s in {(0, 0), (0, columns - 1), (rows - 1, 0), (rows - 1, columns - 1), (rows // 2, columns // 3)}:
            found, expected = pixel(NETWORK, PASSED, number, c, r, s), by_hand(number, c, r, s)
            assert found.value == pytest.approx(expected, rel=1e-4, abs=1e-4)
            shown = found.as_json()
            if found.kind == "convolution":
                assert sum(shown["sums"]) + found.numbers["bias"] == pytest.approx(expected, rel=1e-9, abs=1e-9)
            elif found.kind == "max":
                assert found.inputs.ravel()[found.numbers["winner"]] == found.inputs.max() == found.value
            elif found.kind == "sum":
                assert found.numbers["through"] + found.numbers["past"] == pytest.approx(expected, rel=1e-6)


def test_a_window_has_its_place_and_the_zeros_of_the_padding():
    found = pixel(NETWORK, PASSED, "1", 2, 0, 0)
    assert found.corner == (-1, -2)
    assert found.inputs.shape == (1, 3, 5)
    assert not found.inputs[0, 0].any()
    assert not found.inputs[0, :, :2].any()
    np.testing.assert_array_equal(found.inputs[0, 1:, 2:], PASSED.x[0, :2, :3])
    assert pixel(NETWORK, PASSED, "4", 1, 2, 3).corner == (4, 6)


@pytest.mark.parametrize("number", [each for each in MAPS if each not in ("1", "5.1", "5")])
def test_what_all_numbers_send_back_is_the_gradient_of_the_layer_before(number):
    """Added up where the windows lie, the shares of a max pool's overlapping windows among them."""
    channels, rows, columns = NETWORK.placed[number].output_shape
    total = np.zeros(np.pad(source(number), ((0, 0), (9, 9), (9, 9))).shape)
    for c, r, s in np.ndindex(channels, rows, columns):
        found = pixel(NETWORK, PASSED, number, c, r, s)
        top, left = found.corner[0] + 9, found.corner[1] + 9
        own = slice(None) if found.kind == "convolution" else slice(c, c + 1)
        total[own, top : top + found.back.shape[1], left : left + found.back.shape[2]] += found.back
    expected = PASSED.slopes[NETWORK.origins[number].before]
    np.testing.assert_allclose(total[:, 9:-9, 9:-9], expected, rtol=1e-3, atol=1e-4 * np.abs(expected).max())


def test_at_a_residual_block_the_gradient_takes_both_ways():
    entering = NETWORK.layer("5.1").weights  # the block's first convolution, 3 x 3 with padding 1
    grad = np.zeros_like(PASSED.slopes["4"], np.float64)
    for c, r, s in np.ndindex(PASSED.slopes["5.1"].shape):
        for i, j in np.ndindex(3, 3):
            if 0 <= r + i - 1 < grad.shape[1] and 0 <= s + j - 1 < grad.shape[2]:
                grad[:, r + i - 1, s + j - 1] += float(PASSED.slopes["5.1"][c, r, s]) * entering[c, :, i, j]
    np.testing.assert_allclose(PASSED.slopes["4"], grad + PASSED.slopes["5"], rtol=1e-3, atol=1e-4)


def test_the_gradient_is_that_of_small_changes_of_the_drawing():
    """In float64: d score / d pixel by differences, and by what the first layer's numbers send back. Noise has no two
    equal numbers under a max pool, where a difference would not be a gradient."""
    network = made(EVERY_KIND, dtype="float64")
    passed = network.passed(np.random.default_rng(0).integers(1, 256, 784).astype(np.uint8).tobytes(), 3)
    sent = np.zeros((28 + 2, 28 + 4))
    for c, r, s in np.ndindex(4, 14, 28):
        found = pixel(network, passed, "1", c, r, s)
        sent[r * 2 : r * 2 + 3, s : s + 5] += found.back[0]
    pixels = np.random.default_rng(1).integers(0, 784, 40)
    step = np.zeros((80, 784))
    step[np.arange(40), pixels], step[40 + np.arange(40), pixels] = 1e-6, -1e-6
    scores = network.outputs(passed.x.reshape(1, -1) + step)[-1][:, 3]
    np.testing.assert_allclose(
        sent[1:-1, 2:-2].ravel()[pixels], (scores[:40] - scores[40:]) / 2e-6, rtol=1e-4, atol=1e-5
    )


def test_the_evidence_is_that_of_groundup_look_for_the_chosen_class():
    x = NETWORK.trained.learned(a_drawing(5)[np.newaxis].astype(np.float32) / 255)
    np.testing.assert_allclose(PASSED.evidence, NETWORK.evidence(x, np.array([3]))[0], rtol=1e-5, atol=1e-6)
    assert NETWORK.passed(a_drawing(5).tobytes(), None).chosen == PASSED.scores.argmax()


@pytest.mark.parametrize(
    ("place", "sentence"),
    [
        (("9", 0, 0, 0), "layer: expected one that has maps, 1, 2, 3, 4, 5.1, 5.2, 5.3, 5.4, 5.5, 5, 6, 7, 8, got '9'"),
        ((["1"], 0, 0, 0), r"layer: expected one that has maps, .* got \['1'\]"),
        (("1", 4, 0, 0), "channel: expected a whole number from 0 to 3, got 4"),
        (("1", 0, -1, 0), "row: expected a whole number from 0 to 13, got -1"),
        (("1", 0, 0, True), "column: expected a whole number from 0 to 27, got True"),
        (("1", 0, 0, None), "column: expected a whole number from 0 to 27, got None"),
    ],
)
def test_a_place_that_there_is_not_is_refused(place, sentence):
    with pytest.raises(ValueError, match=sentence):
        pixel(NETWORK, PASSED, *place)


def test_max_and_average_pool_need_no_weights():
    assert {pixel(NETWORK, PASSED, number, 0, 0, 0).kind for number in MAPS} == {
        *("convolution", "norm", "activation", "max", "average", "sum", "same"),
    }
    assert isinstance(pixel(NETWORK, PASSED, "4", 0, 0, 0).layer, MaxPool)
