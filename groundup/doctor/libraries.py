"""Which CUDA libraries fit this driver and this GPU, whether numba-cuda has them, and the commands that bring them.

A program of CUDA 13 needs a driver from 580 on and a compute capability of at least 7.5, one of CUDA 12 a driver from
525 on and 5.0 (docs.nvidia.com: CUDA compatibility, minor version compatibility). NVVM compiles a kernel to PTX, and
nvJitLink makes machine code of that; each reads what is as old as itself or older. Without nvJitLink the driver does
its work, and then the driver must be as new as NVVM.
"""

from __future__ import annotations

from groundup.doctor import remedies
from groundup.doctor.facts import Facts, Finding, dotted, version
from shared.machine.misfits import misfit

DRIVERS = {"cu13": 580, "cu12": 525}
"""The first major version of the driver for each set of libraries, best first."""
CAPABILITIES = {"cu13": (7, 5), "cu12": (5, 0)}
OLDEST_NUMBA_CUDA = "0.30"

NVVM = {"cu13": "nvidia-nvvm", "cu12": "nvidia-cuda-nvcc-cu12"}
NVRTC = {"cu13": "nvidia-cuda-nvrtc", "cu12": "nvidia-cuda-nvrtc-cu12"}
NVJITLINK = {"cu13": "nvidia-nvjitlink", "cu12": "nvidia-nvjitlink-cu12"}
OTHERS_OF_13 = ("nvidia-cuda-runtime", "nvidia-cuda-cccl")


def works(facts: Facts) -> bool:
    """Whether a kernel ran on the GPU. If one did, conclusions from version numbers are ignored."""
    return facts.gpu_trial is not None and facts.gpu_trial.works


def fitting(facts: Facts) -> str | None:
    """Which extra of numba-cuda fits driver and GPU: "cu13", "cu12", or None where neither does.

    Where the driver's version cannot be read, it is taken to be an old one: CUDA 12's libraries run on both.
    """
    if not facts.gpus:
        return None
    for name, oldest in DRIVERS.items():
        if all(each.capability is None or each.capability >= CAPABILITIES[name] for each in facts.gpus) and (
            _driver(facts) >= oldest or (name == "cu12" and _driver(facts) == 0)
        ):
            return name
    return None


def _driver(facts: Facts) -> int:
    """The driver's major version; 0 where it cannot be read."""
    return (version(facts.gpus[0].driver) or (0,))[0]


def numba_cuda(facts: Facts) -> list[Finding]:
    """Is numba-cuda installed, with libraries that fit the driver and each other?"""
    about, fits, found = "numba-cuda", fitting(facts), facts.installed.get("numba-cuda")
    if found is None:
        if not facts.gpus:
            return [Finding(about, "ok", "not installed, and not needed without an NVIDIA GPU")]
        if fits is None:
            return [Finding(about, "ok", "not installed, and of no use with this driver and GPU")]
        text = "not installed, so the GPU is not used; Numba's own numba.cuda, which it replaces, is not enough"
        return [Finding(about, "note", text, switch(facts, fits))]
    have = [name for name in DRIVERS if NVVM[name] in facts.installed and NVRTC[name] in facts.installed]
    # Of the two sets the search takes CUDA 13's first, part by part.
    text = f"{found}, {_libraries_text(facts, have[0] if have else None)}"
    trouble, wanted = _trouble(facts, have, fits)
    if trouble:
        return [Finding(about, "note", f"{text}: {trouble}", wanted)]
    return [Finding(about, "ok", text)]


def _libraries_text(facts: Facts, have: str | None) -> str:
    if have:
        parts = {"NVVM": NVVM, "NVRTC": NVRTC, "nvJitLink": NVJITLINK}
        shown = [
            f"{each} {facts.installed[names[have]]}" for each, names in parts.items() if names[have] in facts.installed
        ]
        return f"CUDA {have.removeprefix('cu')}'s libraries ({', '.join(shown)})"
    if facts.toolkits:
        return "CUDA toolkit " + ", ".join(f"{number} in {folder}" for folder, number in facts.toolkits.items())
    return "no CUDA libraries"


