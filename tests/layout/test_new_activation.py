"""An activation is added in the source files that CONTRIBUTING.md lists, and then every stage computes and checks it.

PyTorch's softplus, log(1 + exp(z)), is added to a copy of what the stages need, as smooth_relu: under a name of its
own, so that softplus can still be added to the project. Its derivative is 1 - exp(-output).
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from shared.machine.processes import ROOT
from shared.names import ACTIVATIONS
from tests.stages import STAGE_PARAMS
from tests.wide import widely

MOST_FILES = 8
COUNT = len(ACTIVATIONS)
COPIED = ("shared", "cuda_emulator", "stage1_pure_python", "stage2_numpy", "stage3_c", "stage4_numba_cuda")

STAGE_1 = '''\
def smooth_relu(z: Matrix) -> Matrix:
    """log(1 + exp(z)). Same as torch.nn.functional.softplus."""
    matrix_shape("smooth_relu: z", z)
    return [[max(v, 0.0) + math.log1p(math.exp(-abs(v))) for v in row] for row in z]


def smooth_relu_backward(grad_output: Matrix, z: Matrix, output: Matrix) -> Matrix:
    """The slope is 1 - exp(-p), p being the output."""
    check_same_shape("smooth_relu_backward", grad_output=grad_output, z=z, output=output)
    return [
        [-g * math.expm1(-p) for g, p in zip(g_row, p_row, strict=True)]
        for g_row, p_row in zip(grad_output, output, strict=True)
    ]


'''

STAGE_2 = '''\
def smooth_relu(z: Array, out: Array | None = None, scratch: Scratch | None = None) -> Array:
    """log(1 + exp(z)). Same as torch.nn.functional.softplus."""
    z = as_matrix("smooth_relu: z", z)
    return np.logaddexp(z, 0, out=output_like("smooth_relu", out, z.shape, z.dtype, z=z))


def smooth_relu_backward(
    grad_output: Array, z: Array, output: Array, out: Array | None = None, scratch: Scratch | None = None
) -> Array:
    """The slope is 1 - exp(-p), p being the output."""
    given = {"grad_output": grad_output, "z": z, "output": output}
    grad_output, z, output = as_same_shape("smooth_relu_backward", **given)
    out = np.negative(output, out=output_like("smooth_relu_backward", out, z.shape, z.dtype, **given))
    np.expm1(out, out=out)
    out *= grad_output
    return np.negative(out, out=out)


'''

LATER_STAGES = '''\
def smooth_relu(z: Array, out: Array | None = None) -> Array:
    """log(1 + exp(z)). Same as torch.nn.functional.softplus."""
    return _forward("smooth_relu", z, out)


def smooth_relu_backward(grad_output: Array, z: Array, output: Array, out: Array | None = None) -> Array:
    """The slope is 1 - exp(-p), p being the output."""
    return _backward("smooth_relu", grad_output, z, output, out)


'''

C = """\
/* log(1 + exp(z)). Same as torch.nn.functional.softplus. */
void NAME(smooth_relu)(size_t rows, size_t columns, const real *z, real *output) {
    for (size_t i = 0; i < rows * columns; i++)
        output[i] = (z[i] > 0 ? z[i] : 0) + REAL_FUNCTION(log1p)(REAL_FUNCTION(exp)(z[i] > 0 ? -z[i] : z[i]));
}

/* The slope is 1 - exp(-p), p being the output. */
void NAME(smooth_relu_backward)(size_t rows, size_t columns, const real *grad_output, const real *z, const real *output,
                             real *grad_z) {
    (void)z;
    for (size_t i = 0; i < rows * columns; i++) grad_z[i] = -grad_output[i] * REAL_FUNCTION(expm1)(-output[i]);
}

"""

DEVICE_FUNCTIONS = """\
@cuda.jit(device=True)
def smooth_relu_of(z):
    return max(z, type(z)(0)) + math.log1p(math.exp(-abs(z)))


@cuda.jit(device=True)
def smooth_relu_back(grad_output, output):
    return -grad_output * math.expm1(-output)


