"""Each finding has its remedy, and the costliest comes first."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numba import float32

from cuda_emulator import cuda
from cuda_emulator.lens import page, terminal
from cuda_emulator.lens.command import _document
from cuda_emulator.lens.devices import device
from cuda_emulator.lens.findings import findings
from cuda_emulator.lens.profile import Branch, LineOperations, Party, Profile, Race, Reuse
from cuda_emulator.lens.roofline import estimate
from tests.cuda_emulator.lens import lens_profiles as made
from tests.cuda_emulator.lens.lens_kernels import looked_at

FILE = made.FILE


# ---------------------------------------------------------------- updates without an atomic


def racing(lines: list[str], load: tuple[int, str], store: tuple[int, str], array: str = "s") -> Profile:
    """A kernel whose threads all read and write one element, at those lines (from 1) and expressions."""
    source = ["@cuda.jit", "def kernel(x, s, n):", *(f"    {line}" for line in lines)]
    places = [
        made.site(number, 11 + line, kind, array, text)
        for number, (kind, (line, text)) in enumerate((("load", load), ("store", store)))
    ]
    parties = [(0, 0), (0, 1), (1, 0), (1, 1)]
    kinds = ["write after write", "write after read", "read after write"]
    pairs = [(places[1], places[1]), (places[0], places[1]), (places[1], places[0])]
    races = [
        Race(kind, array, "global", (0,), Party(one, *parties[0]), Party(other, *parties[1 if within else 2]), 3)
        for kind, (one, other) in zip(kinds, pairs, strict=True)
        for within in (True, False)
    ]
    return made.profile(source, races=races, grid=(2, 1, 1), grid_blocks=2, blocks=[0, 1])


@pytest.mark.parametrize(
    ("lines", "load", "store", "call"),
    [
        (["s[0] += x[i]"], (1, "s[0]"), (1, "s[0]"), "cuda.atomic.add(s, 0, x[i])"),
        (["s[0] -= 1"], (1, "s[0]"), (1, "s[0]"), "cuda.atomic.sub(s, 0, 1)"),
        (["s[y, x] = 1 + s[y,x]"], (1, "s[y,x]"), (1, "s[y, x]"), "cuda.atomic.add(s, (y, x), 1)"),
        (["s[b] = max(s[b], x[i])"], (1, "s[b]"), (1, "s[b]"), "cuda.atomic.max(s, b, x[i])"),
        (["old = s[b]", "s[b] = old + 1"], (1, "s[b]"), (2, "s[b]"), "cuda.atomic.add(s, b, 1)"),
        (["if x[i] > s[0]:", "    s[0] = x[i]"], (1, "s[0]"), (2, "s[0]"), "cuda.atomic.max(s, 0, x[i])"),
        (["if s[0] > x[i]:", "    s[0] = x[i]"], (1, "s[0]"), (2, "s[0]"), "cuda.atomic.min(s, 0, x[i])"),
    ],
)
def test_a_lost_update_is_one_finding_with_the_atomic_that_mends_it(
    lines: list[str], load: tuple[int, str], store: tuple[int, str], call: str
) -> None:
    (found,) = findings(racing(lines, load, store))
    assert (found.kind, found.level, found.title) == ("lost update", "error", "Lost update of global s[0]")
    assert f"Use `{call}` in place of line {11 + store[0]}" in found.remedy
    assert "syncthreads" not in found.remedy
    assert "Found: 18 pairs of threads like this, within a block and between blocks" in found.details[-1]


def test_an_update_without_an_atomic_of_its_own_needs_a_loop() -> None:
    (found,) = findings(racing(["s[0] = s[0] * x[i]"], (1, "s[0]"), (1, "s[0]")))
    assert "Use cuda.atomic.compare_and_swap in a loop in place of line 12" in found.remedy


def test_a_value_that_is_written_and_then_read_is_no_lost_update() -> None:
    profile = racing(["s[0] = x[i]", "y = s[0]"], (2, "s[0]"), (1, "s[0]"))
    (found,) = findings(profile)
    assert found.kind == "race"
    within = replace(profile, races=[race for race in profile.races if not race.between_blocks])
    (found,) = findings(within)
    assert "Put cuda.syncthreads() before line 13" in found.remedy


def test_a_barrier_inside_of_an_if_is_warned_of() -> None:
    profile = racing(["if i < n:", "    s[i] = x[i]", "    y = s[i + 1]"], (3, "s[i + 1]"), (2, "s[i]"))
    within = replace(
        profile, races=[each for each in profile.races if not each.between_blocks and each.kind != "write after write"]
    )
    (found,) = findings(within)
    assert "before line 14" in found.remedy
    assert "so end the `if` of line 12 before it" in found.remedy


def test_several_writers_of_one_element_are_told_to_be_one() -> None:
    profile = racing(["s[0] = x[i]"], (1, "s[0]"), (1, "s[0]"))
    (found,) = findings(replace(profile, races=profile.races[:1]))
    assert "let one thread write" in found.remedy


# ---------------------------------------------------------------- float64 in a float32 kernel


@cuda.jit
def leaking(x, out, factor):  # type: ignore[no-untyped-def]
    i = cuda.grid(1)
    total = 0.0
    total += x[i]
    single = x[i] * float32(2.0)
    out[i] = factor * single + x[i] * 0.5


def test_float64_on_float32_arrays_is_counted_and_told_with_its_line_and_cause() -> None:
    arguments: list[Any] = [np.ones(64, np.float32), np.zeros(64, np.float32)]
    profile = looked_at(leaking, 2, 32, *arguments, 0.1)
    first = profile.source[0][1]
    counted = {each.line - first: (each.simple, each.double) for each in profile.operations}
    assert counted == {4: (64, 64), 5: (64, 0), 6: (192, 192)}
    (found,) = (each for each in findings(profile) if each.kind == "float64 arithmetic")
    assert [line - first for _, line in found.lines] == [4, 6]
    assert f"Let total begin as np.float32(0.0) in line {first + 3}" in found.remedy
    assert "write np.float32(0.5) for 0.5" in found.remedy
    profile.roofline = estimate(profile, device("RTX 4090"))
    assert profile.roofline is not None
    assert profile.roofline.dtype == "float64"
    report = " ".join(terminal.text(profile).split())
    assert "64 of 64 in float64, no array is" in report
    assert "64 flop in float32 and 256 flop in float64" in report
    exact = looked_at(leaking, 2, 32, *(each.astype(np.float64) for each in arguments), 0.1)
    assert not [each for each in findings(exact) if each.kind == "float64 arithmetic"]  # here it is meant


def test_a_python_float_among_the_arguments_is_told_by_name() -> None:
    profile = replace(
        made.coalesced(),
        source=[(FILE, 10, ["@cuda.jit", "def kernel(a, rate):", "    i = 1", "    a[i] = rate * a[i]"])],
        arguments=[("a", "float32 (8,)"), ("rate", "0.1")],
        argument_types=["array(float32, 1d, C)", "float64"],
        operations=[LineOperations(FILE, 13, 8, 0, 0, double=8)],
    )
    (found,) = (each for each in findings(profile) if each.kind == "float64 arithmetic")
    assert "Pass np.float32(rate) to the kernel" in found.remedy


# ---------------------------------------------------------------- accesses


def test_a_column_that_could_be_a_row_is_told_to_swap_x_and_y() -> None:
    place = made.site(0, 13, "load", "a", "a[row, k]")
    profile = made.profile(
        ["@cuda.jit", "def kernel(a):", "    row, column = cuda.grid(2)", "    a[row, k]"],
        accesses=[made.global_access(place, made.request([64 * lane for lane in range(32)], columns=64))],
    )
    (found,) = findings(profile)
    assert "Swap x and y: `column, row = cuda.grid(2)`" in found.remedy
    assert "32 sectors for a warp, 4 would do" in found.details[0]


def test_a_column_beside_a_row_is_told_to_go_through_a_tile() -> None:
    row, column = made.site(0, 13, "load", "a", "a[row, column]"), made.site(1, 13, "store", "b", "b[column, row]")
    profile = made.profile(
        ["@cuda.jit", "def kernel(a, b):", "    row, column = cuda.grid(2)", "    b[column, row] = a[row, column]"],
        accesses=[
            made.global_access(row, made.request(range(32), columns=64)),
            made.global_access(column, made.request([64 * lane for lane in range(32)], columns=64)),
        ],
    )
    (found,) = findings(profile)
    assert "Stage it through a shared tile" in found.remedy


@pytest.mark.parametrize(
    ("text", "step", "columns", "said"),
    [
        ("a[i * 8]", 8, None, "Neighbouring threads are 8 elements apart"),
        ("points[i, 0]", 8, 8, "Store points the other way round"),
        ("a[i, k]", 64, 64, "Let the 32 threads of a warp share a row of a"),
    ],
)
def test_other_patterns_have_remedies_of_their_own(text: str, step: int, columns: int | None, said: str) -> None:
    place = made.site(0, 12, "load", text.split("[")[0], text)
    request = made.request([step * lane for lane in range(32)], columns=columns)
    profile = made.profile(
        ["@cuda.jit", "def kernel(a):", f"    {text}"], accesses=[made.global_access(place, request)]
    )
    (found,) = findings(profile)
    assert said in found.remedy


def test_a_padded_row_is_named_with_its_declaration() -> None:
    conflict = made.conflicting()
    lines = ["@cuda.jit", "def kernel(a):", "    tile = cuda.shared.array((32, 32), float32)", "    tile[x, y]"]
    tile = Reuse("tile", "shared", 1024, 1024, 1024, 1024, 0, 1, 1, 1)
    found = findings(replace(conflict, source=[(FILE, 10, lines)], reuse=[tile]))[0]
    assert found.title == "32-way bank conflict on tile"
    assert "Pad the row to 33: `cuda.shared.array((32, 33), float32)` in line 12" in found.remedy


def test_rows_that_begin_in_banks_of_others_are_told_apart_from_a_stride() -> None:
    place = made.site(0, 12, "load", "image", "image[y + i, x + j]", space="shared")
    two_rows = [*range(16), *range(18, 34)]  # lanes 14 and 15 of the second row meet those of the first
    access = made.shared_access(place, made.request(two_rows, columns=18), 32)
    profile = made.profile(
        ["@cuda.jit", "def kernel(a):", "    image[y + i, x + j]"],
        accesses=[access],
    )
    (found,) = findings(profile)
    assert found.title == "2-way bank conflict on image"
    assert "a warp reaches several rows of image" in found.remedy
    assert "elements apart" not in found.remedy


def test_loads_that_repeat_are_staged_and_those_of_one_thread_kept() -> None:
    def repeated(texts: list[str]) -> str:
        accesses = [
            made.global_access(made.site(n, 12, "load", "a", text), made.request(range(32)))
            for n, text in enumerate(texts)
        ]
        reuse = Reuse("a", "global", 1024, 32, 64, 0, 0, len(texts), len(texts), len(texts))
        (found,) = findings(made.profile(["@cuda.jit", "def kernel(a):", "    a[i]"], accesses=accesses, reuse=[reuse]))
        return found.remedy

    assert "Stage a through a shared tile" in repeated(["a[i]", "a[i + 1]"])
    assert "keep it in a variable" in repeated(["a[i]", "a[i]"])


def test_a_branch_of_many_lanes_is_a_finding_and_that_of_one_is_none() -> None:
    place = made.site(0, 12, "branch", "", "t % 2 == 0", space="")
    both = tuple(range(0, 32, 2)), tuple(range(1, 32, 2))
    source = ["@cuda.jit", "def kernel(a):", "    t % 2 == 0"]
    (found,) = findings(made.profile(source, branches=[Branch(place, 1, 1, 32, 16, both)]))
    assert "(t < k) instead of a remainder" in found.remedy
    alone = (0,), tuple(range(1, 32))
    assert not findings(made.profile(source, branches=[Branch(place, 1, 1, 32, 1, alone)]))


# ---------------------------------------------------------------- their order, and where they stand


def test_errors_come_first_and_then_the_costliest() -> None:
    profile = made.racing()
    column = made.global_access(
        made.site(7, 14, "load", "a", "a[x, y]"), made.request([64 * i for i in range(32)], columns=64), 10_000
    )
    found = findings(replace(profile, accesses=[*profile.accesses, column]))
    assert [each.level for each in found] == ["error"] * 3 + ["costly"] * 2
    assert [each.kind for each in found[3:]] == ["uncoalesced access", "bank conflict"]
    assert found[3].seconds > found[4].seconds > 0


@pytest.mark.parametrize("name", sorted(made.EVERY))
def test_report_page_and_json_have_every_finding_before_the_source(name: str) -> None:
    profile = made.EVERY[name]()
    report, shown = " ".join(terminal.text(profile).split()), page.html([profile])
    assert [each["title"] for each in _document(profile)["findings"]] == [each.title for each in findings(profile)]
    for each in findings(profile):
        assert report.index(each.title) < report.index("Source: ")
        assert each.title in shown[: shown.index("<h3>Source</h3>")]


def test_a_launch_that_is_too_short_to_matter_says_so() -> None:
    profile = made.strided()
    assert profile.roofline is None
    line = made.coalesced().roofline
    assert line is not None
    report = terminal.text(replace(profile, roofline=replace(line, bound="launch", seconds=1.2e-6)))
    assert "the launch itself (about 1.2 µs) takes longer than its work" in " ".join(report.split())
