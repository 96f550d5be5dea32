"""`groundup lens`: what a target stands for, what is shown of it, and one line for every mistake."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cuda_emulator.inspection import blocks_to_trace, extent, sizes
from groundup.kernels.catalogue import CATALOGUE
from stage4_numba_cuda.backend import BACKEND
from tests.program import ran
from tests.wide import WIDE, wide, widely

ours = pytest.mark.skipif(BACKEND.name != "emulator", reason="stage 4's kernels are traced on the emulator only")

SCRIPT = """\
import sys
import numpy as np
from numba import cuda
import beside

@cuda.jit
def scale(x, y, factor):
    i = cuda.grid(1)
    if i < x.size:
        y[i] = x[i] * factor

@cuda.jit
def shift(x):
    i = cuda.grid(1)
    if i + 1 < x.size:
        x[i] = x[i + 1]

@cuda.jit
def unguarded(x):
    x[cuda.grid(1)] = 0

@cuda.jit
def unused(x, n):
    if n > 2:
        x[cuda.grid(1)] = n

def main():
    x = np.arange(1000, dtype=np.float32)
    y = np.zeros_like(x)
    print("the script prints")
    scale[4, 256](x, y, np.float32(beside.TWO))
    assert y[3] == 6
    scale[8, 128](x, y, np.float32(3))
    shift[1, 64](cuda.to_device(x))
    unguarded[1, 64](np.zeros(64, np.float32))

if __name__ == "__main__":
    main()
