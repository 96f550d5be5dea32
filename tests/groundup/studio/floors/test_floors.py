"""The page Floors shows the text that runs, matching lines beside each other, and recorded times, like beside like."""

from __future__ import annotations

import importlib.util
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from groundup.studio.floors import source
from groundup.studio.floors.aligned import aligned, changes
from groundup.studio.floors.colouring import coloured
from groundup.studio.floors.columns import SPEEDS, function
from groundup.studio.floors.rooms import FUNCTIONS, LADDERS
from shared.bench.records.document import load
from shared.contract import STAGES
from shared.machine.processes import ROOT
from shared.numbers import duration

NAMES = [(room, name) for room, names in FUNCTIONS.items() for name in names]
RESULTS = ROOT / "docs" / "benchmarks" / "bench-2-threads" / "results.json"


def every_choice(name: str) -> Iterator[tuple[str, ...]]:
    """Each rung of each stage's ladder once; of a function the only choice."""
    if name not in LADDERS:
        yield ()
        return
    rungs = [[*source.ladder(stage, LADDERS[name][0])] for stage in STAGES]
    for i in range(max(map(len, rungs))):
        yield tuple(each[min(i, len(each) - 1)] if each else "" for each in rungs)


@pytest.mark.parametrize(("room", "name"), NAMES)
def test_what_is_shown_is_the_text_of_the_file(room: str, name: str) -> None:
    for rungs in every_choice(name):
        for stage in function(room, name, rungs)["stages"]:
            assert stage["parts"], (stage["name"], rungs)
            for part in stage["parts"]:
                file, _, line = part["place"].rpartition(":")
                lines = (ROOT / file).read_text(encoding="utf-8").splitlines()[int(line) - 1 :]
                shown = ["".join(text for _, text in each) for each in part["lines"]]
                for one, other in zip(shown, lines, strict=False):
                    assert one.strip() == other.strip(), part["place"]


@pytest.mark.parametrize(("room", "name"), NAMES)
def test_the_rows_have_every_line_once_and_in_order(room: str, name: str) -> None:
    found = function(room, name)
    for role, rows in found["rows"].items():
        for k, stage in enumerate(found["stages"]):
            numbers = [i for row in rows for i in row[k][0]]
            assert numbers == sorted(set(numbers))
            if stage[role] is not None:
                part = stage["parts"][stage[role]]
                code = [i for i, line in enumerate(part["lines"]) if line and i not in part["said"]]
                assert numbers == code, part["name"]


@pytest.mark.parametrize(("room", "name"), NAMES)
def test_stage_3_has_its_c_and_stage_4_its_kernels(room: str, name: str) -> None:
    if room == "arrays" or name in ("Network.predict", "train_step ladder"):
        return  # nothing is computed there, or rungs that put layers together in Python stand beside others
    choices = [function(room, name, rungs)["stages"] for rungs in every_choice(name)]
    for stages in choices:
        assert "C" in {part["language"] for part in stages[2]["parts"]}, stages[2]["rung"]
        assert "kernel" in {part["language"] for part in stages[3]["parts"]}, stages[3]["rung"]


def test_the_table_names_what_is_there() -> None:
    """`functions` raises ValueError for a name in below.json that there is not."""
    for stage, table in source.BELOW.items():
        for key in table:
            file, _, name = key.partition(".")
            parts, _ = source.functions(stage, file, name)
            assert parts, f"below.json: {stage} has no {key}"


def test_a_name_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(source.BELOW["stage3_c"], "activations.relu", ["C activations.no_such_function"])
    with pytest.raises(ValueError, match=r"stage3_c has no C activations.no_such_function, which should lie below"):
        source.functions("stage3_c", "activations", "relu")


def test_the_work_of_relu_is_c_and_a_kernel_and_python_calls_it() -> None:
    stages = function("activations", "relu")["stages"]
    work = [each["parts"][each["work"]] for each in stages]
    assert [(part["language"], part["name"]) for part in work] == [
        *[("Python", "relu")] * 2,
        *(("C", "relu"), ("kernel", "relu_of")),
    ]
    assert [each["calls"] for each in stages] == [None, None, 0, 0]
    comment = "".join(text for i in work[2]["said"] for _, text in work[2]["lines"][i])
    assert comment.startswith("/* max(0, z).")
    assert function("activations", "relu")["sentence"].startswith("max(0, z), element by element.")


def test_a_ladders_rungs_are_read_in_their_order() -> None:
    assert list(source.ladder("stage3_c", "matmul"))[:2] == ["ijk", "ikj"]
    assert next(iter(source.ladder("stage4_numba_cuda", "steps"))) == "op_by_op"
    assert source.ladder("stage1_pure_python", "steps") == {}
    stages = function("matmul", "matmul ladder", ("", "einsum", "no such rung", "tiled_16"))["stages"]
    assert [each["rung"] for each in stages] == ["index_loops", "einsum", "ijk", "tiled_16"]
    assert stages[3]["parts"][stages[3]["work"]]["name"] == "tiled.product"


# ---- matching lines

PYTHON = ["def f(z):", "    largest = max(row)", "    exps = [math.exp(v - largest) for v in row]", "    return exps"]
C = ["void NAME(f)(size_t n) {", "    real largest = z[0];", "    extra = 1;", "    out[j] = exp(z[j] - largest);", "}"]


