"""What this machine has, what of groundup will run on it, and the exact command that mends what will not.

Every check is a small function that returns findings and raises nothing: a doctor that falls ill on a broken
machine is of no use. "ok" is well, "note" is missing but only needed for more, "problem" stops the main job.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from shared import environment
from shared.contract import STAGES, StageUnavailable, load_stage, stage_facts
from shared.datasets import DATASETS, load_dataset
from shared.download import cache_folder

OLDEST, NEWEST = (3, 11), (3, 13)
DEPENDENCIES = ("numpy", "numba", "matplotlib", "typer", "rich", "pooch", "safetensors", "jsonschema")
CUDA_VARIABLE = "GROUNDUP_CUDA"
DRIVER_OF_CUDA_13 = 580
"""The first major version of NVIDIA's driver that runs programs of CUDA 13; older ones from 525 on run CUDA 12's."""

MAIN_JOB_STAGES = ("stage1_pure_python", "stage2_numpy")
ROOT = Path(__file__).resolve().parent.parent
"""The folder that holds `shared` and the stages: a checkout, or an environment's site-packages."""


@dataclass(frozen=True)
class Finding:
    """One line of the report. status: "ok", "note" or "problem"; fix: the command that mends it, if there is one."""

    about: str
    status: str
    text: str
    fix: str | None = None


@dataclass(frozen=True)
class Diagnosis:
    """All findings; runs: what will run here; ok: whether the main job, `groundup race`, is among it."""

    findings: list[Finding]
    runs: list[str]
    ok: bool

    def as_dict(self) -> dict[str, Any]:
        """The diagnosis for JSON, with the environment beside it."""
        return {"schema": 1, "kind": "groundup doctor", **asdict(self), "environment": environment.environment()}


def diagnose() -> Diagnosis:
    """Look at everything. Takes a second or two, a few more the first time: it loads every stage, which compiles
    stage 3, and reads the data that it finds."""
    findings = [python(), machine(), blas(), *dependencies(), *stages(), gpu(), *data()]
    ok = not any(finding.status == "problem" for finding in findings)
    well = {finding.about for finding in findings if finding.status == "ok"}
    runs = []
    if ok:
        raced = ", ".join(name for name in STAGES if name in well)
        runs.append(f"groundup race: trains, checks and times {raced} on the bundled MNIST subset")
        runs += [f"groundup train {name}" for name in STAGES if name in well]
        runs += [f"groundup race --dataset {name}" for name in DATASETS[1:] if name in well]
    return Diagnosis(findings, runs, ok)


def python() -> Finding:
    """Is this a Python that groundup is tested on?"""
    version = f"{platform.python_version()}, {sys.executable}"
    here = sys.version_info[:2]
    if here < OLDEST:
        text = f"{version}: too old; groundup needs {_dotted(OLDEST)} or newer"
        return Finding("python", "problem", text, "make race PYTHON=python3.11")
    if here > NEWEST:
        return Finding("python", "note", f"{version}: newer than the newest tested, {_dotted(NEWEST)}")
    return Finding("python", "ok", version)


def machine() -> Finding:
    """Which processor and system is this?"""
    cores = environment.usable_cores()
    cpu = environment.cpu_name() or "processor without a name"
    text = f"{cpu}, {cores} usable core{'' if cores == 1 else 's'}, {platform.machine()}"
    return Finding("machine", "ok", f"{text}, {environment.operating_system()}")


def blas() -> Finding:
    """Which library does NumPy's `@` use, and with how many threads?"""
    set_variables = [f"{name}={os.environ[name]}" for name in environment.BLAS_THREAD_VARIABLES if name in os.environ]
    return Finding("BLAS", "ok", ", ".join([environment.blas(), *set_variables]))


def dependencies() -> list[Finding]:
    """Is every package that groundup needs installed? groundup itself may run from a checkout without being so."""
    findings = []
    for name in DEPENDENCIES:
        version = environment.installed_version(name)
        if version:
            findings.append(Finding(name, "ok", version))
        else:
            findings.append(Finding(name, "problem", "not installed", f'"{sys.executable}" -m pip install {name}'))
    return findings


def stages() -> list[Finding]:
    """Does every stage load? The first two must; the others say what they wait for."""
    return [_stage(name) for name in STAGES]


def _stage(name: str) -> Finding:
    needed = name in MAIN_JOB_STAGES
    try:
        title = load_stage(name).title
    except StageUnavailable as reason:
        return Finding(name, "problem" if needed else "note", str(reason), restore(name) if needed else reason.fix)
    except Exception as error:  # whatever a broken stage raises is what the doctor is asked to report
        fix = error.fix if hasattr(error, "fix") else restore(name)
        return Finding(name, "problem", f"does not load: {type(error).__name__}: {error}", fix)
    facts = stage_facts(name)
    if "backend" in facts:
        return Finding(name, "ok", "; ".join([title, *_device(name, facts)]), _gpu_command(facts))
    return Finding(name, "ok", "; ".join([title, *_compiled(facts)]))


