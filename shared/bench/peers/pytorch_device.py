"""PyTorch on a GPU: its training steps, predictions and convolutions, eager, captured in a CUDA graph, and compiled.

Everything lies on the device before a clock runs. The precision of its products and convolutions is a setting of the
whole process, so it is set around every call: TF32, which rounds the factors to 11 bits and uses the tensor cores, is
on for convolutions unless somebody turns it off.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from shared.bench.peers import pytorch


class Way(NamedTuple):
    """How PyTorch computes.

    graph: from a CUDA graph; tf32: with factors of 11 bits
    channels_last: images in memory with all channels of a place side by side, which cuDNN likes better for some shapes
    tuned: cuDNN tries its algorithms for each shape and keeps the fastest, for which it takes memory
    fused: the optimizer updates all parameters in one kernel
    compiled: torch.compile makes kernels of its own for forward and backward
    """

    graph: bool = False
    tf32: bool = False
    channels_last: bool = False
    tuned: bool = True
    fused: bool = False
    compiled: bool = False

    @property
    def name(self) -> str:
        """'eager', 'graph', 'fused' or 'compiled', with ' TF32' and ' channels-last' where they are on."""
        first = "compiled" if self.compiled else "fused" if self.fused else "graph" if self.graph else "eager"
        return self.what(first)

    def what(self, first: str = "") -> str:
        """The name with `first` in place of its first word: 'eager TF32', 'TF32' where first is empty."""
        return " ".join([first] * bool(first) + ["TF32"] * self.tf32 + ["channels-last"] * self.channels_last)


DENSE_WAYS = (Way(), Way(graph=True))
MODEL_WAYS = tuple(
    Way(graph, tf32, last) for tf32 in (False, True) for graph, last in ((False, False), (True, False), (True, True))
)
"""Of a known network: eager and captured, TF32 off and on, and captured in the other layout, too."""
FUSED, COMPILED = Way(graph=True, fused=True), Way(graph=True, fused=True, compiled=True)
"""A step from a CUDA graph with the fused optimizer, and with forward and backward compiled besides."""
FASTEST_DENSE_WAYS = (Way(graph=True), FUSED, COMPILED)
FASTEST_MODEL_WAYS = tuple(way._replace(channels_last=last) for way in FASTEST_DENSE_WAYS for last in (False, True))
CONVOLUTION_WAYS = tuple(Way(False, tf32, last) for tf32 in (False, True) for last in (False, True))


def settle(torch: ModuleType, tf32: bool, tuned: bool = True) -> None:
    """Let products and convolutions have this precision from now on; tuned: as of a Way."""
    torch.set_float32_matmul_precision("high" if tf32 else "highest")
    torch.backends.cudnn.allow_tf32 = tf32
    torch.backends.cudnn.benchmark = tuned


def in_precision(torch: ModuleType, way: Way, call: Callable[[], Any]) -> Callable[[], Any]:
    """The call in the precision of that way. Afterwards TF32 is off, so that it changes nothing for anybody else."""

    def settled() -> Any:
        settle(torch, way.tf32, way.tuned)
        result = call()
        settle(torch, False)
        return result

    return settled


def network(torch: ModuleType, parameters: Sequence[np.ndarray], model: str, way: Way, device: str) -> Any:
    """`pytorch.network` on the device, in the layout of that way."""
    own = pytorch.network(torch, parameters, model).to(device)
    return own.to(memory_format=torch.channels_last) if way.channels_last else own


def device_step(
    torch: ModuleType,
    parameters: Sequence[np.ndarray],
    x: np.ndarray,
    y: np.ndarray,
    learning_rate: float,
    way: Way = DENSE_WAYS[0],
    model: str = "",
    device: str = "cuda",
) -> Callable[[], float]:
    """A call that takes one plain SGD step on the batch, which lies on the device, and returns the loss before it.

    model: the name of a known network, whose parameters these are; "" for a stack of dense layers
    """
    own = network(torch, parameters, model, way, device)
    loss = compiled(torch, way, pytorch.loss_of(torch, own))
    take = pytorch.descent(loss, sgd(torch, own, learning_rate, way))
    own_x, own_y = (torch.from_numpy(np.array(array)).to(device) for array in (x, y))

    step = in_precision(torch, way, lambda: take(own_x, own_y))
    ready = captured(torch, step, [*own.parameters(), *own.buffers()]) if way.graph else step
    return lambda: float(ready().item())


def sgd(torch: ModuleType, model: Any, learning_rate: float, way: Way) -> Any:
    """Plain SGD; without `fused` PyTorch chooses how."""
    return torch.optim.SGD(model.parameters(), lr=learning_rate, fused=True if way.fused else None)


def compiled(torch: ModuleType, way: Way, call: Callable[..., Any]) -> Callable[..., Any]:
    """The call by torch.compile for fixed shapes, where the way says so; compiled when it is first called.

    What was compiled before is forgotten: PyTorch counts compilations of one function, and after eight gives up. It
    stays in the graphs that were captured.
    """
    if not way.compiled:
        return call
    torch.compiler.reset()
    own: Callable[..., Any] = torch.compile(call, dynamic=False)
    return own


def predictor(
    torch: ModuleType,
    parameters: Sequence[np.ndarray],
    images: np.ndarray,
    way: Way = DENSE_WAYS[0],
    model: str = "",
    device: str = "cuda",
) -> Callable[[], np.ndarray]:
    """A call that gives the classes of the images, which lie on the device, as an array on the host."""
    own = network(torch, parameters, model, way, device).eval()
    own_x = torch.from_numpy(np.array(images)).to(device)

    @torch.inference_mode()
    def classes() -> Any:
        return own(own_x).argmax(dim=1)

    predict = in_precision(torch, way, classes)
    ready = captured(torch, predict, []) if way.graph else predict
    return lambda: np.asarray(ready().cpu().numpy())


def convolution(
    torch: ModuleType,
    arrays: Sequence[np.ndarray],
    stride: tuple[int, int],
    padding: tuple[int, int],
    way: Way = DENSE_WAYS[0],
    device: str = "cuda",
) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """(forward, backward) of one convolution: calls that put it into the queue and return its tensors.

    arrays: x, weights, bias and dL/doutput. Backward gives dL/dx, dL/dweights and dL/dbias, as autograd asks cuDNN.
    """
    layout = torch.channels_last if way.channels_last else torch.contiguous_format
    x, weights, bias, grad = (torch.from_numpy(np.array(array)).to(device) for array in arrays)
    x, weights, grad = (tensor.contiguous(memory_format=layout) for tensor in (x, weights, grad))
    backward = partial(torch.ops.aten.convolution_backward, grad, x, weights, [len(bias)], stride, padding)

    @torch.inference_mode()
    def forward() -> Any:
        return torch.nn.functional.conv2d(x, weights, bias, stride, padding)

    @torch.inference_mode()
    def slopes() -> Any:
        return backward((1, 1), False, (0, 0), 1, (True, True, True))

    return in_precision(torch, way, forward), in_precision(torch, way, slopes)


def made_or_raising(make: Callable[[], Callable[..., Any]]) -> Callable[..., Any]:
    """The call that `make` makes; where it cannot be captured or compiled, one that says so when it is first called, so
    that this way costs only itself."""
    try:
        return make()
    except Exception as error:  # PyTorch's compiler and the driver have kinds of their own
        reason = error

        def fail(*arguments: object) -> Any:
            raise reason

        return fail


def captured(torch: ModuleType, step: Callable[[], Any], kept: Sequence[Any]) -> Callable[[], Any]:
    """The step as a CUDA graph, as PyTorch's documentation captures one.

    step: returns its result on the device, in memory that every replay writes anew
    kept: the parameters and running statistics, which are put back afterwards
    """
    before = [tensor.detach().clone() for tensor in kept]
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):  # what libraries set up on first use must not be captured
            step()
    torch.cuda.current_stream().wait_stream(side)
    for tensor in kept:
        tensor.grad = None  # so that the graph has gradients in memory of its own
    graph = torch.cuda.CUDAGraph()
    with without_collection(), torch.cuda.graph(graph):
        result = step()
    with torch.no_grad():
        for tensor, old in zip(kept, before, strict=True):
            tensor.copy_(old)

    def replay(kept: object = step) -> Any:
        # kept: the graph reads and writes arrays that only `step` still refers to
        graph.replay()
        return result

    return replay


@contextmanager
def without_collection() -> Iterator[None]:
    """Keep Python's garbage collector from running inside. A device array of Numba's that it frees during a capture
    would end the capture: PyTorch's captures forbid every other call of the driver that may wait."""
    was_on = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def resident_steps(
    torch: ModuleType,
    parameters: Sequence[np.ndarray],
    images: np.ndarray,
    labels: np.ndarray,
    batch: int,
    learning_rate: float,
    way: Way = DENSE_WAYS[0],
    device: str = "cuda",
) -> Callable[[int], float]:
    """A call that takes so many plain SGD steps, one batch after the other, and returns their mean loss.

    images: (n, features) uint8, which lie on the device as bytes; labels: (n,). Each step picks its batch by index.
    way: a graph captures a whole step, the picking included, which is compiled with the rest, too
    """
    settle(torch, False)
    model = pytorch.network(torch, parameters).to(device)
    loss_of_batch = pytorch.loss_of(torch, model)
    own_images, own_labels = (torch.from_numpy(array).to(device) for array in (images, labels))
    order, offsets = (torch.arange(count, device=device) for count in (len(images), batch))
    position, total = torch.zeros(1, dtype=torch.int64, device=device), torch.zeros((), device=device)

    def loss_at(position: Any) -> Any:
        rows = order.index_select(0, position + offsets)
        x, y = own_images.index_select(0, rows).float().div_(255), own_labels.index_select(0, rows)
        return loss_of_batch(x, y)

    take = pytorch.descent(compiled(torch, way, loss_at), sgd(torch, model, learning_rate, way))

    def step() -> Any:
        loss = take(position)
        position.add_(batch)
        total.add_(loss.detach())
        return loss

    ready = captured(torch, step, list(model.parameters())) if way.graph else step

    def steps(count: int) -> float:
        position.zero_()
        total.zero_()
        for _ in range(count):
            ready()
        return float(total.item()) / count

    return steps
