"""The NVIDIA GPU and its driver, as nvidia-smi, the bus, the loader and the package manager describe them.

Nothing here raises, and only the standard library is imported: `groundup doctor` asks all of this on broken machines.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from shared.machine.hardware import content
from shared.machine.processes import QUICK, run

WSL_SMI = "/usr/lib/wsl/lib/nvidia-smi"
WINDOWS_DRIVER = "System32/nvcuda.dll"


@dataclass(frozen=True)
class Gpu:
    """One row of nvidia-smi. capability: the compute capability, (8, 9); None where nvidia-smi is too old to tell."""

    name: str
    driver: str
    memory: str = ""
    capability: tuple[int, int] | None = None


@dataclass(frozen=True)
class Driver:
    """What nvidia-smi says. cuda: the newest CUDA that the driver knows; error: what went wrong, "" for nothing."""

    gpus: tuple[Gpu, ...] = ()
    cuda: tuple[int, int] | None = None
    error: str = ""


def nvidia_smi() -> Driver:
    """The driver and its GPUs; an empty answer where there is no nvidia-smi."""
    program = _program()
    if program is None:
        return Driver()
    code, said = _ask([program])
    if code != 0:
        return Driver(error=" ".join(said.split()))
    # Drivers from 610 on write "CUDA UMD Version", for the part of the driver that lies outside the kernel.
    match = re.search(r"CUDA (?:\w+ )?Version:\s*(\d+)\.(\d+)", said)
    gpus, error = _gpus(program)
    return Driver(gpus, (int(match[1]), int(match[2])) if match else None, error)


def nvidia_gpus() -> tuple[Gpu, ...]:
    """The GPUs that the driver sees; none without nvidia-smi."""
    program = _program()
    return _gpus(program)[0] if program else ()


def _program() -> str | None:
    return shutil.which("nvidia-smi") or (WSL_SMI if Path(WSL_SMI).is_file() else None)


def _gpus(program: str) -> tuple[tuple[Gpu, ...], str]:
    """(the GPUs, what went wrong)."""
    said = ""
    for fields in ("name,driver_version,memory.total,compute_cap", "name,driver_version,memory.total"):
        code, said = _ask([program, f"--query-gpu={fields}", "--format=csv,noheader"])
        if code == 0:  # older ones refuse to be asked for compute_cap
            return gpus_of(said), ""
    return (), " ".join(said.split())


def free_memory() -> int | None:
    """MiB that the GPU with the least room has free; None where nvidia-smi does not tell."""
    program = _program()
    code, said = _ask([program, "--query-gpu=memory.free", "--format=csv,noheader"]) if program else (None, "")
    found = [int(line.split()[0]) for line in said.splitlines() if re.fullmatch(r"\d+ MiB", line.strip())]
    return min(found) if code == 0 and found else None


def gpus_of(table: str) -> tuple[Gpu, ...]:
    """The rows of nvidia-smi's answer: 'NVIDIA L4, 550.54.15, 23034 MiB, 8.9'."""
    found = []
    for line in table.splitlines():
        cells = line.split(", ")
        if len(cells) in (3, 4):
            match = re.fullmatch(r"(\d+)\.(\d+)", cells[3].strip()) if len(cells) == 4 else None
            found.append(Gpu(cells[0], cells[1], cells[2], (int(match[1]), int(match[2])) if match else None))
    return tuple(found)


def gpu_hardware(devices: Path = Path("/sys/bus/pci/devices")) -> bool | None:
    """Whether a display controller (class 03) of NVIDIA's (vendor 10de) is on the bus, by Linux's own list."""
    if not devices.is_dir():
        return None
    return any(
        content(device / "vendor").strip() == "0x10de" and content(device / "class").startswith("0x03")
        for device in devices.glob("*")
    )


