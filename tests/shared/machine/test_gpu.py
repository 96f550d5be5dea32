"""shared.machine.gpu: what nvidia-smi, the bus, the loader and the package manager say, on machines that have them."""

from pathlib import Path

import pytest

from shared.machine import gpu
from shared.machine.gpu import Driver, Gpu


def fake_smi(monkeypatch: pytest.MonkeyPatch, table: str, header: str = "", knows_capability: bool = True) -> None:
    """nvidia-smi answers with this header and this table."""
    monkeypatch.setattr(gpu.shutil, "which", lambda name: f"/bin/{name}")

    def ask(words: list[str]) -> tuple[int, str]:
        if len(words) == 1:
            return 0, header
        asked = words[1]
        if "compute_cap" in asked and not knows_capability:
            return 2, 'Field "compute_cap" is not a valid field to query.'
        return 0, table

    monkeypatch.setattr(gpu, "_ask", ask)


@pytest.mark.parametrize("label", ["CUDA Version: 12.4", "CUDA UMD Version: 12.4"], ids=["to 590", "from 610"])
def test_gpus_are_read_from_nvidia_smi(monkeypatch: pytest.MonkeyPatch, label: str) -> None:
    table = "NVIDIA T4, 550.54, 15360 MiB, 7.5\nNVIDIA L4, 550.54, 23034 MiB, 8.9"
    fake_smi(monkeypatch, table, f"| NVIDIA-SMI 550.54    Driver Version: 550.54    {label}  |")
    gpus = (Gpu("NVIDIA T4", "550.54", "15360 MiB", (7, 5)), Gpu("NVIDIA L4", "550.54", "23034 MiB", (8, 9)))
    assert gpu.nvidia_smi() == Driver(gpus, (12, 4))
    assert gpu.nvidia_gpus() == gpus


def test_the_gpu_with_the_least_free_memory_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_smi(monkeypatch, "81037 MiB\n4096 MiB")
    assert gpu.free_memory() == 4096
    fake_smi(monkeypatch, "[N/A]")
    assert gpu.free_memory() is None
    monkeypatch.setattr(gpu.shutil, "which", lambda name: None)
    monkeypatch.setattr(gpu, "WSL_SMI", "/no/such/program")
    assert gpu.free_memory() is None


def test_what_a_failing_nvidia_smi_says_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu.shutil, "which", lambda name: f"/bin/{name}")
    monkeypatch.setattr(gpu, "_ask", lambda words: (18, "Failed to initialize NVML:\n version mismatch"))
    assert gpu.nvidia_smi() == Driver(error="Failed to initialize NVML: version mismatch")
    assert gpu.nvidia_gpus() == ()
    monkeypatch.setattr(gpu.shutil, "which", lambda name: None)
    monkeypatch.setattr(gpu, "WSL_SMI", "/no/such/program")
    assert gpu.nvidia_smi() == Driver()
    assert gpu.nvidia_gpus() == ()


def test_a_gpu_is_seen_on_the_bus_without_a_driver(tmp_path: Path) -> None:
    for name, vendor, kind in (("0", "0x8086", "0x030000"), ("1", "0x10de", "0x040300")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "vendor").write_text(f"{vendor}\n")
        (tmp_path / name / "class").write_text(f"{kind}\n")
    assert gpu.gpu_hardware(tmp_path) is False  # Intel's graphics, and the sound of an NVIDIA card
    (tmp_path / "1" / "class").write_text("0x030200\n")
    assert gpu.gpu_hardware(tmp_path) is True
    assert gpu.gpu_hardware(tmp_path / "absent") is None


def test_toolkits_are_found_once_each_the_named_one_first(tmp_path: Path) -> None:
    new, old = tmp_path / "cuda-13.0", tmp_path / "cuda-10.2"
    for folder in (new, old):
        folder.mkdir()
    (new / "version.json").write_text('{"cuda": {"name": "CUDA SDK", "version": "13.0.1"}}')
    (old / "version.txt").write_text("CUDA Version 10.2.89\n")
    assert gpu.toolkits({}, tmp_path) == {str(old): "10.2.89", str(new): "13.0.1"}
    assert gpu.toolkits({"CUDA_HOME": str(new)}, tmp_path) == {str(new): "13.0.1", str(old): "10.2.89"}
    (new / "version.json").write_text("damaged")
    assert gpu.toolkits({}, tmp_path) == {str(old): "10.2.89"}
