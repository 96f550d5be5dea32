"""What measuring on a GPU needs in addition to `shared.bench.measuring.timing`: another clock, and an opponent.

A launch only puts work into the GPU's queue and returns, so a clock that is read right after it has timed the queue.
Either the host waits for the device (`waiter`), and the time is what a caller sees; or the device records when it
began and ended (`sampler`), and the time is the device's alone. The second is right for calls that do not wait, such as
a rung of the ladder. A call that reads a number back, such as a training step with its loss, has waited already.

A rung that runs on a GPU is compared with the library that NVIDIA wrote for that GPU, cuBLAS, as PyTorch or CuPy calls
it; beside NumPy on the CPU it would only show that the GPU is another machine.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from shared.bench.measuring.timing import Name, Sampler
from shared.bench.peers import pytorch_device
from shared.contract import NetworkLike, Stage, load_part, stage_facts

PRECISIONS = ("float32", "float64", "tf32", "bf16", "f16")
OF_16_BITS = {"bf16": "bfloat16", "f16": "float16"}
"""Precision -> PyTorch's dtype."""
NO_REFERENCE = "nothing: emulated on the CPU"
DEVICE = "cuda"
"""What PyTorch calls the GPU."""
ON_GPU = "on the GPU"
"""How the variant of a row of PyTorch's on the GPU ends."""
TF32 = "TF32"
"""In the variant of a row whose factors are rounded to 11 bits."""
CLOCK = "events"
"""The `clock` of a row that the device timed itself."""


class Cublas(NamedTuple):
    """One product by cuBLAS. library: who calls it, 'PyTorch 2.11.0'; multiply: puts one product into the queue;
    result: the last product, back on the host."""

    library: str
    multiply: Callable[[], object]
    result: Callable[[], np.ndarray]


def on_gpu(stage: Stage) -> bool:
    """Whether the stage's kernels run on a real GPU."""
    return stage_facts(stage.name).get("backend") == "gpu"


def waiter(stage: Stage) -> Callable[[], object] | None:
    """A function that waits for the stage's device; None for a stage whose calls finish before they return."""
    arrays: Any = stage.arrays
    return arrays.cuda.synchronize if on_gpu(stage) else None


def sampler(stage: Stage) -> Sampler | None:
    """A function that times calls of this stage by the device's own clock; None if it runs on no real GPU.

    For calls that put work into the default stream and wait for nothing.
    """
    if not on_gpu(stage):
        return None
    from shared.bench.measuring import device_clock  # here, because it makes a kernel for the stage's device

    return device_clock.sampler()


def samplers(stage: Stage, names: Iterable[Name]) -> dict[Name, Sampler]:
    """The `samplers` of `measure` for candidates of these names, all of them the stage's; empty without a real GPU."""
    take = sampler(stage)
    return {} if take is None else dict.fromkeys(names, take)


def roofs(stage: Stage) -> Any | None:
    """Of a stage on a real GPU: peak(dtype) -> a call, and triad(b, c, scale, out). None elsewhere."""
    if not on_gpu(stage):
        return None
    from shared.bench.measuring import device_roofs  # here, because it makes kernels for the stage's device

    return device_roofs


def torch_steppers(
    parameters: Sequence[np.ndarray],
    x: np.ndarray,
    y: np.ndarray,
    learning_rate: float,
    model: str = "",
    ways: Sequence[pytorch_device.Way] | None = None,
) -> dict[str, Callable[[], float]]:
    """PyTorch's ways to take a training step on the GPU, "eager" and "graph"; empty where it is missing or sees none.

    parameters: to start from, copied, each way its own. x (batch, features) and y (batch,): copied to the device here,
    before any clock runs. A call takes one step and returns the loss before it.
    model: the name of a known network, whose parameters these are; it has more ways: pytorch_device.MODEL_WAYS
    ways: others than these
    """
    torch = cuda_torch()
    if torch is None:
        return {}
    ways = ways or (pytorch_device.MODEL_WAYS if model else pytorch_device.DENSE_WAYS)
    make = partial(pytorch_device.device_step, torch, parameters, x, y, learning_rate)
    return {way.name: pytorch_device.made_or_raising(partial(make, way, model, DEVICE)) for way in ways}


def precision_of(way: str, dtype: str) -> str:
    """What a row says of its numbers: a way with TF32 rounds them, and stands apart from float32."""
    return "tf32" if TF32 in way else dtype


