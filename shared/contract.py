"""What every stage must provide, as types, and the two functions that import a stage.

A stage is a package of rooms (modules) with the same names on every stage: seven that every stage has, and three of
convolutional networks. Code outside the stages imports them through this module only:

    load_stage("stage2_numpy")           prepares the stage and returns its rooms: stage.matmul.matmul(a, b)
    load_part("stage3_c", "library")     one module of a stage that is not a room

So shared code works on every stage without a name of one in it. Array stands for the type that the stage computes with:
lists of floats on the first stage, numpy.ndarray on the second. `stage.arrays.asarray` converts numbers to it and
`stage.arrays.to_host` converts them back.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.machinery import PathFinder
from typing import TYPE_CHECKING, Any, Protocol, TypeGuard, cast

from shared.names import ACTIVATIONS as ACTIVATIONS
from shared.names import LABEL_LOSSES as LABEL_LOSSES
from shared.names import LOSSES as LOSSES
from shared.names import OPTIMIZERS as OPTIMIZERS

if TYPE_CHECKING:  # every command imports this file, and stage 1 and the doctor load stages without NumPy
    import numpy as np

    from shared.architectures import Architecture

Array = Any
"""A stage's own array. Shared code only passes it from one function of the stage to another."""

STAGES = ("stage1_pure_python", "stage2_numpy", "stage3_c", "stage4_numba_cuda")
STAGE_TITLES = dict(zip(STAGES, ("stage 1: pure Python", "stage 2: NumPy", "stage 3: C", "stage 4: CUDA"), strict=True))
"""The title of each stage by its name, known without importing it: a chart may show results of another machine."""

ROOMS = ("arrays", "matmul", "activations", "losses", "dense", "network", "optimizers")
IMAGE_ROOMS = ("convolution", "pooling", "batch_norm")
"""The rooms of convolutional networks, which not every stage has: they are None where it has not."""


class StageUnavailable(Exception):
    """The stage cannot be used on this machine; the message says why and what to do.

    fix: the command that repairs it, or None if there is no such command
    """

    def __init__(self, message: str, fix: str | None = None) -> None:
        super().__init__(message)
        self.fix = fix


class ArraysRoom(Protocol):
    def asarray(self, values: object, dtype: str = "float32") -> Array:
        """Values as the stage's own array of 1, 2 or 4 dimensions.

        values: nested sequences, or anything numpy.asarray takes
        """

    def to_host(self, array: Array) -> Any:
        """The array as something numpy.asarray accepts."""


class MatmulRoom(Protocol):
    LADDER: Mapping[str, Callable[[Array, Array], Array]]
    """The ladder of this stage: functions that compute a @ b, slowest first. `matmul` uses the last rung."""

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
        """Continue from a result of `state`, whose arrays may be those of another stage or NumPy's."""


class NetworkLike(Protocol):
    """A network of any architecture; shared/network_base.py says more about each attribute and method.

    layers: one object for each layer of the architecture
    activation: of an `mlp`; any other architecture names its own, and then this is ""
    layer_sizes: of an `mlp` [in_features, hidden, …, classes]; else [numbers of one input, classes]
    """

    layers: Sequence[Any]
    activation: str
    loss_name: str
    dtype: str
    layer_sizes: list[int]

    @property
    def architecture(self) -> Architecture:
        """The network's form as data."""

    @property
    def parameters(self) -> list[Array]:
        """[W1, b1, W2, b2, …], in the order of `architecture.parameters()`: the network's own arrays, not copies."""

    @property
    def layer_gradients(self) -> list[Array]:
        """The layers' own gradients in the order of `parameters`; the next step changes them."""

    def normalise_over(self, whole_batch: Any) -> None:
        """In training, normalise by the statistics of all ranks' rows of a batch; None: of the rows at hand."""

    @property
    def running_statistics(self) -> list[Array]:
        """[mean, variance, …] of the batch normalisations in order: the network's own arrays."""

    def forward(self, x: Array, dropout_masks: Sequence[Array] | None = None, training: bool = False) -> Array:
        """x (batch, numbers of one input) or images -> the last layer's raw outputs, (batch, classes).

        dropout_masks: None, or one array (batch, numbers of one sample) for each Dropout layer of the architecture
        training: whether batch normalisation uses the batch's own statistics, and changes the running ones
        """

    def outputs(self, x: Array, dropout_masks: Sequence[Array] | None = None, training: bool = False) -> list[Array]:
        """The output of every layer of the architecture, in order."""

    def loss(self, x: Array, y: Array, dropout_masks: Sequence[Array] | None = None, training: bool = False) -> float:
        """The loss of forward(x) against y. training: the same, but for the running statistics, which stay."""

    def gradients(self, x: Array, y: Array, dropout_masks: Sequence[Array] | None = None) -> list[Array]:
        """dL/dparameter for each parameter, in the order of `parameters`; arrays that no later call overwrites."""

    def train_step(
        self, x: Array, y: Array, optimizer: Optimizer, dropout_masks: Sequence[Array] | None = None
    ) -> float:
        """Forward, backward, one optimizer step. Returns the loss before the step."""

    def predict(self, x: Array) -> Array:
        """The predicted class of each row, integers (batch,)."""


