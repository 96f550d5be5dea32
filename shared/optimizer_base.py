"""What an optimizer is on every stage: the ranges of its hyperparameters, and a state that is saved and loaded.

A stage's `optimizers.py` is the update rules. Each is a dataclass derived from `OptimizerBase`, whose fields are the
hyperparameters, so that @dataclass makes its `__init__`, and each value is checked whenever it is set:

    @dataclass(eq=False)
    class RMSProp(OptimizerBase):
        learning_rate: float = 0.01
        …
        buffer_names: ClassVar = ("square_average",)
        state_class: ClassVar = OptimizerState        # the stage's own

        def step(self, parameters, gradients): …      # the mathematics

The stage derives its `OptimizerState` from `StateBase` and says there how its arrays are made, copied and checked.
This module uses only the standard library, so that stage 1 can import it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence, Sized
from dataclasses import fields
from numbers import Real
from operator import index
from typing import Any, ClassVar, NamedTuple

from shared.names import DTYPES
from shared.shapes import DIMENSIONS

Array = Any
"""A stage's own array."""


class Interval(NamedTuple):
    """The numbers of at least `least` and below `end`."""

    least: float
    end: float
    words: str


AT_LEAST_0 = Interval(0.0, math.inf, "a finite number of at least 0")
FRACTION = Interval(0.0, 1.0, "a number of at least 0 and below 1")

RANGES = {
    "learning_rate": AT_LEAST_0,
    "momentum": FRACTION,
    "alpha": FRACTION,
    "beta1": FRACTION,
    "beta2": FRACTION,
    "epsilon": AT_LEAST_0,
    "weight_decay": AT_LEAST_0,
}
"""The range of each hyperparameter by its name. `nesterov` has none: it is true or false."""


