"""The rooms, and which of their functions stand beside each other.

A row of a room is one function, which has the same name on every stage, or a ladder, whose rungs differ.
"""

from __future__ import annotations

from dataclasses import dataclass

from shared.contract import IMAGE_ROOMS, ROOMS
from shared.names import ACTIVATIONS, LOSSES, OPTIMIZERS


@dataclass(frozen=True)
class Row:
    """name: the function's, as "relu" or "Dense.forward"; of a ladder "". ladder: the file that has it, "" for none

    title: the heading; speed: (kind, name, part) of its recorded times, None for nothing that is measured
    """

    title: str
    name: str = ""
    speed: tuple[str, str, str] | None = None
    ladder: str = ""


NAMES = (*ROOMS, *IMAGE_ROOMS)

SENTENCES = {
    "arrays": "Numbers come to the stage, and go back.",
    "matmul": "The product of two matrices: nearly all the work of a network.",
    "activations": "What a layer does after y = xW + b, forward beside backward.",
    "losses": "How wrong the outputs are, and in which direction less wrong lies.",
    "dense": "A layer in which every output sees every input.",
    "network": "Layers, a loss and an optimizer: a training step.",
    "optimizers": "How the weights move against their gradients.",
    "convolution": "A small window of weights that is moved over an image.",
    "pooling": "The largest or the average number of every window.",
    "batch_norm": "A channel's numbers brought to mean 0 and variance 1.",
}
"""Room -> what it is for."""


def rows(room: str) -> list[Row]:
    """The rows of a room. Raises ValueError, naming all rooms, for an unknown one."""
    if room not in NAMES:
        raise ValueError(f"floors: there is no room {room!r}; the rooms are {', '.join(NAMES)}")
    return _ROWS[room]


def _both(name: str) -> list[Row]:
    back = f"{name}_backward"
    return [Row(name, name, ("op", name, "forward")), Row(back, back, ("op", name, "backward"))]


_ROWS: dict[str, list[Row]] = {
    "arrays": [Row("asarray", "asarray"), Row("to_host", "to_host")],
    "matmul": [
        Row("matmul", "matmul", ("ladder", "last", "")),
        Row("The ladder, slowest rung first", ladder="matmul"),
        Row("matmul_tn", "matmul_tn"),
        Row("matmul_nt", "matmul_nt"),
    ],
    "activations": [row for name in ACTIVATIONS for row in _both(name)],
    "losses": [row for name in LOSSES for row in _both(name)],
    "dense": [
        Row("Dense.forward", "Dense.forward", ("op", "dense", "forward")),
        Row("Dense.backward", "Dense.backward", ("op", "dense", "backward")),
    ],
    "network": [
        Row("Network.forward", "Network.forward"),
        Row("Network.train_step", "Network.train_step", ("step", "last", "")),
        Row("The ways to take a step, slowest first", ladder="steps"),
        Row("Network.predict", "Network.predict"),
    ],
    "optimizers": [Row(f"{name}.step", f"{name}.step", ("op", name, "step")) for name in OPTIMIZERS],
    "convolution": [
        Row("conv2d", "conv2d", ("convolution", "last", "forward")),
        Row("The ladder, slowest rung first", ladder="convolution"),
        Row("conv2d_backward", "conv2d_backward", ("convolution", "", "backward")),
    ],
    "pooling": [
        *_both("max_pool2d"),
        *_both("average_pool2d"),
    ],
    "batch_norm": _both("batch_norm"),
}
