"""Looking at the machine: everything that `Facts` holds, each asked by a small function that raises nothing.

Only the standard library is imported at the top. What groundup itself depends on may be missing or broken, and the
doctor must be able to say so; so it is imported inside, and a failure is an answer.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from groundup.doctor.facts import DEPENDENCIES, OLDEST_PYTHON, DataFound, Facts, StageFound, Trial
from groundup.doctor.look_gpu import content, gpu_hardware, libcuda_places, nvidia_smi, packages_of_libcuda, toolkits

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = "groundup"
NEWEST_FIRST = ("3.13", "3.12", "3.11")
TRIAL_SECONDS = 120
"""How long a trial may take; the first use of a driver after a boot, and of a cache, takes longest."""

CUDA_WHEELS = (
    *("numba-cuda", "llvmlite", "cuda-bindings", "cuda-core", "cuda-toolkit"),
    *("nvidia-nvvm", "nvidia-cuda-nvrtc", "nvidia-nvjitlink", "nvidia-cuda-runtime", "nvidia-cuda-cccl"),
    *("nvidia-cuda-nvcc-cu12", "nvidia-cuda-nvrtc-cu12", "nvidia-nvjitlink-cu12", "nvidia-cuda-runtime-cu12"),
)
FILE_VARIABLES = ("GROUNDUP_DATA", "CUDA_HOME", "CUDA_PATH", "NUMBA_CUDA_DRIVER")


def gather() -> Facts:
    """Look at everything. Takes some seconds: stage 3 is compiled, data is read, a kernel is tried on the emulator and,
    where numba-cuda and a GPU are there, one on the GPU.

    On a Python that is too old for groundup only Python itself is looked at: nothing else could be imported.
    """
    found = _basics()
    if found.python[:2] < OLDEST_PYTHON:
        return found
    installed = _installed((*DEPENDENCIES, *CUDA_WHEELS))
    gpus, driver_cuda, smi_error = nvidia_smi()
    libcuda = libcuda_places(os.environ)
    cache, writable, free = _cache()
    data, place = _data()
    return replace(
        found,
        installed=installed,
        blas=_blas(),
        stages=_stages(),
        emulator=trial("emulator"),
        cache=cache,
        cache_writable=writable,
        cache_free=free,
        data=data,
        data_place=place,
        gpus=gpus,
        driver_cuda=driver_cuda,
        smi_error=smi_error,
        gpu_hardware=gpu_hardware(),
        libcuda=libcuda,
        libcuda_packages=packages_of_libcuda() if found.wsl and libcuda else (),
        toolkits=toolkits(os.environ),
        absent=tuple(name for name in FILE_VARIABLES if os.environ.get(name) and not Path(os.environ[name]).exists()),
        gpu_trial=trial("gpu") if gpus and "numba-cuda" in installed else None,
    )


def _basics() -> Facts:
    """The system and its Python."""
    release = os_release()
    alone = sys.prefix == sys.base_prefix
    return Facts(
        system=sys.platform,
        distribution=tuple(f"{release.get('ID', '')} {release.get('ID_LIKE', '')}".split()),
        machine=_machine(release),
        cores=_cores(),
        wsl="microsoft" in content(Path("/proc/version")).lower(),
        hosted=_hosted(os.environ),
        administrator=hasattr(os, "geteuid") and os.geteuid() == 0,
        variables=dict(os.environ),
        python=tuple(sys.version_info[:3]),
        executable=sys.executable,
        virtual=not alone or Path(sys.prefix, "conda-meta").is_dir(),
        externally_managed=alone and Path(sysconfig.get_path("stdlib"), "EXTERNALLY-MANAGED").is_file(),
        pip=_is_there("pip"),
        uv=shutil.which("uv") is not None,
        ensurepip=_is_there("ensurepip"),
        other_pythons=tuple(f"python{each}" for each in NEWEST_FIRST if shutil.which(f"python{each}")),
        root=str(ROOT),
        checkout=(ROOT / ".git").exists(),
        project=(ROOT / "pyproject.toml").is_file(),
        origin=_origin(),
    )


def trial(what: str) -> Trial:
    """Run trial.py, which tries a kernel on the "emulator" or the "gpu", in a process of its own: a driver that hangs
    or crashes takes only that process with it."""
    try:
        done = subprocess.run(
            [sys.executable, "-m", "groundup.doctor.trial", what],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=TRIAL_SECONDS,
        )
    except subprocess.TimeoutExpired:
        return Trial(False, f"no answer within {TRIAL_SECONDS} seconds")
    except OSError as error:
        return Trial(False, str(error))
    try:
        answer = json.loads(done.stdout.splitlines()[-1])
        return Trial(bool(answer["works"]), str(answer["said"]))
    except (IndexError, KeyError, TypeError, ValueError):  # it died before it could answer
        lines = done.stderr.strip().splitlines()
        return Trial(False, f"exit code {done.returncode}: {lines[-1] if lines else 'no message'}")


def _installed(names: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for name in names:
        try:
            version = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
        if version:  # None where an interrupted installation left an empty folder
            found[name] = version
    return found


def _is_there(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


def _origin() -> str | None:
    """What pip noted that it installed groundup from (packaging.python.org: direct_url.json)."""
    try:
        noted = importlib.metadata.distribution(PACKAGE).read_text("direct_url.json")
        return json.loads(noted).get("url") if noted else None
    except (importlib.metadata.PackageNotFoundError, ValueError):
        return None


def os_release(path: Path = Path("/etc/os-release")) -> dict[str, str]:
    """What Linux says of its distribution; the platform module reads it from Python 3.10 on only."""
    pairs = (line.partition("=") for line in content(path).splitlines() if "=" in line)
    return {name.strip(): value.strip().strip("\"'") for name, _, value in pairs}


def _machine(release: Mapping[str, str]) -> str:
    try:
        from shared.machine import environment
    except ImportError:  # NumPy is missing, which another line says, or Python is too old
        return f"{platform.machine()}, {release.get('PRETTY_NAME') or platform.platform()}"
    cores = environment.usable_cores()
    cpu = environment.cpu_name() or "processor without a name"
    text = f"{cpu}, {cores} usable core{'' if cores == 1 else 's'}, {platform.machine()}"
    return f"{text}, {environment.operating_system()}"


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _hosted(variables: Mapping[str, str]) -> str | None:
    if "COLAB_RELEASE_TAG" in variables or "COLAB_GPU" in variables:
        return "Google Colab"
    return "Kaggle" if "KAGGLE_KERNEL_RUN_TYPE" in variables else None


def _blas() -> str:
    try:
        from shared.machine import environment
    except ImportError:
        return ""
    return environment.blas()


def _stages() -> tuple[StageFound, ...]:
    from shared import contract

    return tuple(_stage(name) for name in contract.STAGES)


def _stage(name: str) -> StageFound:
    from shared import contract

    try:
        title = contract.load_stage(name).title
    except contract.StageUnavailable as reason:
        return StageFound(name, "unavailable", str(reason), fix=reason.fix)
    except Exception as error:  # whatever a broken stage raises is what the doctor is asked to report
        missing = error.name if isinstance(error, ModuleNotFoundError) else None
        own, restorable = getattr(error, "fix", None), not hasattr(error, "fix")
        return StageFound(
            name, "broken", f"{type(error).__name__}: {error}", fix=own, restorable=restorable, missing=missing
        )
    return StageFound(name, "ok", title, facts=contract.stage_facts(name))


def _cache() -> tuple[str, bool, int | None]:
    """(the folder for what groundup compiles, whether it may be written, how many bytes are free there)."""
    chosen = os.environ.get("GROUNDUP_CACHE")
    try:
        from shared.data.download import cache_folder

        folder = Path(chosen).expanduser() if chosen else cache_folder()
    except ImportError:
        folder = Path(chosen or Path.home() / ".cache" / PACKAGE)
    there = folder
    while not there.exists() and there != there.parent:
        there = there.parent
    try:
        free = shutil.disk_usage(there).free
    except OSError:
        free = None
    return str(folder), there.is_dir() and os.access(there, os.W_OK | os.X_OK), free


def _data() -> tuple[tuple[DataFound, ...], str]:
    """What came of looking for each data set, and where the full ones are looked for."""
    try:
        from shared.data.datasets import DATASETS, load_dataset
        from shared.data.download import cache_folder

        chosen = os.environ.get("GROUNDUP_DATA")
        root = Path(chosen).expanduser() if chosen else cache_folder()
    except ImportError as error:
        return (), f"not looked for: {error}"
    found = []
    for name in DATASETS:
        own = root / name if (root / name).is_dir() else root
        if name != DATASETS[0] and not any(own.glob("*-ubyte*")):
            found.append(DataFound(name, "absent", "", str(own)))
            continue
        try:
            data = load_dataset(name)
            said = f"{len(data.train):,} training and {len(data.test):,} test images"
            found.append(DataFound(name, "ok", said, str(own)))
        except (OSError, ValueError) as error:
            found.append(DataFound(name, "damaged", str(error), str(own)))
    return tuple(found), f"{'GROUNDUP_DATA' if chosen else 'cache'} {root}"
