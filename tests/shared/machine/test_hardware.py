"""What is asked of a machine, on machines made of a few files."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from shared.machine import hardware
from shared.machine.environment import LIBRARIES, environment

CPU = "sys/devices/system/cpu"


@pytest.fixture(autouse=True)
def on_linux(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "linux")


def machine(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def cache_files(number: int, level: str, kind: str, size: str, cores: str) -> dict[str, str]:
    values = {"level": level, "type": kind, "size": size, "shared_cpu_list": cores}
    return {f"{CPU}/cpu0/cache/index{number}/{name}": f"{text}\n" for name, text in values.items()}


def test_caches_are_listed_nearest_first_with_their_bytes_and_sharers(tmp_path: Path) -> None:
    root = machine(
        tmp_path,
        {
            **cache_files(3, "3", "Unified", "32M", "0-7,16-23"),
            **cache_files(2, "2", "Unified", "1024K", "0,16"),
            **cache_files(0, "1", "Data", "32K", "0,16"),
            **cache_files(1, "1", "Instruction", "64K", "0,16"),
        },
    )
    assert hardware.caches(root) == [
        {"level": 1, "type": "data", "bytes": 32768, "shared_by": 2},
        {"level": 1, "type": "instruction", "bytes": 65536, "shared_by": 2},
        {"level": 2, "type": "unified", "bytes": 1 << 20, "shared_by": 2},
        {"level": 3, "type": "unified", "bytes": 32 << 20, "shared_by": 16},
    ]


def test_a_machine_that_tells_nothing_answers_none(tmp_path: Path) -> None:
    for question in ("caches", "physical_cores", "governor", "turbo", "hypervisor"):
        assert getattr(hardware, question)(tmp_path) is None, question


def test_free_memory_is_what_the_system_has_or_the_container_may_still_take(tmp_path: Path) -> None:
    assert hardware.free_memory(tmp_path) is None
    group = "sys/fs/cgroup"
    root = machine(tmp_path, {"proc/meminfo": "MemTotal: 9000 kB\nMemAvailable:    5000 kB\n"})
    assert hardware.free_memory(root) == 5000 * 1024
    machine(root, {f"{group}/memory.max": "max\n", f"{group}/memory.current": "7\n"})
    assert hardware.free_memory(root) == 5000 * 1024
    machine(root, {f"{group}/memory.max": "1000\n", f"{group}/memory.current": "800\n"})
    assert hardware.free_memory(root) == 200
    machine(root, {f"{group}/memory.stat": "anon 500\nfile_mapped 1\nfile 300\n"})
    assert hardware.free_memory(root) == 500


def test_two_threads_of_a_core_are_one_physical_core(tmp_path: Path) -> None:
    siblings = {0: "0,2", 1: "1,3", 2: "0,2", 3: "1,3"}
    root = machine(tmp_path, {f"{CPU}/cpu{n}/topology/thread_siblings_list": text for n, text in siblings.items()})
    assert hardware.physical_cores(root) == 2


@pytest.mark.parametrize(("text", "expected"), [("0", 1), ("0-3", 4), ("0-3,8,10-11", 7), ("", None), (None, None)])
def test_a_list_of_cores_is_counted(text: str | None, expected: int | None) -> None:
    assert hardware.cores_in(text) == expected


def test_the_environment_carries_the_hardware_and_the_libraries_as_json() -> None:
    facts = environment()
    assert json.loads(json.dumps(facts)) == facts
    assert facts["libraries"]["numba"]
    assert set(facts["libraries"]) <= set(LIBRARIES)
    assert None not in facts["libraries"].values()
    assert facts["physical_cores"] == hardware.physical_cores()
    assert facts["caches"] == hardware.caches()