def libcuda_places(variables: Mapping[str, str]) -> tuple[str, ...]:
    """Where the driver's library lies: first what LD_LIBRARY_PATH names, then what the loader's own list does."""
    if sys.platform == "win32":
        driver = Path(variables.get("SystemRoot", "C:/Windows"), WINDOWS_DRIVER)
        return (str(driver),) if driver.is_file() else ()
    folders = [each for each in variables.get("LD_LIBRARY_PATH", "").split(":") if each]
    found = [path for each in folders if Path(path := f"{each.rstrip('/')}/libcuda.so.1").exists()]
    program = shutil.which("ldconfig") or "/sbin/ldconfig"  # a user's PATH may lack the administrator's folders
    listed = re.findall(r"libcuda\.so\.1 \([^)]*64[^)]*\) => (.+)", _ask([program, "-p"])[1])
    return tuple(dict.fromkeys([*found, *(path for path in listed if Path(path).exists())]))


def packages_of_libcuda() -> tuple[str, ...]:
    """The packages that own a libcuda.so.1, asked of dpkg, rpm or pacman, whichever is here."""
    if shutil.which("dpkg"):
        return owners(_ask(["dpkg", "-S", "*/libcuda.so.1"])[1])
    path = "/usr/lib64/libcuda.so.1" if shutil.which("rpm") else "/usr/lib/libcuda.so.1"
    for command in (["rpm", "-qf", "--queryformat", "%{NAME}\n", path], ["pacman", "-Qqo", path]):
        if shutil.which(command[0]):
            code, said = _ask(command)
            return tuple(said.splitlines()) if code == 0 else ()
    return ()


def owners(answer: str) -> tuple[str, ...]:
    """The packages in an answer of `dpkg -S`: 'libnvidia-compute-535:amd64: /usr/lib/...' is libnvidia-compute-535.

    The CUDA toolkit has a stub of the library, which is no driver.
    """
    lines = [
        line
        for line in answer.splitlines()
        if line.endswith("/libcuda.so.1") and not line.startswith(("diversion", "dpkg-query:"))
    ]
    names = [re.split(r":(?:\w+:)? ", line)[0] for line in lines if "/stubs/" not in line]
    return tuple(sorted({name for each in names for name in each.split(", ")}))


def toolkits(
    variables: Mapping[str, str], root: Path = Path("/usr/local"), prefix: Path = Path(sys.prefix)
) -> dict[str, str]:
    """Folder -> version of the toolkits that lie in a conda environment (prefix), that CUDA_PATH and CUDA_HOME name and
    that lie in their usual place (root), each once, in the order in which they are looked for."""
    named = [Path(variables[name]) for name in ("CUDA_PATH", "CUDA_HOME") if variables.get(name)]
    found: dict[str, str] = {}
    seen = set()
    for folder in [prefix, *named, root / "cuda", *sorted(root.glob("cuda-*"))]:
        version = toolkit_version(folder)
        if version and folder.resolve() not in seen:
            seen.add(folder.resolve())
            found[str(folder)] = version
    return found


def toolkit_version(folder: Path) -> str | None:
    """What a toolkit says of itself: '12.4.1' in version.json, version.txt's 'CUDA Version 10.2.89', or conda's record
    of a package, cuda-nvrtc-12.9.86-h5888daf_0.json."""
    try:
        return str(json.loads(content(folder / "version.json"))["cuda"]["version"])
    except (KeyError, TypeError, ValueError):
        match = re.search(r"CUDA Version ([\d.]+)", content(folder / "version.txt"))
    if match:
        return match[1]
    records = [path.name for path in (folder / "conda-meta").glob("cuda-nvrtc-[0-9]*.json")]
    return records[0].split("-")[2] if records else None


def _ask(command: list[str]) -> tuple[int | None, str]:
    """(exit code, what the program printed): standard output, or standard error where that is empty. The code is None
    where the program cannot be started or does not answer."""
    done = run(command, QUICK)
    return done.code, done.output.strip() or done.errors.strip() or done.failure
