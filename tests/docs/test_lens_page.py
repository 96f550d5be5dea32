"""docs/lens.md keeps its word: every table and figure is what the lens makes today, every option and check is named."""

from __future__ import annotations

import inspect

import pytest

from cuda_emulator.inspection import checks
from groundup.commands.lens import lens
from stage4_numba_cuda.backend import BACKEND
from tests.docs import lens_docs
from tests.docs.emulator_docs import LISTING
from tests.wide import wide

TEXT = lens_docs.PAGE.read_text(encoding="utf-8")
IN_PAGE = {name: text.strip() for _, name, text in LISTING.findall(TEXT)}
AGAIN = f"make the page's tables and figures anew: python -m {lens_docs.__name__}"

ladder = pytest.mark.skipif(BACKEND.name != "emulator", reason="stage 4's kernels are traced on the emulator only")


@pytest.mark.parametrize("name", ["transpose", "annotated", "devices"])
def test_a_table_of_the_page_is_what_the_lens_makes(name: str) -> None:
    assert IN_PAGE[name] == lens_docs.listings()[name](), AGAIN


@ladder
@wide
def test_the_ladder_of_the_page_is_what_the_lens_makes() -> None:
    assert IN_PAGE["ladder"] == lens_docs.ladder_table(), AGAIN
    for name in lens_docs.RUNGS:
        found = lens_docs.rung(name)
        assert found.correct, (name, found.races, found.uninitialised, found.fault)
        assert found.not_traced == [], name


@pytest.mark.parametrize("file", lens_docs.figures())
def test_a_figure_of_the_page_is_what_the_lens_draws(file: str) -> None:
    assert (lens_docs.FIGURES / file).read_text(encoding="utf-8") == lens_docs.drawn(file), AGAIN
    assert f"(figures/{file})" in TEXT


def test_the_page_has_every_listing_once() -> None:
    names = [name for _, name, _ in LISTING.findall(TEXT)]
    assert sorted(names) == sorted(lens_docs.listings())
    assert TEXT.count("<!-- listing:") == TEXT.count("<!-- end -->") == len(names)


def test_the_page_names_every_option_of_the_command_and_every_check() -> None:
    for name in inspect.signature(lens).parameters:
        if name not in ("target", "second", "context"):
            assert f"| `--{name.removeprefix('as_').rstrip('_')}" in TEXT, name
    for name, function in inspect.getmembers(checks, inspect.isfunction):
        if function.__module__ == checks.__name__ and not name.startswith("_"):
            assert f"`{name}(" in TEXT, name
