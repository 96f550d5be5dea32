"""From a data set to the mini-batches of an epoch: which samples, in which order, as which arrays.

The order is drawn with NumPy from the seed and the epoch alone, so that all stages see the same batches and a resumed
run sees what the interrupted one would have seen.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from shared.contract import LABEL_LOSSES, NetworkLike, Stage
from shared.data.accepted_data import Split
from shared.layers import times
from shared.plain_arrays import check_held


def batch_order(count: int, seed: int, epoch: int) -> np.ndarray:
    """The order in which an epoch (from 0) visits `count` samples: int64 (count,), each index once."""
    return np.random.default_rng([seed, epoch]).permutation(count)


def split_validation(data: Split, fraction: float, seed: int) -> tuple[Split, Split | None]:
    """(training part, validation part): a random `fraction` of the samples is set aside, the same one for a seed.

    fraction: at least 0 and below 1; 0 gives (data, None). Raises ValueError if either part would be empty.
    """
    if fraction == 0.0:
        return data, None
    held_out = round(len(data) * fraction)
    if not 0 < held_out < len(data):
        raise ValueError(f"validation: {fraction} of {len(data)} samples leaves one part without any")
    order = np.random.default_rng([seed, 0, 1]).permutation(len(data))  # three numbers: no epoch's order
    chosen, rest = np.sort(order[:held_out]), np.sort(order[held_out:])
    return data.chosen(rest), data.chosen(chosen)


def check_fit(name: str, network: NetworkLike, data: Split) -> None:
    """Raise ValueError unless the network can be trained on, or asked about, these samples. name: "training data", …"""
    if len(data) == 0:
        raise ValueError(f"{name}: expected at least one sample, got none")
    if data.x.shape[1] != network.layer_sizes[0]:
        raise ValueError(
            f"{name}: the data has {data.x.shape[1]} features, but the network takes {network.layer_sizes[0]}"
        )
    taken = network.architecture.input_shape
    if len(taken) == 3 and data.shape not in (None, taken):
        raise ValueError(
            f"{name}: the data has images of {times(data.shape)}, but the network takes images of {times(taken)}"
        )
    check_held(f"{name}: x", data.x, network.dtype)
    try:
        as_targets(data.y, network.loss_name, network.layer_sizes[-1])
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def as_targets(labels: np.ndarray, loss_name: str, out_features: int, dtype: str = "float32") -> np.ndarray:
    """Labels in the form that a loss takes as its second argument.

    softmax_cross_entropy and hinge take the labels as they are, (batch,). The others take numbers shaped like the
    outputs: a column of 0 and 1 for one output, else one-hot rows, (batch, out_features).
    Raises ValueError for a label beyond the number of outputs.
    """
    classes = max(2, out_features)
    if len(labels) and (labels.min() < 0 or labels.max() >= classes):
        raise ValueError(
            f"labels go from {labels.min()} to {labels.max()}, but {out_features} output(s) "
            f"can tell 0 to {classes - 1} apart"
        )
    if loss_name in LABEL_LOSSES:
        return labels
    if out_features == 1:
        return labels[:, None].astype(dtype)
    return np.eye(out_features, dtype=dtype)[labels]


class BatchFeeder:
    """Hands out batches as a stage's arrays, gathering the samples into one buffer that is made once.

    The x of a batch, (batch, features), is overwritten by the next batch.
    """

    def __init__(self, stage: Stage, network: NetworkLike, data: Split, batch_size: int) -> None:
        self._stage, self._network, self._data = stage, network, data
        shape = (min(batch_size, len(data)), data.x.shape[1])
        self._rows = np.empty(shape, data.x.dtype)
        self._converted = self._rows if data.x.dtype == network.dtype else np.empty(shape, network.dtype)

    def batch(self, indices: np.ndarray, change: Callable[[np.ndarray], np.ndarray] | None = None) -> tuple[Any, Any]:
        """(x, y) of these samples: x (batch, features), y as `as_targets` makes it.

        change: called with the samples, (batch, features) in the dtype of the data; the batch gets what it returns
        """
        rows = self._rows[: len(indices)]
        # mode="clip" (no index is out of range here) is what lets NumPy write straight into the buffer
        np.take(self._data.x, indices, axis=0, out=rows, mode="clip")
        if change is not None:
            rows[:] = change(rows)
        converted = self._converted[: len(indices)]
        if converted.dtype != rows.dtype:
            with np.errstate(all="ignore"):  # a float64 below float32's smallest number becomes 0
                np.copyto(converted, rows)
        network, arrays = self._network, self._stage.arrays
        targets = as_targets(self._data.y[indices], network.loss_name, network.layer_sizes[-1], network.dtype)
        y = targets if network.loss_name in LABEL_LOSSES else arrays.asarray(targets, network.dtype)
        return arrays.asarray(converted, network.dtype), y
