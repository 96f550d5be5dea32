"""Runs random kernels as numba-cuda compiles them, and on the emulator, and compares what both have written.

    python -m tests.cuda_emulator.compatibility.fuzz_for_real FOLDER SEED ...

prints one JSON line a seed: the seed, and "" if the results are equal, else the difference or the error. A launch that
ends by a mistake is the last, because the device is broken after it: the seeds behind it get no line. The process needs
the GPU made of programs of stage 4's tests; test_on_the_machine.py starts it.
"""

from __future__ import annotations

import ast
import json
import sys
import warnings
from pathlib import Path

import numpy as np

from tests.cuda_emulator.fuzz_kernels import arguments, kernel_text
from tests.cuda_emulator.fuzz_modes import loaded

TOLERANCE = {"f4": 1e-4, "f8": 1e-9}
"""A compiler may fuse a product and a sum where another does not, and both functions of an exponent may round."""


class _WholeVotes(ast.NodeTransformer):
    """numba-cuda's syncthreads_or and its kin take an int32, and refuse the bool that the emulator also takes."""

    def visit_Call(self, node: ast.Call) -> ast.Call:
        self.generic_visit(node)
        if isinstance(node.func, ast.Attribute) and node.func.attr.startswith("syncthreads_"):
            vote = ast.IfExp(node.args[0], ast.Constant(1), ast.Constant(0))
            node.args = [ast.Call(ast.Name("int32", ast.Load()), [vote], [])]
        return node


def written(path: Path, text: str, seed: int) -> list[np.ndarray]:
    """What the kernel of a module with that text, in a file, leaves in its arrays."""
    path.write_text(text, encoding="utf-8")
    with loaded(path) as module:
        given = arguments(module, seed)
        module.k[module.GRID, module.BLOCK](*given)
    return [each for each in given if isinstance(each, np.ndarray)]


def difference(folder: Path, seed: int) -> str:
    """How the two results differ, or the error of the compiled kernel."""
    text = ast.unparse(ast.fix_missing_locations(_WholeVotes().visit(ast.parse(kernel_text(seed)))))
    emulated = written(folder / f"emulated_{seed}.py", text, seed)
    real = text.replace("from cuda_emulator import cuda", "from numba import cuda")
    try:
        compiled = written(folder / f"compiled_{seed}.py", real, seed)
        for ours, theirs in zip(emulated, compiled, strict=True):
            allowed = TOLERANCE.get(ours.dtype.str[1:], 0)
            np.testing.assert_allclose(theirs, ours, rtol=allowed, atol=allowed / 10)
    except Exception as error:  # a refusal by the compiler or the machine is an answer, too
        return f"{type(error).__name__}: {error}"
    return ""


def main(folder: str, *seeds: str) -> None:
    warnings.simplefilter("ignore")
    for seed in map(int, seeds):
        said = difference(Path(folder), seed)
        print(json.dumps([seed, said]), flush=True)
        if "LAUNCH_FAILED" in said:
            break


if __name__ == "__main__":
    main(*sys.argv[1:])
