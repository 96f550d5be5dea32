"""The buffers that an optimizer keeps on the device between steps, and their checks before a kernel writes there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Sized
from operator import index
from typing import Any

import numpy as np

from .arrays import Array, checked_array, is_packed, on_device, overlap, to_host, zeros
from .backend import cuda
from .kernels import optimizers as kernels
from .together import Together

DTYPES = (np.dtype("float32"), np.dtype("float64"))

PLACES = {
    "learning_rate": kernels.RATE,
    "step_size": kernels.RATE,
    "weight_decay": kernels.DECAY,
    "momentum": kernels.KEEP_FIRST,
    "alpha": kernels.KEEP_FIRST,
    "beta1": kernels.KEEP_FIRST,
    "beta2": kernels.KEEP_SECOND,
    "epsilon": kernels.EPSILON,
    "root_correction": kernels.ROOT_CORRECTION,
}
"""Which of the eight numbers on the device each hyperparameter is."""


class OptimizerState:
    """What an optimizer remembers between steps: how many there were, and named buffers shaped like the parameters.

    After the first step the buffers lie on the device, each in its parameter's dtype. What `load` took stays on the
    host until then: it may come in another stage's dtype.
    """

    def __init__(self, *names: str) -> None:
        self.names = names
        self.steps = 0
        self.buffers: dict[str, list[Array]] = {}
        self._together: dict[str, Together] = {}
        self._numbers: dict[np.dtype, tuple[np.ndarray, Array]] = {}
        """For each dtype the vector in pinned memory, and on the device."""
        self._sent: dict[np.dtype, Mapping[str, float]] = {}
        """And the numbers that were last sent, by name."""

    def __getstate__(self) -> dict[str, Any]:
        """A copy has memory of its own: a copied view would no longer be a part of the copied whole, nor a copied
        vector in memory that the system may not move."""
        return self.__dict__ | {"_together": {}, "_numbers": {}, "_sent": {}}

    def begin_step(self, parameters: Sequence[Array], gradients: Sequence[Array]) -> list[Array]:
        """Check everything, make the buffers on the first step, count the step. Returns the gradients, contiguous."""
        _check_same_shapes("gradients", gradients, parameters)
        for name, buffers in self.buffers.items():
            _check_same_shapes(f"the optimizer's {name}", buffers, parameters)
        slopes = [_as_pair(i, p, gradient) for i, (p, gradient) in enumerate(zip(parameters, gradients, strict=True))]
        self.memory(parameters)
        self.steps += 1
        return slopes

    def memory(self, parameters: Sequence[Array]) -> dict[str, list[Array]]:
        """By name the buffers on the device, one array per parameter, made on the first step."""
        for name in self.names:
            if name not in self.buffers:
                self.buffers[name] = [zeros(p.shape, p.dtype) for p in parameters]
            buffers = self.buffers[name]
            _check_same_shapes(f"the optimizer's {name}", buffers, parameters)
            for i, p in enumerate(parameters):
                if not on_device(buffers[i]) or buffers[i].dtype != p.dtype:
                    buffers[i] = _to_device(buffers[i], p.dtype)
        return {name: self.buffers[name] for name in self.names}

    def together(self, parameters: Sequence[Array]) -> list[Array]:
        """`memory` as a vector for each name, in which the buffers lie as Together places arrays of these shapes and
        one dtype. Buffers that lie elsewhere are moved there first."""
        for name, buffers in self.memory(parameters).items():
            kept = self._together.get(name)
            if kept is None or not kept.holds(buffers):
                kept = self._together[name] = Together([p.shape for p in parameters], parameters[0].dtype)
                for own, buffer in zip(kept.arrays, buffers, strict=True):
                    own.copy_to_device(buffer)
                self.buffers[name] = list(kept.arrays)
        return [self._together[name].flat for name in self.names]

    def device_numbers(self, numbers: Mapping[str, float], dtype: Any, stream: Any = 0) -> Array:
        """What an optimizer's numbers() returned, on the device, in the order that the kernels read.

        There is one vector for each dtype, always the same one, so that a captured graph may hold on to it. It is
        written only where a number has changed since this wrote it last, so nobody else may write to it.
        stream: in which it is written, without waiting; the caller waits for this stream before the next call
        """
        dtype = np.dtype(dtype)
        if self._sent.get(dtype) == numbers:
            return self._numbers[dtype][1]
        self._sent.pop(dtype, None)  # until they are on their way: Ctrl-C may come between
        vector = in_order(numbers, dtype)
        if dtype not in self._numbers:
            pinned = cuda.pinned_array(vector.shape, dtype)
            pinned[...] = vector
            self._numbers[dtype] = pinned, cuda.to_device(pinned)
        else:
            written, array = self._numbers[dtype]
            written[...] = vector
            array.copy_to_device(written, stream=stream)
        self._sent[dtype] = dict(numbers)
        return self._numbers[dtype][1]

    def save(self) -> dict[str, Any]:
        """{"steps": int, "buffers": {name: [one array per parameter]}}, copied to the host."""
        buffers = {name: [np.array(to_host(array)) for array in arrays] for name, arrays in self.buffers.items()}
        return {"steps": self.steps, "buffers": buffers}

    def load(self, state: Mapping[str, Any]) -> None:
        """Continue from a copy of what `save` returned, here or on another floor.

        Raises TypeError or ValueError if it is no such state, or another optimizer's.
        """
        if not isinstance(state, Mapping):
            raise TypeError(f"load_state: expected what state() returns, got {type(state).__name__}")
        if not {"steps", "buffers"} <= set(state):
            raise ValueError(f"load_state: expected the keys steps and buffers, got {sorted(map(str, state))}")
        steps, buffers = state["steps"], state["buffers"]
        if not _is_count(steps):
            raise ValueError(f"load_state: steps: expected a whole number of at least 0, got {steps!r}")
        if not isinstance(buffers, Mapping):
            raise ValueError(f"load_state: buffers: expected lists of arrays by name, got {type(buffers).__name__}")
        if buffers and set(buffers) != set(self.names):
            raise ValueError(
                f"load_state: expected buffers {sorted(self.names)}, got {sorted(map(str, buffers))}: "
                "this state is another optimizer's"
            )
        self.buffers = {name: _loaded(name, arrays) for name, arrays in buffers.items()}
        self.steps = int(steps)


def _is_count(value: Any) -> bool:
    """Whether it is a whole number of at least 0: Python's, NumPy's, or a NumPy array of one."""
    try:
        return index(value) >= 0
    except TypeError:
        return False


def _loaded(name: str, arrays: Any) -> list[np.ndarray]:
    """Copies of one name's buffers, whatever stage wrote them."""
    if not isinstance(arrays, Iterable) or isinstance(arrays, (str, Mapping)):
        raise TypeError(f"load_state: {name}: expected a list of arrays, got {type(arrays).__name__}")
    copies = []
    for i, values in enumerate(arrays):
        dtype = "float32" if getattr(values, "dtype", None) == "float32" else "float64"
        try:
            copies.append(np.array(checked_array(to_host(values) if on_device(values) else values, dtype)))
        except (TypeError, ValueError) as error:
            raise type(error)(f"load_state: number {i} of {name}: {error}") from error
    return copies