def has_tf32(stage: Stage) -> bool:
    """Whether the stage runs on a GPU whose tensor cores multiply in TF32."""
    return on_gpu(stage) and "tf32" in load_part(stage.name, "matmul").tensor_precisions()


def in_precision(network: NetworkLike, way: str) -> Any:
    """The network, with TF32 on where the way says so. Else it rounds nothing, whatever GROUNDUP_TENSOR_CORES asks for;
    a network that never rounds is left as it is."""
    if hasattr(network, "precision"):
        network.precision = "tf32" if TF32 in way else None
    return network


def torch_predictors(
    parameters: Sequence[np.ndarray], images: np.ndarray, batches: Sequence[int], model: str = ""
) -> dict[str, dict[int, Callable[[], np.ndarray]]]:
    """PyTorch's ways to predict on the GPU, each with a call for each batch size: the first so many of the images.

    They lie on the device; a call brings their classes to the host. Empty where PyTorch is missing or sees no GPU.
    """
    torch = cuda_torch()
    if torch is None:
        return {}
    ways = pytorch_device.MODEL_WAYS if model else pytorch_device.DENSE_WAYS
    return {
        way.name: {
            batch: pytorch_device.predictor(torch, parameters, images[:batch], way, model, DEVICE) for batch in batches
        }
        for way in ways
    }


def cudnn(
    arrays: Sequence[np.ndarray], stride: tuple[int, int], padding: tuple[int, int]
) -> dict[str, tuple[Callable[[], Any], Callable[[], Any]]]:
    """PyTorch's ways to put one convolution into the queue: (forward, backward); empty where it sees no GPU.

    arrays: float32 x, weights, bias and dL/doutput
    """
    torch = cuda_torch()
    if torch is None:
        return {}
    ways = pytorch_device.CONVOLUTION_WAYS
    return {
        f"{way.what()} {ON_GPU}".strip(): pytorch_device.convolution(torch, arrays, stride, padding, way, DEVICE)
        for way in ways
    }


def cublas(a: np.ndarray, b: np.ndarray, precision: str) -> Cublas | None:
    """The product of copies of a (M, K) and b (K, N) on the GPU; None where neither PyTorch nor CuPy has one.

    precision: float32 or float64, the operands' own, with nothing rounded below it; "tf32" lets cuBLAS round float32
    operands to 10 bits of mantissa; "bf16" and "f16" give it operands and a result of 16 bits, rounded before the clock
    runs
    """
    if precision not in PRECISIONS:
        raise ValueError(f"cublas: unknown precision {precision!r}; choose one of {', '.join(PRECISIONS)}")
    found = _torch(a, b, precision)
    if found is None and precision in ("float32", "float64"):
        found = _cupy(a, b)
    return found


def cuda_torch() -> Any | None:
    """PyTorch, where it is installed and sees a GPU."""
    torch = _module("torch")
    return torch if torch is not None and torch.cuda.is_available() else None


def _torch(a: np.ndarray, b: np.ndarray, precision: str) -> Cublas | None:
    torch = cuda_torch()
    if torch is None:
        return None
    left, right = (torch.from_numpy(each).cuda() for each in (a, b))
    if precision in OF_16_BITS:
        left, right = (each.to(getattr(torch, OF_16_BITS[precision])) for each in (left, right))
    out = torch.empty((a.shape[0], b.shape[1]), dtype=left.dtype, device="cuda")
    setting = "high" if precision == "tf32" else "highest"

    def multiply() -> None:
        torch.set_float32_matmul_precision(setting)  # of the whole process, so before every call
        torch.mm(left, right, out=out)

    def result() -> np.ndarray:
        return np.asarray((out.float() if precision in OF_16_BITS else out).cpu().numpy())  # NumPy knows no bf16

    return Cublas(f"PyTorch {torch.__version__}", multiply, result)


def _cupy(a: np.ndarray, b: np.ndarray) -> Cublas | None:
    cupy = _module("cupy")
    if cupy is None or not cupy.cuda.is_available():
        return None
    left, right = cupy.asarray(a), cupy.asarray(b)
    out = cupy.empty((a.shape[0], b.shape[1]), a.dtype)
    return Cublas(f"CuPy {cupy.__version__}", lambda: cupy.matmul(left, right, out=out), lambda: cupy.asnumpy(out))


def _module(name: str) -> Any | None:
    if importlib.util.find_spec(name) is None:
        return None
    try:
        return importlib.import_module(name)
    except (ImportError, OSError):  # installed for another Python, or without a library that it needs
        return None