"""

KERNELS = """\
smooth_relu = forward_kernel("smooth_relu", smooth_relu_of)
smooth_relu_backward = backward_kernel("smooth_relu_backward", smooth_relu_back)
"""

EDITS = {
    "shared/names.py": [
        (', "softmax")', ', "smooth_relu", "softmax")'),
        ('    "softmax": (5, 4)', '    "smooth_relu": (6, 3),\n    "softmax": (5, 4)'),
    ],
    "stage1_pure_python/activations.py": [("\n\ndef softmax(z", f"\n\n{STAGE_1}def softmax(z")],
    "stage2_numpy/activations.py": [("\n\n@ieee\ndef softmax(z", f"\n\n{STAGE_2}@ieee\ndef softmax(z")],
    "stage3_c/activations.py": [("\n\ndef softmax(z", f"\n\n{LATER_STAGES}def softmax(z")],
    "stage3_c/csrc/activations.c": [
        ("/* exp(z) / sum of exp(z) over each row", f"{C}/* exp(z) / sum of exp(z) over each row"),
        ("[SOFTMAX] = NAME(softmax),", "[SMOOTH_RELU] = NAME(smooth_relu), [SOFTMAX] = NAME(softmax),"),
        (
            "[SOFTMAX] = NAME(softmax_backward),",
            "[SMOOTH_RELU] = NAME(smooth_relu_backward), [SOFTMAX] = NAME(softmax_backward),",
        ),
    ],
    "stage3_c/csrc/groundup.h": [
        ("SOFTMAX, ACTIVATIONS };", "SMOOTH_RELU, SOFTMAX, ACTIVATIONS };"),
        ("DECLARE_ACTIVATION(softmax);", "DECLARE_ACTIVATION(smooth_relu);\nDECLARE_ACTIVATION(softmax);"),
    ],
    "stage4_numba_cuda/activations.py": [("\n\ndef softmax(z", f"\n\n{LATER_STAGES}def softmax(z")],
    "stage4_numba_cuda/kernels/activations.py": [
        (f"SOFTMAX = range({COUNT})", f"SMOOTH_RELU, SOFTMAX = range({COUNT + 1})"),
        ("@cuda.jit(device=True)\ndef activate(", f"{DEVICE_FUNCTIONS}@cuda.jit(device=True)\ndef activate("),
        (
            "        return tanh_of(z)\n",
            "        return tanh_of(z)\n    if activation == SMOOTH_RELU:\n        return smooth_relu_of(z)\n",
        ),
        (
            "        return tanh_back(grad_output, output)\n",
            "        return tanh_back(grad_output, output)\n"
            "    if activation == SMOOTH_RELU:\n        return smooth_relu_back(grad_output, output)\n",
        ),
        ("\nFORWARD = {", f'{KERNELS}\nFORWARD = {{"smooth_relu": smooth_relu, '),
        ("\nBACKWARD = {", '\nBACKWARD = {"smooth_relu": smooth_relu_backward, '),
    ],
}
"""File -> (what stands there, what takes its place)."""

CHECK = """
import sys
from pathlib import Path
import numpy as np
import shared
from shared.architectures import mlp
from shared.checks.gradients import SIZES, check_gradients
from shared.checks.ops import activation_backward_check, activation_check, logits
from shared.checks.pair import Pair
from shared.checks.problems import dense_problem
from shared.checks.steps import trace_step, whole_step
from shared.checks.trajectory import trajectory
from shared.contract import load_stage

stage, reference, rng = load_stage(sys.argv[1]), load_stage("stage1_pure_python"), np.random.default_rng(0)
assert Path(shared.__file__).parents[1] == Path.cwd(), shared.__file__
pair, comparisons = Pair(stage, reference, "float64"), []
for z, about in logits(pair, rng, (3, 5)):
    grad = pair.rounded(rng.standard_normal(z.shape))
    comparisons.append(activation_check(pair, "smooth_relu", z, case=about))
    comparisons.append(activation_backward_check(pair, "smooth_relu", z, grad, case=about))
problem = dense_problem(pair, rng, "smooth_relu", "softmax_cross_entropy")
comparisons += [*trace_step(pair, problem), *whole_step(pair, problem, rungs=stage.number < 4)]
comparisons += trajectory(pair, problem, "Adam", steps=3)
slopes = check_gradients(stage, mlp(SIZES, "smooth_relu"), "softmax_cross_entropy")
assert slopes.ok, str(slopes)
print(len(comparisons), *(str(comparison) for comparison in comparisons if not comparison.ok), sep=chr(10))
"""


def copied(folder: Path) -> Path:
    """A copy of the stages and of what they share, with the activation in it."""
    for name in COPIED:
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for file, edits in EDITS.items():
        text = (folder / file).read_text(encoding="utf-8")
        for before, after in edits:
            assert text.count(before) == 1, (file, before)
            text = text.replace(before, after)
        (folder / file).write_text(text, encoding="utf-8")
    return folder


def comparisons_of(folder: Path, stage: str) -> list[str]:
    """The number of comparisons, then each that failed."""
    environment = os.environ | {"PYTHONPATH": str(folder)}
    environment.pop("GROUNDUP_CSRC", None)
    result = subprocess.run(
        [sys.executable, "-c", CHECK, stage],
        cwd=folder, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    return result.stdout.splitlines()


def test_the_files_are_those_that_contributing_lists() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = page.split("## An activation\n")[1].split("\n## ")[0]
    assert set(re.findall(r"^\d\. `(.+?)`", section, re.MULTILINE)) == set(EDITS)
    assert len(EDITS) <= MOST_FILES


@pytest.mark.parametrize("name", widely(STAGE_PARAMS))
def test_networks_of_every_stage_compute_it(name: str, tmp_path: Path) -> None:
    count, *failed = comparisons_of(copied(tmp_path), name)
    assert failed == []
    assert int(count) > 40
