"""The emulated device and its context, for scripts that ask for the properties of the device."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any, NamedTuple

from ..settings import usable_cores
from . import limits
from .streams import Stream, default_stream, stream, synchronize


class CudaSupportError(RuntimeError):
    """The error of numba-cuda without a device. The emulator never raises it, but scripts name it in `except`."""


class MemoryInfo(NamedTuple):
    """Bytes of free memory and of the total memory."""

    free: int
    total: int


class Device:
    """The emulated device. Launches are checked against its limits; its multiprocessors are the CPU's cores."""

    id = 0
    name = "groundup emulator"
    uuid = "GPU-00000000-0000-0000-0000-000000000000"
    #: The oldest architecture that numba-cuda compiles for by default: features of newer ones are not emulated.
    compute_capability = (7, 5)
    COMPUTE_CAPABILITY = compute_capability
    COMPUTE_CAPABILITY_MAJOR, COMPUTE_CAPABILITY_MINOR = compute_capability
    WARP_SIZE = limits.WARP_SIZE
    MAX_THREADS_PER_BLOCK = limits.MAX_THREADS
    MAX_BLOCK_DIM_X, MAX_BLOCK_DIM_Y, MAX_BLOCK_DIM_Z = limits.MAX_BLOCK
    MAX_GRID_DIM_X, MAX_GRID_DIM_Y, MAX_GRID_DIM_Z = limits.MAX_GRID
    MAX_SHARED_MEMORY_PER_BLOCK = limits.SHARED_BYTES
    MAX_THREADS_PER_MULTI_PROCESSOR = limits.MAX_THREADS
    TOTAL_CONSTANT_MEMORY = 64 * 1024
    supports_float16 = True
    supports_bfloat16 = supports_fp8 = False

    @property
    def MULTIPROCESSOR_COUNT(self) -> int:
        """The number of blocks that run at the same time: one on each core that this process may use."""
        return usable_cores()

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(
            f"the emulated device has no {name!r}: it has the limits of a launch, and no properties of hardware"
        )

    def __repr__(self) -> str:
        return f"<CUDA device {self.id} '{self.name}'>"

    def __enter__(self) -> Device:
        return self

    def __exit__(self, *exception: object) -> None:
        """Nothing to do: there is one device, and it stays selected."""

    def get_primary_context(self) -> Context:
        """The only context."""
        return CONTEXT

    def reset(self) -> None:
        """Nothing to free: an emulated array goes when the last name for it goes."""


class PendingDeallocations:
    """The memory that numba-cuda frees later, all at once. Here it is always empty: Python frees an array at once."""

    def __len__(self) -> int:
        return 0

    def clear(self) -> None:
        """Free the memory now."""


class Context:
    """The device's context. It has no state of its own, since Python manages the memory of arrays."""

    def __init__(self, device: Device) -> None:
        self.device = device

    def __repr__(self) -> str:
        return f"<CUDA context of {self.device!r}>"

    def get_memory_info(self) -> MemoryInfo:
        """Free and total bytes of the machine's memory, which holds the arrays of the emulated device.

        Raises NotImplementedError on a system that does not report it (Windows).
        """
        try:
            page = os.sysconf("SC_PAGE_SIZE")
            total = page * os.sysconf("SC_PHYS_PAGES")
            # macOS does not count the free pages.
            free = page * os.sysconf("SC_AVPHYS_PAGES") if "SC_AVPHYS_PAGES" in os.sysconf_names else total
        except (AttributeError, ValueError, OSError):
            raise NotImplementedError("this system does not report its amount of memory to Python") from None
        return MemoryInfo(free, total)

    @property
    def deallocations(self) -> PendingDeallocations:
        """The memory that waits to be freed: none."""
        return PendingDeallocations()

    def synchronize(self) -> None:
        """No-op wait: launches on the emulator are synchronous."""
        synchronize()

    def create_stream(self) -> Stream:
        """A new stream."""
        return stream()

    def get_default_stream(self) -> Stream:
        """The stream of operations without a stream argument."""
        return default_stream()

    def reset(self) -> None:
        """Nothing to free: an emulated array goes when the last name for it goes."""

    def push(self) -> None:
        """Nothing to do: this context is always the current one."""

    def pop(self) -> None:
        """Nothing to do: there is one context."""

    @contextlib.contextmanager
    def defer_cleanup(self) -> Iterator[None]:
        """Free no array inside the `with`: freeing an emulated array never delays a kernel."""
        yield


class DeviceList:
    """`cuda.gpus`: a list with the one device."""

    def __init__(self, device: Device) -> None:
        self.lst = [device]

    def __getitem__(self, index: int) -> Device:
        if index not in (0, -1):
            raise IndexError(f"the emulator has one device, number 0; asked for number {index}")
        return self.lst[0]

    def __len__(self) -> int:
        return len(self.lst)

    def __iter__(self) -> Iterator[Device]:
        return iter(self.lst)

    def __str__(self) -> str:
        return ", ".join(map(str, self.lst))

    @property
    def current(self) -> Device:
        """The selected device."""
        return self.lst[0]


class Runtime:
    """`cuda.runtime`: the version of CUDA whose behaviour is emulated."""

    def get_version(self) -> tuple[int, int]:
        """(major, minor)."""
        return 12, 9

    def is_supported_version(self) -> bool:
        """True."""
        return True


DEVICE = Device()
CONTEXT = Context(DEVICE)
gpus = DeviceList(DEVICE)
runtime = Runtime()


def is_available() -> bool:
    """True: kernels run without a GPU."""
    return True


def is_supported_version() -> bool:
    """True."""
    return True


def cuda_error() -> None:
    """None: there is no driver that could fail to start."""


def detect() -> bool:
    """Print the devices. Returns True, since one can be used."""
    print("Found 1 CUDA devices")
    print(f"id {DEVICE.id}    {DEVICE.name:>20}                              [EMULATED ON THE CPU]")
    print("Summary:\n\t1/1 devices are supported")
    return True


def list_devices() -> DeviceList:
    """Every device."""
    return gpus


def get_current_device() -> Device:
    """The device that runs launches."""
    return DEVICE


def select_device(device_id: int) -> Device:
    """Select a device. Raises ValueError for a number other than 0."""
    if device_id != 0:
        raise ValueError(f"select_device: the emulator has one device, number 0; asked for number {device_id!r}")
    return DEVICE


def current_context(devnum: int | None = None) -> Context:
    """The context of the device. Raises ValueError for a number other than 0."""
    if devnum not in (None, 0):
        raise ValueError(f"current_context: the emulator has one device, number 0; asked for number {devnum!r}")
    return CONTEXT


def close() -> None:
    """Nothing to close: device arrays stay usable."""


@contextlib.contextmanager
def defer_cleanup() -> Iterator[None]:
    """Free no array inside the `with`: freeing an emulated array never delays a kernel."""
    yield


def profile_start() -> None:
    """Nothing to do: a GPU's profiler cannot observe the emulator."""


def profile_stop() -> None:
    """Nothing to do: a GPU's profiler cannot observe the emulator."""


@contextlib.contextmanager
def profiling() -> Iterator[None]:
    """profile_start and profile_stop around the `with`."""
    profile_start()
    try:
        yield
    finally:
        profile_stop()
