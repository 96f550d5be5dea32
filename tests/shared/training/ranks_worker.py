"""What each rank does in the tests of several ranks: train the cases that it is told, and rank 0 saves what came out.

python -m tests.shared.training.ranks_worker FILE CASE… is started by mpiexec; a test calls `trained` as one rank.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from shared import contract
from shared.architectures import Architecture, lenet5, mlp
from shared.checks.trajectory import trajectory_optimizer
from shared.communicator import ALONE, Communicator
from shared.data.augmentation import Augmentation
from shared.data.datasets import Split
from shared.layers import Activate, AveragePool, BatchNorm, Conv, Dense, Dropout, Flatten, MaxPool, Residual
from shared.training.loop import TrainingResult, train
from shared.training.settings import QUIET, TrainingSettings

BATCH, COUNT = 13, 3 * 13 + 2
"""13 rows are no two, three or four equal shares; the last batch of an epoch has 2, fewer than there are ranks."""

SMALL_IMAGES = (*(Conv(3, 3), Activate("relu"), MaxPool(2), Flatten(), Dense(8), Activate("relu"), Dense(5)),)
NORMALISED = (
    *(Conv(4, 3, 1, 1), BatchNorm(), Activate("relu")),
    Residual((Conv(4, 3, 1, 1), BatchNorm(), Activate("relu"))),
    *(AveragePool(2), Flatten(), Dense(9), BatchNorm(), Activate("relu"), Dropout(0.2), Dense(5)),
)

NETWORKS = {
    "dense": lambda: mlp([64, 12, 5], "relu", 0.2),
    "lenet": lenet5,
    "convolutional": lambda: Architecture((1, 8, 8), SMALL_IMAGES),
    "residual": lambda: Architecture((1, 8, 8), NORMALISED),
}


def data_of(architecture: Architecture, dtype: str) -> Split:
    rng = np.random.default_rng(4)
    shape = architecture.input_shape
    y = rng.integers(0, architecture.output_shape[0], COUNT)
    x = rng.random((COUNT, int(np.prod(shape)))) + y[:, None] / 5
    return Split(x.astype(dtype), y, shape if len(shape) == 3 else None)


def trained(
    case: str, ranks: Communicator = ALONE, accumulate: int = 1, local: bool = False
) -> tuple[list[np.ndarray], TrainingResult]:
    """The parameters and running statistics after the steps of "stage network optimizer dtype epochs".

    A sixth word is a number of parts: every batch is cut into so many by several ranks.
    """
    name, network_name, optimizer_name, dtype, epochs, *parts = case.split()
    if parts and ranks.size > 1:
        accumulate = int(parts[0])
    stage = contract.load_stage(name)
    architecture = NETWORKS[network_name]()
    network: Any = stage.network.Network(architecture, seed=2, dtype=dtype)
    optimizer = trajectory_optimizer(stage, optimizer_name)
    augmentation = Augmentation(1, 8.0) if network_name == "dense" else None
    settings = TrainingSettings(
        epochs=int(epochs),
        batch_size=BATCH,
        seed=6,
        augmentation=augmentation,
        accumulate=accumulate,
        local_statistics=local,
    )
    data = data_of(architecture, dtype)
    result = train(stage, network, optimizer, data, settings, test_data=data, hooks=QUIET, ranks=ranks)
    arrays = [*network.parameters, *network.running_statistics]
    return [np.asarray(stage.arrays.to_host(array)) for array in arrays], result


def main(path: str, cases: list[str]) -> None:
    from groundup.ranks import connected

    ranks = connected(None)
    results = {}
    for case in cases:
        arrays, result = trained(case, ranks)
        # Every rank has the same bits.
        own = np.concatenate([np.asarray(array, np.float64).ravel() for array in arrays])
        assert (ranks.gathered(own) == own).all(), case
        numbers = [(each.train_loss, each.train_accuracy, each.test_loss) for each in result.epochs]
        results |= {f"{case}/{i}": array for i, array in enumerate(arrays)} | {f"{case}/numbers": np.array(numbers)}
    if ranks.rank == 0:
        np.savez(path, **results)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
