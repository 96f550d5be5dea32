"""The GPU report on the machine: what it says where a kernel breaks the device."""

from __future__ import annotations

import json
from pathlib import Path

from tests.stage4_numba_cuda.machine.needed import needs_numba_cuda
from tests.stage4_numba_cuda.machine.process import run
from tests.wide import wide

pytestmark = needs_numba_cuda

OUTSIDE = r"(st\.shared\.\w+\s+\[[^\]+]+)\]=>\1+1000000]"
"""An edit of the PTX: a store to shared memory goes outside of it."""


def test_rungs_after_an_illegal_access_have_not_run_and_are_not_wrong(tmp_path: Path) -> None:
    result = tmp_path / "part.json"
    part = ["-m", "groundup.gpu_report", "--part", "correctness", "--tiny", "--result", str(result)]
    done = run(part, tmp_path, MACHINE_EDIT=OUTSIDE)
    assert done.returncode == 1, done.stderr
    found = json.loads(result.read_text())
    assert [(row["rung"], row["ok"]) for row in found["rows"]] == [
        *(("naive", True), ("coalesced", True), ("tiled_16", False)),
    ]
    assert "CUDA_ERROR_LAUNCH_FAILED" in found["rows"][-1]["worst"]
    assert found["error"].endswith("what comes next in this part has not run")


@wide  # it compiles two persistent kernels
def test_what_a_part_launches_is_compiled_before_it_and_kept(tmp_path: Path) -> None:
    result = tmp_path / "part.json"
    part = ["-m", "groundup.gpu_report", "--part", "compile", "--only", "training", "--result", str(result)]
    kept: list[dict[Path, int]] = []
    for _ in range(2):
        done = run(part, tmp_path)
        assert done.returncode == 0, done.stderr
        (row,) = json.loads(result.read_text())["rows"]
        assert (row["compiled"], row["left"], row["failed"]) == (row["kernels"], 0, [])
        kept.append({path: path.stat().st_mtime_ns for path in (tmp_path / "cache").rglob("*.kernel")})
    assert len(kept[0]) >= row["kernels"]
    assert kept[0] == kept[1]  # the second time all were found
