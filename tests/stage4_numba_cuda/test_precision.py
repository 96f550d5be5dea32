"""Networks whose factors are rounded for tensor cores: off by that rounding, only where it was asked for."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from cuda_emulator import options
from shared.architectures import NAMED, Architecture, named
from shared.contract import load_stage, stage_facts
from shared.layers import Activate, Conv, Dense, Flatten, Residual
from shared.names import ACTIVATIONS
from stage4_numba_cuda import dense_passes, optimizers, precision, tensor_cores, tile_choice
from stage4_numba_cuda.arrays import asarray, to_host
from stage4_numba_cuda.backend import BACKEND, BackendError
from stage4_numba_cuda.kernels.matmul_5_tensor import EPSILON
from stage4_numba_cuda.network import STEP_LADDER, Network
from tests.stage4_numba_cuda.test_cuda_graphs import Recorder, recorder
from tests.stages import needs_precision
from tests.wide import wide, widely

__all__ = ["recorder"]

NUMPY = load_stage("stage2_numpy")
RELU = Activate("relu")
FORM = Architecture(
    (2, 7, 6),
    (
        Conv(3, 3, stride=2, padding=1),
        Residual((Conv(3, 3, padding=1),)),
        *(RELU, Flatten(), Residual((Dense(36), RELU)), Dense(4)),
    ),
)


@pytest.fixture(params=widely(["convolutions", "dense layers, too"], first=0))
def rounded(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is rounded. The kernels take long to compile, and the wide tests have them."""
    if request.param == "convolutions":
        monkeypatch.setattr(dense_passes, "_pays", lambda *arguments: False)


