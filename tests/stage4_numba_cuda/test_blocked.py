"""The step's register-blocked kernels: each against float64, and whole training steps beside stage 1, on any backend.

On a machine without a GPU no step takes them of itself, so the tests choose the tile.
"""

from typing import Any

import numpy as np
import pytest

from cuda_emulator import options
from shared.architectures import mlp
from shared.checks.tolerance import compare
from shared.contract import load_stage
from shared.dropout import step_masks
from shared.names import ACTIVATIONS
from stage4_numba_cuda import matmul as products
from stage4_numba_cuda import tile_choice
from stage4_numba_cuda.arrays import asarray, to_host
from stage4_numba_cuda.backend import BACKEND, cuda
from stage4_numba_cuda.kernels import blocked
from stage4_numba_cuda.launch import tiles
from stage4_numba_cuda.plans import mlp_launches, mlp_memory
from tests.wide import wide, widely

pytestmark = pytest.mark.skipif(
    BACKEND.name == "simulator", reason="256 threads a block take Numba's simulator minutes"
)

STAGE = load_stage("stage4_numba_cuda")
SIDES = (32, 64)
SIZES = [(1, 1, 1), (33, 70, 65), (5, 129, 31), (100, 3, 10)]
"""(M, K, N): one number, one past a tile in each direction, K far longer than a tile, and shorter than one."""

TANH = ACTIVATIONS.index("tanh")
BOTH = widely([(32, "float64"), (64, "float64"), (32, "float32"), (64, "float32")])


