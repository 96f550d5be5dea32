"""Looking at the GPU: what nvidia-smi, the bus, the loader and the package manager say. Nothing here raises."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from groundup.doctor.facts import Gpu

WSL_SMI = "/usr/lib/wsl/lib/nvidia-smi"
WINDOWS_DRIVER = "System32/nvcuda.dll"


def nvidia_smi() -> tuple[tuple[Gpu, ...], tuple[int, int] | None, str]:
    """(GPUs, the newest CUDA that the driver knows, what went wrong)."""
    program = shutil.which("nvidia-smi") or (WSL_SMI if Path(WSL_SMI).is_file() else None)
    if program is None:
        return (), None, ""
    code, said = run([program])
    if code != 0:
        return (), None, " ".join(said.split())
    # Drivers from 610 on write "CUDA UMD Version", for the part of the driver that lies outside the kernel.
    match = re.search(r"CUDA (?:\w+ )?Version:\s*(\d+)\.(\d+)", said)
    cuda = (int(match[1]), int(match[2])) if match else None
    for fields in ("name,driver_version,memory.total,compute_cap", "name,driver_version,memory.total"):
        code, said = run([program, f"--query-gpu={fields}", "--format=csv,noheader"])
        if code == 0:  # older ones refuse to be asked for compute_cap
            return gpus_of(said), cuda, ""
    return (), cuda, " ".join(said.split())


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
    listed = re.findall(r"libcuda\.so\.1 \([^)]*64[^)]*\) => (\S+)", run([program, "-p"])[1])
    return tuple(dict.fromkeys([*found, *(path for path in listed if Path(path).exists())]))


def packages_of_libcuda() -> tuple[str, ...]:
    """The packages that own a libcuda.so.1, asked of dpkg, rpm or pacman, whichever is here."""
    if shutil.which("dpkg"):
        return owners(run(["dpkg", "-S", "*/libcuda.so.1"])[1])
    path = "/usr/lib64/libcuda.so.1" if shutil.which("rpm") else "/usr/lib/libcuda.so.1"
    for command in (["rpm", "-qf", "--queryformat", "%{NAME}\n", path], ["pacman", "-Qqo", path]):
        if shutil.which(command[0]):
            code, said = run(command)
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


def run(command: list[str], seconds: int = 10) -> tuple[int | None, str]:
    """(exit code, what it printed): standard output, or standard error where that is empty. The code is None where
    the program cannot be started or takes longer."""
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=seconds
        )
    except subprocess.TimeoutExpired:
        return None, f"no answer within {seconds} seconds"
    except OSError as error:
        return None, str(error)
    return done.returncode, done.stdout.strip() or done.stderr.strip()


def content(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:  # absent, or there and not to be read
        return ""