def _trouble(facts: Facts, have: list[str], fits: str | None) -> tuple[str, str | None]:
    """(the first thing that does not fit, the command that mends it); ("", None) where everything fits."""
    wanted = fits or (have[0] if have else "cu12")
    if version(facts.installed["numba-cuda"]) < version(OLDEST_NUMBA_CUDA):
        return f"too old; stage 4 needs {OLDEST_NUMBA_CUDA} or newer", switch(facts, wanted)
    if works(facts):
        return "", None
    if known := misfit(facts.installed):
        return known.text, remedies.pip(facts, known.requirement)
    if not have and not facts.toolkits:
        text = "it was installed without an extra, so NVVM and NVRTC, which compile kernels, are missing"
        return text, switch(facts, wanted)
    if fits is None:  # no GPU to fit, or none that could
        return "", None
    if not have:
        return _toolkit_trouble(facts, fits)
    used = have[0]
    if used == "cu13" and fits == "cu12":
        too_old = _driver(facts) < DRIVERS["cu13"]
        reason = f"driver {facts.gpus[0].driver} is too old for them" if too_old else "they no longer know this GPU"
        return reason, switch(facts, "cu12")
    bindings = version(facts.installed.get("cuda-bindings"))[:1]
    if bindings and bindings != (int(used.removeprefix("cu")),):
        return f"cuda-bindings {facts.installed['cuda-bindings']} are for another CUDA", switch(facts, used)
    compiler, linker = version(facts.installed[NVVM[used]])[:2], version(facts.installed.get(NVJITLINK[used]))[:2]
    if linker and linker < compiler:
        return "nvJitLink is older than NVVM and cannot read what it writes (PTX version mismatch)", pinned(facts, used)
    if not linker and facts.driver_cuda and compiler > facts.driver_cuda:
        text = "without nvJitLink the driver must read what NVVM writes, and NVVM is newer (PTX version mismatch)"
        return text, switch(facts, used)
    return "", None


def _toolkit_trouble(facts: Facts, fits: str) -> tuple[str, str | None]:
    """(the fault, the command that mends it) of a toolkit outside Python, which pip does not match to the driver."""
    folder, newest = next(iter(facts.toolkits)), version(next(iter(facts.toolkits.values())))[:2]
    if facts.driver_cuda and newest > facts.driver_cuda:
        text = f"newer than the driver, which knows CUDA up to {dotted(facts.driver_cuda)} (PTX version mismatch)"
        return text, switch(facts, fits)
    if facts.system == "win32" and not facts.executable.startswith(folder):  # but it does in a conda environment
        return "numba-cuda does not find every library of a toolkit on Windows", switch(facts, fits)
    return "", None


def switch(facts: Facts, to: str) -> str:
    """The commands that bring numba-cuda with these libraries. Those of CUDA 13 must go before those of CUDA 12 come:
    they are found first, part by part, whichever numba-cuda was installed with."""
    lines = []
    stale = [
        name for name in (NVVM["cu13"], NVRTC["cu13"], NVJITLINK["cu13"], *OTHERS_OF_13) if name in facts.installed
    ]
    if to == "cu12" and stale and not facts.externally_managed:
        lines.append(remedies.uninstall(facts, *stale))
    lines.append(remedies.pip(facts, f"numba-cuda[{to}]>={OLDEST_NUMBA_CUDA}", options="--upgrade"))
    return "\n".join(lines)


def pinned(facts: Facts, used: str) -> str:
    """The command that brings the compiler's libraries down to what the driver, and nvJitLink, can read."""
    linker = version(facts.installed.get(NVJITLINK[used]))[:2]
    major = int(used.removeprefix("cu"))
    limits = [each for each in (facts.driver_cuda, linker) if each and len(each) == 2 and each[0] == major]
    if not limits:
        return switch(facts, used)
    newest = min(limits)
    toolkit = f"cuda-toolkit>={newest[0]},<{newest[0]}.{newest[1] + 1}"
    return remedies.pip(facts, f"numba-cuda[{used}]>={OLDEST_NUMBA_CUDA}", toolkit)