def numbers(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Random numbers, the same for a shape, that the dtype holds exactly."""
    return np.random.default_rng(shape).normal(size=shape).astype(dtype).astype(np.float64)


def poisoned(shape: tuple[int, ...], dtype: str) -> Any:
    return cuda.to_device(np.full(shape, np.nan, dtype))


def assert_close(name: str, got: Any, expected: np.ndarray, dtype: str, k: int, scale: np.ndarray) -> None:
    comparison = compare(name, to_host(got), expected, dtype, k, scale=scale)
    assert comparison.ok, str(comparison)


@pytest.mark.parametrize(("side", "dtype"), widely(BOTH, first=0))
@pytest.mark.parametrize("way", ["FORWARD_PARTIAL", "BACKWARD_PARTIAL"])
def test_a_product_is_cut_into_parts(way: str, side: int, dtype: str) -> None:
    for m, k, n in SIZES:
        x, w = numbers((m, k), dtype), numbers((k, n), dtype)
        there = w if way == "FORWARD_PARTIAL" else np.ascontiguousarray(w.T)
        for splits in (1, 2, 5):
            parts = poisoned((splits, m, n), dtype)
            kernel = getattr(blocked, way)[side][(*tiles(m, n, side, side), splits), blocked.THREADS]
            kernel(asarray(x, dtype), asarray(there, dtype), parts)
            got = parts.copy_to_host()
            assert np.isfinite(got).all()
            total = got.sum(axis=0, dtype=np.float64)
            scale = np.abs(x) @ np.abs(w)
            assert_close(f"{m, k, n} in {splits}", asarray(total, dtype), x @ w, dtype, k + splits, scale)


@pytest.mark.parametrize(("side", "dtype"), widely(BOTH, first=0))
def test_forward_bytes_gathers_the_batch_and_leaves_it_behind(side: int, dtype: str) -> None:
    rng = np.random.default_rng(3)
    count, k, n = 90, 45, 37
    images = rng.integers(0, 256, (count, k), np.uint8)
    labels, order = rng.integers(0, 10, count).astype(np.int32), rng.permutation(count).astype(np.int32)
    schedule, w = rng.random((3, 8)).astype(dtype), numbers((k, n), dtype)
    for rows, position in ((1, 0), (33, 7), (70, 20)):
        picked = order[position : position + rows]
        x, y, parts = (
            poisoned((rows, k), dtype),
            cuda.to_device(np.full(rows, -1, np.int32)),
            poisoned((2, rows, n), dtype),
        )
        own = poisoned((8,), dtype)
        blocked.FORWARD_BYTES[side][(*tiles(rows, n, side, side), 2), blocked.THREADS](
            cuda.to_device(images), cuda.to_device(labels), cuda.to_device(order),
            cuda.to_device(np.array([position, 0, 2])), cuda.to_device(schedule), own, asarray(w, dtype), x, y, parts,
        )  # fmt: skip
        expected = (images[picked].astype(np.float32) / np.float32(255)).astype(dtype)
        np.testing.assert_array_equal(x.copy_to_host(), expected)
        np.testing.assert_array_equal(y.copy_to_host(), labels[picked])
        np.testing.assert_array_equal(own.copy_to_host(), schedule[2])
        total = parts.copy_to_host().sum(axis=0, dtype=np.float64)
        exact = expected.astype(np.float64)
        assert_close("forward_bytes", asarray(total, dtype), exact @ w, dtype, k + 2, exact @ np.abs(w))


@pytest.mark.parametrize(("side", "dtype"), widely(BOTH, first=0))
def test_forward_and_backward_do_the_rest_of_the_layer(side: int, dtype: str) -> None:
    for m, k, n in SIZES:
        x, w, bias = numbers((m, k), dtype), numbers((k, n), dtype), numbers((n,), dtype)
        out = poisoned((m, n), dtype)
        grid = tiles(m, n, side, side)
        blocked.FORWARD[side][grid, blocked.THREADS](
            asarray(x, dtype), asarray(w, dtype), asarray(bias, dtype), TANH, out
        )
        z, size = x @ w + bias, np.abs(x) @ np.abs(w) + np.abs(bias)
        assert_close("forward", out, np.tanh(z), dtype, k + 2, size + 1)

        grad, output, mask = numbers((m, n), dtype), np.tanh(x), numbers((m, k), dtype)
        output = output.astype(dtype).astype(np.float64)
        for masked in (0, 1):
            out = poisoned((m, k), dtype)
            blocked.BACKWARD[side][tiles(m, k, side, side), blocked.THREADS](
                asarray(grad, dtype), asarray(w, dtype), asarray(output, dtype), TANH, asarray(mask, dtype), masked, out
            )
            factor = mask if masked else np.ones_like(mask)
            expected = (grad @ w.T) * factor * (1 - output**2)
            assert_close("backward", out, expected, dtype, n + 3, (np.abs(grad) @ np.abs(w.T)) * np.abs(factor))


@pytest.mark.parametrize(("side", "dtype"), widely(BOTH, first=0))
def test_update_leaves_the_gradients_of_both_layers(side: int, dtype: str) -> None:
    for m, k, n in SIZES:
        x, hidden, grad, top = (numbers(shape, dtype) for shape in ((m, k), (m, n), (m, n), (m, 3)))
        layers, written = [], []
        for inputs, slopes in ((x, grad), (hidden, top)):
            nothing = poisoned((1,), dtype)
            made = poisoned((inputs.shape[1], slopes.shape[1]), dtype), poisoned((slopes.shape[1],), dtype)
            layers += [asarray(inputs, dtype), asarray(slopes, dtype), *[nothing] * 6, *made]
            written.append((*made, inputs, slopes))
        blocks = [-(-a.shape[1] // side) * -(-g.shape[1] // side) for _, _, a, g in written]
        counters = cuda.to_device(np.array([5, 6, 7]))
        blocked.UPDATE[side][sum(blocks), blocked.THREADS](
            blocked.ONLY_GRADIENTS, poisoned((8,), dtype), counters, m, blocks[0], *layers
        )
        for grad_weights, grad_bias, inputs, slopes in written:
            scale = np.abs(inputs).T @ np.abs(slopes)
            assert_close("dW", grad_weights, inputs.T @ slopes, dtype, m, scale)
            assert_close("db", grad_bias, slopes.sum(axis=0), dtype, m, np.abs(slopes).sum(axis=0))
        np.testing.assert_array_equal(counters.copy_to_host(), [5 + m, 7, 8])


@pytest.fixture(params=widely(SIDES))
def chosen(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Every product of a step by the register-blocked kernels of one side, and cut into parts as on a GPU."""
    for module in (mlp_launches, mlp_memory):
        monkeypatch.setattr(module, "blocked_side", lambda *sizes: request.param)
        monkeypatch.setattr(module, "multiprocessors", lambda: 20)
    monkeypatch.setattr(products, "fused_kernel", lambda out, inner: f"blocked_{request.param}")
    return request.param


@pytest.mark.parametrize("rung", widely(["few_kernels", "fused"], first=0))
def test_a_hundred_steps_are_those_of_stage_1(rung: str, chosen: int) -> None:
    sizes = [70, 37, 34, 5]
    reference = load_stage("stage1_pure_python")
    ours, theirs = (
        each.network.Network(mlp(sizes, "tanh", 0.3), seed=1, dtype="float64") for each in (STAGE, reference)
    )
    optimizer, other = (each.optimizers.SGD(0.05) for each in (STAGE, reference))
    for i in range(100):
        rng = np.random.default_rng(i)
        rows = 3 if i % 4 else 2
        x, y = rng.standard_normal((rows, 70)), rng.integers(0, 5, rows)
        masks = step_masks(rows, [(size, 0.3) for size in sizes[1:-1]], seed=0, step=i, dtype="float64")
        loss = STAGE.network.STEP_LADDER[rung](ours, x, y, optimizer, masks)
        expected = theirs.train_step(x.tolist(), y.tolist(), other, [mask.tolist() for mask in masks])
        assert loss == pytest.approx(expected, rel=1e-10)
    for got, wanted in zip(ours.parameters, theirs.parameters, strict=True):
        np.testing.assert_allclose(to_host(got), np.asarray(wanted), rtol=1e-10, atol=1e-11)


@wide
@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_the_way_back_is_cut_into_parts_where_it_would_have_few_blocks(
    dropout: float, chosen: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = [4 * chosen + 3, 40, 37, 34, 5]
    reference = load_stage("stage2_numpy")
    ours, theirs = (
        each.network.Network(mlp(sizes, "tanh", dropout), seed=1, dtype="float64") for each in (STAGE, reference)
    )
    optimizer, other = (each.optimizers.Adam(0.01, epsilon=1e-3) for each in (STAGE, reference))
    assert mlp_memory.splits(3, sizes[0], sizes[1]) == 2
    launches: list[Any] = []
    monkeypatch.setattr(mlp_launches.blocked, "combine_back", Counted(mlp_launches.blocked.combine_back, launches))
    for i in range(3):
        rng = np.random.default_rng(i)
        x, y = rng.standard_normal((3, sizes[0])), rng.integers(0, 5, 3)
        masks = step_masks(3, [(size, dropout) for size in sizes[1:-1]], seed=0, step=i, dtype="float64")
        loss = STAGE.network.STEP_LADDER["few_kernels"](ours, x, y, optimizer, masks)
        assert loss == pytest.approx(theirs.train_step(x, y, other, masks), rel=1e-10)
    assert len(launches) == 3  # of the first hidden layer's slopes alone: the other layer's product is not in parts
    for got, wanted in zip(ours.parameters, theirs.parameters, strict=True):
        np.testing.assert_allclose(to_host(got), np.asarray(wanted), rtol=1e-10, atol=1e-11)


class Counted:
    """A kernel that notes each launch."""

    def __init__(self, kernel: Any, launches: list[Any]) -> None:
        self.kernel, self.launches = kernel, launches

    def __getitem__(self, settings: Any) -> Any:
        self.launches.append(settings)
        return self.kernel[settings]


@wide
def test_a_training_run_on_the_device_takes_the_same_steps(chosen: int) -> None:
    rng = np.random.default_rng(0)
    images = (rng.integers(0, 256, (75, 40)) / np.float32(255)).astype(np.float32)
    labels, order = rng.integers(0, 4, 75), rng.permutation(75)
    ours = STAGE.network.Network([40, 33, 4], seed=1, dtype="float64")
    theirs = load_stage("stage2_numpy").network.Network([40, 33, 4], seed=1, dtype="float64")
    optimizer, other = STAGE.optimizers.Adam(0.01), load_stage("stage2_numpy").optimizers.Adam(0.01)
    run = ours.resident(images, labels, optimizer, 34, 0)
    run.begin_epoch(order)
    for step, batch in enumerate(np.split(order, [34, 68])):
        (loss,) = run.take(step, [0.01], step)
        expected = theirs.train_step(images[batch].astype(np.float64), labels[batch], other)
        assert loss == pytest.approx(expected, rel=1e-10)
    for got, wanted in zip(ours.parameters, theirs.parameters, strict=True):
        np.testing.assert_allclose(to_host(got), wanted, rtol=1e-9, atol=1e-11)


@wide
@pytest.mark.skipif(BACKEND.name != "emulator", reason="only the emulator has a check mode")
def test_a_step_races_with_nothing_in_check_mode(chosen: int) -> None:
    network = STAGE.network.Network([70, 37, 34, 5], seed=1, dtype="float64")
    rng = np.random.default_rng(0)
    with options(check=True):
        STAGE.network.STEP_LADDER["few_kernels"](
            network, rng.standard_normal((40, 70)), rng.integers(0, 5, 40), STAGE.optimizers.SGD(0.1)
        )


@pytest.mark.parametrize(
    ("shape", "side"),
    [((64, 128, 784), 0), ((256, 128, 784), 32), ((1024, 128, 784), 32), ((784, 512, 1024), 64), ((512, 10, 1024), 0)],
)
def test_a_step_takes_register_tiles_where_there_is_enough_to_compute(shape: tuple[int, int, int], side: int) -> None:
    """(rows, columns, inner) on a device of 132 multiprocessors; the first is a step of 784-128-10 at batch 64."""
    assert tile_choice.blocked_side(*shape, 132) == side


def test_without_a_device_no_step_takes_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tile_choice, "multiprocessors", lambda: 0)
    assert tile_choice.blocked_side(8192, 8192, 8192) == 0


@pytest.mark.parametrize(("inputs", "columns"), [(784, 128), (512, 512), (20, 7)])
def test_memory_of_the_parts_is_enough_for_every_batch(
    inputs: int, columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fewer rows may be cut into more parts, and by other tiles: a step of any size must fit into the same memory."""
    monkeypatch.setattr(mlp_memory, "multiprocessors", lambda: 132)
    monkeypatch.setattr(tile_choice, "multiprocessors", lambda: 132)
    network = STAGE.network.Network([inputs, columns, 3], seed=1, dtype="float32")
    memory = mlp_memory.MlpMemory(network.dense_layers, "float32", 700)
    for rows in range(1, 701):
        assert mlp_memory.splits(rows, inputs, columns) * rows * columns <= memory._parts[0].size


@pytest.mark.parametrize(
    ("backend", "shape", "inner", "expected"),
    [
        (132, (8192, 8192), 512, "warp_tiled"),
        (132, (256, 512), 512, "blocked_32"),
        (132, (4096, 10), 4096, "blocked_32"),
        (132, (20_000, 10), 4096, "blocked_32"),
        (132, (64, 128), 784, "tiled_32"),
        (132, (64, 10), 128, "tiled_16"),
        (0, (8192, 8192), 512, "tiled_32"),
    ],
)
def test_fused_products_take_the_kernel_that_suits_device_and_size(
    monkeypatch: pytest.MonkeyPatch, backend: int, shape: tuple[int, int], inner: int, expected: str
) -> None:
    monkeypatch.setattr(tile_choice, "multiprocessors", lambda: backend)

    class Result:
        dtype = np.dtype("float32")

    Result.shape = shape  # type: ignore[attr-defined]
    assert products.fused_kernel(Result, inner) == expected
