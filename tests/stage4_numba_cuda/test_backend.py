"""stage4_numba_cuda.backend: which device is chosen and why, what is said where it cannot be had, and that the kernels
run in Numba's simulator too."""

import copyreg
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import cuda_emulator as emulator
from stage4_numba_cuda import backend
from stage4_numba_cuda.backend import Backend, BackendError, choose, find_gpu
from tests.wide import wide

ROOT = Path(__file__).resolve().parents[2]


def fake_cuda(available: bool = True, error: Any = None, simulated: bool = False, name: Any = b"NVIDIA T4") -> Any:
    """What find_gpu asks of numba.cuda."""
    return SimpleNamespace(
        config=SimpleNamespace(ENABLE_CUDASIM=simulated),
        is_available=lambda: available,
        cuda_error=lambda: error,
        get_current_device=lambda: SimpleNamespace(name=name, compute_capability=(7, 5)),
    )


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Puts a module, or None for one that cannot be imported, in numba-cuda's place; nothing: it is not installed."""

    def put(*modules: Any) -> None:
        found = backend.importlib.util.find_spec
        monkeypatch.setattr(
            backend.importlib.util,
            "find_spec",
            lambda name: (object() if modules else None) if name == "numba_cuda" else found(name),
        )
        if modules:
            monkeypatch.setitem(sys.modules, "numba.cuda", modules[0])

    return put


def test_a_gpu_is_taken_where_numba_cuda_finds_one(install: Any) -> None:
    cuda = fake_cuda()
    install(cuda)
    for asked in (None, "gpu"):
        chosen = choose(asked)
        assert (chosen.name, chosen.cuda, chosen.emulated) == ("gpu", cuda, False)
        assert chosen.line() == "stage 4 runs its kernels on the GPU: NVIDIA T4, compute capability 7.5"


@pytest.mark.parametrize(("asked", "left"), [(None, 0), ("1", 1)], ids=["not asked for", "asked for"])
def test_a_small_grid_gets_no_warning_on_a_gpu_unless_it_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, asked: str | None, left: int
) -> None:
    class Array:
        """Stands for numba-cuda's array."""

    monkeypatch.delenv(backend.WARNINGS, raising=False)
    if asked is not None:
        monkeypatch.setenv(backend.WARNINGS, asked)
    monkeypatch.setattr(copyreg, "dispatch_table", dict(copyreg.dispatch_table))
    cuda = fake_cuda()
    cuda.config.CUDA_LOW_OCCUPANCY_WARNINGS = 1
    cuda.jit, cuda.to_device = lambda function: function, lambda values: values
    cuda.cudadrv = SimpleNamespace(devicearray=SimpleNamespace(DeviceNDArray=Array))
    backend.prepare_gpu(cuda)
    assert left == cuda.config.CUDA_LOW_OCCUPANCY_WARNINGS
    assert hasattr(cuda.jit, "__wrapped__")  # kernels are kept on disk


WITHOUT = {
    "not installed": ((), "numba-cuda is not installed"),
    "not importable": ((None,), "numba-cuda cannot be imported (import of numba.cuda halted; None in sys.modules)"),
    "no driver": (
        (fake_cuda(False, "CUDA driver library cannot be found.\nIf you are sure"),),
        "numba-cuda finds no GPU (CUDA driver library cannot be found)",
    ),
    "no reason given": ((fake_cuda(False),), "numba-cuda finds no GPU"),
    "an empty reason": ((fake_cuda(False, RuntimeError()),), "numba-cuda finds no GPU (RuntimeError)"),
    "simulated": (
        (fake_cuda(simulated=True),),
        "NUMBA_ENABLE_CUDASIM puts Numba's simulator in numba-cuda's place",
    ),
}


@pytest.mark.parametrize(("modules", "reason"), WITHOUT.values(), ids=WITHOUT)
def test_the_emulator_is_taken_without_a_gpu_and_says_why(install: Any, modules: Any, reason: str) -> None:
    install(*modules)
    assert find_gpu() == (None, reason)
    chosen = choose()
    assert (chosen.name, chosen.cuda, chosen.emulated) == ("emulator", emulator.cuda, True)
    assert (
        chosen.line() == f"stage 4 runs its kernels on the CPU, emulated: {reason}; GROUNDUP_CUDA=gpu insists on a GPU"
    )
    with pytest.raises(BackendError) as caught:
        choose("gpu")
    assert str(caught.value) == (
        f"GROUNDUP_CUDA=gpu, but {reason}; unset GROUNDUP_CUDA, or set it to emulator, to run on the CPU"
    )
    wants_a_package = "not installed" in reason or "cannot be imported" in reason
    assert caught.value.fix == (f'"{sys.executable}" -m pip install "numba-cuda[cu13]"' if wants_a_package else None)


