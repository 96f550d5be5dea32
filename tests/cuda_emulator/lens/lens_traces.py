"""Traces made by hand, for tests of the lens's analysis: a few arrays, and who touched what."""

from __future__ import annotations

from typing import Any

import numpy as np

from cuda_emulator.trace import EVENT, SAME_VALUE, Memory, Site, Trace

GLOBAL = 0x10000
"""Where the first global array lies; a multiple of 256, as a GPU's allocations are."""

SHARED = 0x7000040
"""Where shared memory lies on the computer that runs the kernel. On a GPU this is its address 0."""


class Tracing:
    """Collects events; `trace()` gives what was collected. Sites are made as they are named, one on a line."""

    def __init__(self, threads: int = 64, blocks: int = 1) -> None:
        self.threads = threads
        self.blocks = blocks
        self.memories: dict[str, Memory] = {}
        self.sites: dict[tuple[str, str, str], Site] = {}
        self.events: list[tuple[int, ...]] = []
        self.block_of: list[int] = []
        self.more: dict[str, Any] = {}

    def array(
        self, name: str, shape: Any, dtype: Any = np.float32, space: Any = "global", address: int = 0, offset: int = 0
    ) -> Memory:
        """An array behind those that are there; or at an address, to overlap them."""
        dtype = np.dtype(dtype)
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        strides = tuple(int(dtype.itemsize * np.prod(shape[axis + 1 :], dtype=int)) for axis in range(len(shape)))
        nbytes = int(dtype.itemsize * np.prod(shape, dtype=int))
        if not address:
            start = SHARED if space == "shared" else GLOBAL if space == "global" else 0x30000000
            address = max([start] + [m.address + m.nbytes for m in self.memories.values() if m.space == space])
            if space != "shared":
                address = -(-address // 256) * 256
        memory = Memory(name, space, address, nbytes, shape, strides, dtype, offset)
        self.memories[name] = memory
        return memory

    def site(self, kind: Any, array: str = "", text: str = "", space: Any = None) -> Site:
        """The site of that kind, array and text."""
        if (kind, array, text) not in self.sites:
            number = len(self.sites)
            if space is None:
                space = self.memories[array].space if array in self.memories else ""
            self.sites[kind, array, text] = Site(
                number, "kernel.py", 10 + number, 4, kind, array, text or f"{array}[i]", "kernel", space
            )
        return self.sites[kind, array, text]

    def access(
        self, kind: Any, array: str, thread: int, index: Any, *, block: int = 0, key: int = 0, epoch: int = 0,
        warp_epoch: int = 0, same: bool = False, text: str = "",
    ) -> None:  # fmt: skip
        """One thread's access to an element."""
        memory = self.memories[array]
        index = (index,) if isinstance(index, int) else index
        address = memory.address + sum(i * s for i, s in zip(index, memory.strides, strict=True))
        self.event(
            self.site(kind, array, text), thread, address, block=block, key=key, epoch=epoch, warp_epoch=warp_epoch,
            size=memory.dtype.itemsize, flags=SAME_VALUE if same else 0,
        )  # fmt: skip

    def event(
        self, site: Site, thread: int, address: int, *, block: int = 0, key: int = 0, epoch: int = 0,
        warp_epoch: int = 0, size: int = 0, flags: int = 0,
    ) -> None:  # fmt: skip
        """Any event."""
        self.events.append((address, key, site.number, thread, epoch, warp_epoch, size, flags))
        self.block_of.append(block)

    def warp(self, kind: Any, array: str, indices: Any, **more: Any) -> None:
        """An access of lanes 0, 1, 2, ... of the first warp (or, with more than 32 indices, of the next ones too)."""
        for thread, index in enumerate(indices):
            self.access(kind, array, thread, index, **more)

    def trace(self, **more: Any) -> Trace:
        """What was collected; the events of a block in the order in which they were made."""
        events = np.array(self.events, EVENT)
        order = np.argsort(np.array(self.block_of, int), kind="stable")
        bounds = np.searchsorted(np.array(self.block_of, int)[order], np.arange(self.blocks + 1)).tolist()
        given: dict[str, Any] = {
            "kernel": "kernel",
            "file": "kernel.py",
            "first_line": 1,
            "source": ["def kernel():"] * 100,
            "grid": (self.blocks, 1, 1),
            "block": (self.threads, 1, 1),
            "blocks": list(range(self.blocks)),
            "bounds": bounds,
            "events": events[order],
            "sites": list(self.sites.values()),
            "memories": list(self.memories.values()),
            "operations": [],
        }
        return Trace(**{**given, **more})
