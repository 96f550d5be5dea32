"""groundup doctor on machines that are written down as facts: for each, the exact commands that mend it."""

from dataclasses import replace

import pytest

from groundup import doctor
from groundup.doctor.facts import Trial
from shared.machine.gpu import Gpu
from tests.groundup.doctor.made_up_machines import (
    COLAB,
    CU12,
    CU13,
    LAPTOP,
    PYTHON,
    RTX_4070,
    STAGES,
    T4,
    WSL,
    fixes,
    on,
    said,
    with_numba_cuda,
)


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
        (Gpu("NVIDIA GeForce GTX 1060", "580.95.05", "6144 MiB", (6, 1)), (13, 0), "cu12"),
    ],
    ids=["580", "535", "compute capability 6.1"],
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


def test_cuda_13s_libraries_go_before_cuda_12s_come_where_the_driver_is_too_old() -> None:
    facts = with_numba_cuda(on(replace(RTX_4070, driver="535.183.01"), (12, 2)), CU13)
    assert "driver 535.183.01 is too old for them" in said(facts)["numba-cuda"].text
    assert said(facts)["numba-cuda"].fix == (
        f"{PYTHON} -m pip uninstall -y nvidia-nvvm nvidia-cuda-nvrtc nvidia-nvjitlink nvidia-cuda-runtime\n"
        f'{PYTHON} -m pip install --upgrade "numba-cuda[cu12]>=0.30"'
    )


def test_a_driver_older_than_cuda_12_is_to_be_updated() -> None:
    facts = on(replace(RTX_4070, driver="470.256.02"), (11, 4))
    assert fixes(facts) == {"NVIDIA driver": "sudo ubuntu-drivers install\nsudo reboot"}
    assert "CUDA 12 needs 525 or newer, CUDA 13 580" in said(facts)["NVIDIA driver"].text


def test_numba_cuda_without_an_extra_lacks_the_libraries() -> None:
    facts = with_numba_cuda(on(RTX_4070, (13, 0)), {"cuda-bindings": "13.0.3"})
    assert "without an extra" in said(facts)["numba-cuda"].text
    assert fixes(facts) == {"numba-cuda": f'{PYTHON} -m pip install --upgrade "numba-cuda[cu13]>=0.30"'}


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


@pytest.mark.parametrize(
    ("error", "meaning", "fix"),
    [
        (
            'DynamicLibNotFoundError: Failure finding "libnvrtc.so"',
            "libraries that numba-cuda needs are missing",
            f'{PYTHON} -m pip install --upgrade "numba-cuda[cu13]>=0.30"',
        ),
        ("CudaAPIError: [803] CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", "restart the computer", "sudo reboot"),
        ("RuntimeError: expected 0, 2, 4", "a small kernel does not run", None),
    ],
)
def test_an_error_of_the_trial_is_told_with_what_it_means(error: str, meaning: str, fix: str | None) -> None:
    finding = said(replace(with_numba_cuda(on(RTX_4070, (13, 0)), CU13), gpu_trial=Trial(False, error)))["GPU trial"]
    assert finding.status == "note"
    assert meaning in finding.text
    assert error in finding.text
    assert finding.fix == fix if fix is None else (finding.fix or "").startswith(fix)


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


def test_under_wsl2_a_driver_is_never_installed_into_linux() -> None:
    old = replace(WSL, gpus=(replace(RTX_4070, driver="470.14"),))
    assert fixes(old) == {}
    assert "update it in Windows" in said(old)["NVIDIA driver"].text


@pytest.mark.parametrize(
    ("distribution", "fix"),
    [
        (("ubuntu", "debian"), "sudo ubuntu-drivers install\nsudo reboot"),
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


def test_a_numpy_with_which_numba_cuda_compiles_nothing_is_named_with_its_version() -> None:
    versions = {**CU13, "numpy": "2.5.0"}
    error = "AttributeError: module 'numpy' has no attribute 'row_stack'"
    facts = replace(with_numba_cuda(on(RTX_4070, (13, 0)), versions), gpu_trial=Trial(False, error))
    fix = f'{PYTHON} -m pip install "numpy<2.5"'
    pair = "numba-cuda 0.30.4 compiles no kernel with NumPy 2.5.0"
    assert pair in said(facts)["numba-cuda"].text
    assert pair in said(facts)["GPU trial"].text
    assert fixes(facts) == {"numba-cuda": fix, "GPU trial": fix}