def _compiled(facts: Mapping[str, Any]) -> list[str]:
    """What a stage that was compiled tells of itself: by what, for which registers and threads, with which options."""
    if not facts:
        return []
    bits, threads = facts["simd_bits"], facts["threads"]
    width = f"{bits}-bit SIMD: {bits // 32} float32 at a time"
    found = [width, f"{threads} thread{'' if threads == 1 else 's'}"]
    return [facts["compiler"], *found, " ".join(facts["flags"])] if "compiler" in facts else found


def _device(name: str, facts: Mapping[str, Any]) -> list[str]:
    """What runs the kernels of a stage that is written for a GPU, and why it is that."""
    chosen = getattr(sys.modules.get(f"{name}.backend"), "BACKEND", None)
    said = [facts["backend"], facts["device"], *([chosen.reason] if chosen else [])]
    return list(dict.fromkeys(said))  # on a GPU, the reason is the device


def _gpu_command(facts: Mapping[str, Any]) -> str | None:
    """What would bring the kernels from the CPU to the GPU; None where they are on one, or where there is none."""
    cards = environment.nvidia_gpus()
    if not facts["emulated"] or not cards:
        return None
    if os.environ.get(CUDA_VARIABLE, "gpu") != "gpu":
        return f"unset {CUDA_VARIABLE}"
    version = cards[0]["driver"].partition(".")[0]
    libraries = "cu13" if version.isdecimal() and int(version) >= DRIVER_OF_CUDA_13 else "cu12"
    return f'"{sys.executable}" -m pip install "numba-cuda[{libraries}]"'


def gpu() -> Finding:
    """Is there an NVIDIA GPU? No part of the course needs one."""
    cards = environment.nvidia_gpus()
    if not cards:
        return Finding("NVIDIA GPU", "note", "none seen through nvidia-smi; nothing here needs one")
    texts = [f"{card['name']}, {card['memory']}, driver {card['driver']}" for card in cards]
    return Finding("NVIDIA GPU", "ok", "; ".join(texts))


def data() -> list[Finding]:
    """Which data sets are there? The bundled one must be; the full ones come from GROUNDUP_DATA or the cache."""
    chosen = os.environ.get("GROUNDUP_DATA")
    folder = Path(chosen).expanduser() if chosen else cache_folder()
    place = f"{'GROUNDUP_DATA' if chosen else 'cache'} {folder}"
    findings = [_bundled()]
    if chosen and not folder.is_dir():
        text = f"{folder} is not a folder, so no full data set is found"
        findings.append(Finding("GROUNDUP_DATA", "note", text, f'mkdir -p "{folder}"'))
    return findings + [_full(name, folder, place) for name in DATASETS[1:]]


def _bundled() -> Finding:
    name = DATASETS[0]
    try:
        found = load_dataset(name)
    except (OSError, ValueError) as error:
        return Finding(name, "problem", f"damaged: {error}", restore("shared/mnist_subset"))
    return Finding(name, "ok", f"{len(found.train):,} training and {len(found.test):,} test images, bundled")


def _full(name: str, folder: Path, place: str) -> Finding:
    fetch = f"groundup train 2 --dataset {name} --epochs 1 --download"
    own = folder / name if (folder / name).is_dir() else folder
    if not any(own.glob("*-ubyte*")):
        return Finding(name, "note", f"not in {place}; only needed for training on the full set", fetch)
    try:
        found = load_dataset(name)
    except (OSError, ValueError) as error:
        # A download fills gaps and overwrites nothing, so what is damaged must move out of its way first.
        move = "move" if sys.platform == "win32" else "mv"
        return Finding(name, "note", f"not usable: {error}", f'{move} "{own}" "{own}.damaged" && {fetch}')
    return Finding(name, "ok", f"{len(found.train):,} training and {len(found.test):,} test images, {place}")


def restore(part: str) -> str | None:
    """The command that brings back a folder of groundup as it was published; None where nothing tells its source."""
    if (ROOT / ".git").exists():
        return f'git -C "{ROOT}" restore {part}'
    try:
        # pip notes here what it installed from (https://packaging.python.org/specifications/direct-url/).
        origin = importlib.metadata.distribution(environment.PACKAGE).read_text("direct_url.json")
    except importlib.metadata.PackageNotFoundError:
        return None
    url = json.loads(origin).get("url") if origin else None
    return f'"{sys.executable}" -m pip install --force-reinstall --no-deps "{url}"' if url else None


def _dotted(version: tuple[int, int]) -> str:
    return ".".join(map(str, version))
