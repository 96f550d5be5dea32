"""docs/emulator.md keeps its word: every listing is what the emulator makes today, every message what it says."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

from cuda_emulator import KernelError, Settings, options
from cuda_emulator.inspection import WORDS, detect, hooks, step
from groundup.commands.run import run
from tests.docs import emulator_docs
from tests.docs import emulator_docs_kernels as small
from tests.wide import wide

ROOT, PAGE = emulator_docs.ROOT, emulator_docs.PAGE
TEXT = PAGE.read_text(encoding="utf-8")
IN_PAGE = {name: text.strip() for _, name, text in emulator_docs.LISTING.findall(TEXT)}
SLOW = {"faults-running"}
"""Those that compile kernels with Numba."""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=wide if name in SLOW else ()) for name in emulator_docs.listings()]
)
def test_a_listing_of_the_page_is_what_the_emulator_makes(name: str) -> None:
    made = emulator_docs.listings()[name]()
    assert IN_PAGE[name] == made, f"make the page's listings anew: python -m {emulator_docs.__name__}"


def test_the_page_names_every_setting_and_every_word_of_the_environment() -> None:
    for field in Settings.__dataclass_fields__:
        assert f"| `{field}` |" in TEXT, field
    for word in WORDS:
        assert f"| `{word}` |" in TEXT, word


def test_the_page_names_every_option_of_the_command() -> None:
    options = inspect.signature(run).parameters.keys() - {"program"}
    assert "check" in options
    for name in options:
        assert f"| `--{name.rstrip('_')}" in TEXT


def test_the_missing_barrier_of_the_page_hides_from_the_compiler_and_not_from_step_mode() -> None:
    x = np.arange(1, 33, dtype=np.float32)
    compiled, stepped = np.zeros(32, np.float32), np.zeros(32, np.float32)
    small.reversed_by_luck[1, 32](x, compiled)
    assert np.array_equal(compiled, x[::-1])
    hooks.register_detector(detect)
    with options(check=True), pytest.raises(KernelError, match=r"race on near\[31\] \(shared memory, read after write"):
        small.reversed_by_luck[1, 32](x, compiled)
    for order in ("forward", "reverse"):
        step.run_kernel(small.reversed_by_luck.source, [x, stepped], (1, 1, 1), (32, 1, 1), 0, order=order)
        assert (stepped != x[::-1]).sum() == 16


def test_the_example_agrees_with_numpy_and_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    emulator_docs.example().main(17, 5, 33)
    assert "(17, 5) @ (5, 33): largest difference from NumPy" in capsys.readouterr().out