class ImageChanges(Protocol):
    """How the training images are changed in each epoch: shared.data.augmentation.Augmentation."""

    @property
    def shift(self) -> int: ...

    @property
    def background(self) -> float: ...

    def changes(self, samples: np.ndarray, seed: int, epoch: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(angles in radians, pixels down, pixels right) for these samples in this epoch."""


class ResidentRun(Protocol):
    """A training whose data set stays on the device, so that the host can order several steps at a time."""

    interval: int
    """The largest number of steps to take at once."""

    def begin_epoch(self, order: np.ndarray) -> None:
        """The order in which the coming steps visit the samples: each index once, (n,)."""

    def prefetch(self, order: np.ndarray) -> None:
        """Send the order of the next epoch to the device ahead of its `begin_epoch`."""

    def take(
        self, first: int, rates: Sequence[float], steps_before: int, meanwhile: Callable[[], None] | None = None
    ) -> list[float]:
        """Take one step for each learning rate, from step `first` (from 0) of the epoch. Returns their losses.

        steps_before: steps of the whole training before these; the dropout masks depend on it, and the changes of the
            images on the whole epochs in it
        meanwhile: called while the device computes
        """


class ResidentNetwork(NetworkLike, Protocol):
    """A network with the optional capability to train on data that stays on its device; see `can_be_resident`."""

    def resident(
        self,
        x: np.ndarray,
        labels: np.ndarray,
        optimizer: Optimizer,
        batch_size: int,
        seed: int,
        augmentation: ImageChanges | None = None,
    ) -> ResidentRun | None:
        """A training on these samples (n, features) and labels (n,): the same numbers as by `train_step`.

        seed: with the Dropout layers' rates it decides about the masks, as in shared.dropout
        augmentation: how the images are changed in each epoch. None comes back if the device cannot do that.
        """


def can_be_resident(network: NetworkLike) -> TypeGuard[ResidentNetwork]:
    """Whether the network has the method `resident`. A class may also switch it off with `resident = None`."""
    return getattr(network, "resident", None) is not None


@dataclass(frozen=True)
class Stage:
    """The rooms of one floor. Each attribute is the stage's module of that name.

    Some rooms are typed as Any, because a Protocol would only repeat the list of signatures with which
    tests/floors/test_contract.py compares every stage.
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
    """Loops that measure the machine's highest speeds (stage3_c/ceilings.py); None on a stage without them."""
    convolution: Any = None
    pooling: Any = None
    batch_norm: Any = None

    @property
    def number(self) -> int:
        """The number of the stage, from 1 to 4."""
        return STAGES.index(self.name) + 1

    @property
    def title(self) -> str:
        """The title to show: 'stage 2: NumPy', 'stage 4: CUDA, emulated on the CPU'; see `display_title`."""
        return display_title(self.name)


def is_emulated(name: str) -> bool:
    """Whether the stage's kernels run on the CPU by emulation, so that its times say nothing about a GPU.

    name: any name that `stage_name` takes. False for a stage that is not loaded yet.
    """
    return bool(stage_facts(name).get("emulated"))


def display_title(name: str) -> str:
    """The title of a stage beside its measurements, such as 'stage 4: CUDA, emulated on the CPU'.

    name: the full name of a stage
    """
    return f"{STAGE_TITLES[name]}, emulated on the CPU" if is_emulated(name) else STAGE_TITLES[name]


def short_title(name: str, emulated: bool) -> str:
    """The title for a narrow column: 'stage 3', 'stage 4 (emulated)'. name: the full name of a stage."""
    number = STAGE_TITLES[name].partition(":")[0]
    return f"{number} (emulated)" if emulated else number


def stage_name(name: str) -> str:
    """The full name of a stage: '2', 'stage2', 'numpy' and 'stage2_numpy' all mean stage2_numpy.

    Raises ValueError with the choices for any other name.
    """
    for full in STAGES:
        number, _, short = full.partition("_")
        if name in (full, number, number.removeprefix("stage"), short):
            return full
    raise ValueError(f"unknown stage {name!r}; choose one of {', '.join(STAGES)}")


def available_stages() -> list[str]:
    """Names of the stages that are installed, first stage first. Imports none of them."""
    return [name for name in STAGES if _has_rooms(name)]


def _has_rooms(name: str) -> bool:
    spec = importlib.util.find_spec(name)
    folders = spec.submodule_search_locations if spec is not None else None
    # Not find_spec("NAME.network"), which would import the package; and not a look at the files: it may be an archive.
    return bool(folders) and PathFinder.find_spec(f"{name}.network", folders) is not None


def load_stage(name: str) -> Stage:
    """Prepare a stage and import its rooms. The only way to load a stage.

    name: any name that `stage_name` takes. A stage with a function `prepare()` is prepared first: stage 3 compiles its
    C on first use, for example.
    Raises ValueError for an unknown name or for C that does not compile, StageUnavailable if the stage is not installed
    or the machine lacks something that it needs, OSError if a compiled file cannot be written.
    """
    full = stage_name(name)
    if full not in available_stages():
        raise StageUnavailable(f"{full} is not installed (this version has {', '.join(available_stages())})")
    prepare = getattr(importlib.import_module(full), "prepare", None)
    if prepare is not None:
        prepare()
    rooms = {room: cast(Any, importlib.import_module(f"{full}.{room}")) for room in ROOMS}
    for room in (*IMAGE_ROOMS, "ceilings"):
        if importlib.util.find_spec(f"{full}.{room}") is not None:
            rooms[room] = importlib.import_module(f"{full}.{room}")
    return Stage(name=full, **rooms)


def load_part(stage: str, name: str) -> Any:
    """Import one module of a stage that is not a room. The only way to load a part of a stage.

    stage: any name that `stage_name` takes; name: the module's name within it, like "library" or "kernels.softmax"
    The stage is not prepared: `load_stage` does that.
    """
    return importlib.import_module(f"{stage_name(stage)}.{name}")


def stage_facts(name: str) -> dict[str, Any]:
    """The facts that a loaded stage reports about itself beside its measurements, as JSON values.

    name: any name that `stage_name` takes. Empty for a stage that is not loaded or reports nothing.
    """
    facts = getattr(sys.modules.get(stage_name(name)), "facts", None)
    return facts() if facts is not None else {}
