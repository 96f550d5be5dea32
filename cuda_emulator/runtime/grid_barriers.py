"""A launch whose blocks meet at barriers across the grid.

The compiled function runs a block up to its next such barrier, or to its end (compiler/pauses.py). A round runs every
block once; the launch is over when all blocks have ended. Between two rounds nothing runs, and that is the barrier.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..compiler.diagnoses import position
from ..errors import KernelError
from .limits import Extent

ENDED = -1
"""In `waiting`: the block has ended. 0: it has not begun; above 0: the number of the barrier where it waits."""


class Together:
    """The state of such a launch between two rounds.

    kernel: its name; places: (file, line, text) of each barrier, in the order of their numbers
    workspace: the memory of all blocks, `share` bytes each; waiting: where each block is
    """

    def __init__(
        self, kernel: str, places: Sequence[tuple[str, int, str]], grid: Extent, workspace: np.ndarray, share: int
    ) -> None:
        self.kernel, self.places, self.grid = kernel, places, grid
        self.workspace, self.share = workspace, share
        self.waiting = np.zeros(grid[0] * grid[1] * grid[2], np.int64)

    @property
    def arguments(self) -> tuple[np.ndarray, np.ndarray]:
        """The last arguments of the compiled function."""
        return self.workspace, self.waiting

    def go_on(self) -> bool:
        """After a round: whether the blocks wait at a barrier, and all are there; False if all have ended.

        Raises KernelError if some have ended and others wait.
        """
        ended = self.waiting == ENDED
        if ended.all():
            return False
        if not ended.any():
            return True
        waits = int(np.flatnonzero(~ended)[0])
        filename, line, what = self.places[int(self.waiting[waits]) - 1]
        message = unmet(what, int((~ended).sum()), len(ended), position(int(np.flatnonzero(ended)[0]), self.grid))
        raise KernelError(message, filename=filename, line=line, kernel=self.kernel)


def unmet(name: str, here: int, blocks: int, other: tuple[int, ...]) -> str:
    """The message for a barrier across the grid that a part of the blocks reaches. other: a block that has ended"""
    return (
        f"{name}() was reached by {here} of the {blocks} blocks of the grid; block {other} ended without it. On a "
        "device the others wait for ever. Move it out of the branch or loop, so that every block reaches it equally "
        "often"
    )
