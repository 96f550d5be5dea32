"""Imports point one way: every import of the project is read and held against the rules of docs/architecture.md."""

from __future__ import annotations

import pytest

from tests.house.source_tree import FLOORS, ROOT, Import, circles, files, imports, module_name, sources

UNDER_BENCH = ("shared", "shared.machine", "shared.data", "shared.training", "shared.checks")
BENCH = tuple(
    f"shared.bench.{folder}" for folder in ("peers", "measuring", "records", "kinds", "on_gpu", "emulator", "running")
)
"""The harness's folders in the order of their arrows."""
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
"""The rooms of the program in the order of their arrows: a room may import those before it. `groundup` is its
own files, which may ask the doctor."""

MAY_IMPORT = {
    "cuda_emulator": (),
    "shared": (),
    "shared.machine": ("shared",),
    "shared.data": ("shared", "shared.machine"),
    "shared.training": ("shared", "shared.machine", "shared.data"),
    "shared.checks": ("shared", "shared.machine"),
    "shared.export": UNDER_BENCH,
    "shared.bench": UNDER_BENCH,
    **{room: (*UNDER_BENCH, *BENCH[: BENCH.index(room)]) for room in BENCH},
    "shared.bench.emulator": (*UNDER_BENCH, *BENCH[: BENCH.index("shared.bench.emulator")], "cuda_emulator"),
    "shared.profile": SHARED[: SHARED.index("shared.profile")],
    "shared.charts": SHARED[: SHARED.index("shared.charts")],
    **dict.fromkeys(FLOORS, ("shared", "shared.machine")),
    "stage4_numba_cuda": ("shared", "shared.machine", "stage4_numba_cuda.backend"),
    # The one file of stage 4 that knows of the emulator, and the doors for `python -m STAGE.train`.
    "stage4_numba_cuda.backend": ("stage4_numba_cuda", "shared", "cuda_emulator"),
    **{f"{floor}.train": ("groundup.entry",) for floor in FLOORS},
    "groundup.__main__": ("groundup.entry",),
    # Where the program begins, so that Ctrl-C is quiet while the rest is loaded.
    "groundup.entry": ("groundup", "groundup.cli", "shared.machine"),
    **{room: (*SHARED, "cuda_emulator", *TOOLS[: TOOLS.index(room)]) for room in TOOLS},
    "groundup": (*SHARED, "cuda_emulator", "groundup.doctor"),
}
"""What each room may import beside itself. A module belongs to the room with the longest name that it begins with."""

RECURSIVE = {
    f"cuda_emulator.compiler.reading.{name}"
    for name in (
        *("assignments", "calls", "declarations", "expressions", "groups", "inline", "normalise", "statements"),
        "unrolled",
    )
}
"""The emulator's rewriter: a statement holds expressions, and a call in an expression can bring the statements of a
device function."""


TEXTS = sources()


def room_of(module: str) -> str:
    return max((room for room in MAY_IMPORT if module == room or module.startswith(f"{room}.")), key=len, default="")


def forbidden(arrows: list[Import]) -> list[str]:
    """The imports that no rule allows, as sentences."""
    found = []
    for arrow in arrows:
        here, there = room_of(arrow.importer), room_of(arrow.imported)
        if here != there and there not in MAY_IMPORT[here]:
            allowed = ", ".join(MAY_IMPORT[here]) or "nothing of ours"
            found.append(f"{arrow}: {here} may import {allowed}")
    return found


def unexpected_circles(arrows: list[Import]) -> list[list[str]]:
    return [group for group in circles(arrows) if not set(group) <= RECURSIVE]


def test_every_import_points_the_way_that_the_rules_allow() -> None:
    assert forbidden(imports(TEXTS)) == []


def test_no_files_import_each_other_in_a_circle() -> None:
    assert unexpected_circles(imports(TEXTS)) == []


def inside_the_emulator(arrows: list[Import]) -> list[str]:
    """The imports of the emulator by others that go past its doors: its `__init__`, its inspection, and the occupancy,
    which a command may ask for without Numba's import."""
    doors = ("cuda_emulator", "cuda_emulator.inspection", "cuda_emulator.occupancy")
    return [
        f"{arrow}: expected {' or '.join(doors)}"
        for arrow in arrows
        if room_of(arrow.imported) == "cuda_emulator" != room_of(arrow.importer) and arrow.imported not in doors
    ]


def test_others_see_of_the_emulator_only_what_it_shows() -> None:
    """The tests, too, but for the emulator's own; and the scripts, the examples and what draws the book's figures."""
    others = {
        module_name(path): path.read_text(encoding="utf-8")
        for folder in ("tests", "scripts", "examples", "docs")
        for path in files(folder)
        if not path.is_relative_to(ROOT / "tests/cuda_emulator")
    }
    assert inside_the_emulator(imports({**TEXTS, **others})) == []
    planted = {**others, "tests.house.test_maps": "from cuda_emulator.runtime import limits\n"}
    found = inside_the_emulator(imports({**TEXTS, **planted}))
    assert found == [
        "tests.house.test_maps imports cuda_emulator.runtime.limits (line 1): "
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
    planted = {**TEXTS, module: f"{TEXTS[module]}\n{line}\n"}
    found = [each for each in forbidden(imports(planted)) if each not in forbidden(imports(TEXTS))]
    assert len(found) == 1
    assert found[0].startswith(f"{module} imports ")
