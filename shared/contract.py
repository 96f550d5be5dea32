"""What every stage must provide, written once, as types; and `load_stage`, the only door from `shared` to a stage.

A stage is a package of seven rooms with the same names on every floor. `load_stage("stage2_numpy")`
imports them and hands them over side by side, so that shared code can say `stage.matmul.matmul(a, b)`
without knowing which floor it stands on. Array is whatever the stage computes with: lists of floats
on the first floor, numpy.ndarray on the second. `stage.arrays.asarray` and `to_host` go in and out.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, cast

Array = Any
"""A stage's own array. Its type is the stage's business; shared code only passes it along."""

STAGES = ("stage1_pure_python", "stage2_numpy", "stage3_c", "stage4_numba_cuda")
STAGE_TITLES = dict(zip(STAGES, ("stage 1: pure Python", "stage 2: NumPy", "stage 3: C", "stage 4: CUDA"), strict=True))
"""What people call the stages; by name, because a chart may show results of a stage that is not installed."""

ROOMS = ("arrays", "matmul", "activations", "losses", "dense", "network", "optimizers")

ACTIVATIONS = ("identity", "relu", "leaky_relu", "sigmoid", "tanh", "softmax")
LOSSES = ("mean_squared_error", "softmax_cross_entropy", "sigmoid_cross_entropy", "hinge")
OPTIMIZERS = ("SGD", "RMSProp", "Adam")
LABEL_LOSSES = ("softmax_cross_entropy", "hinge")
"""The losses whose second argument is integer labels (batch,); the others take targets shaped like the outputs."""


class StageUnavailable(Exception):
    """The stage exists in the plan but cannot be used here; the message says why and what to do.

    fix: the one command that mends it, where there is one
    """

    def __init__(self, message: str, fix: str | None = None) -> None:
        super().__init__(message)
        self.fix = fix


class ArraysRoom(Protocol):
    def asarray(self, values: Any, dtype: str = "float32") -> Array:
        """Values (nested sequences or anything numpy.asarray takes) as the stage's own array of 1 or 2 dimensions."""

    def to_host(self, array: Array) -> Any:
        """The array as something numpy.asarray accepts."""


class MatmulRoom(Protocol):
    LADDER: Mapping[str, Callable[[Array, Array], Array]]
    """Every way this floor knows to compute a @ b, slowest first; the last one is what `matmul` uses."""

    def matmul(self, a: Array, b: Array) -> Array:
        """a (M, K) times b (K, N) -> (M, N)."""

    def matmul_tn(self, a: Array, b: Array) -> Array:
        """aᵀb: a (K, M), b (K, N) -> (M, N)."""

    def matmul_nt(self, a: Array, b: Array) -> Array:
        """abᵀ: a (M, K), b (N, K) -> (M, N)."""


class DenseLayer(Protocol):
    weights: Array
    bias: Array
    grad_weights: Array
    grad_bias: Array

    def forward(self, x: Array) -> Array:
        """x (batch, in_features) -> xW + b, (batch, out_features)."""

    def backward(self, grad_output: Array, needs_grad_input: bool = True) -> Array | None:
        """grad_output (batch, out_features) -> dL/dx; sets grad_weights and grad_bias. None if not needed."""


class Optimizer(Protocol):
    learning_rate: float

    def step(self, parameters: Sequence[Array], gradients: Sequence[Array]) -> None:
        """Change the parameters in place by one step against the gradients."""

    def state(self) -> dict[str, Any]:
        """{"steps": int, "buffers": {name: [one array per parameter]}}; empty buffers before the first step."""

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Continue from what `state` returned, or from the same with other stages' arrays or NumPy's in it."""


class NetworkLike(Protocol):
    layers: Sequence[DenseLayer]
    activation: str
    loss_name: str
    dtype: str
    layer_sizes: list[int]

    @property
    def parameters(self) -> list[Array]:
        """[W1, b1, W2, b2, …]: the network's own arrays, not copies."""

    def forward(self, x: Array, dropout_masks: Sequence[Array] | None = None) -> Array:
        """x (batch, features) -> the last layer's output, no activation on it, (batch, out_features)."""

    def loss(self, x: Array, y: Array, dropout_masks: Sequence[Array] | None = None) -> float:
        """The loss of forward(x) against y."""

    def gradients(self, x: Array, y: Array, dropout_masks: Sequence[Array] | None = None) -> list[Array]:
        """dL/dparameter for each parameter, in the order of `parameters`; the caller's own to keep."""

    def train_step(
        self, x: Array, y: Array, optimizer: Optimizer, dropout_masks: Sequence[Array] | None = None
    ) -> float:
        """Forward, backward, one optimizer step. Returns the loss before the step."""

    def predict(self, x: Array) -> Array:
        """The predicted class of each row, integers (batch,)."""


