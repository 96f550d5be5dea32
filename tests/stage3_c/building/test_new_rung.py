"""A rung of the convolution ladder is added in the source files that CONTRIBUTING.md lists, and then it is checked.

The rung is added to a copy of stage 3 whose csrc has only the files that the first rung needs: it compiles in seconds.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from shared.machine.processes import ROOT
from tests.stages import REASONS, USABLE_STAGES
from tests.wide import wide

pytestmark = pytest.mark.skipif("stage3_c" not in USABLE_STAGES, reason=REASONS["stage3_c"] or "")

MOST_FILES = 5
NEEDED = ("groundup.h", "convolution_loops.c", "machine.c", "pool.c")

C = """/* The second rung: one weight at a time, along the rows of the image. */

#include "groundup.h"

void NAME(conv2d_rows)(const convolution *s, size_t batch, const real *x, const real *w, const real *b, real *y) {
    const size_t plane = s->out_height * s->out_width;
    for (size_t n = 0; n < batch; n++, x += s->channels * s->height * s->width) {
        for (size_t o = 0; o < s->filters; o++, y += plane) {
            for (size_t i = 0; i < plane; i++) y[i] = b[o];
            for (size_t c = 0; c < s->channels; c++) {
                for (size_t place = 0; place < s->kernel_height * s->kernel_width; place++) {
                    const size_t u = place / s->kernel_width, v = place % s->kernel_width;
                    const real weight = w[(o * s->channels + c) * s->kernel_height * s->kernel_width + place];
                    for (size_t i = 0; i < plane; i++) {
                        const size_t row = i / s->out_width * s->stride_rows + u;
                        const size_t column = i % s->out_width * s->stride_columns + v;
                        if (row < s->padding_rows || row >= s->height + s->padding_rows) continue;
                        if (column < s->padding_columns || column >= s->width + s->padding_columns) continue;
                        const size_t in_plane = (row - s->padding_rows) * s->width + column - s->padding_columns;
                        y[i] += weight * x[c * s->height * s->width + in_plane];
                    }
                }
            }
        }
    }
}
"""

DECLARATION = """\
EXPORT void NAME(conv2d_rows)(const convolution *s, size_t batch, const real *x, const real *w, const real *b,
                              real *y);

"""

FUNCTION = '''\
def rows(x: Array, weights: Array, bias: Array, stride: Any = 1, padding: Any = 0, out: Array | None = None) -> Array:
    """One weight at a time, along the rows of the image, on one thread."""
    x, weights, bias, sizes, out = _prepare(x, weights, bias, stride, padding, out)
    library.function("conv2d_rows", x.dtype)(ctypes.byref(sizes), len(x), x, weights, bias, out)
    return out


'''

EDITS = {
    "csrc/convolution_rows.c": [("", C)],
    "csrc/groundup.h": [("/* convolution_gemm.c. columns:", DECLARATION)],
    "library.py": [('    "conv2d_im2col":', '    "conv2d_rows": (NOTHING, STRUCT, SIZE, IN, IN, IN, OUT),\n')],
    "convolution.py": [
        ("    im2col      the windows", "    rows        one weight at a time, along the rows of the image\n"),
        ("def im2col(", FUNCTION),
        ('    "im2col": im2col,', '    "rows": rows,\n'),
    ],
}
"""File of stage 3 -> (what stands behind the new text, the new text)."""

CHECK = """
from pathlib import Path
import stage3_c
from shared.checks.image_rungs import image_rung_checks
from shared.contract import load_stage

stage = load_stage("stage3_c")
print(Path(stage3_c.__file__).parent)
print(*stage.convolution.CONVOLUTION_LADDER)
for dtype in ("float32", "float64"):
    checks = image_rung_checks(stage, load_stage("stage2_numpy"), dtype)
    (rung,) = (check for check in checks if (check.what, check.rung) == ("convolution", "rows"))
    comparisons = rung.run()
    print(len(comparisons), *(str(comparison) for comparison in comparisons if not comparison.ok))
"""


def copied(folder: Path) -> Path:
    """A copy of stage 3 with the few sources that the first rung needs."""
    stage = folder / "stage3_c"
    shutil.copytree(ROOT / "stage3_c", stage, ignore=shutil.ignore_patterns("__pycache__", "csrc"))
    (stage / "csrc").mkdir()
    for name in NEEDED:
        shutil.copy(ROOT / "stage3_c" / "csrc" / name, stage / "csrc")
    return stage


def add_a_rung(stage: Path) -> None:
    for file, insertions in EDITS.items():
        path = stage / file
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        for behind, new in insertions:
            assert text.count(behind) == 1 if behind else not text, (file, behind)
            text = text.replace(behind, new + behind) if behind else new
        path.write_text(text, encoding="utf-8")


def test_the_files_are_those_that_contributing_lists() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = page.split("## A rung of stage 3's convolution ladder\n")[1].split("\n## ")[0]
    listed = re.findall(r"^\d\. .*?`stage3_c/(.+?)`", section, re.MULTILINE)
    assert {file.replace("<rung>", "rows") for file in listed} == set(EDITS)
    assert len(listed) <= MOST_FILES


@wide
def test_a_rung_that_was_added_there_is_in_the_ladder_and_checked(tmp_path: Path) -> None:
    add_a_rung(copied(tmp_path))
    environment = os.environ | {
        "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}",
        "GROUNDUP_CACHE": str(tmp_path / "cache"),
    }
    environment.pop("GROUNDUP_CSRC", None)
    result = subprocess.run(
        [sys.executable, "-c", CHECK], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    folder, ladder, *checks = result.stdout.splitlines()
    assert Path(folder) == tmp_path / "stage3_c"
    assert ladder == "direct rows im2col implicit winograd2 winograd4 threads"
    assert all(check.isdigit() and int(check) > 10 for check in checks), checks
