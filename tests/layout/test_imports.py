"""Imports point one way: every import of the project is read and held against the rules of docs/architecture.md."""

from __future__ import annotations

import pytest

from tests.layout.source_tree import PACKAGES, STAGES, Import, circles, imports, sources

UNDER_BENCH = ("shared", "shared.machine", "shared.data", "shared.training", "shared.checks")
BENCH = tuple(
    f"shared.bench.{folder}" for folder in ("peers", "measuring", "records", "kinds", "on_gpu", "emulator", "running")
)
"""The harness's folders: each may import those before it."""
SHARED = (*UNDER_BENCH, "shared.bench", *BENCH, "shared.profile", "shared.charts", "shared.export")
TOOLS = (
    "groundup",
    "groundup.doctor",
    "groundup.gpu_report",
    "groundup.kernels",
    "groundup.compiling",
    "groundup.course",
    "groundup.studio",
    "groundup.serve",
    "groundup.commands",
    "groundup.cli",
)
"""The parts of the program: each may import those before it. `groundup` is its own files, which may ask the doctor."""

MAY_IMPORT = {
    "cuda_emulator": (),
    "shared": (),
    "shared.machine": ("shared",),
    "shared.data": ("shared", "shared.machine"),
    "shared.training": ("shared", "shared.machine", "shared.data"),
    "shared.checks": ("shared", "shared.machine"),
    "shared.export": UNDER_BENCH,
    "shared.bench": UNDER_BENCH,
    **{part: (*UNDER_BENCH, *BENCH[: BENCH.index(part)]) for part in BENCH},
    "shared.bench.emulator": (*UNDER_BENCH, *BENCH[: BENCH.index("shared.bench.emulator")], "cuda_emulator"),
    "shared.profile": SHARED[: SHARED.index("shared.profile")],
    "shared.charts": SHARED[: SHARED.index("shared.charts")],
    **dict.fromkeys(STAGES, ("shared", "shared.machine")),
    "stage4_numba_cuda": ("shared", "shared.machine", "stage4_numba_cuda.backend"),
    # The one file of stage 4 that knows of the emulator, and the doors for `python -m STAGE.train`.
    "stage4_numba_cuda.backend": ("stage4_numba_cuda", "shared", "cuda_emulator"),
    **{f"{stage}.train": ("groundup.entry",) for stage in STAGES},
    "groundup.__main__": ("groundup.entry",),
    # Where the program begins, so that Ctrl-C is quiet while the rest is loaded.
    "groundup.entry": ("groundup", "groundup.cli", "shared.machine"),
    **{part: (*SHARED, "cuda_emulator", *TOOLS[: TOOLS.index(part)]) for part in TOOLS},
    "groundup": (*SHARED, "cuda_emulator", "groundup.doctor"),
}
"""What each part may import besides itself. A module belongs to the part with the longest name that it begins with."""

RECURSIVE = {
    f"cuda_emulator.compiler.reading.{name}"
    for name in (
        *("assignments", "calls", "declarations", "expressions", "groups", "inline", "normalise", "statements"),
        "unrolled",
    )
}
"""The emulator's rewriter: a statement holds expressions, and a call in an expression can bring the statements of a
device function."""


TEXTS = sources(*PACKAGES)


def part_of(module: str) -> str:
    return max((part for part in MAY_IMPORT if module == part or module.startswith(f"{part}.")), key=len, default="")


def forbidden(found: list[Import]) -> list[str]:
    """The imports that no rule allows, as sentences."""
    sentences = []
    for each in found:
        here, there = part_of(each.importer), part_of(each.imported)
        if here != there and there not in MAY_IMPORT[here]:
            allowed = ", ".join(MAY_IMPORT[here]) or "nothing of ours"
            sentences.append(f"{each}: {here} may import {allowed}")
    return sentences


@pytest.mark.parametrize("package", PACKAGES)
def test_every_import_points_the_way_that_the_rules_allow(package: str) -> None:
    """And no files of a package import each other in a circle; between packages, the rules leave no room for one."""
    found = imports(sources(package), TEXTS)
    assert forbidden(found) == []
    assert [group for group in circles(found) if not {*group} <= RECURSIVE] == []


def inside_the_emulator(found: list[Import]) -> list[str]:
    """The imports of the emulator by others that go past its doors: its `__init__`, its inspection, and the occupancy,
    which a command may ask for without Numba's import."""
    doors = ("cuda_emulator", "cuda_emulator.inspection", "cuda_emulator.occupancy")
    return [
        f"{each}: expected {' or '.join(doors)}"
        for each in found
        if part_of(each.imported) == "cuda_emulator" != part_of(each.importer) and each.imported not in doors
    ]


def test_others_see_of_the_emulator_only_what_it_shows() -> None:
    """The tests, too, but for the emulator's own; and the scripts, the examples and what draws the book's figures."""
    others = {
        module: text
        for module, text in {**TEXTS, **sources("tests", "scripts", "examples", "docs")}.items()
        if "cuda_emulator" in text and not module.startswith(("cuda_emulator", "tests.cuda_emulator"))
    }
    assert inside_the_emulator(imports(others, TEXTS)) == []
    planted = imports({"tests.layout.test_maps": "from cuda_emulator.runtime import limits\n"}, TEXTS)
    assert inside_the_emulator(planted) == [
        "tests.layout.test_maps imports cuda_emulator.runtime.limits (line 1): "
        "expected cuda_emulator or cuda_emulator.inspection or cuda_emulator.occupancy"
    ]


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("cuda_emulator.errors", "import shared.contract"),
        ("stage2_numpy.matmul", "from stage1_pure_python import matmul"),
        ("stage4_numba_cuda.matmul", "import importlib\nimportlib.import_module('cuda_emulator')"),
        ("shared.contract", "import stage1_pure_python"),
        ("shared.bench.measuring.compared_candidates", "from shared.bench.kinds import steps"),
        (
            "shared.bench.measuring.timing",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from shared.charts import style",
        ),
        ("cuda_emulator.lens.page", "from groundup.commands.lens import lens"),
    ],
)
def test_a_planted_import_against_the_rules_is_found(module: str, line: str) -> None:
    (sentence,) = forbidden(imports({module: f"{line}\n"}, TEXTS))
    assert sentence.startswith(f"{module} imports ")


def test_a_circle_is_found() -> None:
    texts = {"shared.a": "from shared import b", "shared.b": "def f():\n    from shared.c import g", "shared.c": ""}
    assert circles(imports(texts, texts)) == []
    assert circles(imports({**texts, "shared.c": "import shared.a"}, texts)) == [["shared.a", "shared.b", "shared.c"]]
