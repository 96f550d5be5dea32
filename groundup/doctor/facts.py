"""The two things that pass through the doctor: the facts of a machine (input) and the findings about it (output).

`Facts` holds nothing but plain values. survey.py fills them in for this machine; a test writes down any other machine:
Windows without a compiler, WSL2 with a stray driver, a GPU that CUDA 13 no longer knows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from shared.machine.gpu import Gpu

OLDEST_PYTHON, NEWEST_PYTHON = (3, 11), (3, 14)
"""The versions of Python that groundup is tested on."""

DEPENDENCIES = {
    "numpy": "2.0",
    "numba": "0.62",
    "matplotlib": "3.9",
    "typer": "0.21",
    "rich": "13.7",
    "pooch": "1.8",
    "safetensors": "0.4.3",
}
"""Every package that groundup needs and the oldest version that does; a test compares them with pyproject.toml."""

TOO_NEW_FOR_INTEL_MACS = {"numba": "0.63"}
"""The first version without wheels for Intel Macs: pip would build it from source, which needs LLVM."""


@dataclass(frozen=True)
class Finding:
    """One line of the report.

    status: "ok", "note" (missing, but only needed for more) or "problem" (stops the main job)
    fix: the command that mends it; where it takes several, one a line, to be run in this order; None where none does
    """

    about: str
    status: str
    text: str
    fix: str | None = None


@dataclass(frozen=True)
class Trial:
    """The result of trying something in a process of its own. said: what it ran on, or the error where it failed."""

    works: bool
    said: str


@dataclass(frozen=True)
class StageFound:
    """The result of loading a stage.

    status: "ok", "unavailable" (the machine lacks something that the stage needs) or "broken"
    said: its title, or the reason
    facts: what contract.stage_facts says about it
    fix: the command that its own error names; restorable: whether it may be brought back as it was published
    missing: the module that could not be found, where that was the error
    """

    name: str
    status: str
    said: str
    facts: Mapping[str, Any] = field(default_factory=dict)
    fix: str | None = None
    restorable: bool = True
    missing: str | None = None


@dataclass(frozen=True)
class DataFound:
    """The result of looking for a data set. status: "ok", "absent" or "damaged"; folder: its own, where it has one."""

    name: str
    status: str
    said: str
    folder: str = ""


@dataclass(frozen=True)
class Facts:
    """A machine. The defaults are an everyday one: Ubuntu, a virtual environment, a compiler, no GPU."""

    system: str = "linux"
    """sys.platform: linux, darwin or win32."""
    distribution: tuple[str, ...] = ("ubuntu", "debian")
    """ID and ID_LIKE of /etc/os-release."""
    machine: str = ""
    """Processor, cores, architecture and system, for people."""
    cores: int = 8
    wsl: bool = False
    hosted: str | None = None
    """"Google Colab" or "Kaggle" where this is one of their notebooks."""
    administrator: bool = False
    variables: Mapping[str, str] = field(default_factory=dict)
    """The environment variables."""

    python: tuple[int, ...] = (3, 12, 3)
    namesakes: tuple[str, ...] = ()
    """Packages of somebody else, in the working folder or on Python's path, that have the name of one of groundup's."""
    emulator_twice: bool = False
    """Whether the emulator is installed as a package of its own, too."""
    executable: str = "/home/ada/groundup/.venv/bin/python"
    virtual: bool = True
    """Whether Python runs in an environment of its own: venv, uv or conda."""
    externally_managed: bool = False
    """Whether pip refuses to install into this Python, which the system manages (PEP 668)."""
    pip: bool = True
    uv: bool = False
    ensurepip: bool = True
    """Whether `python -m venv` works; Debian and Ubuntu keep what it needs in a package of its own."""
    other_pythons: tuple[str, ...] = ()
    """The programs on the PATH that are Pythons groundup is tested on, newest first."""

    root: str = "/home/ada/groundup"
    """The folder that holds `shared` and the stages: a checkout, or an environment's site-packages."""
    checkout: bool = True
    """Whether that folder is under git."""
    project: bool = True
    """Whether that folder can be installed from: it holds pyproject.toml."""
    origin: str | None = None
    """What pip installed groundup from, where it noted that."""

    installed: Mapping[str, str] = field(default_factory=dict)
    """Distribution -> version, of all that the doctor asks after."""
    blas: str = ""
    stages: tuple[StageFound, ...] = ()
    emulator: Trial = Trial(True, "")
    cache: str = "/home/ada/.cache/groundup"
    cache_writable: bool = True
    cache_refused: str = ""
    """The user's cache folder, if it cannot be written and `cache` is a temporary one."""
    cache_free: int | None = 10**11
    """Bytes."""
    data: tuple[DataFound, ...] = ()
    data_place: str = "cache /home/ada/.cache/groundup"

    gpus: tuple[Gpu, ...] = ()
    driver_cuda: tuple[int, int] | None = None
    """The newest CUDA that the driver knows, as nvidia-smi writes it above its table."""
    smi_error: str = ""
    """What nvidia-smi says where it fails."""
    gpu_hardware: bool | None = None
    """Whether there is an NVIDIA GPU on the bus, with or without a driver; None where the system does not tell."""
    libcuda: tuple[str, ...] = ()
    """Where the driver's library lies, in the order in which it is looked for."""
    libcuda_packages: tuple[str, ...] = ()
    """The system's packages that brought a driver's library."""
    toolkits: Mapping[str, str] = field(default_factory=dict)
    """Folder -> version of the CUDA toolkits that are installed outside Python."""
    absent: tuple[str, ...] = ()
    """The environment variables that name a file or folder which is not there."""
    gpu_trial: Trial | None = None
    """One small kernel on the GPU; None where it was not tried."""

    mpiexec: str = ""
    """The mpiexec that starts ranks; "" where there is none."""
    ranks_trial: Trial | None = None
    """Two ranks that count each other. said: the MPI that mpi4py uses. None where mpi4py is not installed."""


def version(text: str | None) -> tuple[int, ...]:
    """'12.9.86' as (12, 9, 86), for comparing; what is no number ends it. () for None."""
    numbers = []
    for part in (text or "").split("."):
        if not part.isdecimal():
            break
        numbers.append(int(part))
    return tuple(numbers)


def dotted(numbers: tuple[int, ...]) -> str:
    """(12, 9) as '12.9'."""
    return ".".join(map(str, numbers))