def _to_device(values: Array, dtype: Any) -> Array:
    with np.errstate(over="ignore"):  # a float64 beyond float32's range becomes inf, as everywhere
        return cuda.to_device(np.ascontiguousarray(to_host(values), dtype))


def _as_pair(i: int, p: Array, gradient: Array) -> Array:
    """The gradient, contiguous, after checking that a kernel may change this parameter by it."""
    if p.dtype not in DTYPES:
        raise TypeError(f"step: parameter {i} is {p.dtype}, expected float32 or float64; see asarray")
    if p.size == 0:
        raise ValueError(f"step: parameter {i} is {p.shape}, expected at least one value")
    if not is_packed(p):
        raise ValueError(
            f"step: parameter {i} is not C-contiguous (strides {p.strides}); pass an array that is, not such a view"
        )
    if gradient.dtype != p.dtype:
        raise TypeError(
            f"step: parameter {i} is {p.dtype} but number {i} of gradients is {gradient.dtype}; convert one of them"
        )
    slope = gradient if is_packed(gradient) else _to_device(gradient, p.dtype)
    if overlap(p, slope):
        raise ValueError(f"step: parameter {i} overlaps number {i} of gradients; give each memory of its own")
    return slope


def _check_same_shapes(what: str, arrays: Sequence[Array], parameters: Sequence[Array]) -> None:
    """A kernel believes its arguments' sizes. Only buffers may still be on the host."""
    for name, given in (("parameters", parameters), (what, arrays)):
        if not isinstance(given, Sized):
            raise TypeError(f"step: {name} is a {type(given).__name__}, expected a list of device arrays")
    if len(arrays) != len(parameters):
        raise ValueError(f"step: there are {len(parameters)} parameters but {len(arrays)} arrays in {what}")
    for i, (array, p) in enumerate(zip(arrays, parameters, strict=True)):
        for name, one in ((f"number {i} of {what}", array), (f"parameter {i}", p)):
            is_buffer = one is array and what != "gradients"
            if not (on_device(one) or (is_buffer and isinstance(one, np.ndarray))):
                where = " on the host" if isinstance(one, np.ndarray) else ""
                raise TypeError(f"step: {name} is a {type(one).__name__}{where}, expected a device array; see asarray")
        if array.shape != p.shape:
            raise ValueError(f"step: parameter {i} is {p.shape} but number {i} of {what} is {array.shape}")


def in_order(numbers: Mapping[str, float], dtype: Any) -> np.ndarray:
    """What an optimizer's numbers() returned as a vector of kernels.COUNT; what it does not have is 0, and not read."""
    vector = np.zeros(kernels.COUNT)
    for name, place in PLACES.items():
        if name in numbers:
            vector[place] = numbers[name]
    vector[kernels.ADD_FIRST] = 1.0 - vector[kernels.KEEP_FIRST]
    vector[kernels.ADD_SECOND] = 1.0 - vector[kernels.KEEP_SECOND]
    with np.errstate(over="ignore"):  # a float64 beyond float32's range becomes inf, as everywhere
        return vector.astype(dtype)