@dataclass(frozen=True)
class Stage:
    """One floor's rooms, side by side. Each room is the stage's module of that name.

    The rooms are typed as Any where a Protocol would only repeat the module's signature list;
    tests/floors/test_contract.py compares every stage's signatures with this file.
    """

    name: str
    arrays: ArraysRoom
    matmul: MatmulRoom
    activations: Any
    losses: Any
    dense: Any
    network: Any
    optimizers: Any
    ceilings: Any = None
    """Loops that measure what the machine can do at most (stage3_c/ceilings.py); None on a floor that has none."""

    @property
    def number(self) -> int:
        """Which floor: 1 to 4."""
        return STAGES.index(self.name) + 1

    @property
    def title(self) -> str:
        """For people: 'stage 2: NumPy'; of stage 4 also whether it is emulated, as `display_title` says it."""
        return display_title(self.name)


def is_emulated(name: str) -> bool:
    """Whether the CPU stands in for the device that the stage is written for: its times say nothing about a GPU.

    name: as `stage_name` takes it. Known once the stage is loaded; False before.
    """
    return bool(stage_facts(name).get("emulated"))


def display_title(name: str) -> str:
    """A stage's title wherever something measured is shown: 'stage 4: CUDA, emulated on the CPU' where it was.

    name: the full name of a stage
    """
    return f"{STAGE_TITLES[name]}, emulated on the CPU" if is_emulated(name) else STAGE_TITLES[name]


def short_title(name: str, emulated: bool) -> str:
    """The same for a narrow column: 'stage 3', 'stage 4 (emulated)'."""
    number = STAGE_TITLES[name].partition(":")[0]
    return f"{number} (emulated)" if emulated else number


def stage_name(name: str) -> str:
    """The full name of a stage: '2', 'stage2', 'numpy' and 'stage2_numpy' all mean stage2_numpy.

    Raises ValueError naming the choices where nothing matches.
    """
    for full in STAGES:
        number, _, short = full.partition("_")
        if name in (full, number, number.removeprefix("stage"), short):
            return full
    raise ValueError(f"unknown stage {name!r}; choose one of {', '.join(STAGES)}")


def available_stages() -> list[str]:
    """Names of the stages that are installed, with their rooms, first floor first."""
    return [name for name in STAGES if _has_rooms(name)]


def _has_rooms(name: str) -> bool:
    """Whether the package is here and holds a network (stage 4 had its emulator first). Imports nothing."""
    spec = importlib.util.find_spec(name)
    folders = (spec.submodule_search_locations if spec is not None else None) or ()
    return any((Path(folder) / "network.py").is_file() for folder in folders)


def load_stage(name: str) -> Stage:
    """Import a stage's rooms, and prepare the stage where it needs it: stage 3 compiles its C on first use.

    name: as `stage_name` takes it.
    Raises ValueError for an unknown name or for C that does not compile, StageUnavailable where the stage is not
    installed or this machine lacks what it needs, OSError where what it makes cannot be written.
    """
    full = stage_name(name)
    if full not in available_stages():
        raise StageUnavailable(f"{full} is not installed (this version has {', '.join(available_stages())})")
    prepare = getattr(importlib.import_module(full), "prepare", None)
    if prepare is not None:
        prepare()
    rooms = {room: cast(Any, importlib.import_module(f"{full}.{room}")) for room in ROOMS}
    has_ceilings = importlib.util.find_spec(f"{full}.ceilings") is not None
    return Stage(name=full, **rooms, ceilings=importlib.import_module(f"{full}.ceilings") if has_ceilings else None)


def load_device_clock() -> Any:
    """How long a GPU works on something by its own clock, and how fast it could be at best: no other stage has one."""
    return importlib.import_module(f"{STAGES[3]}.report.timing")


def load_part(stage: str, name: str) -> Any:
    """A module of a stage that is no room: what the course grades is in some of them.

    stage: as `stage_name` takes it; name: as in "library" or "kernels.softmax"
    """
    return importlib.import_module(f"{stage_name(stage)}.{name}")


def stage_facts(name: str) -> dict[str, Any]:
    """What a stage that is loaded has to say of itself beside a measurement; empty where it is not, or has nothing.

    name: as `stage_name` takes it. Values are JSON. Nothing is imported or built for the answer.
    """
    facts = getattr(sys.modules.get(stage_name(name)), "facts", None)
    return facts() if facts is not None else {}