class OptimizerBase:
    """An optimizer of one network: it keeps buffers shaped like the network's parameters.

    `learning_rate`, and every other hyperparameter, may be set between steps; schedules use this.
    Raises ValueError for a number out of its range, or Nesterov without momentum.
    """

    buffer_names: ClassVar[tuple[str, ...]]
    """What it remembers of each parameter between steps. SGD without momentum remembers nothing."""

    state_class: ClassVar[type[StateBase]]
    """The stage's class for the state."""

    def __post_init__(self) -> None:
        self._state: Any = self.state_class(*(self.buffer_names if getattr(self, "momentum", True) else ()))

    def __setattr__(self, name: str, value: object) -> None:
        """Check a hyperparameter whenever it is set: when the optimizer is made, and between two steps."""
        if name in RANGES:
            value = _checked(name, value)
        if name == "momentum" and value and hasattr(self, "_state") and not self._state.names:
            raise ValueError(f"momentum: was 0 when this SGD was made and is {value} now; make a new SGD")
        if name == "nesterov":
            if value not in (True, False):
                raise TypeError(f"nesterov: expected True or False, got {value!r}")
            value = bool(value)
        # only SGD has both
        momentum = value if name == "momentum" else getattr(self, "momentum", 0.0)
        if (value if name == "nesterov" else getattr(self, "nesterov", False)) and not momentum:
            raise ValueError("nesterov: needs a momentum above 0, got momentum 0")
        super().__setattr__(name, value)

    def numbers(self) -> dict[str, float]:
        """The hyperparameters by name, in the order in which the optimizer takes them."""
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]  # each is a dataclass

    def step(self, parameters: Sequence[Array], gradients: Sequence[Array]) -> None:
        """Change the parameters in place. Both lists have the same order and shapes."""
        raise NotImplementedError

    def state(self) -> dict[str, Any]:
        """{"steps": int, "buffers": {name: [one array per parameter]}}; no buffers before the first step."""
        saved: dict[str, Any] = self._state.save()
        return saved

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Continue from a `state()`, of this stage or another."""
        self._state.load(state)


class StateBase:
    """What an optimizer remembers between steps: how many there were, and named buffers shaped like the parameters."""

    kind_of_array: ClassVar[str] = "arrays"
    """For error messages."""

    def __init__(self, *names: str) -> None:
        self.names = names
        self.steps = 0
        self.buffers: dict[str, list[Array]] = {}

    # ---- a stage's arrays

    def zeros_like(self, parameter: Array) -> Array:
        """A buffer of this parameter before the first step."""
        raise NotImplementedError

    def own_copy(self, array: Array) -> Array:
        """A copy of a buffer, which its caller may keep."""
        return array.copy()

    def loaded(self, values: object) -> Array:
        """A copy of a buffer, whatever stage wrote it. Raises TypeError or ValueError for what is no array."""
        raise NotImplementedError

    def fitted(self, buffer: Array, parameter: Array) -> Array:
        """The buffer for this parameter, to which it has the same shape: one that was loaded may have another dtype."""
        return buffer

    def shape(self, name: str, array: Array, is_buffer: bool) -> tuple[int, ...]:
        """The shape of a parameter, gradient or buffer. Raises TypeError or ValueError naming what is no array."""
        raise NotImplementedError

    def check_pair(self, i: int, parameter: Array, gradient: Array) -> None:
        """Raise TypeError or ValueError if gradient i, of the right shape, cannot change parameter i in place."""

    def check_kinds(self, i: int, parameter: Array, gradient: Array) -> None:
        """The part of `check_pair` that every stage with arrays of a dtype needs."""
        if parameter.ndim not in DIMENSIONS:
            raise ValueError(f"step: parameter {i} has {parameter.ndim} dimensions, expected 1, 2 or 4")
        if parameter.dtype not in DTYPES:
            raise TypeError(f"step: parameter {i} is {parameter.dtype}, expected float32 or float64; see asarray")
        if parameter.size == 0:
            raise ValueError(f"step: parameter {i} is {parameter.shape}, expected at least one value")
        if gradient.dtype.newbyteorder("=") != parameter.dtype:
            raise TypeError(
                f"step: parameter {i} is {parameter.dtype} but number {i} of gradients is {gradient.dtype}; "
                "convert one of them"
            )

    # ---- a step

    def begin_step(self, parameters: Sequence[Array], gradients: Sequence[Array]) -> int:
        """Check everything, make the buffers on the first step, count the step. Returns its number, from 1."""
        self.check_shapes("gradients", gradients, parameters)
        for i, (parameter, gradient) in enumerate(zip(parameters, gradients, strict=True)):
            self.check_pair(i, parameter, gradient)
        self.make_buffers(parameters)
        self.steps += 1
        return self.steps

    def make_buffers(self, parameters: Sequence[Array]) -> dict[str, list[Array]]:
        """The buffers by name, one for each parameter; they are made on the first step."""
        for name in self.names:
            if name not in self.buffers:
                self.buffers[name] = [self.zeros_like(parameter) for parameter in parameters]
            buffers = self.buffers[name]
            self.check_shapes(f"the optimizer's {name}", buffers, parameters)
            for i, parameter in enumerate(parameters):
                buffers[i] = self.fitted(buffers[i], parameter)
        return {name: self.buffers[name] for name in self.names}

    def check_shapes(self, kind: str, arrays: Sequence[Array], parameters: Sequence[Array]) -> None:
        """Raise TypeError or ValueError unless there is one array for each parameter, of its shape."""
        for name, sequence in (("parameters", parameters), (kind, arrays)):
            if not isinstance(sequence, Sized):
                raise TypeError(f"step: {name} is a {type(sequence).__name__}, expected a list of {self.kind_of_array}")
        if len(arrays) != len(parameters):
            raise ValueError(f"step: there are {len(parameters)} parameters but {len(arrays)} arrays in {kind}")
        for i, (array, parameter) in enumerate(zip(arrays, parameters, strict=True)):
            shape = self.shape(f"number {i} of {kind}", array, kind != "gradients")
            expected = self.shape(f"parameter {i}", parameter, False)
            if shape != expected:
                raise ValueError(f"step: parameter {i} is {expected} but number {i} of {kind} is {shape}")

    # ---- saved and loaded

    def save(self) -> dict[str, Any]:
        """{"steps": int, "buffers": {name: [one array per parameter]}}, in copies."""
        buffers = {name: [self.own_copy(array) for array in arrays] for name, arrays in self.buffers.items()}
        return {"steps": self.steps, "buffers": buffers}

    def load(self, state: Mapping[str, Any]) -> None:
        """Continue from a copy of what `save` returned, here or on another floor.

        Raises TypeError or ValueError if it is no such state, or another optimizer's; then nothing has changed.
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
        if (buffers or int(steps)) and set(buffers) != set(self.names):  # the first step makes them
            raise ValueError(
                f"load_state: expected buffers {sorted(self.names)}, got {sorted(map(str, buffers))}: "
                "this state is another optimizer's"
            )
        self.buffers = {name: self._loaded_list(name, arrays) for name, arrays in buffers.items()}
        self.steps = int(steps)

    def _loaded_list(self, name: str, arrays: Any) -> list[Array]:
        if not isinstance(arrays, Iterable) or isinstance(arrays, (str, Mapping)):
            raise TypeError(f"load_state: {name}: expected a list of arrays, got {type(arrays).__name__}")
        copies = []
        for i, values in enumerate(arrays):
            try:
                copies.append(self.loaded(values))
            except (TypeError, ValueError) as error:
                raise type(error)(f"load_state: number {i} of {name}: {error}") from error
        return copies


def _checked(name: str, value: object) -> float:
    """The hyperparameter as a float. Raises TypeError or ValueError if it is no number in its range."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name}: expected a number, got {value!r}")
    interval = RANGES[name]
    try:
        number = float(value)
    except OverflowError:  # a whole number beyond all floats
        number = math.inf
    if not interval.least <= number < interval.end:
        raise ValueError(f"{name}: expected {interval.words}, got {number}")
    return number


def _is_count(value: Any) -> bool:
    """Whether it is a whole number of at least 0: Python's, NumPy's, or a NumPy array of one."""
    try:
        return index(value) >= 0
    except TypeError:
        return False
