"""shared.machine.nvml: what the driver's library says of GPUs, or why nothing can be asked. The library is a fake."""

import sys
from types import ModuleType, SimpleNamespace

import pytest

from shared.machine import nvml
from shared.machine.nvml import GpuMeter


class NVMLError(Exception):
    pass


def fake(monkeypatch: pytest.MonkeyPatch, hardware: bool | None = True, gpus: int = 1, broken: str = "") -> None:
    """A pynvml with so many GPUs; broken: the name of the function that fails."""
    module = ModuleType("pynvml")

    def answering(name: str, answer):  # type: ignore[no-untyped-def]
        def function(*arguments: object) -> object:
            if name == broken:
                raise NVMLError("Driver Not Loaded")
            return answer(*arguments)

        setattr(module, name, function)

    module.NVMLError = NVMLError  # type: ignore[attr-defined]
    answering("nvmlInit", lambda: None)
    answering("nvmlDeviceGetCount", lambda: gpus)
    answering("nvmlDeviceGetHandleByIndex", lambda i: i)
    answering("nvmlDeviceGetName", lambda handle: f"GPU {handle}".encode())  # older versions answer with bytes
    answering("nvmlDeviceGetUtilizationRates", lambda handle: SimpleNamespace(gpu=75 + handle, memory=3))
    answering("nvmlDeviceGetMemoryInfo", lambda handle: SimpleNamespace(used=2**30 + handle))
    monkeypatch.setitem(sys.modules, "pynvml", module)
    monkeypatch.setattr(nvml, "has_module", lambda name: True)
    monkeypatch.setattr(nvml, "gpu_hardware", lambda: hardware)


def test_every_gpu_tells_how_busy_it_is_and_how_much_memory_is_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    fake(monkeypatch, gpus=2)
    meter = GpuMeter()
    assert (meter.names, meter.reason) == (["GPU 0", "GPU 1"], "")
    assert meter.use() == [[0.75, 2**30], [0.76, 2**30 + 1]]


@pytest.mark.parametrize(
    ("hardware", "gpus", "broken", "reason"),
    [
        (False, 1, "", "this machine has no NVIDIA GPU"),
        (True, 0, "", "the driver sees no NVIDIA GPU"),
        (None, 1, "nvmlInit", "NVML does not answer: Driver Not Loaded"),
        (True, 1, "nvmlDeviceGetName", "NVML does not answer: Driver Not Loaded"),
    ],
)
def test_without_a_gpu_that_answers_there_is_a_reason(
    monkeypatch: pytest.MonkeyPatch, hardware: bool | None, gpus: int, broken: str, reason: str
) -> None:
    fake(monkeypatch, hardware, gpus, broken)
    meter = GpuMeter()
    assert (meter.names, meter.reason, meter.use()) == ([], reason, None)


def test_a_driver_that_stops_answering_ends_no_training(monkeypatch: pytest.MonkeyPatch) -> None:
    fake(monkeypatch, broken="nvmlDeviceGetUtilizationRates")
    meter = GpuMeter()
    assert meter.names == ["GPU 0"]
    assert meter.use() is None
    assert meter.reason == "NVML stopped answering: Driver Not Loaded"
