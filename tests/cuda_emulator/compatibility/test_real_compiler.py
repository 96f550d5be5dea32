"""What the emulator accepts, the real compiler accepts too; where they differ, the difference is listed here.

The real compiler is numba-cuda's: it needs its compile libraries (pip install "numba-cuda[cu13]"), but no GPU and no
driver. Where they are missing, the tests that ask it are skipped; the emulator's half runs everywhere.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from cuda_emulator import KernelError
from tests.cuda_emulator.compatibility.compile_for_real import MISSING
from tests.cuda_emulator.emulator_kernels import all_examples
from tests.cuda_emulator.emulator_kernels.strictness import Probe, probes

ROOT = Path(__file__).resolve().parents[3]
SCRIPT = "tests.cuda_emulator.compatibility.compile_for_real"
PROBES = probes()

REFUSED_BY_BOTH = {
    *("shape_from_argument", "shape_from_block_dim", "boolean_argument"),
    *("returns_a_value", "none_argument", "list_argument", "text_argument", "object_argument", "datetime_argument"),
    *("makes_a_list", "makes_a_dictionary", "makes_a_set", "comprehension", "generator_loop", "new_numpy_array"),
    *("catching", "with_statement", "formatting", "walrus", "starred", "global_statement"),
    *("unknown_name", "unknown_attribute", "unknown_function", "grid_of_four"),
    *(
        "writes_a_constant_array",
        "writes_a_global_array",
        "complex_atomics",
        "float_bit_atomics",
        "float_index",
        "too_many_indices",
        "array_as_index",
        "returned_local_array",
        "loop_over_mixed_numbers",
    ),
}

REFUSED_BY_NUMBA_CUDA_ALONE = {
    "shape_from_expression": "numba-cuda wants a number or a name; the emulator computes TILE * 4 as well",
    "shape_from_tuple_expression": "the same for (TILE, TILE + 1)",
    "local_shape_from_expression": "the same for local arrays",
    "dtype_is_pythons_float": "the emulator takes `float` for float64, as NumPy does",
    "count_of_bools": "syncthreads_count, _and and _or take an int32 on a device; the emulator takes a bool too",
    "array_arithmetic": "needs memory that is allocated while the kernel runs, which Numba has on the CPU",
    "slice_copied": "the same: numba-cuda makes a copy of the right side",
    "ufunc_of_arrays": "the emulator takes NumPy's ufuncs as Numba has them on the CPU",
}

REFUSED_BY_THE_EMULATOR_ALONE = {
    "shape_name_assigned_again": "a local variable is a constant where it is assigned once",
    "flat_attribute": "index the array, or its ravel()",
    "vector_type": "use single numbers or an array",
    "match_statement": "use if and elif",
}


def refusal(probe: Probe) -> str:
    """What the emulator says; "" where it runs the kernel."""
    arguments = tuple(each.copy() if isinstance(each, np.ndarray) else each for each in probe.arguments)
    try:
        probe.kernel[1, 32](*arguments)
    except (KernelError, TypeError) as error:
        return str(error)
    return ""


@pytest.fixture(scope="module")
def answers() -> dict[str, dict[str, str]]:
    """The real compiler's answers, by kernel and compute capability."""
    finished = subprocess.run(
        [sys.executable, "-m", SCRIPT], capture_output=True, text=True, check=False, timeout=300, cwd=ROOT
    )
    if finished.returncode == MISSING:
        pytest.skip(finished.stdout.strip())
    assert finished.returncode == 0, finished.stderr
    return json.loads(finished.stdout)


def test_every_probe_is_judged_once() -> None:
    lists = (REFUSED_BY_BOTH, REFUSED_BY_NUMBA_CUDA_ALONE, REFUSED_BY_THE_EMULATOR_ALONE)
    listed = [name for names in lists for name in names]
    assert len(listed) == len(set(listed))
    assert set(listed) <= set(PROBES)


@pytest.mark.parametrize("name", PROBES)
def test_emulator_refuses_what_is_listed_and_nothing_else(name: str) -> None:
    said = refusal(PROBES[name])
    if name in REFUSED_BY_BOTH or name in REFUSED_BY_THE_EMULATOR_ALONE:
        assert said
        assert "Traceback" not in said
        assert "Failed in nopython mode" not in said
    else:
        assert not said


def test_real_compiler_accepts_every_test_kernel(answers: dict[str, dict[str, str]]) -> None:
    asked = {name: answers[name] for name in all_examples()}
    refused = {name: said for name, said in asked.items() if any(said.values())}
    assert not refused


@pytest.mark.parametrize("name", PROBES)
def test_real_compiler_refuses_what_is_listed_and_nothing_else(name: str, answers: dict[str, dict[str, str]]) -> None:
    refused = name in REFUSED_BY_BOTH or name in REFUSED_BY_NUMBA_CUDA_ALONE
    said = answers[f"strictness.{name}"]
    assert said
    assert {capability for capability, sentence in said.items() if bool(sentence) != refused} == set()
