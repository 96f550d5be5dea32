"""The findings about everything but the GPU: Python and its environment, packages, compiler, stages, data.

Each function takes `Facts` and returns findings. Nothing here asks the machine.
"""

from __future__ import annotations

import re

from groundup.doctor import remedies
from groundup.doctor.facts import (
    DEPENDENCIES,
    NEWEST_PYTHON,
    OLDEST_PYTHON,
    DataFound,
    Facts,
    Finding,
    StageFound,
    dotted,
    version,
)
from groundup.ranks import HERE, SIZE, THREADS, number
from shared.machine.software import THREAD_VARIABLES

MAIN_JOB_STAGES = ("stage1_pure_python", "stage2_numpy")
DEVICE_STAGE = "stage4_numba_cuda"
COMPILED_STAGE = "stage3_c"
ENOUGH_SPACE = 300 * 10**6
"""Bytes: both full data sets, what stage 3 and some hundred kernels compile to, and room to spare."""


def findings(facts: Facts) -> list[Finding]:
    """Everything but the GPU, in the order of the report."""
    return [
        *[python(facts), environment(facts), machine(facts), blas(facts)],
        *namesakes(facts),
        *dependencies(facts),
        *compiler(facts),
        *stages(facts),
        emulator(facts),
        cache(facts),
        *data(facts),
        *several_ranks(facts),
    ]


def python(facts: Facts) -> Finding:
    """Is this a Python that groundup is tested on?"""
    text = f"{dotted(facts.python)}, {facts.executable}"
    if facts.python[:2] < OLDEST_PYTHON:
        text = f"{text}: too old; groundup needs {dotted(OLDEST_PYTHON)} or newer"
        return Finding("python", "problem", text, remedies.newer_python(facts))
    if facts.python[:2] > NEWEST_PYTHON:
        text = f"{text}: newer than the newest tested, {dotted(NEWEST_PYTHON)}; Numba may not support it yet"
        return Finding("python", "note", text, remedies.newer_python(facts) if facts.other_pythons else None)
    return Finding("python", "ok", text)


def environment(facts: Facts) -> Finding:
    """Does Python run in an environment of its own, into which pip may install?"""
    about = "virtual environment"
    if facts.virtual:
        how = "" if facts.pip else ", without pip"
        return Finding(about, "ok", f"yes{how}")
    if facts.hosted:
        return Finding(about, "ok", f"none, and none needed: this is {facts.hosted}")
    if facts.externally_managed:
        text = "none: this is the system's own Python, and pip may not install into it (externally-managed-environment)"
        return Finding(about, "note", text, remedies.environment(facts))
    return Finding(
        about,
        "note",
        "none: packages that you install here mix with those of other projects",
        remedies.environment(facts),
    )


def namesakes(facts: Facts) -> list[Finding]:
    """Packages under the names of groundup's: a script beside one, or one with its folder on PYTHONPATH, imports it."""
    said = "is not groundup's, but has the name of its package: a script that is started beside it imports it instead"
    return [
        Finding("package", "note", f"{place} {said}", remedies.move(facts, place, _renamed(place)))
        for place in facts.namesakes
    ]


def _renamed(place: str) -> str:
    """A name that says whose it is: .../shared becomes .../my_shared."""
    folder, slash, name = place.rpartition("\\" if "\\" in place else "/")
    return f"{folder}{slash}my_{name}"


def machine(facts: Facts) -> Finding:
    """Which processor and system is this?"""
    where = [*(["WSL2"] if facts.wsl else []), *([facts.hosted] if facts.hosted else [])]
    return Finding("machine", "ok", ", ".join([facts.machine, *where]))


