"""More shared memory for a block than the 48 KB that every launch may have.

A kernel cannot declare more, since its program must run on every device. What is more, the launch gives:

    tile = cuda.shared.array(0, int32)                in the kernel: as long as the launch says
    allow(kernel, types_of_its_arguments, size)       once
    kernel[blocks, threads, stream, size](…)          each time

Devices have different amounts of it. So the driver refuses the launch unless it was asked before for this kernel. From
compute capability 8.0 on every device allows 99 KB, those of 8.0, 9.0 and 10.0 more; 7.5 allows 64 KB (CUDA programming
guide, technical specifications).
"""

from __future__ import annotations

from typing import Any

from .backend import BACKEND


def allow(kernel: Any, types: tuple[Any, ...], size: int) -> None:
    """Let launches of a kernel with arguments of these Numba types give each block up to `size` bytes. Compiles it.

    Raises numba-cuda's error if the device has not so much.
    """
    if BACKEND.name == "emulator":
        kernel.allow_shared(size)
    elif BACKEND.name == "gpu":
        from numba.cuda.cudadrv.driver import binding, driver

        # numba-cuda has a name for the other attribute of shared memory only (set_shared_memory_carveout).
        function = kernel.compile(types)._codelibrary.get_cufunc()
        attribute = binding.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        driver.cuKernelSetAttribute(attribute, size, function.handle, function.device.id)
