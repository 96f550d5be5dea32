"""CUDA graphs need a GPU. What can be tested without: that a step's launches and copies may be repeated with the
arguments of the first time, and when they are captured. Here a "graph" is the list of them with their arguments, and
replaying it does them again."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from shared.architectures import mlp
from shared.contract import Stage, load_stage
from shared.data.batches import batch_order
from stage4_numba_cuda.backend import BACKEND
from stage4_numba_cuda.plans import cuda_graphs
from stage4_numba_cuda.plans.resident import ResidentRun
from tests.wide import wide

pytestmark = pytest.mark.skipif(BACKEND.name != "emulator", reason="the launches of the emulator are recorded")

STAGE: Stage = load_stage("stage4_numba_cuda")
SIZES = [21, 12, 3]


class Recorder:
    """Stands for the driver: captures and replays launches, and counts both."""

    def __init__(self) -> None:
        self.recording: list[Any] | None = None
        self.captured = 0
        self.replayed = 0
        self.destroyed: list[Any] = []

    def capture(self, launches: Callable[[Any], None]) -> list[Any]:
        self.recording = recorded = []
        launches(0)
        self.recording = None
        self.captured += 1
        return recorded

    def replay(self, executable: list[Any], stream: Any) -> None:
        self.replayed += 1
        for call, owner, arguments, named in executable:
            call(owner, *arguments, **named)


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    from cuda_emulator.inspection import devicearray, dispatcher

    recorder = Recorder()

    def record(owner: Any, name: str) -> None:
        call = getattr(owner, name)

        def recorded(self: Any, *arguments: Any, **named: Any) -> Any:
            if recorder.recording is None:
                return call(self, *arguments, **named)
            recorder.recording.append((call, self, arguments, named))
            return None

        monkeypatch.setattr(owner, name, recorded)

    record(dispatcher.Configured, "__call__")
    record(devicearray.DeviceNDArray, "copy_to_device")
    record(devicearray.DeviceNDArray, "copy_to_host")
    monkeypatch.setattr(cuda_graphs, "available", lambda: True)
    monkeypatch.setattr(cuda_graphs, "capture", recorder.capture)
    monkeypatch.setattr(cuda_graphs, "replay", recorder.replay)
    monkeypatch.setattr(cuda_graphs, "destroy", recorder.destroyed.append)
    return recorder


def batch(rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.standard_normal((rows, SIZES[0])), rng.integers(0, SIZES[-1], rows)


@pytest.mark.parametrize(
    ("sizes", "rung"),
    [(SIZES, "graph"), ([21, 12, 9, 8, 3], "graph"), pytest.param(SIZES, "persistent", marks=wide)],
    ids=["one hidden layer", "three", "the persistent kernel"],
)
def test_replayed_steps_end_where_launched_ones_end(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch, sizes: list[int], rung: str
) -> None:
    ended = []
    for available in (False, True):
        monkeypatch.setattr(cuda_graphs, "available", lambda available=available: available)
        network = STAGE.network.Network(mlp(sizes, dropout=0.3), seed=1, dtype="float64")
        optimizer = STAGE.optimizers.Adam(0.1, epsilon=1e-3)
        losses = []
        for i in range(9):
            optimizer.learning_rate = 0.1 / (1 + i)
            x, y = batch(5 if i % 3 else 8, seed=i)
            masks = [
                STAGE.arrays.asarray((np.random.default_rng(i).random((len(x), size)) > 0.3) / 0.7, "float64")
                for size in sizes[1:-1]
            ]
            losses.append(STAGE.network.STEP_LADDER[rung](network, x, y, optimizer, masks))
        ended.append((losses, [p.copy_to_host() for p in network.parameters]))
    assert (recorder.captured, recorder.replayed) == (2, 7)  # two batch sizes, each launched plainly the first time
    assert ended[0][0] == ended[1][0]
    for launched, replayed in zip(ended[0][1], ended[1][1], strict=True):
        np.testing.assert_array_equal(launched, replayed)


def test_a_graph_is_captured_anew_when_the_weights_are_others(recorder: Recorder) -> None:
    network, theirs = (STAGE.network.Network(SIZES, seed=seed, dtype="float64") for seed in (1, 2))
    optimizer = STAGE.optimizers.SGD(0.0)
    x, y = batch(5, seed=0)
    for _ in range(3):
        network.train_step(x, y, optimizer)
    for layer, other in zip(network.dense_layers, theirs.dense_layers, strict=True):
        layer.weights, layer.bias = STAGE.arrays.copy(other.weights), STAGE.arrays.copy(other.bias)
    for _ in range(3):
        assert network.train_step(x, y, optimizer) == theirs.loss(x, y)
    assert recorder.captured == 2


@pytest.mark.parametrize("dropout", [0.0, 0.3])
@pytest.mark.parametrize("loss", ["softmax_cross_entropy", "mean_squared_error"])
def test_a_resident_run_from_graphs_ends_where_one_without_ends(
    recorder: Recorder, dropout: float, loss: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    x, labels = rng.integers(0, 256, (53, 21)).astype(np.float32) / np.float32(255), rng.integers(0, 3, 53)
    ended = []
    for with_graphs in (False, True):
        monkeypatch.setattr(cuda_graphs, "available", lambda with_graphs=with_graphs: with_graphs)
        network = STAGE.network.Network(mlp(SIZES, dropout=dropout), loss=loss, seed=4, dtype="float64")
        optimizer = STAGE.optimizers.Adam(0.1, epsilon=1e-3)
        run: ResidentRun = network.resident(x, labels, optimizer, 8, 5)
        losses = []
        for epoch in range(4):
            run.begin_epoch(batch_order(53, seed=3, epoch=epoch))
            ahead = batch_order(53, seed=3, epoch=epoch + 1)
            losses += run.take(0, [0.1 / (1 + epoch + i) for i in range(5)], 7 * epoch)
            losses += run.take(5, [0.01] * 2, 7 * epoch + 5, meanwhile=lambda run=run, ahead=ahead: run.prefetch(ahead))
        ended.append((losses, [p.copy_to_host() for p in network.parameters], optimizer.state()["steps"]))
    # Full and last batches, each reading its order from one of two places: four graphs, each first launched plainly.
    assert (recorder.captured, recorder.replayed) == (4, 24)
    assert ended[0][0] == ended[1][0]
    assert ended[0][2] == ended[1][2] == 28
    for plain, replayed in zip(ended[0][1], ended[1][1], strict=True):
        np.testing.assert_array_equal(plain, replayed)


def test_only_so_many_graphs_are_kept(recorder: Recorder) -> None:
    kept = cuda_graphs.Graphs()
    for _ in range(2):
        for key in range(cuda_graphs.MOST + 3):
            kept.launch(key, lambda stream: None)
    assert len(kept._captured) == cuda_graphs.MOST
    assert recorder.captured == cuda_graphs.MOST + 3
    assert len(recorder.destroyed) == 3


def test_without_a_gpu_there_are_no_graphs() -> None:
    assert not cuda_graphs.available()