def blas(facts: Facts) -> Finding:
    """Which library does NumPy's `@` use, and with how many threads?"""
    chosen = {name: facts.variables[name] for name in THREAD_VARIABLES if facts.variables.get(name)}
    text = ", ".join([facts.blas or "not known", *(f"{name}={value}" for name, value in chosen.items())])
    wrong = [name for name, value in chosen.items() if not value.isdecimal() or int(value) == 0]
    many = [name for name, value in chosen.items() if value.isdecimal() and int(value) > facts.cores]
    if wrong:
        return Finding("BLAS", "note", f"{text}: expected a number of threads", remedies.unset(facts, *wrong))
    if many:
        text = f"{text}: more threads than the {facts.cores} usable cores, which makes products slower"
        return Finding("BLAS", "note", text, remedies.unset(facts, *many))
    return Finding("BLAS", "ok", text)


def dependencies(facts: Facts) -> list[Finding]:
    """Is every package that groundup needs installed, and new enough? groundup itself may run without being so."""
    wanting = [
        remedies.requirement(facts, name)
        for name, oldest in DEPENDENCIES.items()
        if version(facts.installed.get(name)) < version(oldest)
    ]
    # One command for all of them; a new environment comes with all of them in any case.
    fix = remedies.environment(facts) if facts.externally_managed else remedies.pip(facts, *wanting)
    return [_dependency(name, oldest, facts.installed.get(name), fix) for name, oldest in DEPENDENCIES.items()]


