"""Machines as the doctor's facts, which the doctor's tests judge, and what it says of them."""

from dataclasses import replace

from groundup import doctor
from groundup.doctor import Facts, Finding
from groundup.doctor.facts import DEPENDENCIES, DataFound, StageFound
from shared.machine.gpu import Gpu

PYTHON = "/home/ada/groundup/.venv/bin/python"
CU13 = {
    "cuda-bindings": "13.0.3",
    "nvidia-nvvm": "13.0.88",
    "nvidia-cuda-nvrtc": "13.0.88",
    "nvidia-nvjitlink": "13.0.88",
    "nvidia-cuda-runtime": "13.0.96",
}
CU12 = {
    "cuda-bindings": "12.9.4",
    "nvidia-cuda-nvcc-cu12": "12.9.86",
    "nvidia-cuda-nvrtc-cu12": "12.9.86",
    "nvidia-nvjitlink-cu12": "12.9.86",
}
RTX_4070 = Gpu("NVIDIA GeForce RTX 4070", "580.95.05", "12282 MiB", (8, 9))
T4 = Gpu("Tesla T4", "550.54.15", "15360 MiB", (7, 5))
LIBCUDA = ("/lib/x86_64-linux-gnu/libcuda.so.1",)
STAGES = (
    StageFound("stage1_pure_python", "ok", "stage 1: pure Python"),
    StageFound("stage2_numpy", "ok", "stage 2: NumPy"),
    StageFound(
        "stage3_c",
        "ok",
        "stage 3: C",
        facts={"compiler": "gcc 13", "flags": ["-O3"], "simd_bits": 256, "threads": 8},
    ),
    StageFound(
        "stage4_numba_cuda",
        "ok",
        "stage 4: CUDA, emulated on the CPU",
        facts={"backend": "emulator", "device": "numba-cuda is not installed", "emulated": True},
    ),
)
DATA = (
    DataFound("mnist-subset", "ok", "6,000 training and 1,000 test images"),
    DataFound("mnist", "ok", "60,000 training and 10,000 test images"),
    DataFound("fashion-mnist", "absent", ""),
)
LAPTOP = Facts(
    installed={**{name: f"{oldest}.9" for name, oldest in DEPENDENCIES.items()}, "llvmlite": "0.44"},
    stages=STAGES,
    data=DATA,
)
"""Everything is well and there is no GPU."""


def having(facts: Facts, **installed: str) -> Facts:
    """The same machine with these distributions, whose names have _ for -, too."""
    return replace(facts, installed={**facts.installed, **{k.replace("_", "-"): v for k, v in installed.items()}})


def with_numba_cuda(facts: Facts, wheels: dict[str, str]) -> Facts:
    return replace(facts, installed={**facts.installed, "numba-cuda": "0.30.4", **wheels})


def on(gpu: Gpu, cuda: tuple[int, int], facts: Facts = LAPTOP) -> Facts:
    """The same machine with this GPU, whose driver knows CUDA up to that version."""
    return replace(facts, gpus=(gpu,), driver_cuda=cuda, libcuda=LIBCUDA)


def said(facts: Facts) -> dict[str, Finding]:
    return {finding.about: finding for finding in doctor.judge(facts).findings}


def fixes(facts: Facts) -> dict[str, str]:
    """Every fix but those that fetch data."""
    return {
        finding.about: finding.fix
        for finding in doctor.judge(facts).findings
        if finding.fix and "--download" not in finding.fix
    }


COLAB = replace(
    with_numba_cuda(on(T4, (12, 4)), CU12),
    hosted="Google Colab",
    virtual=False,
    executable="/usr/bin/python3",
    libcuda=("/usr/lib64-nvidia/libcuda.so.1",),
    administrator=True,
)


WSL = replace(on(RTX_4070, (13, 0)), wsl=True, libcuda=("/usr/lib/wsl/lib/libcuda.so.1",))


MAC = replace(LAPTOP, system="darwin", distribution=(), libcuda=())


NO_COMPILER = "stage 3 needs a C compiler, and none works here (cc: not found; gcc: not found). Install one: …"


def without_compiler(facts: Facts) -> Facts:
    unavailable = StageFound("stage3_c", "unavailable", NO_COMPILER, fix="pip install ziglang")
    return replace(facts, stages=(*STAGES[:2], unavailable, STAGES[3]))


WINDOWS = replace(
    LAPTOP,
    system="win32",
    distribution=(),
    executable="C:\\Users\\ada\\groundup\\.venv\\Scripts\\python.exe",
    root="C:\\Users\\ada\\groundup",
)


SYSTEM_PYTHON = replace(
    LAPTOP, executable="/usr/bin/python3", virtual=False, externally_managed=True, installed={}, ensurepip=False
)
NEW_ENVIRONMENT = (
    "sudo apt update\n"
    "sudo apt install python3-venv\n"
    "/usr/bin/python3 -m venv /home/ada/groundup/.venv\n"
    "/home/ada/groundup/.venv/bin/python -m pip install -e /home/ada/groundup"
)
