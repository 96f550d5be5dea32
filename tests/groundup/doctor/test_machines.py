"""groundup doctor on machines that are written down as facts: for each, the exact commands that mend it."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from groundup import doctor
from groundup.doctor import Facts, Finding
from groundup.doctor.facts import DEPENDENCIES, DataFound, StageFound, Trial
from groundup.doctor.report import plain
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


def test_a_machine_on_which_all_is_well_needs_no_command() -> None:
    diagnosis = doctor.judge(LAPTOP)
    assert diagnosis.ok
    assert fixes(LAPTOP) == {}
    assert diagnosis.runs[1:] == [
        *(f"groundup train {stage.name}" for stage in STAGES),
        "groundup race --dataset mnist",
    ]
    assert {
        finding.status for finding in diagnosis.findings if finding.about not in ("NVIDIA GPU", "fashion-mnist")
    } == {"ok"}


@pytest.mark.parametrize(
    ("gpu", "cuda", "extra"),
    [
        (RTX_4070, (13, 0), "cu13"),
        (replace(RTX_4070, driver="535.183.01"), (12, 2), "cu12"),
        (replace(RTX_4070, driver="525.60.13"), (12, 0), "cu12"),
        (Gpu("NVIDIA GeForce GTX 1060", "580.95.05", "6144 MiB", (6, 1)), (13, 0), "cu12"),
        (Gpu("NVIDIA H100", "610.43.02", "81559 MiB", None), (13, 3), "cu13"),
        (replace(RTX_4070, driver="[N/A]"), (13, 0), "cu12"),
    ],
    ids=["580", "535", "525", "compute capability 6.1", "610", "driver without a number"],
)
def test_a_gpu_without_numba_cuda_gets_the_libraries_that_its_driver_runs(
    gpu: Gpu, cuda: tuple[int, int], extra: str
) -> None:
    assert fixes(on(gpu, cuda)) == {"numba-cuda": f'{PYTHON} -m pip install --upgrade "numba-cuda[{extra}]>=0.30"'}


@pytest.mark.parametrize(("gpu", "wheels"), [(RTX_4070, CU13), (RTX_4070, CU12), (T4, CU12)])
def test_a_gpu_with_libraries_that_fit_is_well(gpu: Gpu, wheels: dict[str, str]) -> None:
    facts = replace(with_numba_cuda(on(gpu, (12, 4)), wheels), gpu_trial=Trial(True, gpu.name))
    assert fixes(facts) == {}
    assert said(facts)["GPU trial"].text == f"a small kernel runs on {gpu.name}"
    assert fixes(replace(facts, gpu_trial=None)) == {}


def test_every_gpu_is_named_with_its_memory_and_capability() -> None:
    facts = replace(on(T4, (12, 4)), gpus=(T4, Gpu("NVIDIA L4", "550.54", "23034 MiB", (8, 9))))
    assert said(facts)["NVIDIA GPU"].text == (
        "Tesla T4, 15360 MiB, compute capability 7.5; NVIDIA L4, 23034 MiB, compute capability 8.9"
    )


def test_cuda_13s_libraries_go_before_cuda_12s_come_where_the_driver_is_too_old() -> None:
    facts = with_numba_cuda(on(replace(RTX_4070, driver="535.183.01"), (12, 2)), CU13)
    assert "driver 535.183.01 is too old for them" in said(facts)["numba-cuda"].text
    assert said(facts)["numba-cuda"].fix == (
        f"{PYTHON} -m pip uninstall -y nvidia-nvvm nvidia-cuda-nvrtc nvidia-nvjitlink nvidia-cuda-runtime\n"
        f'{PYTHON} -m pip install --upgrade "numba-cuda[cu12]>=0.30"'
    )


def test_a_gpu_that_cuda_13_no_longer_knows_goes_back_to_cuda_12() -> None:
    facts = with_numba_cuda(on(Gpu("NVIDIA GeForce GTX 1060", "580.95.05", "6144 MiB", (6, 1)), (13, 0)), CU13)
    assert "compute capability 6.1" in said(facts)["NVIDIA driver"].text
    assert "no longer know this GPU" in said(facts)["numba-cuda"].text
    assert (said(facts)["numba-cuda"].fix or "").endswith('"numba-cuda[cu12]>=0.30"')


def test_left_over_libraries_of_cuda_13_are_found_first_and_so_are_named() -> None:
    facts = with_numba_cuda(on(T4, (12, 4)), {**CU13, **CU12})
    assert (said(facts)["numba-cuda"].fix or "").startswith(f"{PYTHON} -m pip uninstall -y nvidia-nvvm ")


def test_a_gpu_older_than_cuda_12_is_told_of_the_emulator_and_of_no_command() -> None:
    facts = on(Gpu("NVIDIA GeForce GTX 780", "470.256.02", "3072 MiB", (3, 5)), (11, 4))
    assert "too old for CUDA 12: use the emulator" in said(facts)["NVIDIA driver"].text
    assert fixes(facts) == {}


def test_a_driver_older_than_cuda_12_is_to_be_updated() -> None:
    facts = on(replace(RTX_4070, driver="470.256.02"), (11, 4))
    assert fixes(facts) == {"NVIDIA driver": "sudo ubuntu-drivers install\nsudo reboot"}
    assert "CUDA 12 needs 525 or newer, CUDA 13 580" in said(facts)["NVIDIA driver"].text


def test_numba_cuda_without_an_extra_lacks_the_libraries() -> None:
    facts = with_numba_cuda(on(RTX_4070, (13, 0)), {"cuda-bindings": "13.0.3"})
    assert "without an extra" in said(facts)["numba-cuda"].text
    assert fixes(facts) == {"numba-cuda": f'{PYTHON} -m pip install --upgrade "numba-cuda[cu13]>=0.30"'}


def test_a_numba_cuda_that_is_too_old_is_upgraded() -> None:
    facts = having(with_numba_cuda(on(T4, (12, 4)), CU12), numba_cuda="0.2.0")
    assert "too old; stage 4 needs 0.30" in said(facts)["numba-cuda"].text
    assert fixes(facts) == {"numba-cuda": f'{PYTHON} -m pip install --upgrade "numba-cuda[cu12]>=0.30"'}


def test_bindings_for_another_cuda_than_the_libraries_are_replaced() -> None:
    facts = having(with_numba_cuda(on(RTX_4070, (13, 0)), CU12), cuda_bindings="13.0.3")
    assert "cuda-bindings 13.0.3 are for another CUDA" in said(facts)["numba-cuda"].text
    assert fixes(facts) == {"numba-cuda": f'{PYTHON} -m pip install --upgrade "numba-cuda[cu12]>=0.30"'}


def test_a_linker_older_than_the_compiler_pins_the_toolkit_to_the_linker() -> None:
    # PyTorch asks for its own nvJitLink, and numba-cuda[cu12] takes any from 12.3 on.
    facts = having(with_numba_cuda(on(RTX_4070, (13, 0)), CU12), nvidia_nvjitlink_cu12="12.6.85")
    assert "PTX version mismatch" in said(facts)["numba-cuda"].text
    assert fixes(facts) == {"numba-cuda": f'{PYTHON} -m pip install "numba-cuda[cu12]>=0.30" "cuda-toolkit>=12,<12.7"'}


def test_a_toolkit_newer_than_the_driver_gives_way_to_the_extra() -> None:
    facts = replace(
        with_numba_cuda(on(T4, (12, 4)), {"cuda-bindings": "12.9.4"}), toolkits={"/usr/local/cuda": "12.5.1"}
    )
    assert "12.5.1 in /usr/local/cuda: newer than the driver" in said(facts)["numba-cuda"].text
    assert fixes(facts) == {"numba-cuda": f'{PYTHON} -m pip install --upgrade "numba-cuda[cu12]>=0.30"'}
    assert fixes(replace(facts, toolkits={"/usr/local/cuda": "12.4.1"})) == {}


COLAB = replace(
    with_numba_cuda(on(T4, (12, 4)), CU12),
    hosted="Google Colab",
    virtual=False,
    executable="/usr/bin/python3",
    libcuda=("/usr/lib64-nvidia/libcuda.so.1",),
    administrator=True,
)


def test_colab_with_a_ptx_version_mismatch_pins_the_toolkit_to_the_driver() -> None:
    error = (
        "LinkerError: [222] Call to cuLinkAddData results in CUDA_ERROR_UNSUPPORTED_PTX_VERSION "
        "ptxas application ptx input, line 9; fatal : Unsupported .version 8.5; current version is '8.4'"
    )
    facts = replace(COLAB, gpu_trial=Trial(False, error))
    assert said(facts)["virtual environment"].status == "ok"
    assert "PTX version mismatch" in said(facts)["GPU trial"].text
    assert fixes(facts) == {
        "GPU trial": '/usr/bin/python3 -m pip install "numba-cuda[cu12]>=0.30" "cuda-toolkit>=12,<12.5"'
    }
    assert fixes(replace(COLAB, gpu_trial=Trial(True, "Tesla T4"))) == {}


def test_colab_without_a_gpu_says_where_to_choose_one() -> None:
    facts = replace(COLAB, gpus=(), libcuda=(), installed=LAPTOP.installed)
    assert "Google Colab's settings for this notebook" in said(facts)["NVIDIA GPU"].text
    assert fixes(facts) == {}


@pytest.mark.parametrize(
    ("error", "meaning", "fix"),
    [
        (
            'DynamicLibNotFoundError: Failure finding "libnvrtc.so"',
            "libraries that numba-cuda needs are missing",
            f'{PYTHON} -m pip install --upgrade "numba-cuda[cu13]>=0.30"',
        ),
        ("CudaAPIError: [803] CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", "restart the computer", "sudo reboot"),
        (
            "CudaSupportError: Error at driver init: Call to cuInit results in CUDA_ERROR_UNKNOWN (999)",
            "did not wake up",
            "sudo rmmod nvidia_uvm\nsudo modprobe nvidia_uvm",
        ),
        ("CudaAPIError: [2] CUDA_ERROR_OUT_OF_MEMORY", "another program holds the GPU", "nvidia-smi"),
        ("CudaAPIError: [209] CUDA_ERROR_NO_BINARY_FOR_GPU", "do not know this GPU", f"{PYTHON} -m pip install"),
        ("CudaSupportError: CUDA driver library cannot be found.", "libcuda is not found", "sudo ldconfig"),
        ("no answer within 120 seconds", "does not answer", None),
        ("RuntimeError: expected 0, 2, 4", "a small kernel does not run", None),
    ],
)
def test_an_error_of_the_trial_is_told_with_what_it_means(error: str, meaning: str, fix: str | None) -> None:
    finding = said(replace(with_numba_cuda(on(RTX_4070, (13, 0)), CU13), gpu_trial=Trial(False, error)))["GPU trial"]
    assert finding.status == "note"
    assert meaning in finding.text
    assert error in finding.text
    assert finding.fix == fix if fix is None else (finding.fix or "").startswith(fix)


WSL = replace(on(RTX_4070, (13, 0)), wsl=True, libcuda=("/usr/lib/wsl/lib/libcuda.so.1",))


def test_wsl2_without_a_linux_driver_is_well() -> None:
    assert "WSL2" not in said(WSL)
    assert fixes(with_numba_cuda(WSL, CU13)) == {}


def test_wsl2_with_a_linux_driver_names_the_package_to_remove() -> None:
    stray = replace(
        with_numba_cuda(WSL, CU13),
        libcuda=("/lib/x86_64-linux-gnu/libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1"),
        libcuda_packages=("libnvidia-compute-535",),
        gpu_trial=Trial(False, "CudaSupportError: Error at driver init: CUDA_ERROR_NO_DEVICE (100)"),
    )
    command = "sudo apt purge libnvidia-compute-535"
    assert fixes(stray) == {"WSL2": command, "GPU trial": command}
    assert "hides the one that Windows provides in /usr/lib/wsl/lib" in said(stray)["WSL2"].text
    assert fixes(replace(stray, distribution=("fedora",)))["WSL2"] == "sudo dnf remove libnvidia-compute-535"
    assert fixes(replace(stray, libcuda_packages=()))["WSL2"] == "sudo nvidia-uninstall"


def test_wsl2_whose_loader_does_not_find_windows_driver_is_told_where_it_lies() -> None:
    assert fixes(with_numba_cuda(replace(WSL, libcuda=()), CU13)) == {
        "NVIDIA driver": 'export LD_LIBRARY_PATH="/usr/lib/wsl/lib"'
    }


def test_under_wsl2_a_driver_is_never_installed_into_linux() -> None:
    old = replace(WSL, gpus=(replace(RTX_4070, driver="470.14"),))
    assert fixes(old) == {}
    assert "update it in Windows" in said(old)["NVIDIA driver"].text
    assert "it is Windows that needs" in said(replace(WSL, gpus=(), gpu_hardware=True))["NVIDIA GPU"].text


@pytest.mark.parametrize(
    ("distribution", "fix"),
    [
        (("ubuntu", "debian"), "sudo ubuntu-drivers install\nsudo reboot"),
        (("debian",), "sudo apt update\nsudo apt install nvidia-driver\nsudo reboot"),
        (("fedora",), "sudo dnf install akmod-nvidia xorg-x11-drv-nvidia-cuda\nsudo reboot"),
        (("arch",), None),
    ],
)
def test_a_gpu_without_a_driver(distribution: tuple[str, ...], fix: str | None) -> None:
    finding = said(replace(LAPTOP, gpu_hardware=True, distribution=distribution))["NVIDIA GPU"]
    assert (finding.status, finding.fix) == ("note", fix)
    assert "https://www.nvidia.com/drivers" in finding.text


@pytest.mark.parametrize(
    ("error", "text", "fix"),
    [
        ("Failed to initialize NVML: Driver/library version mismatch", "restart", "sudo reboot"),
        (
            "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.",
            "not loaded",
            "sudo ubuntu-drivers install\nsudo reboot",
        ),
        ("No devices were found", "nvidia-smi fails: No devices were found", None),
    ],
)
def test_what_nvidia_smi_complains_of(error: str, text: str, fix: str | None) -> None:
    finding = said(replace(LAPTOP, smi_error=error, gpu_hardware=True))["NVIDIA GPU"]
    assert text in finding.text
    assert finding.fix == fix


def test_variables_that_hide_the_gpu_or_point_nowhere_are_unset() -> None:
    given = {
        "CUDA_VISIBLE_DEVICES": "-1",
        "CUDA_HOME": "/usr/local/cuda-11",
        "NUMBA_ENABLE_CUDASIM": "1",
        "GROUNDUP_CUDA": "emulator",
    }
    facts = replace(with_numba_cuda(on(RTX_4070, (13, 0)), CU13), variables=given, absent=("CUDA_HOME",))
    assert fixes(facts) == {
        **{name: f"unset {name}" for name in ("CUDA_VISIBLE_DEVICES", "CUDA_HOME", "NUMBA_ENABLE_CUDASIM")},
        "stage4_numba_cuda": "unset GROUNDUP_CUDA",
    }
    windows = replace(facts, system="win32", libcuda=("C:\\Windows\\System32\\nvcuda.dll",))
    assert fixes(windows)["CUDA_HOME"] == "Remove-Item Env:CUDA_HOME"


def test_two_toolkits_named_at_once_are_told() -> None:
    facts = replace(LAPTOP, variables={"CUDA_HOME": "/opt/cuda-12", "CUDA_PATH": "/opt/cuda-13"})
    assert "differ" in said(facts)["CUDA_PATH"].text
    assert fixes(facts) == {"CUDA_PATH": "unset CUDA_HOME"}


MAC = replace(LAPTOP, system="darwin", distribution=(), libcuda=())


def test_macos_has_no_cuda_and_is_told_of_nothing_to_install() -> None:
    assert fixes(MAC) == {}
    assert said(MAC)["NVIDIA GPU"].text == "CUDA does not exist for macOS; stage 4's kernels run on the emulator"
    assert not {"numba-cuda", "NVIDIA driver", "GPU trial"} & set(said(MAC))


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


@pytest.mark.parametrize(
    ("facts", "fix"),
    [
        (LAPTOP, "sudo apt update\nsudo apt install gcc libc6-dev"),
        (replace(LAPTOP, administrator=True), "apt update\napt install gcc libc6-dev"),
        (
            replace(LAPTOP, distribution=("linuxmint", "ubuntu", "debian")),
            "sudo apt update\nsudo apt install gcc libc6-dev",
        ),
        (replace(LAPTOP, distribution=("rocky", "rhel", "centos", "fedora")), "sudo dnf install gcc glibc-devel"),
        (replace(LAPTOP, distribution=("manjaro", "arch")), "sudo pacman -S gcc"),
        (
            replace(LAPTOP, distribution=("opensuse-tumbleweed", "opensuse", "suse")),
            "sudo zypper install gcc glibc-devel",
        ),
        (replace(LAPTOP, distribution=("alpine",)), "sudo apk add gcc musl-dev"),
        (replace(LAPTOP, distribution=("nixos",)), f'{PYTHON} -m pip install "ziglang>=0.14"'),
        (MAC, "xcode-select --install"),
        (WINDOWS, 'C:\\Users\\ada\\groundup\\.venv\\Scripts\\python.exe -m pip install "ziglang>=0.14"'),
    ],
    ids=["Ubuntu", "root", "Mint", "Rocky", "Manjaro", "openSUSE", "Alpine", "NixOS", "macOS", "Windows"],
)
def test_no_compiler(facts: Facts, fix: str) -> None:
    facts = without_compiler(facts)
    found = said(facts)
    assert fixes(facts) == {"C compiler": fix}
    assert "(cc: not found; gcc: not found)" in found["C compiler"].text
    assert ("ziglang" in found["C compiler"].text) == (fix.startswith(("sudo", "xcode")))  # the way without sudo
    assert found["stage3_c"].status == "note"
    assert doctor.judge(facts).ok


def test_a_compiler_that_was_chosen_and_does_not_work_is_unset() -> None:
    stages = (*STAGES[:2], StageFound("stage3_c", "unavailable", "CC is set to 'icc'", fix="unset CC"), STAGES[3])
    facts = replace(LAPTOP, stages=stages, variables={"CC": "icc"})
    assert fixes(facts) == {"C compiler": "unset CC"}
    assert said(facts)["C compiler"].text == "CC is set to 'icc'"


def test_windows_paths_with_blanks_are_quoted_as_powershell_takes_them() -> None:
    facts = replace(
        WINDOWS, executable="C:\\Users\\Ada L\\venv\\Scripts\\python.exe", root="C:\\Users\\Ada L\\groundup"
    )
    facts = on(replace(RTX_4070, driver="552.22"), (12, 4), facts)
    program = '& "C:\\Users\\Ada L\\venv\\Scripts\\python.exe"'
    assert fixes(facts) == {"numba-cuda": f'{program} -m pip install --upgrade "numba-cuda[cu12]>=0.30"'}
    damaged = replace(facts, data=(DataFound("mnist", "damaged", "truncated", "C:\\Users\\Ada L\\mnist"),))
    assert (said(damaged)["mnist"].fix or "").splitlines() == [
        'move "C:\\Users\\Ada L\\mnist" "C:\\Users\\Ada L\\mnist.damaged"',
        "groundup train 2 --dataset mnist --epochs 1 --download",
    ]


def test_a_toolkit_on_windows_gives_way_to_the_extra() -> None:
    facts = with_numba_cuda(on(RTX_4070, (13, 0), WINDOWS), {"cuda-bindings": "13.0.3"})
    facts = replace(facts, toolkits={"C:\\CUDA\\v13.0": "13.0.1"})
    assert "does not find every library" in said(facts)["numba-cuda"].text
    assert (fixes(facts)["numba-cuda"]).endswith('"numba-cuda[cu13]>=0.30"')
    conda = replace(facts, executable="C:\\conda\\envs\\g\\python.exe", toolkits={"C:\\conda\\envs\\g": "13.0.1"})
    assert fixes(conda) == {}


SYSTEM_PYTHON = replace(
    LAPTOP, executable="/usr/bin/python3", virtual=False, externally_managed=True, installed={}, ensurepip=False
)
NEW_ENVIRONMENT = (
    "sudo apt update\n"
    "sudo apt install python3-venv\n"
    "/usr/bin/python3 -m venv /home/ada/groundup/.venv\n"
    "/home/ada/groundup/.venv/bin/python -m pip install -e /home/ada/groundup"
)


def test_an_externally_managed_python_gets_an_environment_and_never_pip_itself() -> None:
    found = fixes(SYSTEM_PYTHON)
    assert found == dict.fromkeys(("virtual environment", *DEPENDENCIES), NEW_ENVIRONMENT)
    assert not doctor.judge(SYSTEM_PYTHON).ok
    text = plain(doctor.judge(SYSTEM_PYTHON))
    assert text.count("apt install python3-venv") == 1  # the other findings have the same, which is said once
    assert f"not installed: {', '.join(DEPENDENCIES)}" in text
    with_gpu = on(RTX_4070, (13, 0), replace(SYSTEM_PYTHON, ensurepip=True))
    assert fixes(with_gpu)["numba-cuda"].splitlines() == [
        "/usr/bin/python3 -m venv /home/ada/groundup/.venv",
        '/home/ada/groundup/.venv/bin/python -m pip install -e /home/ada/groundup "numba-cuda[cu13]>=0.30"',
    ]


def test_an_environment_without_pip_uses_uv_or_brings_pip() -> None:
    facts = on(RTX_4070, (13, 0), replace(LAPTOP, pip=False))
    assert fixes(replace(facts, uv=True)) == {
        "numba-cuda": f'uv pip install --python {PYTHON} --upgrade "numba-cuda[cu13]>=0.30"'
    }
    assert fixes(facts)["numba-cuda"].splitlines()[0] == f"{PYTHON} -m ensurepip --upgrade"


@pytest.mark.parametrize(
    ("facts", "fix"),
    [
        (LAPTOP, "sudo apt update\nsudo apt install python3.11 python3.11-venv"),
        (
            replace(LAPTOP, other_pythons=("python3.12", "python3.11")),
            "python3.12 -m venv /home/ada/groundup/.venv\n" + f"{PYTHON} -m pip install -e /home/ada/groundup",
        ),
        (MAC, "brew install python@3.13"),
        (WINDOWS, "winget install Python.Python.3.13"),
    ],
)
def test_a_python_that_is_too_old(facts: Facts, fix: str) -> None:
    finding = said(replace(facts, python=(3, 9, 2)))["python"]
    assert (finding.status, finding.fix) == ("problem", fix)
    assert "needs 3.11 or newer" in finding.text
    assert len(said(replace(facts, python=(3, 9, 2)))) == 2  # nothing else can be looked at


@pytest.mark.parametrize(("version", "status"), [((3, 11, 0), "ok"), ((3, 13, 9), "ok"), ((3, 99, 0), "note")], ids=str)
def test_pythons_that_will_do(version: tuple[int, ...], status: str) -> None:
    assert said(replace(LAPTOP, python=version))["python"].status == status


def test_packages_that_are_missing_or_too_old_share_one_command() -> None:
    installed = {**LAPTOP.installed, "numba": "0.58.1"}
    del installed["pooch"]
    facts = replace(LAPTOP, installed=installed)
    command = f'{PYTHON} -m pip install "numba>=0.61" "pooch>=1.8"'
    assert fixes(facts) == {"numba": command, "pooch": command}
    assert said(facts)["numba"].text == "0.58.1 is too old; groundup needs 0.61 or newer"
    assert not doctor.judge(facts).ok


def test_what_waits_for_a_missing_package_says_so_and_repeats_no_command() -> None:
    installed = dict(LAPTOP.installed)
    del installed["numba"]
    broken = StageFound("stage4_numba_cuda", "broken", "ModuleNotFoundError: No module named 'numba'", missing="numba")
    facts = replace(
        LAPTOP,
        installed=installed,
        stages=(*STAGES[:3], broken),
        emulator=Trial(False, "ModuleNotFoundError: No module named 'numba'"),
    )
    assert set(fixes(facts)) == {"numba"}
    assert said(facts)["stage4_numba_cuda"].text == "waits for numba, which a line above tells of"
    assert said(facts)["emulator"].text == "waits for numba, which a line above tells of"


@pytest.mark.parametrize(
    ("error", "fix"),
    [
        ("ImportError: Numba needs NumPy 2.3 or less. Got NumPy 2.4.", f'{PYTHON} -m pip install "numpy<2.4"'),
        (
            "ImportError: Numba requires at least version 0.44.0 of llvmlite.",
            f'{PYTHON} -m pip install --upgrade --force-reinstall "numba" "llvmlite"',
        ),
        ("SyntaxError: invalid syntax", "git -C /home/ada/groundup restore stage4_numba_cuda"),
    ],
)
def test_a_stage_that_does_not_load(error: str, fix: str) -> None:
    facts = replace(LAPTOP, stages=(*STAGES[:3], StageFound("stage4_numba_cuda", "broken", error)))
    finding = said(facts)["stage4_numba_cuda"]
    assert (finding.status, finding.text, finding.fix) == ("problem", f"does not load: {error}", fix)


def test_a_gpu_that_is_insisted_on_and_not_there_is_no_longer_insisted_on() -> None:
    reason = "GROUNDUP_CUDA=gpu, but numba-cuda is not installed"
    waiting = StageFound("stage4_numba_cuda", "unavailable", f"stage4_numba_cuda: {reason}", fix="pip install …[cu13]")
    facts = replace(LAPTOP, stages=(*STAGES[:3], waiting), variables={"GROUNDUP_CUDA": "gpu"})
    assert fixes(facts) == {"stage4_numba_cuda": "unset GROUNDUP_CUDA"}
    assert said(facts)["stage4_numba_cuda"].text == reason


def test_an_emulator_that_fails_is_a_problem() -> None:
    facts = replace(LAPTOP, emulator=Trial(False, "exit code -11: Segmentation fault"))
    finding = said(facts)["emulator"]
    assert finding.status == "problem"
    assert finding.fix == f'{PYTHON} -m pip install --upgrade --force-reinstall "numba>=0.61" "llvmlite"'
    plain_python = replace(facts, variables={"NUMBA_DISABLE_JIT": "1"})
    assert said(plain_python)["emulator"].fix == "unset NUMBA_DISABLE_JIT"
    full = replace(LAPTOP, emulator=Trial(False, "OSError: [Errno 28] No space left on device"))
    assert said(full)["emulator"].fix == 'export GROUNDUP_CACHE="$HOME/groundup-cache"'


def test_a_cache_that_cannot_be_written_or_is_full() -> None:
    locked = said(replace(LAPTOP, cache_writable=False))["cache"]
    assert (locked.status, locked.fix) == ("note", 'export GROUNDUP_CACHE="$HOME/groundup-cache"')
    windows = said(replace(WINDOWS, cache_writable=False))["cache"]
    assert windows.fix == '$env:GROUNDUP_CACHE = "$HOME\\groundup-cache"'
    full = said(replace(LAPTOP, cache_free=10**7))["cache"]
    assert (full.status, full.fix) == ("note", None)
    assert "make room" in full.text


@pytest.mark.parametrize(
    ("value", "text"), [("64", "more threads than the 8 usable cores"), ("many", "expected a number of threads")]
)
def test_thread_variables_that_do_harm_are_unset(value: str, text: str) -> None:
    facts = replace(LAPTOP, blas="openblas 0.3", variables={"OPENBLAS_NUM_THREADS": value})
    assert text in said(facts)["BLAS"].text
    assert fixes(facts) == {"BLAS": "unset OPENBLAS_NUM_THREADS"}
    assert said(replace(facts, variables={"OPENBLAS_NUM_THREADS": "4"}))["BLAS"].text == (
        "openblas 0.3, OPENBLAS_NUM_THREADS=4"
    )


def test_damaged_bundled_data_is_a_problem_and_restored_from_where_it_came() -> None:
    damaged = DataFound("mnist-subset", "damaged", "train-images: truncated")
    facts = replace(LAPTOP, data=(damaged, *DATA[1:]))
    finding = said(facts)["mnist-subset"]
    assert (finding.status, finding.text) == ("problem", "damaged: train-images: truncated")
    assert finding.fix == "git -C /home/ada/groundup restore shared/data/mnist_subset"
    wheel = replace(facts, checkout=False, origin="file:///tmp/groundup.whl")
    assert said(wheel)["mnist-subset"].fix == (
        f'{PYTHON} -m pip install --force-reinstall --no-deps "file:///tmp/groundup.whl"'
    )
    assert said(replace(facts, checkout=False))["mnist-subset"].fix is None


def test_a_data_folder_that_is_not_there_is_made() -> None:
    facts = replace(LAPTOP, variables={"GROUNDUP_DATA": "/data/my sets"}, absent=("GROUNDUP_DATA",))
    assert fixes(facts) == {"GROUNDUP_DATA": "mkdir -p '/data/my sets'"}


GUIDE = Path(__file__).resolve().parents[3] / "docs" / "guides" / "installing.md"


def test_what_the_guide_quotes_is_what_the_doctor_says() -> None:
    rows = [line.split(" | ") for line in GUIDE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    rows = rows[next(number for number, row in enumerate(rows) if row[0] == "| python") :]
    quoted = [part for row in rows for part in re.findall(r"`([^`]+)`", row[0] if row[0].startswith("| `") else row[1])]
    source = "".join(path.read_text(encoding="utf-8") for path in Path(doctor.__file__).parent.glob("*.py"))
    elsewhere = ["CC is set to"]  # stage 3's own words
    assert len(quoted) > 50
    assert [each for each in quoted if each not in source and each not in elsewhere] == []


def test_every_line_of_these_machines_that_is_not_well_is_in_the_guide() -> None:
    guide = GUIDE.read_text(encoding="utf-8")
    lines = {each.about for facts in (LAPTOP, COLAB, WSL, MAC, WINDOWS, SYSTEM_PYTHON) for each in _not_well(facts)}
    assert lines
    assert [each for each in lines if each not in guide and each not in DEPENDENCIES] == []


def _not_well(facts: Facts) -> list[Finding]:
    return [each for each in doctor.judge(without_compiler(facts)).findings if each.status != "ok"]