def several_ranks(facts: Facts) -> list[Finding]:
    """Do ranks find each other, and is there a core for each? Nothing is said where mpi4py is not installed."""
    trial, about = facts.ranks_trial, "ranks"
    if trial is None:
        return []
    if not trial.works:
        text = f"do not work: {trial.said}{f', {facts.mpiexec}' if facts.mpiexec else ''}"
        wheel = "impi-rt" if facts.system == "win32" else "mpich"
        return [Finding(about, "note", text, remedies.pip(facts, "mpi4py", wheel, options="--force-reinstall"))]
    here = number(HERE, number(SIZE, 1, facts.variables), facts.variables)
    if here > facts.cores:
        text = f"{here} share {facts.cores} cores: they wait for each other, so fewer are faster"
        return [Finding(about, "note", text)]
    chosen = {name: int(v) for name in THREADS if (v := facts.variables.get(name, "")).isdecimal() and int(v) > 0}
    most = max(chosen, key=lambda name: chosen[name], default=None)
    text = f"{trial.said}, {facts.mpiexec}; up to {facts.cores} have a core each"
    if most is not None and chosen[most] > 1:
        fit = max(1, facts.cores // chosen[most])
        text += f"; {most}={chosen[most]}: with so many threads each, more than {fit} wait for each other"
        return [Finding(about, "note", text, remedies.unset(facts, *chosen))]
    return [Finding(about, "ok", f"{text}, and fewer share the cores among their threads")]


def _dependency(name: str, oldest: str, found: str | None, fix: str) -> Finding:
    if found is None:
        return Finding(name, "problem", "not installed", fix)
    if version(found) < version(oldest):
        return Finding(name, "problem", f"{found} is too old; groundup needs {oldest} or newer", fix)
    return Finding(name, "ok", found)


def compiler(facts: Facts) -> list[Finding]:
    """Which C compiler does stage 3 use? Nothing is said where stage 3 fails for another reason; its own line does."""
    for stage in facts.stages:
        if stage.name == COMPILED_STAGE and "compiler" in stage.facts:
            return [Finding("C compiler", "ok", stage.facts["compiler"])]
        if stage.name == COMPILED_STAGE and stage.status == "unavailable":
            if facts.variables.get("CC", "").strip():
                return [Finding("C compiler", "note", stage.said, remedies.unset(facts, "CC"))]
            tried = re.search(r"none works here \((.*?)\)\. ", stage.said)
            text = f"none that works, which stage 3 needs{f' ({tried[1]})' if tried else ''}"
            fix = remedies.compiler(facts)
            if "ziglang" not in fix and not facts.administrator:
                text += f"; without administrator's rights: {remedies.pip(facts, 'ziglang>=0.14').splitlines()[-1]}"
            return [Finding("C compiler", "note", text, fix)]
    return []


def stages(facts: Facts) -> list[Finding]:
    """Does every stage load? The first two must; the others may lack a compiler or a GPU, and say so."""
    return [_stage(facts, stage) for stage in facts.stages]


def _stage(facts: Facts, stage: StageFound) -> Finding:
    name = stage.name
    if stage.status == "unavailable":
        if name in MAIN_JOB_STAGES:
            return Finding(name, "problem", stage.said, remedies.restore(facts, name))
        if name == COMPILED_STAGE and compiler(facts):
            return Finding(name, "note", "needs a C compiler: mend its line above first")
        if name == DEVICE_STAGE and facts.variables.get("GROUNDUP_CUDA"):
            # What it lacks for a GPU, where there is one, is told with the GPU.
            return Finding(name, "note", stage.said.removeprefix(f"{name}: "), remedies.unset(facts, "GROUNDUP_CUDA"))
        return Finding(name, "note", stage.said, stage.fix)
    if stage.status == "broken" and _absent(facts, stage.missing):
        return Finding(name, "problem", f"needs {stage.missing}: mend its line above first")
    if stage.status == "broken":
        return Finding(name, "problem", f"does not load: {stage.said}", _mend(facts, stage))
    said = [stage.said, *_device(stage)] if "backend" in stage.facts else [stage.said, *_compiled(stage)]
    fix = _gpu_wanted(facts, stage)
    return Finding(name, "ok", "; ".join(said), fix)


def _absent(facts: Facts, module: str | None) -> bool:
    """Whether this is a dependency that is not installed, so that its own line has the remedy."""
    return module in DEPENDENCIES and module not in facts.installed


def _mend(facts: Facts, stage: StageFound) -> str | None:
    """The command for a stage that does not load: packages do not fit each other, or its own files are damaged."""
    match = re.search(r"Numba needs NumPy (\d+)\.(\d+) or less", stage.said)
    if match:
        return remedies.pip(facts, f"numpy<{match[1]}.{int(match[2]) + 1}")
    if re.search(r"llvmlite", stage.said):
        return remedies.pip(facts, "numba", "llvmlite", options="--upgrade --force-reinstall")
    if "in the cache folder" in stage.said:
        return _other_cache(facts)
    return remedies.restore(facts, stage.name) if stage.restorable else stage.fix


def _compiled(stage: StageFound) -> list[str]:
    """What a compiled stage reports: the width of its registers, its threads, its compiler options."""
    if not stage.facts:
        return []
    bits, threads = stage.facts["simd_bits"], stage.facts["threads"]
    width = f"{bits}-bit SIMD: {bits // 32} float32 at a time"
    return [width, f"{threads} thread{'' if threads == 1 else 's'}", " ".join(stage.facts.get("flags", ()))]


def _device(stage: StageFound) -> list[str]:
    """What runs the kernels of a stage that is written for a GPU, and why it is that."""
    simulated = ["Numba's simulator"] if stage.facts["backend"] == "simulator" else []
    return [*simulated, stage.facts["device"].partition("; GROUNDUP_CUDA=")[0]]


def _gpu_wanted(facts: Facts, stage: StageFound) -> str | None:
    """The command that removes GROUNDUP_CUDA, where it keeps the kernels from a GPU that could run them."""
    kept = facts.variables.get("GROUNDUP_CUDA", "gpu") not in ("gpu", "")
    return remedies.unset(facts, "GROUNDUP_CUDA") if kept and facts.gpus and stage.facts.get("emulated") else None


def emulator(facts: Facts) -> Finding:
    """Can the emulator compile and run a kernel? Stage 4 runs on it where there is no GPU."""
    versions = ", ".join(f"{name} {facts.installed[name]}" for name in ("numba", "llvmlite") if name in facts.installed)
    if facts.emulator.works and facts.emulator_twice:
        text = "is installed twice: cuda-emulator, and groundup, which contains it; one of the two is enough"
        return Finding("emulator", "note", text, f"{facts.executable} -m pip uninstall cuda-emulator")
    if facts.emulator.works:
        return Finding("emulator", "ok", f"compiles and runs CUDA kernels on the CPU ({versions})")
    module = re.search(r"No module named '(\w+)", facts.emulator.said)
    if module and _absent(facts, module[1]):
        return Finding("emulator", "problem", f"needs {module[1]}: mend its line above first")
    text = f"does not run a small kernel ({versions}): {facts.emulator.said}"
    if re.search(r"No space left|Permission denied|Read-only", facts.emulator.said):
        return Finding("emulator", "problem", text, _other_cache(facts))
    if facts.variables.get("NUMBA_DISABLE_JIT", "0") not in ("", "0"):
        return Finding("emulator", "problem", text, remedies.unset(facts, "NUMBA_DISABLE_JIT"))
    fix = remedies.pip(facts, remedies.requirement(facts, "numba"), "llvmlite", options="--upgrade --force-reinstall")
    return Finding("emulator", "problem", text, fix)


def cache(facts: Facts) -> Finding:
    """Is there room for what groundup compiles and fetches, and may it be written?"""
    if not facts.cache_writable:
        text = f"{facts.cache} cannot be written: stage 3 and every kernel would be compiled anew, or not at all"
        return Finding("cache", "note", text, _other_cache(facts))
    if facts.cache_refused:
        text = f"{facts.cache_refused} cannot be written; what is compiled is kept in {facts.cache}, which the system"
        return Finding("cache", "note", f"{text} may empty: GROUNDUP_CACHE names another folder")
    if facts.cache_free is None:
        return Finding("cache", "ok", facts.cache)
    space = f"{facts.cache}, {facts.cache_free / 10**9:,.1f} GB free"
    if facts.cache_free < ENOUGH_SPACE:
        text = f"{space}: make room, or name a folder on another disk in GROUNDUP_CACHE"
        return Finding("cache", "note", text)
    return Finding("cache", "ok", space)


def _other_cache(facts: Facts) -> str:
    """Use another folder than the one that GROUNDUP_CACHE names, or than the usual one."""
    if facts.variables.get("GROUNDUP_CACHE"):
        return remedies.unset(facts, "GROUNDUP_CACHE")
    folder = "$HOME\\groundup-cache" if facts.system == "win32" else "$HOME/groundup-cache"
    return remedies.assign(facts, "GROUNDUP_CACHE", folder)


def data(facts: Facts) -> list[Finding]:
    """Which data sets are there? The bundled one must be; the full ones come from GROUNDUP_DATA or the cache."""
    found = []
    chosen = facts.variables.get("GROUNDUP_DATA")
    if chosen and "GROUNDUP_DATA" in facts.absent:
        text = f"{chosen} is not a folder, so no full data set is found"
        found.append(Finding("GROUNDUP_DATA", "note", text, remedies.folder(facts, chosen)))
    return found + [_data_set(facts, each) for each in facts.data]


def _data_set(facts: Facts, found: DataFound) -> Finding:
    name = found.name
    fetch = f"groundup train 2 --dataset {name} --epochs 1 --download"
    if name == "mnist-subset":
        if found.status == "ok":
            return Finding(name, "ok", f"{found.said}, bundled")
        return Finding(name, "problem", f"damaged: {found.said}", remedies.restore(facts, "shared/data/mnist_subset"))
    if found.status == "absent":
        return Finding(name, "note", f"not in {facts.data_place}; only needed for training on the full set", fetch)
    if found.status == "damaged":
        # A download fills gaps and overwrites nothing, so what is damaged must move out of its way first.
        fix = f"{remedies.move(facts, found.folder, f'{found.folder}.damaged')}\n{fetch}"
        return Finding(name, "note", f"not usable: {found.said}", fix)
    return Finding(name, "ok", f"{found.said}, {facts.data_place}")