def test_the_emulator_in_numba_cudas_place_is_not_taken_for_a_gpu(install: Any) -> None:
    install(fake_cuda())
    emulator.install()
    try:
        assert find_gpu() == (None, "the emulator was installed in numba.cuda's place")
        with pytest.raises(BackendError, match="GROUNDUP_CUDA=simulator comes too late"):
            choose("simulator")
    finally:
        emulator.uninstall()


def test_the_compiler_needs_numba_cuda_and_runs_nothing(install: Any) -> None:
    cuda = fake_cuda(False)
    install(cuda)
    chosen = choose(backend.COMPILER)
    assert chosen.cuda is cuda
    assert chosen.line() == ("stage 4 runs its kernels on no device: numba-cuda compiles them, and nothing is run")
    install()
    with pytest.raises(BackendError, match=r"^GROUNDUP_CUDA=compiler, but numba-cuda is not installed$"):
        choose(backend.COMPILER)


@pytest.mark.parametrize("asked", ["GPU", "cpu", "cuda:0", " gpu"])
def test_an_unknown_backend_is_refused_with_the_choices(asked: str) -> None:
    with pytest.raises(BackendError) as caught:
        choose(asked)
    assert str(caught.value) == f"GROUNDUP_CUDA is {asked!r}; choose one of gpu, emulator, simulator"
    assert caught.value.fix is None


def test_the_emulator_can_be_asked_for_beside_a_gpu(install: Any) -> None:
    install(fake_cuda())
    chosen = choose("emulator")
    assert chosen == Backend("emulator", emulator.cuda, "GROUNDUP_CUDA=emulator asks for it")


def python(program: str, chosen: str | None, *path: Path) -> subprocess.CompletedProcess[str]:
    """A program in a process of its own that sees no GPU."""
    environment = {k: v for k, v in os.environ.items() if k not in ("GROUNDUP_CUDA", "NUMBA_ENABLE_CUDASIM")}
    environment |= {"CUDA_VISIBLE_DEVICES": "-1", "PYTHONPATH": os.pathsep.join(map(str, (*path, ROOT)))}
    if chosen is not None:
        environment["GROUNDUP_CUDA"] = chosen
    return subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)


ANNOUNCE = "from stage4_numba_cuda.backend import BACKEND; print(BACKEND.line())"


@pytest.mark.parametrize("chosen", [None, ""], ids=["unset", "empty"])
def test_a_process_that_sees_no_gpu_runs_on_the_emulator(chosen: str | None) -> None:
    result = python(ANNOUNCE, chosen)
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("stage 4 runs its kernels on the CPU, emulated: numba-cuda ")


def test_the_environment_chooses_and_its_mistakes_end_the_program() -> None:
    result = python(ANNOUNCE, "gpu")
    assert result.returncode == 1
    assert "BackendError: GROUNDUP_CUDA=gpu, but numba-cuda " in result.stderr
    assert result.stderr.rstrip().endswith("unset GROUNDUP_CUDA, or set it to emulator, to run on the CPU")


SIMULATED = """
import numpy as np
from stage4_numba_cuda import activations, arrays, backend, losses, matmul

assert backend.BACKEND.line() == (
    "stage 4 runs its kernels on the CPU, in Numba's simulator: GROUNDUP_CUDA=simulator asks for it"
)
rng = np.random.default_rng(0)
a, b = rng.standard_normal((2, 19)), rng.standard_normal((19, 3))
product = matmul.tiled_16(arrays.asarray(a, "float64"), b)
assert arrays.on_device(product) and arrays.is_packed(product) and arrays.asarray(product, "float64") is product
np.testing.assert_allclose(arrays.to_host(product), a @ b, rtol=0, atol=1e-14)

np.testing.assert_array_equal(arrays.to_host(activations.relu(a)), np.maximum(a, 0))
exponentials = np.exp(a - a.max(axis=1, keepdims=True))
softmax = arrays.to_host(activations.softmax(a))  # a block for each row: the simulator has no shuffles
np.testing.assert_allclose(softmax, exponentials / exponentials.sum(axis=1, keepdims=True), rtol=1e-14)

loss, _ = losses.softmax_cross_entropy_fused(arrays.asarray(a, "float64"), [3, 2])
np.testing.assert_allclose(loss, -np.log(softmax[[0, 1], [3, 2]]).mean(), rtol=1e-14)
try:
    matmul.matmul(product, b.T, out=product)
except ValueError as error:
    print(error)
"""


@wide
def test_the_same_kernels_run_in_numbas_simulator() -> None:
    result = python(SIMULATED, "simulator")
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip() == "matmul: out is float64 (2, 3), expected float64 (2, 19)"
