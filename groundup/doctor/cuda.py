"""The findings about the GPU, its driver, the variables that hide it or its libraries, and a trial kernel.

No part of the course needs a GPU, so no finding here is a problem; at most it is a note.
"""

from __future__ import annotations

from groundup.doctor import remedies
from groundup.doctor.facts import Facts, Finding, Gpu, dotted
from groundup.doctor.libraries import CAPABILITIES, DRIVERS, NVVM, fitting, numba_cuda, pinned, switch, works
from shared.machine.misfits import misfit

WSL_FOLDER = "/usr/lib/wsl/"

PTX_ERRORS = ("UNSUPPORTED_PTX_VERSION", "Unsupported .version", "unsupported toolchain", "NVJITLINK_ERROR_PTX_COMPILE")
LIBRARY_ERRORS = ("DynamicLibNotFound", "Failure finding", "libNVVM cannot be found", "No module named 'cuda")


def findings(facts: Facts) -> list[Finding]:
    """The GPU, from the hardware upwards; one line where there can be none."""
    if facts.system == "darwin":
        text = "CUDA does not exist for macOS; stage 4's kernels run on the emulator"
        return [Finding("NVIDIA GPU", "note", text)]
    return [gpu(facts), *driver(facts), *wsl(facts), *variables(facts), *numba_cuda(facts), *trial(facts)]


def gpu(facts: Facts) -> Finding:
    """Is there an NVIDIA GPU that the driver sees? No part of the course needs one."""
    about = "NVIDIA GPU"
    if facts.gpus:
        return Finding(about, "ok", "; ".join(_card(card) for card in facts.gpus))
    if "version mismatch" in facts.smi_error:
        text = "the driver was updated, and the old one is still loaded; restart the computer"
        return Finding(about, "note", text, "wsl --shutdown" if facts.wsl else _sudo(facts, "reboot"))
    if "couldn't communicate" in facts.smi_error:
        text = "the driver is installed but not loaded: after a new kernel it must be built again"
        return Finding(about, "note", text, remedies.driver(facts) or _sudo(facts, "modprobe nvidia"))
    if facts.smi_error:
        return Finding(about, "note", f"nvidia-smi fails: {facts.smi_error}")
    if facts.gpu_hardware and not facts.wsl:
        text = f"there is one, but no driver for it; nothing here needs one. NVIDIA's own: {remedies.DRIVERS}"
        return Finding(about, "note", text, remedies.driver(facts))
    if facts.hosted:
        text = f"none: choose one in {facts.hosted}'s settings for this notebook; nothing here needs one"
        return Finding(about, "note", text)
    elsewhere = " (under WSL2 it is Windows that needs NVIDIA's driver)" if facts.wsl else ""
    return Finding(about, "note", f"none seen through nvidia-smi; nothing here needs one{elsewhere}")


def _card(card: Gpu) -> str:
    known = [f"compute capability {dotted(card.capability)}"] if card.capability else []
    return ", ".join([card.name, card.memory, *known])


def _sudo(facts: Facts, command: str) -> str:
    return command if facts.administrator or facts.system == "win32" else f"sudo {command}"


def driver(facts: Facts) -> list[Finding]:
    """Which CUDA does the driver run, and is the GPU one that CUDA still knows?"""
    if not facts.gpus:
        return []
    about, fits = "NVIDIA driver", fitting(facts)
    known = f", which knows CUDA up to {dotted(facts.driver_cuda)}" if facts.driver_cuda else ""
    text = f"{facts.gpus[0].driver}{known}"
    capability = min((card.capability for card in facts.gpus if card.capability), default=None)
    if capability and capability < CAPABILITIES["cu12"]:
        text += f"; a GPU of compute capability {dotted(capability)} is too old for CUDA 12: use the emulator"
        return [Finding(about, "note", text)]
    if fits is None:
        where = "update it in Windows, " if facts.wsl else ""
        text += f"; too old: CUDA 12 needs {DRIVERS['cu12']} or newer, CUDA 13 {DRIVERS['cu13']}"
        text += f" ({where}{remedies.DRIVERS})"
        return [Finding(about, "note", text, remedies.driver(facts))]
    why = ""
    if fits == "cu12" and capability and capability < CAPABILITIES["cu13"]:
        why = f", since CUDA 13 no longer knows compute capability {dotted(capability)}"
    elif fits == "cu12":
        why = f", since CUDA 13 needs a driver from {DRIVERS['cu13']} on"
    if facts.system == "linux" and not facts.libcuda and not works(facts):
        text += "; but its library libcuda is not where programs look for it"
        return [Finding(about, "note", text, _find_libcuda(facts))]
    return [Finding(about, "ok", f"{text}; fits CUDA {fits.removeprefix('cu')}'s libraries{why}")]


def _find_libcuda(facts: Facts) -> str:
    if facts.wsl:
        return remedies.assign(facts, "LD_LIBRARY_PATH", f"{WSL_FOLDER}lib")
    return _sudo(facts, "ldconfig")


