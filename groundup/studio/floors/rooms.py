"""The rooms, and which of their functions stand beside each other.

A function has the same name on every stage, "relu" or "Dense.forward". A ladder, "matmul ladder", has rungs instead,
which differ from stage to stage.
"""

from __future__ import annotations

from shared.names import ACTIVATIONS, LOSSES, OPTIMIZERS

LADDERS = {
    "matmul ladder": ("matmul", "matmul"),
    "conv2d ladder": ("convolution", "conv2d"),
    "train_step ladder": ("steps", "Network.train_step"),
}
"""Ladder -> (the file of a stage that has it, what a stage calls that has none)."""


def _both(*names: str) -> list[str]:
    return [each for name in names for each in (name, f"{name}_backward")]


FUNCTIONS: dict[str, list[str]] = {
    "arrays": ["asarray", "to_host"],
    "matmul": ["matmul", "matmul ladder", "matmul_tn", "matmul_nt"],
    "activations": _both(*ACTIVATIONS),
    "losses": _both(*LOSSES),
    "dense": ["Dense.forward", "Dense.backward"],
    "network": ["Network.forward", "Network.train_step", "train_step ladder", "Network.predict"],
    "optimizers": [f"{name}.step" for name in OPTIMIZERS],
    "convolution": ["conv2d", "conv2d ladder", "conv2d_backward"],
    "pooling": _both("max_pool2d", "average_pool2d"),
    "batch_norm": _both("batch_norm"),
}
"""Room -> its functions and ladders."""


def check(room: str, name: str) -> None:
    """ValueError, naming all that there are, unless the room has this function."""
    if room not in FUNCTIONS:
        raise ValueError(f"floors: there is no room {room!r}; the rooms are {', '.join(FUNCTIONS)}")
    if name not in FUNCTIONS[room]:
        raise ValueError(f"floors: {room} has no function {name!r}; it has {', '.join(FUNCTIONS[room])}")
