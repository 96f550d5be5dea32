"""Networks as data: shapes, counts and their errors, the known networks, JSON, and the drawing."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.architectures import (
    DEEPEST_NESTING,
    NAMED,
    Architecture,
    Stack,
    fashion_cnn,
    lenet5,
    mlp,
    named,
    residual_cnn,
)
from shared.layers import (
    Activate,
    AveragePool,
    BatchNorm,
    Conv,
    Dense,
    Dropout,
    Flatten,
    MaxPool,
    Residual,
)


@pytest.mark.parametrize(
    ("make", "parameters", "multiply_adds"),
    [(lenet5, 61_706, 416_520), (fashion_cnn, 896_522, 10_132_224), (residual_cnn, 514_570, 33_142_528)],
)
def test_known_networks_have_their_known_sizes(make, parameters, multiply_adds):
    architecture = make()
    assert (architecture.parameter_count, architecture.multiply_adds) == (parameters, multiply_adds)
    assert architecture.output_shape == (10,)


def test_known_networks_take_other_images_and_classes():
    architecture = named("residual_cnn", (3, 32, 32), 7)
    assert architecture.parameter_shapes()[0] == (32, 3, 3, 3)
    assert architecture.output_shape == (7,)
    with pytest.raises(ValueError, match="unknown architecture 'resnet'; choose one of lenet5, fashion_cnn, residual_"):
        named("resnet")


def test_shapes_by_hand():
    layers = (
        Conv(4, (3, 2), stride=(2, 1), padding=(1, 0)),
        AveragePool((2, 3), stride=(1, 2)),
        MaxPool(2),
        Flatten(),
        Dense(5),
    )
    architecture = Architecture((2, 9, 12), layers)
    # (9 + 2 - 3) // 2 + 1 = 5, 12 - 2 + 1 = 11; 5 - 2 + 1 = 4, (11 - 3) // 2 + 1 = 5; the fifth column does not fit
    assert architecture.shapes() == [(2, 9, 12), (4, 5, 11), (4, 4, 5), (4, 2, 2), (16,), (5,)]
    assert architecture.parameter_shapes() == [(4, 2, 3, 2), (4,), (16, 5), (5,)]
    assert architecture.multiply_adds == 4 * 5 * 11 * 2 * 3 * 2 + 16 * 5


def test_parameters_go_layer_by_layer_and_through_residual_blocks():
    block = Residual((Conv(3, 3, padding=1), BatchNorm(), Residual((BatchNorm(), Dropout(0.25)))))
    architecture = Architecture((3, 4, 5), (block, Flatten(), Dropout(0.5), Dense(2)))
    assert [each.name for each in architecture.parameters()] == [
        "layer 1.1, Conv: weights",
        "layer 1.1, Conv: bias",
        "layer 1.2, BatchNorm: gamma",
        "layer 1.2, BatchNorm: beta",
        "layer 1.3.1, BatchNorm: gamma",
        "layer 1.3.1, BatchNorm: beta",
        "layer 4, Dense: weights",
        "layer 4, Dense: bias",
    ]
    assert architecture.running_shapes() == [(3,)] * 4
    assert architecture.dropouts() == [(60, 0.25), (60, 0.5)]
    assert architecture.shapes() == [(3, 4, 5), (3, 4, 5), (60,), (60,), (2,)]


IMAGE = (1, 4, 4)


@pytest.mark.parametrize(
    ("input_shape", "layers", "error", "message"),
    [
        (IMAGE, (Conv(2, 3), Conv(2, 1), Conv(128, 3)), ValueError,
         r"layer 3, Conv\(128, 3\): input is 2 x 2, smaller than the 3 x 3 window"),
        (IMAGE, (Conv(2, (7, 1), padding=(1, 0)),), ValueError,
         r"layer 1, .*: input is 4 x 4, with its padding 6 x 4, smaller than the 7 x 1 window"),
        (IMAGE, (Dense(3),), ValueError, r"layer 1, Dense\(3\): input is an image of 1 x 4 x 4; a Flatten\(\) must"),
        ((8,), (Conv(2, 3),), ValueError, r"layer 1, Conv\(2, 3\): input is 8 features; expected an image"),
        (IMAGE, (Activate("softmax"),), ValueError, r"softmax is over features, after Flatten\(\)"),
        (IMAGE, (Activate("sofmax"),), ValueError, r"layer 1, Activate: unknown activation 'sofmax'; choose one of"),
        (IMAGE, (Residual((Conv(2, 3),)),), ValueError,
         "layer 1, Residual: its layers turn 1 x 4 x 4 into 2 x 2 x 2; they must keep the shape of their input"),
        (IMAGE, (BatchNorm(), Residual((Conv(1, 0),))), ValueError,
         "layer 2.1, Conv: size: expected a whole number of at least 1, or a pair .* got 0"),
        (IMAGE, (Dropout(1.0),), ValueError, "layer 1, Dropout: expected a rate of at least 0 and below 1, got 1.0"),
        (IMAGE, ("Conv",), TypeError, "layer 1: expected one of Conv, MaxPool, .*, got 'Conv'"),
        (IMAGE, (Residual(()),), ValueError, "layer 1, Residual: expected at least one layer, got none"),
        ((4, 4), (Flatten(),), ValueError, r"expected \(features,\) or \(channels, height, width\), got \(4, 4\)"),
        (784, (Flatten(),), TypeError, r"input_shape: expected \(features,\) or .*, got 784"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused_by_its_layer(input_shape, layers, error, message):
    with pytest.raises(error, match=message):
        Architecture(input_shape, layers)


def test_dense_stacks_are_recognised():
    assert mlp([784, 128, 10], "tanh").as_mlp() == Stack([784, 128, 10], "tanh", 0.0)
    assert mlp([4, 2]).as_mlp() == Stack([4, 2], "relu", 0.0)
    flat = Architecture((1, 2, 2), (Flatten(), Dense(3), Activate("relu"), Dense(2)))
    assert flat.as_mlp() == Stack([4, 3, 2], "relu", 0.0)
    mixed = (Dense(3), Activate("relu"), Dense(3), Activate("tanh"), Dense(2))
    ending = (Dense(3), Activate("relu"))
    for layers in (mixed, ending, (Dense(3), Dense(2)), (Dense(3), BatchNorm(), Dense(2))):
        assert Architecture((4,), layers).as_mlp() is None
    assert lenet5().as_mlp() is None


@pytest.mark.parametrize(
    "architecture", [*(make() for make in NAMED.values()), mlp([5, 3, 2])], ids=lambda a: str(a.parameter_count)
)
def test_json_gives_the_same_architecture_back(architecture):
    assert Architecture.from_json(json.loads(json.dumps(architecture.to_json()))) == architecture


def nested(depth):
    return {"kind": "Residual", "layers": [nested(depth - 1) if depth else {"kind": "BatchNorm"}]}


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([], r"architecture: expected an object with input_shape and layers, got \[\]"),
        ({"input_shape": [4], "layers": {}}, "architecture: layers: expected a list, got {}"),
        ({"input_shape": [4], "layers": [3]}, "architecture: layer 1: expected a kind of Conv, .*, got 3"),
        ({"input_shape": [4], "layers": [{"kind": "eval"}]}, "expected a kind of Conv, .*, got {'kind': 'eval'}"),
        ({"input_shape": [4], "layers": [{"kind": "Dense"}]}, "layer 1, Dense: expected out_features, got none"),
        ({"input_shape": [4], "layers": [{"kind": "Flatten", "x": 1}]}, "Flatten: expected no settings, got x"),
        ({"input_shape": [4], "layers": [{"kind": "Dense", "out_features": "8"}]}, "a whole number .* got '8'"),
        ({"input_shape": [1, 4, 4], "layers": [nested(DEEPEST_NESTING)]}, "nested more than 8 deep"),
    ],
)  # fmt: skip
def test_json_of_a_stranger_is_refused_with_its_fault(values, message):
    with pytest.raises((ValueError, TypeError), match=message):
        Architecture.from_json(values)


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(["Conv", "Residual", "Dense", "relu"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["kind", "layers", "size", "out_channels", "stride"]), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(JSON_VALUES, JSON_VALUES)
def test_any_json_is_an_architecture_or_refused(shape, layers):
    try:
        made = Architecture.from_json({"input_shape": shape, "layers": layers})
    except (ValueError, TypeError):
        pass  # refused in words, never by an IndexError or KeyError
    else:
        assert Architecture.from_json(made.to_json()) == made


def test_the_drawing_has_a_line_for_each_layer_with_its_shape_and_work():
    lines = residual_cnn().drawing().splitlines()
    assert lines[0].split() == ["layer", "output", "parameters", "multiply-adds"]
    assert lines[2].split() == ["1", "Conv(32,", "3,", "padding=1)", "32", "x", "28", "x", "28", "320", "225,792"]
    assert "  4.1     Conv(32, 3, padding=1)  32 x 28 x 28" in lines[5]
    assert lines[10].split() == ["4", "+", "input", "of", "the", "block", "32", "x", "28", "x", "28"]
    assert lines[-1].split() == ["514,570", "33,142,528"]
    assert not any(line != line.rstrip() for line in lines)


def test_a_size_that_no_memory_holds_is_refused() -> None:
    with pytest.raises(ValueError, match=r"layer_sizes: every size must be below 2,147,483,648, got 1,000,000,000,000"):
        mlp([3, 10**12, 2])