def batch(architecture: Architecture, rows: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    x = rng.random((rows, int(np.prod(architecture.input_shape)))).astype(np.float32)
    return x, rng.integers(0, architecture.output_shape[0], rows)


def distance(got: list[Any], expected: list[Any]) -> float:
    """Of all numbers together, as a share of their size."""
    one, other = (np.concatenate([np.ravel(to_host(each)) for each in arrays]) for arrays in (got, expected))
    return float(np.linalg.norm(one - other) / np.linalg.norm(other))


# ---- what it is


def test_nothing_is_rounded_unless_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    needs_precision("bf16")
    assert Network(FORM).precision is None
    for asked, expected in (("0", None), ("tf32", "tf32"), ("bf16", "bf16")):
        monkeypatch.setenv(precision.VARIABLE, asked)
        assert Network(FORM).precision == expected
        assert Network(FORM, dtype="float64").precision is None  # there is nothing that a tensor core could round
        assert stage_facts("stage4_numba_cuda").get("tensor_cores") == expected
    monkeypatch.setenv(precision.VARIABLE, "fp8")
    with pytest.raises(ValueError, match=r"^GROUNDUP_TENSOR_CORES: expected tf32 or bf16, got 'fp8'$"):
        Network(FORM)


def test_what_cannot_be_rounded_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    network = Network(FORM)
    with pytest.raises(ValueError, match=r"^precision: expected tf32 or bf16, got 'f16'$"):
        network.precision = "f16"
    with pytest.raises(TypeError, match=r"^precision: tf32 rounds float32, but the numbers are float64; convert them"):
        Network(FORM, dtype="float64").precision = "tf32"
    layer = network.layers[-1]
    with pytest.raises(ValueError, match=r"^Dense.forward_fused: precision: expected tf32 or bf16, got 'fp8'$"):
        layer.forward_fused(asarray(np.ones((2, 36))), precision="fp8")
    with pytest.raises(ValueError, match=r"^Conv2d.forward: precision: expected tf32 or bf16, got 'fp8'$"):
        network.layers[0].forward(asarray(np.ones((1, 2, 7, 6))), precision="fp8")
    monkeypatch.setattr(tensor_cores, "is_known", lambda precision: False)
    with pytest.raises(BackendError, match=r"^bf16: needs compute capability 8\.0"):
        network.precision = "bf16"
    assert network.precision is None


# ---- what it does


@wide
@pytest.mark.usefixtures("rounded")
@pytest.mark.parametrize("chosen", widely(["tf32", "bf16"]))
def test_a_step_is_off_by_the_rounding_and_no_more_and_both_rungs_round_alike(chosen: str) -> None:
    needs_precision(chosen)
    x, y = batch(FORM, 5)
    networks = [Network(FORM, seed=1) for _ in range(3)]
    networks[1].precision = networks[2].precision = chosen
    theirs = NUMPY.network.Network(FORM, seed=1, dtype="float64")
    expected = theirs.gradients(x.astype(np.float64), y)
    plain, rounded = (network.gradients(x, y) for network in networks[:2])
    STEP_LADDER["op_by_op"](networks[2], x, y, None)
    unit = EPSILON[chosen]
    assert distance(plain, expected) < 1e-5
    assert unit / 20 < distance(rounded, expected) < 10 * unit
    assert distance(networks[2].layer_gradients, rounded) < 1e-5
    outputs = [to_host(network.forward(x)) for network in networks[:2]]
    assert unit / 20 < distance(*([each] for each in outputs)) < 10 * unit
    assert distance([networks[1].outputs(x)[-1]], [outputs[1]]) < 1e-5
    networks[1].precision = None  # and back: nothing of it is left
    assert distance(networks[1].gradients(x, y), plain) == 0


@pytest.mark.usefixtures("rounded")
@pytest.mark.parametrize(
    ("name", "chosen"), widely([(name, chosen) for chosen in ("tf32", "bf16") for name in NAMED], first=0)
)
def test_the_known_networks_learn_what_stage_2_learns_up_to_the_rounding(name: str, chosen: str) -> None:
    needs_precision(chosen)
    form = named(name)
    x, y = batch(form, 2)
    ours, theirs = Network(form, seed=1), NUMPY.network.Network(form, seed=1, dtype="float64")
    ours.precision = chosen
    mine, other = optimizers.SGD(0.001), NUMPY.optimizers.SGD(0.001)
    for _ in range(3):
        loss = ours.train_step(x, y, mine)
        assert loss == pytest.approx(theirs.train_step(x.astype(np.float64), y, other), rel=20 * EPSILON[chosen])
    before = NUMPY.network.Network(form, seed=1, dtype="float64").parameters
    moved = [to_host(p) - q for p, q in zip(ours.parameters, before, strict=True)]
    assert (
        1e-5 < distance(moved, [p - q for p, q in zip(theirs.parameters, before, strict=True)]) < 100 * EPSILON[chosen]
    )


@pytest.mark.usefixtures("rounded")
@pytest.mark.skipif(BACKEND.name != "emulator", reason="the launches of the emulator are recorded")
def test_another_precision_is_another_graph(recorder: Recorder) -> None:
    x, y = batch(FORM, 5)
    ends = []
    for rung in ("fused", "graph"):
        network, optimizer = Network(FORM, seed=1), optimizers.SGD(0.1)
        losses = []
        for chosen in (None, None, "tf32", "tf32", None, "tf32"):
            network.precision = chosen
            losses.append(STEP_LADDER[rung](network, x, y, optimizer))
        ends.append(losses)
    assert ends[0] == ends[1]
    assert (recorder.captured, recorder.replayed) == (2, 4)


@wide
@pytest.mark.skipif(BACKEND.name != "emulator", reason="only the emulator has a check mode")
@pytest.mark.parametrize("chosen", ["tf32", "bf16"])
def test_nothing_races_in_check_mode(chosen: str) -> None:
    x, y = batch(FORM, 5)
    losses = []
    for check in (False, True):
        network, optimizer = Network(FORM, seed=1), optimizers.Adam()
        network.precision = chosen
        with options(check=check):
            losses.append([network.train_step(x, y, optimizer) for _ in range(2)])
            assert network.predict(x).shape == (5,)
    assert losses[0] == losses[1]


# ---- dense layers


@pytest.mark.parametrize("chosen", widely(["tf32", "bf16"], first=0))
def test_a_dense_layers_passes_are_off_by_the_rounding_of_the_factors(
    chosen: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs_precision(chosen)
    # A GPU would multiply so little without its tensor cores.
    monkeypatch.setattr(dense_passes, "_pays", lambda precision, *_: precision is not None)
    rng = np.random.default_rng(3)
    x, weights, bias = (rng.standard_normal(shape).astype(np.float32) for shape in ((9, 45), (45, 139), (139,)))
    grad = rng.standard_normal((9, 139)).astype(np.float32)
    relu, share = ACTIVATIONS.index("relu"), 2.1 * EPSILON[chosen]
    written = [asarray(np.full(shape, np.nan)) for shape in ((9, 139), x.shape, weights.shape, bias.shape)]
    own_x, own_weights, own_bias, own_grad = map(asarray, (x, weights, bias, grad))
    dense_passes.forward_into(own_x, own_weights, own_bias, relu, written[0], chosen)
    dense_passes.backward_into(own_grad, own_x, own_weights, *written[1:], relu, chosen)
    expected = np.maximum(x @ weights + bias, 0), (grad @ weights.T) * (x > 0), x.T @ grad, grad.sum(axis=0)
    sizes = abs(x) @ abs(weights), abs(grad) @ abs(weights).T, abs(x).T @ abs(grad), np.zeros(139)
    for got, wanted, size in zip(written, expected, sizes, strict=True):
        error = np.abs(to_host(got) - wanted)
        assert (error <= share * size + 1e-4).all()
        assert (error.max() > 1e-4) == (size.max() > 0)


def test_a_gpu_takes_tensor_cores_where_their_tiles_are_enough_to_keep_it_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    def taken(rows: int, columns: int, inner: int, chosen: str | None = "tf32") -> bool:
        out = SimpleNamespace(shape=(rows, columns))
        return dense_passes._pays(chosen, out, inner, tile_choice.FUSED)

    monkeypatch.setattr(dense_passes, "BACKEND", SimpleNamespace(name="emulator"))
    assert taken(1, 1, 1)
    monkeypatch.setattr(dense_passes, "BACKEND", SimpleNamespace(name="gpu"))
    monkeypatch.setattr(tile_choice, "multiprocessors", lambda: 132)
    assert not taken(64, 256, 3200)  # two blocks
    assert not taken(64, 10, 84)  # little work
    assert taken(3200, 256, 64)
    assert taken(4096, 4096, 4096)
    assert not taken(4096, 4096, 4096, None)
