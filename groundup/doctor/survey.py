"""Collecting everything that `Facts` holds about this machine: from shared/machine, and by trying what must work.

Only the standard library is imported at the top. A package that groundup depends on may be missing or broken, and the
doctor has to say so: it is imported inside a function, and its failure is an answer.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import sys
from collections.abc import Sequence
from dataclasses import replace
from importlib import metadata
from pathlib import Path

from groundup import own_packages, ranks
from groundup.doctor.facts import DEPENDENCIES, OLDEST_PYTHON, DataFound, Facts, StageFound, Trial
from shared.machine import caches, gpu, hardware, software
from shared.machine.processes import ROOT, finding_our_packages, python, run

NEWEST_FIRST = ("3.14", "3.13", "3.12", "3.11")
TRIAL_SECONDS = 120
"""How long a trial may take; the first use of a driver after a boot, and of a cache, takes longest."""

CUDA_WHEELS = (
    *("numba-cuda", "llvmlite", "cuda-bindings", "cuda-core", "cuda-toolkit"),
    *("nvidia-nvvm", "nvidia-cuda-nvrtc", "nvidia-nvjitlink", "nvidia-cuda-runtime", "nvidia-cuda-cccl"),
    *("nvidia-cuda-nvcc-cu12", "nvidia-cuda-nvrtc-cu12", "nvidia-nvjitlink-cu12", "nvidia-cuda-runtime-cu12"),
)
FILE_VARIABLES = (caches.DATA_VARIABLE, "CUDA_HOME", "CUDA_PATH", "NUMBA_CUDA_DRIVER")


def gather() -> Facts:
    """Ask and try everything. Takes some seconds: stage 3 is compiled, data is read, a kernel is tried on the emulator
    and, where numba-cuda and a GPU are there, one on the GPU.

    On a Python that is too old for groundup only Python itself is looked at: nothing else could be imported.
    """
    facts = _basics()
    if facts.python[:2] < OLDEST_PYTHON:
        return facts
    installed = software.installed_versions((*DEPENDENCIES, *CUDA_WHEELS))
    driver = gpu.nvidia_smi()
    libcuda = gpu.libcuda_places(os.environ)
    cache, usual, chosen = caches.compiled(), caches.user_cache(), os.environ.get(caches.CACHE_VARIABLE)
    data, place = _data()
    return replace(
        facts,
        installed=installed,
        blas=software.blas(),
        stages=_stages(),
        emulator=trial("emulator"),
        cache=str(cache),
        cache_writable=caches.may_be_written(cache),
        cache_refused="" if chosen or cache == usual else str(usual),
        cache_free=caches.free_bytes(cache),
        data=data,
        data_place=place,
        gpus=driver.gpus,
        driver_cuda=driver.cuda,
        smi_error=driver.error,
        gpu_hardware=gpu.gpu_hardware(),
        libcuda=libcuda,
        libcuda_packages=gpu.packages_of_libcuda() if facts.wsl and libcuda else (),
        toolkits=gpu.toolkits(os.environ),
        absent=tuple(name for name in FILE_VARIABLES if os.environ.get(name) and not Path(os.environ[name]).exists()),
        gpu_trial=trial("gpu") if driver.gpus and "numba-cuda" in installed else None,
        mpiexec=ranks.mpiexec() or "",
        ranks_trial=_two_ranks() if software.has_module("mpi4py") else None,
    )


def _basics() -> Facts:
    """The system and its Python."""
    release = software.os_release()
    return Facts(
        system=sys.platform,
        distribution=tuple(f"{release.get('ID', '')} {release.get('ID_LIKE', '')}".split()),
        machine=_machine(),
        cores=hardware.usable_cores(),
        wsl=software.on_wsl(),
        hosted=software.hosted_notebook(os.environ),
        administrator=software.administrator(),
        variables=dict(os.environ),
        python=tuple(sys.version_info[:3]),
        namesakes=tuple(own_packages.namesakes()),
        emulator_twice=any(metadata.distributions(name="cuda-emulator")),
        executable=sys.executable,
        virtual=software.virtual_environment(),
        externally_managed=software.externally_managed(),
        pip=software.has_module("pip"),
        uv=shutil.which("uv") is not None,
        ensurepip=software.has_module("ensurepip"),
        other_pythons=tuple(f"python{version}" for version in NEWEST_FIRST if shutil.which(f"python{version}")),
        root=str(ROOT),
        checkout=(ROOT / ".git").exists(),
        project=(ROOT / "pyproject.toml").is_file(),
        origin=software.installed_from(),
    )


def _machine() -> str:
    cores = hardware.usable_cores()
    cpu = hardware.cpu_name() or "processor without a name"
    usable = f"{cores} usable core{'' if cores == 1 else 's'}"
    return ", ".join([cpu, usable, platform.machine(), software.operating_system()])


def _two_ranks() -> Trial:
    """Start two ranks, of which the first says how many there are: mpiexec of another MPI than mpi4py's starts two that
    are alone."""
    program = ranks.mpiexec()
    return trial("ranks", [program, "-n", "2"]) if program else Trial(False, "there is no mpiexec")


def trial(what: str, by: Sequence[str] = ()) -> Trial:
    """Run trial.py, which tries a kernel on the "emulator" or the "gpu", or the "ranks", in a process of its own: a
    driver that hangs or crashes takes only that process with it. by: the program that starts it, with its arguments"""
    command = [*by, *python("-m", "groundup.doctor.trial", what)]
    done = run(command, TRIAL_SECONDS, variables=finding_our_packages(os.environ))
    if done.code is None:
        return Trial(False, done.failure)
    try:
        # Of two ranks, both may answer in a line, and their ends of it come after that.
        answer, _ = json.JSONDecoder().raw_decode(done.output.strip().splitlines()[-1])
        return Trial(bool(answer["works"]), str(answer["said"]))
    except (IndexError, KeyError, TypeError, ValueError):  # it died before it could answer
        return Trial(False, f"exit code {done.code}: {done.last_error or 'no message'}")


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


def _data() -> tuple[tuple[DataFound, ...], str]:
    """(what came of looking for each data set, where the full ones are looked for)."""
    try:
        from shared.data.datasets import DATASETS, load_dataset
    except Exception as error:  # a package that is missing or damaged, which its own line or a stage's says
        return (), f"not looked for: {error}"
    root = caches.data()
    data_sets = []
    for name in DATASETS:
        own = root / name if (root / name).is_dir() else root
        if name != DATASETS[0] and not any(own.glob("*-ubyte*")):
            data_sets.append(DataFound(name, "absent", "", str(own)))
            continue
        try:
            data = load_dataset(name)
            said = f"{len(data.train):,} training and {len(data.test):,} test images"
            data_sets.append(DataFound(name, "ok", said, str(own)))
        except Exception as error:  # the data is damaged, or NumPy is
            kind = "" if isinstance(error, (OSError, ValueError)) else f"{type(error).__name__}: "
            data_sets.append(DataFound(name, "damaged", f"{kind}{error}", str(own)))
    return tuple(data_sets), f"{caches.DATA_VARIABLE if os.environ.get(caches.DATA_VARIABLE) else 'cache'} {root}"