def wsl(facts: Facts) -> list[Finding]:
    """Under WSL2 the driver is Windows'. A Linux driver installed beside it is found first and sees no GPU."""
    stray = [path for path in facts.libcuda if not path.startswith(WSL_FOLDER)]
    if not facts.wsl or not stray or works(facts):
        return []
    text = f"{stray[0]} is a Linux driver's, and hides the one that Windows provides in {WSL_FOLDER}lib"
    if facts.libcuda_packages:
        return [Finding("WSL2", "note", text, remedies.remove(facts, facts.libcuda_packages))]
    text += "; no package owns it: it came with NVIDIA's .run installer"
    return [Finding("WSL2", "note", text, _sudo(facts, "nvidia-uninstall"))]


def variables(facts: Facts) -> list[Finding]:
    """Does an environment variable hide the GPU, or point at something that is not there?"""
    notes = []
    environment = facts.variables
    for name in ("CUDA_HOME", "CUDA_PATH", "NUMBA_CUDA_DRIVER"):
        if name in facts.absent:
            text = f"{environment[name]} is not there"
            notes.append(Finding(name, "note", text, remedies.unset(facts, name)))
    home, path = environment.get("CUDA_HOME"), environment.get("CUDA_PATH")
    if home and path and home != path and not {"CUDA_HOME", "CUDA_PATH"} & set(facts.absent):
        text = f"CUDA_PATH ({path}) and CUDA_HOME ({home}) differ; libraries are looked for in CUDA_PATH only"
        notes.append(Finding("CUDA_PATH", "note", text, remedies.unset(facts, "CUDA_HOME")))
    if facts.gpus and environment.get("CUDA_VISIBLE_DEVICES", "0") in ("", "-1", "none", "NoDevFiles"):
        text = f"'{environment['CUDA_VISIBLE_DEVICES']}' hides every GPU from CUDA"
        notes.append(Finding("CUDA_VISIBLE_DEVICES", "note", text, remedies.unset(facts, "CUDA_VISIBLE_DEVICES")))
    for name, effect in {
        "NUMBA_ENABLE_CUDASIM": "puts Numba's slow simulator in numba-cuda's place",
        "NUMBA_DISABLE_CUDA": "keeps numba-cuda from the GPU",
        "NUMBA_DISABLE_JIT": "keeps Numba from compiling: the emulator needs that too",
    }.items():
        if environment.get(name, "0") not in ("", "0"):
            notes.append(Finding(name, "note", f"{environment[name]} {effect}", remedies.unset(facts, name)))
    return notes


def trial(facts: Facts) -> list[Finding]:
    """Does the GPU run a small kernel? Only tried where there are a GPU and numba-cuda."""
    if facts.gpu_trial is None:
        return []
    about, said = "GPU trial", facts.gpu_trial.said
    if facts.gpu_trial.works:
        return [Finding(about, "ok", f"a small kernel runs on {said}")]
    text, fix = _diagnosis(facts, said)
    return [Finding(about, "note", f"{text}: {said}", fix)]


def _diagnosis(facts: Facts, said: str) -> tuple[str, str | None]:
    """(the meaning of an error of CUDA, the command that mends it)."""
    fits = fitting(facts) or "cu12"
    have = next((name for name in DRIVERS if NVVM[name] in facts.installed), None)
    if known := misfit(facts.installed):
        return known.text, remedies.pip(facts, known.requirement)
    if any(error in said for error in PTX_ERRORS):
        text = "the driver cannot read what a newer toolkit wrote (PTX version mismatch)"
        return text, pinned(facts, have) if have == fits else switch(facts, fits)
    if any(error in said for error in LIBRARY_ERRORS):
        return "libraries that numba-cuda needs are missing", switch(facts, fits)
    if "driver library cannot be found" in said:
        return "the driver's library libcuda is not found", _find_libcuda(facts) if facts.system == "linux" else None
    if "NO_DEVICE" in said:
        notes = [*wsl(facts), *(note for note in variables(facts) if note.about == "CUDA_VISIBLE_DEVICES")]
        return "the driver shows no GPU to CUDA", notes[0].fix if notes else None
    if "SYSTEM_DRIVER_MISMATCH" in said:
        return "the driver was updated; restart the computer", _sudo(facts, "reboot")
    if "INSUFFICIENT_DRIVER" in said or "NOT_SUPPORTED" in said:
        return "the driver is too old for these libraries", switch(facts, fits)
    if "NO_BINARY_FOR_GPU" in said:
        return "these libraries do not know this GPU", switch(facts, fits)
    if "CUDA_ERROR_UNKNOWN" in said and facts.system == "linux" and not facts.wsl:
        lines = "\n".join(_sudo(facts, command) for command in ("rmmod nvidia_uvm", "modprobe nvidia_uvm"))
        return "the driver did not wake up after the computer slept", lines
    if "DEVICE_UNAVAILABLE" in said or "OUT_OF_MEMORY" in said:
        return "another program holds the GPU; see which", "nvidia-smi"
    if "no answer" in said:
        return "the GPU does not answer; restart the computer", None
    return "a small kernel does not run", None