def test_lines_that_do_the_same_stand_beside_each_other() -> None:
    rows = aligned([PYTHON, C])
    assert [0, 0] in rows
    assert [1, 1] in rows
    assert [2, 3] in rows
    for k, text in enumerate((PYTHON, C)):
        assert [row[k] for row in rows if row[k] is not None] == list(range(len(text)))


def test_what_changed_is_said_against_the_text_before() -> None:
    texts = [["a = 1", "b = 2", "c = 3"], ["a  =  1", "b = 3", "d = 4"], [], ["a = 1"]]
    assert changes(texts, [0, 0, None, 0]) == ["", "same", "", ""]
    assert changes(texts, [1, 1, None, None]) == ["", "changed", "", ""]
    assert changes(texts, [2, None, None, None]) == ["", "gone", "", ""]
    assert changes(texts, [None, 2, None, None]) == ["", "new", "", ""]


def test_texts_without_lines_have_no_rows() -> None:
    assert aligned([[], [], []]) == []
    assert aligned([[], ["a"]]) == [[None, 0]]


# ---- colours


def test_python_is_coloured() -> None:
    text = '@cache\ndef f(x):\n    """Twice."""\n    return 2 * x  # why\n'
    parts = [part for line in coloured(text, "Python") for part in line]
    assert {("name", "f"), ("keyword", "return"), ("number", "2"), ("comment", "# why")} <= set(parts)
    assert ("string", '"""Twice."""') in parts
    assert ("rule", "@cache") in parts


@pytest.mark.parametrize("text", ["def f(:\n  (", 'x = """', "    if x:\n  y\n z\n", "\x00", "", "\n\n"])
def test_what_is_no_python_is_shown_without_colours(text: str) -> None:
    assert "\n".join("".join(part for _, part in line) for line in coloured(text, "Python")) == text.rstrip("\n")


def test_c_is_coloured() -> None:
    text = (
        '#include <math.h>\n/* a\n   b */\nvoid NAME(relu)(size_t n) { char c = \'"\'; f("a//b", 1.5e3f); // why\n}\n'
    )
    lines = coloured(text, "C")
    parts = [part for line in lines for part in line]
    assert {("rule", "<math.h>"), ("comment", "/* a"), ("comment", "   b */"), ("name", "relu")} <= set(parts)
    assert {("string", "'\"'"), ("string", '"a//b"'), ("number", "1.5e3f"), ("comment", "// why")} <= set(parts)
    assert {("keyword", "void"), ("keyword", "size_t"), ("keyword", "char")} <= set(parts)
    assert "\n".join("".join(text for _, text in line) for line in lines) == text.rstrip("\n")


# ---- recorded times


def test_the_speeds_in_the_package_are_those_of_the_records() -> None:
    spec = importlib.util.spec_from_file_location("speeds", ROOT / "scripts" / "make_floors_speeds.py")
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    made = json.loads(json.dumps(script.collected()))
    assert json.loads(SPEEDS.read_text(encoding="utf-8")) == made, (
        "python scripts/make_floors_speeds.py makes recorded.json again"
    )


def test_a_speed_is_the_recorded_one_and_compared_with_stage_1() -> None:
    found = {
        row.stage: row.measurement.median
        for row in load(RESULTS).rows
        if (row.kind, row.name, row.part, row.dtype) == ("op", "relu", "forward", "float64") and row.measurement
    }
    (group,) = function("activations", "relu")["speeds"]
    assert group["case"] == "64 by 128, float64"
    assert [bar["stage"] for bar in group["bars"]] == list(STAGES[:3])
    first, second = group["bars"][:2]
    assert (first["label"], first["time"], first["compared"]) == ("Stage 1", duration(found[STAGES[0]]), "")
    assert second["seconds"] == found[STAGES[1]]
    assert second["compared"] == f"{round(found[STAGES[0]] / found[STAGES[1]]):.0f} times as fast as stage 1"


def test_a_gpu_is_never_beside_a_cpu_and_no_emulated_time_is_there() -> None:
    for name, groups in json.loads(SPEEDS.read_text(encoding="utf-8")).items():
        for group in groups:
            stages = {bar["stage"] for bar in group["bars"]}
            assert (stages == {STAGES[3]}) == ("NVIDIA" in group["title"]), name
            assert name in LADDERS or len(stages) == len(group["bars"]), name


# ---- addresses


def test_the_routes(studio_server: Any) -> None:
    assert studio_server.get("/api/floors/rooms")["rooms"] == FUNCTIONS
    shown = studio_server.get("/api/floors/function?room=dense&name=Dense.forward")
    assert [each["name"] for each in shown["stages"]] == list(STAGES)
    for query, message in [
        ("room=../../secret&name=relu", "there is no room '../../secret'; the rooms are arrays, matmul"),
        ("room=pooling&name=relu", "pooling has no function 'relu'; it has max_pool2d, max_pool2d_backward"),
    ]:
        assert message in studio_server.refused(f"/api/floors/function?{query}")
    found = studio_server.post("/api/floors/run", {"room": "activations", "name": "relu", "seed": 3})
    assert [each["name"] for each in found["inputs"]] == ["z"]
    assert re.search(r"pure Python", found["stages"][0]["title"])
