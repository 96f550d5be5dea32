"""This project's own kernels by name, and a launch of each. The files of stage 4 make the launch, as in training.

    tiled_16, tiled_16:tn         a rung of the matmul ladder, as ab, aᵀb (tn) or abᵀ (nt)
    tf32, bf16, bf16:nt           a product on tensor cores that rounds in the kernel
    bf16_staged                   one of operands that were rounded before: a precision and a rung
    softmax_warp                  any other kernel, by its name
    sums.total_by_tree            or by its file and name

Import it only if stage 4's backend is the emulator (GROUNDUP_CUDA=emulator), which alone traces launches.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from cuda_emulator.inspection import Launch, catch
from groundup.kernels.image_launching import OF_IMAGES
from shared.contract import load_part
from shared.names import DTYPES, LABEL_LOSSES, LOSSES

STAGE = "stage4_numba_cuda"
activations, arrays, dense, dropout, gather, grids = (
    load_part(STAGE, name) for name in ("activations", "arrays", "dense", "dropout", "kernels.gather", "launch")
)
losses, matmul, optimizers, reductions, tensor_cores = (
    load_part(STAGE, name) for name in ("losses", "matmul", "optimizers", "reductions", "tensor_cores")
)
mlp_launches, persistent, resident = (
    load_part(STAGE, f"plans.{name}") for name in ("mlp_launches", "persistent", "resident")
)
backend, matmul_1_basic = load_part(STAGE, "backend"), load_part(STAGE, "kernels.matmul_1_basic")
blocked = load_part(STAGE, "kernels.blocked")
convolution, passes = load_part(STAGE, "convolution"), load_part(STAGE, "convolution_passes")
BACKEND, cuda, Network = backend.BACKEND, backend.cuda, load_part(STAGE, "network").Network

Call = Callable[[tuple[int, int, int], str], object]
"""A function of sizes (rows, columns, inner) and a dtype that launches the kernel; it may launch others before."""

OF_ROUNDED = {
    f"{precision}_{rung}": product
    for precision, ladder in matmul.TENSOR_LADDER.items()
    for rung, product in ladder.items()
    if rung != tensor_cores.ROUNDING_ON_THE_WAY
}
"""The products of operands that were rounded before, by precision and rung."""

RUNGS = (*matmul.LADDER, *(name for name in matmul.TENSOR_CORES if name in matmul.RUNGS), *OF_ROUNDED)
SEED = 0
_random = np.random.default_rng(SEED)


def project_launch(name: str, size: tuple[int, int, int] = (256, 256, 256), dtype: str = "float32") -> Launch:
    """The launch of a kernel of this project.

    size: (m, n, k) of a product of (m, k) and (k, n); other kernels use a matrix (m, n), or m x n numbers
    Raises ValueError for an unknown name, with similar names.
    """
    if BACKEND.name != "emulator":
        raise ValueError(f"only the emulator traces launches, and stage 4 runs on {BACKEND.name} in this process")
    if min(size) < 1:
        raise ValueError(f"size: expected whole numbers of at least 1, got {size}")
    if dtype not in DTYPES:
        raise ValueError(f"dtype: expected one of {', '.join(DTYPES)}, got {dtype!r}")
    global _random
    _random = np.random.default_rng(SEED)
    rung, _, form = name.partition(":")
    if rung in OF_ROUNDED:
        return _of_rounded(name, rung, form or "nn", size, dtype)
    if rung in RUNGS:
        return _rung(name, rung, form or "nn", size, dtype)
    full = full_name(name)
    launch, _ = catch(lambda: KERNELS[full](size, dtype), lambda kernel: _name(kernel) == full.partition(".")[2])
    if launch is None:
        raise ValueError(f"{name}: stage 4 does not launch it for a size of {size}")
    return launch


def full_name(name: str) -> str:
    """The full name of a kernel: "softmax.softmax_warp" for "softmax_warp". Raises ValueError unless one fits."""
    found = [full for full in KERNELS if name in (full, full.partition(".")[2])]
    if len(found) > 1:
        raise ValueError(f"several kernels are called {name}: {', '.join(found)}")
    if not found:
        known = [*RUNGS, *(full.partition(".")[2] for full in KERNELS)]
        near = difflib.get_close_matches(name.partition(".")[2] or name, dict.fromkeys(known), 5, 0.5)
        hint = f"similar names: {', '.join(near)}" if near else f"the matmul ladder has {', '.join(RUNGS)}"
        raise ValueError(f"no kernel of this project is called {name!r}; {hint}; your own: SCRIPT.py:KERNEL")
    return found[0]


def _rung(name: str, rung: str, form: str, size: tuple[int, int, int], dtype: str) -> Launch:
    """The launch of a product, with 128-bit loads if the rows allow them, as on a GPU."""
    if form not in matmul.FORMS:
        raise ValueError(f"{name}: expected one of {', '.join(matmul.FORMS)} after the colon, got {form!r}")
    m, n, k = size
    a = _matrix((k, m) if form == "tn" else (m, k), dtype)
    b = _matrix((n, k) if form == "nt" else (k, n), dtype)
    out = arrays.zeros((m, n), dtype)
    if rung in ("naive", "coalesced"):
        if form != "nn":
            raise ValueError(f"{name}: {rung} knows only ab (nn); tn and nt begin with tiled_16")
        kernel = getattr(matmul_1_basic, rung)
        across = grids.tiles(n, m, 16, 16) if rung == "naive" else grids.tiles(m, n, 16, 16)
        configured = kernel[across, (16, 16)]
    else:
        if rung in matmul.TENSOR_LADDER and dtype != "float32":
            raise ValueError(f"{name}: tensor cores round float32; dtype is {dtype}")
        chosen_rung = matmul.rung_for(rung, m, n, dtype)
        wide = all(array.shape[1] % matmul.WIDE == 0 for array in (a, b, out))
        kernel = chosen_rung.kernel(form, wide, dtype)
        configured = kernel[grids.tiles(m, n, chosen_rung.rows, chosen_rung.columns), chosen_rung.threads]
    return Launch(name, kernel, configured.griddim, configured.blockdim, (a, b, out))


def _of_rounded(name: str, rung: str, form: str, size: tuple[int, int, int], dtype: str) -> Launch:
    """The launch of a product of operands that were rounded before; of the launches only that of the product itself."""
    if dtype != "float32":
        raise ValueError(f"{name}: tensor cores round float32; dtype is {dtype}")
    if form != "nn":
        raise ValueError(f"{name}: {rung} knows only ab (nn), for its operands lie the same way in every form")
    product, (m, n, k) = OF_ROUNDED[rung], size
    call = product.ready(_matrix((m, k), dtype), _matrix((k, n), dtype), arrays.zeros((m, n), dtype))
    kernel = tensor_cores.kernel_of(product.rung, product.precision)
    launch, _ = catch(call, lambda each: each is kernel)
    assert launch is not None
    return replace(launch, name=name)


def _name(kernel: Any) -> str:
    return str(kernel.py_func.__name__)


def _matrix(shape: tuple[int, ...], dtype: str) -> Any:
    """Random numbers, others in each array of a launch, and the same in each run."""
    return cuda.to_device(_random.standard_normal(shape).astype(dtype))


def _softmax(rung: str) -> Call:
    return lambda size, dtype: activations.apply(
        "softmax", _matrix(size[:2], dtype), arrays.zeros(size[:2], dtype), rung
    )


def _softmax_backward(rung: str) -> Call:
    return lambda size, dtype: activations.apply_backward(
        "softmax", _matrix(size[:2], dtype), _matrix(size[:2], dtype), arrays.zeros(size[:2], dtype), rung
    )


def _activation(name: str) -> Call:
    return lambda size, dtype: activations.apply(name, _matrix(size[:2], dtype), arrays.zeros(size[:2], dtype))


def _activation_backward(name: str) -> Call:
    return lambda size, dtype: activations.apply_backward(
        name, _matrix(size[:2], dtype), _matrix(size[:2], dtype), arrays.zeros(size[:2], dtype)
    )


def _column_sums(rung: str) -> Call:
    return lambda size, dtype: reductions.COLUMN_SUMS_LADDER[rung](
        _matrix(size[:2], dtype), arrays.zeros((size[1],), dtype)
    )


def _total(rung: str) -> Call:
    return lambda size, dtype: reductions.TOTAL_LADDER[rung](
        _matrix((size[0] * size[1],), dtype), arrays.zeros((1,), dtype)
    )


def _labels(rows: int, classes: int) -> Any:
    return cuda.to_device((np.arange(rows) % classes).astype(np.int32))


def _loss(part: str, name: str) -> Call:
    """A loss with a warp for each row, as on a GPU."""

    def call(size: tuple[int, int, int], dtype: str) -> None:
        outputs = _matrix(size[:2], dtype)
        targets = _labels(*size[:2]) if name in LABEL_LOSSES else _matrix(size[:2], dtype)
        rows, grad = arrays.zeros(size[:1], dtype), arrays.zeros(size[:2], dtype)
        if part == "_fused":
            losses.row_losses_and_gradient(name, outputs, targets, rows, grad, grids.WARP)
        elif part == "_backward":
            kernel = losses.kernels.BACKWARD[grids.WARP][name]
            kernel[grids.warp_per_row(size[0])](outputs, targets, grad)
        else:
            losses.row_losses(name, outputs, targets, rows, grids.WARP)

    return call


def _optimizer(make: Callable[[], Any]) -> Call:
    return lambda size, dtype: make().step([_matrix(size[:2], dtype)], [_matrix(size[:2], dtype)])


def _add_bias(size: tuple[int, int, int], dtype: str) -> None:
    dense.kernels.add_bias[grids.elementwise(size[0] * size[1])](_matrix(size[:2], dtype), _matrix(size[1:2], dtype))


def _forward_partial(size: tuple[int, int, int], dtype: str) -> None:
    m, n, k = size
    mlp_launches.launch_product(_matrix((m, k), dtype), _matrix((k, n), dtype), arrays.zeros((1, m, n), dtype))


def _combine_back(size: tuple[int, int, int], dtype: str) -> None:
    shape = size[:2]
    matrix, parts = _matrix(shape, dtype), arrays.zeros((2, *shape), dtype)
    blocked.combine_back[grids.elementwise(size[0] * size[1])](1, parts, matrix, matrix, 0, matrix)


def _blocked(name: str, side: int = 32) -> Call:
    """A kernel of blocked.py with tiles of this side; (m, k) times (k, n), or the gradients of such a product."""

    def call(size: tuple[int, int, int], dtype: str) -> None:
        m, n, k = size
        x, weights, grad = _matrix((m, k), dtype), _matrix((k, n), dtype), _matrix((m, n), dtype)
        kernel, block = getattr(blocked, name)[side], blocked.THREADS
        grid = grids.tiles(m, n, side, side)
        if name == "FORWARD":
            kernel[grid, block](x, weights, _matrix((n,), dtype), 1, arrays.zeros((m, n), dtype))
        elif name == "BACKWARD":
            kernel[grids.tiles(m, k, side, side), block](grad, weights, x, 1, x, 0, arrays.zeros((m, k), dtype))
        elif name == "UPDATE":
            tiles = grids.divided(k, side) * grids.divided(n, side)
            vectors = [arrays.zeros((k * n,), dtype)] * 3 + [arrays.zeros((n,), dtype)] * 3
            layer = (x, grad, *vectors, arrays.zeros((k, n), dtype), arrays.zeros((n,), dtype))
            counters = cuda.to_device(np.zeros(3, np.int64))
            kernel[tiles, block](blocked.ONLY_GRADIENTS, arrays.zeros((8,), dtype), counters, m, tiles, *layer, *layer)
        elif name == "FORWARD_PARTIAL":
            kernel[(*grid, 2), block](x, weights, arrays.zeros((2, m, n), dtype))
        elif name == "BACKWARD_PARTIAL":
            kernel[(*grids.tiles(m, k, side, side), 2), block](grad, weights, arrays.zeros((2, m, k), dtype))
        else:
            images = cuda.to_device((np.arange(m * k) % 256).astype(np.uint8).reshape(m, k))
            order = cuda.to_device(np.random.default_rng(SEED).permutation(m).astype(np.int32))
            counters = cuda.to_device(np.zeros(3, np.int64))
            kernel[(*grid, 2), block](
                images, _labels(m, 10), order, counters, arrays.zeros((1, 8), dtype), arrays.zeros((8,), dtype),
                weights, arrays.zeros((m, k), dtype), arrays.zeros((m,), np.int32), arrays.zeros((2, m, n), dtype),
            )  # fmt: skip

    return call


def _end_step(size: tuple[int, int, int], dtype: str) -> None:
    resident.kernels.end_step[1, grids.WARP](cuda.to_device(np.zeros(3, np.int64)), size[0])


def _multiply(size: tuple[int, int, int], dtype: str) -> None:
    mlp_launches.multiply(_matrix(size[:2], dtype), _matrix(size[:2], dtype), arrays.zeros(size[:2], dtype))


def _dropout(size: tuple[int, int, int], dtype: str) -> None:
    dropout.write_mask(SEED, cuda.to_device(np.zeros(1, np.int64)), 0, 0.5, arrays.zeros(size[:2], dtype))


def _gather(what: str) -> Call:
    """A batch of size[0] samples from four times as many, in a shuffled order."""

    def call(size: tuple[int, int, int], dtype: str) -> None:
        samples = 4 * size[0]
        order = cuda.to_device(np.random.default_rng(SEED).permutation(samples).astype(np.int32))
        position = cuda.to_device(np.zeros(1, np.int64))
        data = {
            "gather_bytes": lambda: cuda.to_device(np.zeros((samples, size[1]), np.uint8)),
            "gather_rows": lambda: _matrix((samples, size[1]), "float32"),
        }.get(what, lambda: _labels(samples, size[1]))()
        out = arrays.zeros(size[:1], np.int32) if what == "gather_labels" else arrays.zeros(size[:2], dtype)
        launch = grids.elementwise(out.size) if out.ndim == 1 else grids.over_matrix(*out.shape)
        getattr(gather, what)[launch](data, order, position, out)

    return call


def _training(hidden_layers: int = 1, as_bytes: bool = True, rung: str = "few_kernels") -> Call:
    """One step of a network with size[2] inputs, size[1] neurons a hidden layer and 10 classes on size[0] samples.

    as_bytes: whether the samples are images of bytes, which the first kernel of the step gathers
    rung: how the step is taken, "few_kernels" or "persistent"; ValueError if the network does not fit
    """

    def call(size: tuple[int, int, int], dtype: str) -> None:
        batch, hidden, inputs = size
        trained = Network([inputs, *[hidden] * hidden_layers, 10], dtype=dtype)
        pixels = np.arange(batch * inputs).reshape(batch, inputs) % 256
        samples = (pixels / np.float32(255) if as_bytes else pixels / 300).astype(np.float32)
        run = trained.resident(samples, np.arange(batch) % 10, optimizers.SGD(0.1), batch, SEED)
        misfit = persistent.misfit(trained, batch, str(run.data.values.dtype)) if rung == "persistent" else None
        if misfit is not None:
            raise ValueError(f"the persistent kernel does not fit: {misfit}")
        run.rung = rung
        run.begin_epoch(np.arange(batch))
        run.take(0, [0.1], 0)

    return call


IMAGES, CHANNELS = 2, 3


def _images(size: tuple[int, int, int], dtype: str) -> Any:
    """A batch of images of size[0] rows and size[1] columns."""
    return _matrix((IMAGES, CHANNELS, *size[:2]), dtype)


FILTERS, WINDOW = 4, 3


def _convolution(rung: str) -> Call:
    """The forward pass of a convolution with 3 x 3 kernels."""

    def call(size: tuple[int, int, int], dtype: str) -> None:
        x, weights, bias = _convolved(size, dtype)
        g = convolution.geometry("lens", x, weights, 1, 1)
        passes.FORWARD[rung](x, weights, bias, g, arrays.zeros((IMAGES, FILTERS, *g.output), dtype))

    return call


def _convolution_back(side: int | None) -> Call:
    """Its gradients: with the register tile of that side, one number to a thread for 0, by the definition for None."""

    def call(size: tuple[int, int, int], dtype: str) -> None:
        x, weights, bias = _convolved(size, dtype)
        g = convolution.geometry("lens", x, weights, 1, 1)
        grad = _matrix((IMAGES, FILTERS, *g.output), dtype)
        sums = arrays.zeros(passes.parts_shape(g, IMAGES), dtype)
        if side is None:
            written = (arrays.zeros(each.shape, dtype) for each in (x, weights, bias))
            passes.plain_backward_into(grad, x, weights, g, *written, sums)
        else:
            passes.weights_parts(grad, x, g, sums, side)

    return call


def _on_tensor_cores(size: tuple[int, int, int], dtype: str) -> None:
    """A convolution and its gradients in tf32."""
    x, weights, bias = _convolved(size, dtype)
    g = convolution.geometry("lens", x, weights, 1, 1)
    out = convolution.tf32(x, weights, bias, 1, 1)
    passes.weights_parts(out, x, g, arrays.zeros(passes.parts_shape(g, IMAGES), dtype), "tf32")


def _convolved(size: tuple[int, int, int], dtype: str) -> tuple[Any, Any, Any]:
    """Images, weights and bias."""
    weights = _matrix((FILTERS, CHANNELS, WINDOW, WINDOW), dtype)
    return _images(size, dtype), weights, _matrix((FILTERS,), dtype)


KERNELS: dict[str, Call] = {
    **{f"softmax.softmax_{rung}": _softmax(rung) for rung in activations.SOFTMAX_LADDER},
    **{f"softmax.softmax_{rung}_backward": _softmax_backward(rung) for rung in activations.SOFTMAX_LADDER},
    **{f"sums.columns_by_{rung}": _column_sums(rung) for rung in reductions.COLUMN_SUMS_LADDER},
    **{f"sums.total_by_{rung}": _total(rung) for rung in reductions.TOTAL_LADDER},
    **{f"activations.{name}": _activation(name) for name in activations.kernels.FORWARD},
    **{f"activations.{name}_backward": _activation_backward(name) for name in activations.kernels.BACKWARD},
    **{f"losses.{name}{part}": _loss(part, name) for name in LOSSES for part in ("", "_backward", "_fused")},
    "dense.add_bias": _add_bias,
    "dense.multiply": _multiply,
    "convolution_1_basic.naive": _convolution("naive"),
    "convolution_1_basic.halo_tile": _convolution("halo_tile"),
    **{
        f"convolution_1_basic.{name}": _convolution_back(None)
        for name in ("grad_input", "grad_weights_parts", "add_parts")
    },
    **{f"convolution_2_im2col.{name}": _convolution("im2col") for name in ("columns", "finish")},
    "convolution_3_implicit.correlate_tile": _convolution("implicit_tile"),
    "convolution_3_implicit.correlate_weights": _convolution_back(0),
    "convolution_4_blocked.correlate_blocked": _convolution("implicit_blocked"),
    "convolution_4_blocked.correlate_weights_blocked": _convolution_back(32),
    **{f"convolution_6_tensor.{name}": _on_tensor_cores for name in ("correlate_tensor", "correlate_weights_tensor")},
    **{
        f"convolution_5_winograd.{name}": _convolution("winograd2")
        for name in ("transform_weights", "transform_images", "finish")
    },
    **OF_IMAGES,
    "dropout.dropout_mask": _dropout,
    **{f"gather.{name}": _gather(name) for name in ("gather_bytes", "gather_rows", "gather_labels", "gather_targets")},
    "optimizers.sgd": _optimizer(lambda: optimizers.SGD(0.1)),
    "optimizers.momentum": _optimizer(lambda: optimizers.SGD(0.1, momentum=0.9)),
    "optimizers.nesterov": _optimizer(lambda: optimizers.SGD(0.1, momentum=0.9, nesterov=True)),
    "optimizers.rmsprop": _optimizer(optimizers.RMSProp),
    "optimizers.adam": _optimizer(optimizers.Adam),
    **{name: _training() for name in ("fused.forward_bytes", "head.head", "update.update")},
    "fused.combine": _training(hidden_layers=2),
    "blocked.combine_back": _combine_back,
    "fused.forward_partial": _forward_partial,
    **{
        f"blocked.{name.lower()}_blocked": _blocked(name)
        for name in ("FORWARD", "BACKWARD", "FORWARD_PARTIAL", "BACKWARD_PARTIAL", "FORWARD_BYTES", "UPDATE")
    },
    "persistent.persistent": _training(rung="persistent"),
    "resident.begin_step": _training(as_bytes=False),
    "resident.end_step": _end_step,
}
"""{file.name: launch} of every kernel of stage 4, without the matmul ladder."""