"""


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "beside", raising=False)
    Path("beside.py").write_text("TWO = 2\n")
    Path("kernels.py").write_text(SCRIPT)


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    return ran(capsys, "lens", *arguments)


def profiles(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, Any]]:
    """What `groundup lens --json ARGUMENTS` prints."""
    code, out, err = run(capsys, *arguments, "--json")
    assert code == 0, err
    found: list[dict[str, Any]] = json.loads(out)["profiles"]
    return found


# Scripts


def test_a_scripts_first_launch_is_shown_with_its_own_arguments(capsys: pytest.CaptureFixture[str]) -> None:
    argv, path, before = sys.argv, list(sys.path), os.environ.get("GROUNDUP_CUDA")
    code, out, err = run(capsys, "kernels.py:scale")
    assert code == 0, err
    assert "grid 4 blocks, each of 256 threads" in out
    assert "y[i] = x[i] * factor" in out
    assert "the script prints" not in out
    assert "the script prints" in err
    assert (sys.argv, sys.path, os.environ.get("GROUNDUP_CUDA")) == (argv, path, before)


def test_a_later_launch_is_chosen_by_its_number(capsys: pytest.CaptureFixture[str]) -> None:
    (found,) = profiles(capsys, "kernels.py:scale", "--launch", "2", "--blocks", "8")
    assert (found["kernel"], found["grid"], found["block"]) == ("scale", [8, 1, 1], [128, 1, 1])
    assert found["blocks"] == list(range(8))
    (load,) = [each for each in found["accesses"] if each["kind"] == "load"]
    assert (load["array"], load["requests"], load["sectors"], load["lanes"]) == ("x", 32, 125, 1000)
    assert (found["scale"], found["flops"], found["correct"]) == (1.0, 1000, True)


def test_arguments_from_text_need_no_launch(capsys: pytest.CaptureFixture[str]) -> None:
    given = ["--args", "n=3 x=int32[256]", "--grid", "2", "--block", "128"]
    (found,) = profiles(capsys, "kernels.py:unused", *given, "--blocks", "1,")
    assert found["arguments"] == [["x", "int32 (256,)"], ["n", "3"]]
    assert (found["blocks"], found["grid_blocks"]) == ([1], 2)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["kernels.py:shift"], "race"),
        (["kernels.py:unguarded", "--args", "x=float32[60]", "--grid", "1", "--block", "64"], "out of bounds"),
    ],
    ids=["race", "fault"],
)
def test_a_wrong_kernel_is_shown_and_ends_with_exit_code_1(
    capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    code, out, err = run(capsys, *arguments)
    assert code == 1
    assert said in out.lower()
    assert "error" not in err


def test_the_page_and_two_kernels_side_by_side(capsys: pytest.CaptureFixture[str]) -> None:
    Path("other.py").write_text(SCRIPT.replace("x[i] * factor", "x[x.size - 1 - i] * factor"))
    code, out, err = run(capsys, "kernels.py:scale", "other.py:scale", "--html", "page.html")
    assert code == 0, err
    assert "second / first" in out
    page = Path("page.html").read_text(encoding="utf-8")
    assert page.lower().startswith("<!doctype html>")
    assert "the page is in page.html" in err


def test_source_prints_what_the_emulator_generates(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "kernels.py:scale", "--source")
    assert code == 0
    assert out.startswith("# scale\n")
    assert "def run(" in out


# Our own kernels


@ours
def test_a_rung_of_the_ladder_is_known_by_its_name_and_form(capsys: pytest.CaptureFixture[str]) -> None:
    (found,) = profiles(capsys, "tiled_16:tn", "--size", "32,48,16", "--dtype", "float64", "--device", "rtx 4090")
    assert found["kernel"] == "tiled_16:tn"
    assert found["arguments"] == [["a", "float64 (16, 32)"], ["b", "float64 (16, 48)"], ["c", "float64 (32, 48)"]]
    assert (found["roofline"]["device"], found["roofline"]["dtype"]) == ("RTX 4090", "float64")
    assert found["static"]["shared_bytes"] == 16 * 17 * 8 + 16 * 16 * 8


@ours
@pytest.mark.parametrize("of_tensor_cores", widely([False, True]))
def test_every_kernel_that_the_compile_check_knows_has_a_launch_here(of_tensor_cores: bool) -> None:
    """The launch of a tensor cores' rung packs its factors first, by kernels of each format that take long to compile:
    test_tensor_cores.py does both."""
    from groundup.kernels.launching import KERNELS, RUNGS, matmul, project_launch

    files = {entry.kernel.partition(".")[0] for entry in CATALOGUE}
    assert files - {name.partition(".")[0] for name in KERNELS} == {
        *("matmul_1_basic", "matmul_2_register", "matmul_3_warp", "matmul_4_fitted", "matmul_5_tensor"),  # the rungs
        *("matmul_6_operands", "matmul_7_fragments", "matmul_8_pipelined"),  # and those of the tensor cores
        "interchange",  # launched by PyTorch's tensors only
    }
    compiled = {entry.kernel for entry in CATALOGUE if "[" not in entry.kernel and "(" not in entry.kernel}
    assert {name for name in compiled if not name.startswith(("matmul_", "interchange."))} <= set(KERNELS)
    rungs = [name for name in RUNGS if name in matmul.LADDER or of_tensor_cores]
    for name in (*rungs, "softmax_warp", "sums.total_by_tree", "hinge_backward", "adam", "gather_labels"):
        launch = project_launch(name, (64, 32, 32))
        assert launch.name == launch.kernel.py_func.__name__ or name in RUNGS
        assert len(launch.arguments) == len(launch.kernel.parameters)


@ours
@wide
def test_the_kernels_of_a_training_step_are_caught_in_one() -> None:
    from groundup.kernels.launching import KERNELS, project_launch

    for name in KERNELS if WIDE else list(KERNELS)[::4]:
        launch = project_launch(name, (16, 16, 16))
        assert launch.kernel.py_func.__name__ == name.partition(".")[2]


# Mistakes


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere.py:scale"], "there is no script nowhere.py"),
        (["kernels.py"], "kernels.py: name the kernel, too: kernels.py:KERNEL"),
        (["kernels.py:scal"], "never launches a kernel scal; it launches scale, shift, unguarded; did you mean"),
        (["kernels.py:scale", "--launch", "3"], "kernels.py launches scale twice; there is no launch 3"),
        (["kernels.py:unused"], "defines unused and never launches it; give its arguments (--args, --grid, --block)"),
        (
            ["kernels.py:scale", "--args", "x=1", "--grid", "1", "--block", "1"],
            "scale takes x, y, factor; y, factor mis",
        ),
        (["tiled_16", "--args", "a=1"], "args belongs to a kernel of a script"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_mistake_is_one_line(capsys: pytest.CaptureFixture[str], arguments: list[str], message: str) -> None:
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (2, "")
    (line,) = [each for each in err.splitlines() if each != "the script prints"]
    assert line.startswith("error: ")
    assert message in line


@ours
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["tile_16"], "no kernel of this project is called 'tile_16'; similar names: tiled_16, tiled_32"),
        (["qqq"], "the matmul ladder has naive, coalesced, tiled_16"),
        (["naive:tn"], "naive knows only ab (nn); tn and nt begin with tiled_16"),
        (["tf32", "--dtype", "float64"], "tensor cores round float32"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_kernel_of_ours_that_is_none_is_told_what_is_near(
    capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    code, _, err = run(capsys, *arguments)
    assert code == 2
    assert message in err
    assert len(err.splitlines()) == 1


def test_sizes_extents_and_blocks_are_read_from_text() -> None:
    assert sizes("512") == (512, 512, 512)
    assert sizes("64, 32") == (64, 32, 32)
    assert sizes("64,32,16") == (64, 32, 16)
    assert extent("grid", "") == ()
    assert extent("grid", "4,2") == (4, 2)
    assert (blocks_to_trace(""), blocks_to_trace("8"), blocks_to_trace("0,5"), blocks_to_trace("5,")) == (
        None,
        8,
        [0, 5],
        [5],
    )
    for wrong in ("", "1,2,3,4", "1.5"):
        with pytest.raises(ValueError, match="size: expected"):
            sizes(wrong)
    with pytest.raises(ValueError, match="block: expected one to three"):
        extent("block", "1,2,3,4")


def test_arguments_of_a_script_are_not_changed(capsys: pytest.CaptureFixture[str]) -> None:
    """The launch is not made, and its traced blocks run on copies: what the script still holds is as it was."""
    Path("kernels.py").write_text(
        "import numpy as np\nfrom numba import cuda\n"
        "@cuda.jit\ndef fill(x):\n    x[cuda.grid(1)] = 1\n"
        "x = np.zeros(64, np.float32)\ntry:\n    fill[2, 32](x)\nfinally:\n    import beside\n    beside.kept = x\n"
    )
    code, _, err = run(capsys, "kernels.py:fill")
    assert code == 0, err
    assert np.array_equal(sys.modules["beside"].kept, np.zeros(64, np.float32))
