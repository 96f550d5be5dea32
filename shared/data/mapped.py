"""A data set that several processes of one machine train on: loaded by one of them, mapped into memory by all.

The samples lie once in the machine's memory, as pages of a file, however many ranks read them.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import numpy as np

from shared.communicator import Communicator
from shared.data.accepted_data import Dataset, Split

Rest = TypeVar("Rest")


def mapped(ranks: Communicator, load: Callable[[], tuple[Dataset, Rest]]) -> tuple[Dataset, Rest]:
    """What `load` returns: a data set, and something small. The first rank of each machine loads it.

    The file that the others map has no name any more as soon as all have opened it. On Windows, where an open file
    keeps its name, it is removed with the folder of temporary files.
    """
    if ranks.size == 1:
        return load()
    here = ranks.on_this_machine()
    folder = tempfile.TemporaryDirectory(prefix="groundup-", ignore_cleanup_errors=True) if here.rank == 0 else None

    def stored() -> tuple[Dataset, Rest, tuple[np.ndarray, np.ndarray], list[Path]]:
        """The data set without its samples, the rest, the labels, and where the samples lie."""
        assert folder is not None
        data, rest = load()
        paths = [Path(folder.name) / name for name in ("train.npy", "test.npy")]
        for path, split in zip(paths, (data.train, data.test), strict=True):
            try:
                np.save(path, split.x)
            except OSError as error:
                raise OSError(
                    f"cannot write {path}, where all ranks of this machine read the samples ({error}); set TMPDIR to a "
                    f"folder with room for {split.x.nbytes:,} bytes"
                ) from error
        return (
            replace(data, train=data.train.first(0), test=data.test.first(0)),
            rest,
            (data.train.y, data.test.y),
            paths,
        )

    data, rest, labels, paths = here.from_first(stored)
    train, test = (
        Split(np.load(path, mmap_mode="r"), y, data.train.shape) for path, y in zip(paths, labels, strict=True)
    )
    here.add(np.zeros(1))  # all have opened the files
    if folder is not None:
        folder.cleanup()
    return replace(data, train=train, test=test), rest
