"""Calls every public function of stage 3's rooms with whatever hypothesis thinks of; test_fuzz.py runs it.

    python -m tests.stage3_c.fuzz_stage3 [--without CHECK] [--examples N] [--last FILE]

Each call has one of three ends. It returns: then the result has the right shape and dtype, equals what the same
call gives on copies of its arguments with no `out`, and no byte beside any array has changed. It refuses: TypeError,
ValueError or MemoryError with a message that names the function or an argument. Or it is a bug: the call is printed,
and the exit code is 1. Each call is written to FILE before it is made, because a crash of the process tells nothing.

--without breaks one check of the boundary on purpose, to show that the fuzzing would notice.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import HealthCheck, Phase, Verbosity, given, settings
from hypothesis import strategies as st

from shared.architectures import Architecture, mlp
from shared.layers import Activate, Conv, Dense, Flatten, MaxPool
from stage3_c import activations, arrays, batch_norm, convolution, dense, losses, matmul, network, optimizers, pooling
from tests.stage3_c.fuzz_inputs import (
    FILLS,
    FORMS,
    HOPELESS,
    Memory,
    independent,
    overlapping,
    right_array,
    right_labels,
)

CALLS_AN_EXAMPLE = 8

Draw = Callable[[st.SearchStrategy[Any]], Any]


@dataclass(frozen=True)
class Target:
    """A function, the shape of each argument in terms of m, k and n, and of its result; None is a float."""

    function: Callable[..., Any]
    shapes: dict[str, str]
    result: str | None = None
    any_shape: bool = False  # whether arrays of other shapes than these may fit, too


# ---- what is called ----------------------------------------------------------------------------------------------


def layer_forward(weights: Any, bias: Any, x: Any, out: Any = None) -> Any:
    return dense.Dense(weights, bias).forward(x, out=out)


def layer_backward(weights: Any, bias: Any, x: Any, grad_output: Any, out: Any = None) -> Any:
    layer = dense.Dense(weights, bias)
    layer.forward(x)
    if layer.backward(grad_output, needs_grad_input=False) is not None:
        raise AssertionError("backward returned a gradient that nobody needs")
    return layer.backward(grad_output, out=out)


def fused(logits: Any, labels: Any, out: Any = None) -> Any:
    return losses.softmax_cross_entropy_fused(logits, labels, out=out)[1]


def train_step(weights: Any, bias: Any, x: Any, labels: Any) -> Any:
    return network.Network.from_parameters([weights, bias]).train_step(x, labels, optimizers.Adam())


def gradient(weights: Any, bias: Any, x: Any, labels: Any) -> Any:
    return network.Network.from_parameters([weights, bias], loss="hinge").gradients(x, labels)[0]


def outputs(weights: Any, bias: Any, x: Any) -> Any:
    return network.Network.from_parameters([weights, bias]).forward(x)


def predict(weights: Any, bias: Any, x: Any) -> Any:
    return network.Network.from_parameters([weights, bias]).predict(x)


def dropped_out(x: Any, mask: Any) -> Any:
    return network.Network(mlp([3, 4, 2], dropout=0.5)).forward(x, [mask])


def convolve_back(grad_output: Any, x: Any, weights: Any, out: Any = None) -> Any:
    return convolution.conv2d_backward(grad_output, x, weights, out=out)[0]


def kernel_layer(weights: Any, bias: Any, x: Any, grad_output: Any, out: Any = None) -> Any:
    layer = convolution.Conv2d(weights, bias, stride=2, padding=(1, 0))
    layer.forward(x)
    return layer.backward(grad_output, out=out)


def largest(x: Any, out: Any = None) -> Any:
    return pooling.max_pool2d(x, 2, out=out)[0]


def front(images: Any) -> tuple[int, ...]:
    """The batch and the channels of what may be no images at all."""
    return images.shape[:2] if isinstance(images, np.ndarray) and images.ndim == 4 and images.size else (1, 1)


def largest_back(grad_output: Any, labels: Any, out: Any = None) -> Any:
    return pooling.max_pool2d_backward(grad_output, labels, (*front(grad_output), 3, 4), out=out)


def mean(x: Any, out: Any = None) -> Any:
    return pooling.average_pool2d(x, (2, 3), 1, out=out)


def mean_back(grad_output: Any, out: Any = None) -> Any:
    return pooling.average_pool2d_backward(grad_output, (*front(grad_output), 4, 5), 2, out=out)


def normalised(x: Any, gamma: Any, beta: Any, running_mean: Any, running_var: Any, out: Any = None) -> Any:
    return batch_norm.batch_norm(x, gamma, beta, running_mean, running_var, True, out=out)[0]


def normalised_rows(gamma: Any, x: Any, out: Any = None) -> Any:
    return batch_norm.BatchNorm(gamma, gamma).forward(x, out=out)


def normalised_back(gamma: Any, beta: Any, x: Any, grad_output: Any, out: Any = None) -> Any:
    layer = batch_norm.BatchNorm(gamma, beta)
    layer.forward(x)
    return layer.backward(grad_output, out=out)


def judged(x: Any) -> Any:
    return network.Network(IMAGES).forward(x)


def two_steps(make: Callable[[], Any]) -> Callable[..., Any]:
    def step(parameter: Any, gradient: Any) -> Any:
        optimizer = make()
        optimizer.step([parameter], [gradient])
        saved, other = optimizer.state(), make()
        other.load_state(saved)
        other.step([parameter], [gradient])
        return parameter

    return step


IMAGES = Architecture((2, 5, 4), (Conv(3, 3, padding=1), Activate("relu"), MaxPool(2), Flatten(), Dense(3)))
NAMES = ("identity", "relu", "leaky_relu", "sigmoid", "tanh", "softmax")
LAYER = {"weights": "kn", "bias": "n", "x": "mk"}
KERNELS = {"weights": "nk33", "bias": "n", "x": "mk55"}
CHANNELS = {"gamma": "n", "beta": "n", "running_mean": "n", "running_var": "n"}
TARGETS: dict[str, Target] = {
    "asarray": Target(arrays.asarray, {"values": "mn"}, "mn", any_shape=True),
    **{f"matmul {name}": Target(rung, {"a": "mk", "b": "kn"}, "mn") for name, rung in matmul.LADDER.items()},
    "matmul": Target(matmul.matmul, {"a": "mk", "b": "kn"}, "mn"),
    "matmul_tn": Target(matmul.matmul_tn, {"a": "km", "b": "kn"}, "mn"),
    "matmul_nt": Target(matmul.matmul_nt, {"a": "mk", "b": "nk"}, "mn"),
    **{name: Target(getattr(activations, name), {"z": "mn"}, "mn") for name in NAMES},
    **{
        f"{name}_backward": Target(
            getattr(activations, f"{name}_backward"), {"grad_output": "mn", "z": "mn", "output": "mn"}, "mn"
        )
        for name in NAMES
    },
    "mean_squared_error": Target(losses.mean_squared_error, {"outputs": "mn", "targets": "mn"}),
    "mean_squared_error_backward": Target(losses.mean_squared_error_backward, {"outputs": "mn", "targets": "mn"}, "mn"),
    "sigmoid_cross_entropy": Target(losses.sigmoid_cross_entropy, {"logits": "mn", "targets": "mn"}),
    "sigmoid_cross_entropy_backward": Target(
        losses.sigmoid_cross_entropy_backward, {"logits": "mn", "targets": "mn"}, "mn"
    ),
    "softmax_cross_entropy": Target(losses.softmax_cross_entropy, {"logits": "mn", "labels": "m"}),
    "softmax_cross_entropy_backward": Target(
        losses.softmax_cross_entropy_backward, {"logits": "mn", "labels": "m"}, "mn"
    ),
    "softmax_cross_entropy_fused": Target(fused, {"logits": "mn", "labels": "m"}, "mn"),
    "hinge": Target(losses.hinge, {"scores": "mn", "labels": "m"}),
    "hinge_backward": Target(losses.hinge_backward, {"scores": "mn", "labels": "m"}, "mn"),
    "Dense.forward": Target(layer_forward, LAYER, "mn"),
    "Dense.backward": Target(layer_backward, {**LAYER, "grad_output": "mn"}, "mk"),
    "Network.forward": Target(outputs, LAYER, "mn"),
    "Network.predict": Target(predict, LAYER, "m"),
    "Network.train_step": Target(train_step, {**LAYER, "labels": "m"}),
    "Network.gradients": Target(gradient, {**LAYER, "labels": "m"}, "kn"),
    "Network.forward, images": Target(judged, {"x": "m254"}, "m3", any_shape=True),
    "Network.forward, dropout": Target(dropped_out, {"x": "m3", "mask": "m4"}, "m2"),
    **{
        f"conv2d {name}": Target(rung, KERNELS, "mn33", any_shape=True)
        for name, rung in convolution.CONVOLUTION_LADDER.items()
    },
    "conv2d_backward": Target(convolve_back, {"grad_output": "mn33", "x": "mk55", "weights": "nk33"}, "mk55", True),
    "Conv2d.backward": Target(kernel_layer, {**KERNELS, "grad_output": "mn32"}, "mk55", True),
    "max_pool2d": Target(largest, {"x": "mn54"}, "mn22", True),
    "max_pool2d_backward": Target(largest_back, {"grad_output": "mn22", "labels": "mn22"}, "mn34", True),
    "average_pool2d": Target(mean, {"x": "mn45"}, "mn33", True),
    "average_pool2d_backward": Target(mean_back, {"grad_output": "mn22"}, "mn45", True),
    "batch_norm": Target(normalised, {"x": "mn23", **CHANNELS}, "mn23", True),
    "BatchNorm.forward": Target(normalised_rows, {"gamma": "n", "x": "mn"}, "mn", True),
    "BatchNorm.backward": Target(
        normalised_back, {"gamma": "n", "beta": "n", "x": "mn22", "grad_output": "mn22"}, "mn22", True
    ),
    "step SGD": Target(two_steps(lambda: optimizers.SGD(0.1)), {"parameter": "mn", "gradient": "mn"}, "mn"),
    "step momentum": Target(
        two_steps(lambda: optimizers.SGD(0.1, 0.9, nesterov=True, weight_decay=0.1)),
        {"parameter": "mn", "gradient": "mn"},
        "mn",
    ),
    "step RMSProp": Target(two_steps(optimizers.RMSProp), {"parameter": "n", "gradient": "n"}, "n"),
    "step Adam": Target(two_steps(optimizers.Adam), {"parameter": "mn", "gradient": "mn"}, "mn"),
}
WITHOUT_OUT = ("asarray", "step", "Network")
"""How the names of the functions begin that take no `out`."""

WORDS = (
    "asarray",
    "Dense",
    "Conv2d",
    "conv2d",
    "indices",
    "image",
    "batch_norm",
    "outputs",
    "targets",
    "logits",
    "scores",
    "labels",
    "out",
)
"""What a refusal may name beside the function and its arguments: what they are called inside."""


# ---- what it is called with -----------------------------------------------------------------------------------------


SIZES = st.tuples(*[st.sampled_from([1, 2, 3, 5, 17])] * 3)
DTYPE, FILL = st.sampled_from(["float32", "float64"]), st.sampled_from(list(FILLS))
HOW = st.sampled_from(["right"] * 90 + list(FORMS))
HOW_LABELS = st.sampled_from(["right"] * 60 + list(FORMS) + ["out of range"] * 20)
HOW_OUT = st.sampled_from(["left out"] * 30 + ["right"] * 30 + ["an input", "half an input"] * 12 + list(FORMS))
LABEL = st.sampled_from([-1, "classes", 10**6, -(2**62), 2**62])


def draw_call(draw: Draw, memory: Memory, name: str) -> tuple[dict[str, Any], bool, str]:
    """The arguments of a call of this function, whether it must refuse them, and what to print."""
    target = TARGETS[name]
    sizes = dict(zip("mkn2345", (*draw(SIZES), 2, 3, 4, 5), strict=True))
    dtype, fill = draw(DTYPE), draw(FILL)
    arguments: dict[str, Any] = {}
    hopeless, told = False, [f"{ {size: sizes[size] for size in 'mkn'} } {dtype} {fill}"]
    for i, (argument, letters) in enumerate(target.shapes.items()):
        shape = tuple(sizes[letter] for letter in letters)
        labels = argument == "labels"
        right = (
            right_labels(memory, shape, sizes["n"] if len(shape) == 1 else 12, i)
            if labels
            else right_array(memory, shape, dtype, fill, i)
        )
        how = draw(HOW_LABELS if labels else HOW)
        if how == "out of range":
            right[-1] = max(sizes["n"], 12) if (label := draw(LABEL)) == "classes" else label
            arguments[argument] = right
        else:
            arguments[argument] = right if how == "right" else FORMS[how](memory, right)
        hopeless |= how in HOPELESS
        told.append(f"{argument}: {how}")
    if target.result and not name.startswith(WITHOUT_OUT):
        shape = tuple(sizes[letter] for letter in target.result)
        how = draw(HOW_OUT)
        out = right_array(memory, shape, dtype, "ordinary", 9)
        if how in ("an input", "half an input"):
            source = draw(st.sampled_from(sorted(target.shapes)))
            how = f"{how}, {source}"
            out = overlapping(memory, arguments, source, shape, shifted="half" in how)
        if how != "left out":
            arguments["out"] = FORMS[how](memory, out) if how in FORMS else out
            told.append(f"out: {how}")
    return arguments, hopeless, f"{name}({'; '.join(told)})"


# ---- what must be true ---------------------------------------------------------------------------------------------


def call(draw: Draw, name: str, counts: Counter[str], last: Any) -> None:
    """Draw one call, make it, and raise AssertionError where it ends in the third way."""
    memory = Memory()
    arguments, hopeless, told = draw_call(draw, memory, name)
    last.seek(0)
    last.write(told.ljust(400) + "\n")
    last.flush()
    target = TARGETS[name]
    again = {key: independent(value) for key, value in arguments.items() if key != "out"}
    try:
        result = target.function(**arguments)
    except (TypeError, ValueError, MemoryError) as refusal:
        words = (*target.shapes, *WORDS, *name.split())
        if not any(word in str(refusal) for word in words):
            raise AssertionError(f"{told}: the refusal names nothing: {refusal!r}") from refusal
        counts["refused"] += 1
    except Exception as error:
        raise AssertionError(f"{told}: {type(error).__name__}: {error}") from error
    else:
        counts["accepted"] += 1
        counts[name] += 1
        assert not hopeless, f"{told}: accepted"
        check_result(target, arguments, result, again, told)
    assert memory.intact(), f"{told}: wrote beside an array"
    counts["calls"] += 1


def check_result(target: Target, arguments: dict[str, Any], result: Any, again: dict[str, Any], told: str) -> None:
    expected = target.function(**again)
    if target.result is None:
        assert type(result) is float, f"{told}: returned {type(result).__name__}, expected a float"
        assert result == expected or (result != result and expected != expected), f"{told}: {result}, then {expected}"
        return
    sizes = {"2": 2} | {
        letter: size
        for argument, letters in target.shapes.items()
        for letter, size in zip(letters, np.shape(arguments[argument]), strict=False)
    }
    if not target.any_shape:
        assert result.shape == tuple(sizes[letter] for letter in target.result), f"{told}: returned {result.shape}"
    expected_dtypes = (np.int64,) if target.function is predict else (np.float32, np.float64)
    assert result.dtype in expected_dtypes, f"{told}: returned {result.dtype}"
    assert "out" not in arguments or arguments["out"] is None or result is arguments["out"], f"{told}: not in out"
    assert np.array_equal(result, expected, equal_nan=True), f"{told}: {result}, but on copies {expected}"


# ---- checks that can be left out, to see that it shows ---------------------------------------------------------------


def leave_out(check: str) -> None:
    """Break one check of the boundary in every room that has it."""
    broken: dict[str, tuple[str, Callable[..., Any]]] = {
        "labels": ("as_labels", lambda function, labels, rows, classes: np.asarray(labels).astype(np.int64)),
        "form": ("packed", lambda array, dtype: array),
        "overlap": ("overlap", lambda a, b: False),
        "writable": ("check_writable", lambda name, array: None),
    }
    name, replacement = broken[check]
    for room in (arrays, matmul, activations, losses, dense, network, optimizers, convolution, pooling, batch_norm):
        if hasattr(room, name):
            setattr(room, name, replacement)


def main() -> int:
    parser = argparse.ArgumentParser(description="Fuzz the boundary of stage 3.")
    parser.add_argument("--without", choices=["labels", "form", "overlap", "writable"])
    parser.add_argument("--examples", type=int, default=750, help=f"{CALLS_AN_EXAMPLE} calls each")
    parser.add_argument("--last", default="/dev/null")
    options = parser.parse_args()
    if options.without:
        leave_out(options.without)
    counts: Counter[str] = Counter()
    with open(options.last, "w", encoding="utf-8") as last:
        # Each function in turn: left to Hypothesis, a function would be called ten times as often as another.
        for name in TARGETS:

            @settings(
                max_examples=max(1, options.examples * CALLS_AN_EXAMPLE // len(TARGETS)),
                phases=[Phase.generate],  # a call is small enough as it is
                deadline=None,
                derandomize=True,
                database=None,
                report_multiple_bugs=False,
                print_blob=False,
                verbosity=Verbosity.quiet,
                suppress_health_check=[*HealthCheck],
            )
            @given(data=st.data())
            def fuzz(name: str, data: Any) -> None:
                call(data.draw, name, counts, last)

            try:
                fuzz(name)
            except AssertionError as bug:
                print(bug)
                return 1
    if unheard := [name for name in TARGETS if counts[name] < options.examples // 75]:
        print(f"hardly ever accepted, so hardly tested: {', '.join(unheard)}")
        return 1
    print(f"{counts['calls']} calls: {counts['accepted']} accepted, {counts['refused']} refused")
    return 0


if __name__ == "__main__":
    sys.exit(main())
