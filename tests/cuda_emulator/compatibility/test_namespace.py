"""`from numba import cuda` gives the emulator after install(), and what it lacks is said clearly."""

import importlib
import subprocess
import sys
from collections.abc import Iterator

import numba
import numpy as np
import pytest

import cuda_emulator as emulator
from cuda_emulator import KernelError, cuda, install, uninstall
from cuda_emulator.compiler.reading.names import is_cuda


@pytest.fixture
def _installed() -> Iterator[None]:
    install()
    yield
    uninstall()


@pytest.mark.usefixtures("_installed")
def test_every_way_to_import_cuda_gives_the_emulator() -> None:
    import numba.cuda as by_name
    from numba import cuda as from_numba
    from numba.cuda import float32, grid, jit

    assert by_name is from_numba is numba.cuda is cuda
    assert (float32, grid, jit) == (cuda.float32, cuda.grid, cuda.jit)
    assert importlib.import_module("numba.cuda") is cuda
    assert importlib.util.find_spec("numba.cuda") is not None


@pytest.mark.usefixtures("_installed")
def test_the_modules_below_cuda_that_scripts_name_are_there() -> None:
    import numba.cuda.types
    from numba.cuda.cudadrv.devicearray import DeviceNDArray, is_cuda_ndarray
    from numba.cuda.cudadrv.error import CudaSupportError
    from numba.cuda.random import create_xoroshiro128p_states, xoroshiro128p_uniform_float32

    device = cuda.to_device(np.zeros(3))
    assert isinstance(device, DeviceNDArray)
    assert is_cuda_ndarray(device)
    assert CudaSupportError is cuda.CudaSupportError
    assert create_xoroshiro128p_states is cuda.random.create_xoroshiro128p_states
    assert xoroshiro128p_uniform_float32 is cuda.random.xoroshiro128p_uniform_float32
    assert numba.cuda.types.float32 is numba.types.float32


@pytest.mark.usefixtures("_installed")
@pytest.mark.parametrize("name", ["numba.cuda.cudadrv.libs", "numba.cuda.cudadrv.nvvm"])
def test_the_parts_that_talk_to_a_gpu_are_import_errors_with_a_sentence(name: str) -> None:
    with pytest.raises(ModuleNotFoundError, match=f"{name} is not supported by the emulator: .* talks to a GPU"):
        importlib.import_module(name)


def test_install_and_uninstall_can_be_called_again_and_leave_nothing() -> None:
    modules = {name for name in sys.modules if name.startswith("numba.cuda")}
    finders = list(sys.meta_path)
    had = vars(numba).get("cuda")
    install()
    install()
    assert numba.cuda is cuda
    uninstall()
    uninstall()
    assert {name for name in sys.modules if name.startswith("numba.cuda")} == modules
    assert sys.meta_path == finders
    assert vars(numba).get("cuda") is had


def test_install_does_not_load_numbas_own_cuda() -> None:
    code = (
        "import sys; from cuda_emulator import install; install(); from numba import cuda; import numba\n"
        "assert cuda.implementation == 'groundup'\n"
        "print([name for name in sys.modules if name.startswith(('numba.cuda.', 'numba_cuda.'))])"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout == "[]\n"


def test_the_namespace_is_the_emulators_and_says_what_it_lacks() -> None:
    assert is_cuda(cuda)
    assert not hasattr(cuda, "driver")
    with pytest.raises(AttributeError, match="the emulator's cuda has no 'driver'"):
        _ = cuda.driver
    for name in ("float32x4", "int2", "uchar4", "double3"):
        with pytest.raises(KernelError, match=rf"cuda\.{name} is not supported by the emulator: use as many single"):
            getattr(cuda, name)(1, 2)
    with pytest.raises(KernelError, match=r"cuda\.bfloat16 is not supported by the emulator: compute in float32"):
        cuda.bfloat16(1)
    with pytest.raises(KernelError, match=r"cuda\.Dim3 is not supported by the emulator: use a tuple of ints"):
        cuda.Dim3(1, 2, 3)
    with pytest.raises(KernelError, match=r"cuda\.declare_device\(\) declares a function written in CUDA"):
        cuda.declare_device("f", "int32(int32)")
    with pytest.raises(
        KernelError, match=r"cuda\.compile_ptx is not supported by the emulator: it makes code for a GPU"
    ):
        cuda.compile_ptx(None, ())
    with pytest.raises(KernelError, match=r"cuda\.syncthreads\(\) works inside a @cuda.jit kernel only"):
        cuda.syncthreads()
    with pytest.raises(KernelError, match=r"cuda\.atomic\.add\(\) works inside"):
        cuda.atomic.add(np.zeros(1), 0, 1)


def test_what_the_package_exports_is_there() -> None:
    for name in emulator.__all__:
        assert hasattr(emulator, name)
