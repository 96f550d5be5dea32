"""The walks that the book shows, each small enough to stand in a page: `groundup studio kernel --export FILE.html`.

guard               week 9: 256 threads for 22 numbers
rows_down           week 10: a product whose warps go down the rows, 16 sectors a request
columns_along       week 10: the same with the warps along the columns, 2 sectors a request
tiles               week 11: tiles in shared memory, filled and used up, with two barriers
tiles_race          week 11: the same without its first barrier
activation          week 12: ReLU
tree                week 13: a sum by a tree
row_softmax         week 13: softmax of rows by shuffles
bias_gradient       week 14: sums of columns by a tree over warps
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class BookWalk:
    """A walk of a kernel of the project.

    week: of the course; title: above it; kernel, size: of the launch; block, warp: which one is shown
    barrier: the number of the barrier that is taken away; None for none
    """

    week: int
    title: str
    kernel: str
    size: tuple[int, int, int]
    block: int = 0
    warp: int = 0
    barrier: int | None = None


WALKS = {
    "guard": BookWalk(9, "Element by element: the last threads find nothing to do", "dense.multiply", (2, 11, 1)),
    "rows_down": BookWalk(10, "A product whose threads go down the rows", "naive", (32, 32, 8)),
    "columns_along": BookWalk(10, "The same product, with the threads along the columns", "coalesced", (32, 32, 8)),
    "tiles": BookWalk(11, "A product by tiles in shared memory", "tiled_16", (32, 32, 32)),
    "tiles_race": BookWalk(
        11, "A product by tiles without its first barrier: a race", "tiled_16", (32, 32, 32), barrier=0
    ),
    "activation": BookWalk(12, "ReLU, forwards", "activations.relu", (8, 8, 1)),
    "tree": BookWalk(13, "A sum by a tree in shared memory", "sums.total_by_tree", (24, 30, 1)),
    "row_softmax": BookWalk(13, "Softmax, a warp for each row", "softmax_warp", (4, 40, 1)),
    "bias_gradient": BookWalk(14, "The gradient of a bias: sums of columns", "sums.columns_by_block", (40, 10, 1)),
}

DEFAULT = "tiles"


def book_walk(name: str) -> dict[str, Any]:
    """The data of a named walk for the page: what `embedded()` returns in an exported file.

    name: one of WALKS. Stage 4 must run on the emulator (GROUNDUP_CUDA=emulator).
    """
    from groundup.kernels.launching import project_launch
    from groundup.studio.kernel.document import in_project
    from groundup.studio.kernel.opened import Opened

    chosen = WALKS[name]
    opened = Opened(project_launch(chosen.kernel, chosen.size), in_project)
    data: dict[str, Any] = {
        "title": chosen.title,
        "about": opened.about(),
        "walk": opened.walk(chosen.block, chosen.warp),
    }
    if chosen.barrier is not None:
        data["race"] = opened.race(chosen.block, chosen.warp, [chosen.barrier])
        data["race"]["barriers"] = [chosen.barrier]
    return data
