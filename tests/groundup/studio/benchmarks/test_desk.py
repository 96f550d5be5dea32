"""Which files the page Benchmarks offers, what it sets beside what, and what it reads."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from groundup.studio.benchmarks.desk import NEAREST, RECORDS, Desk, read
from shared.bench.records.document import load
from shared.numbers import duration, three_digits

BENCH, QUICK, RACE = (RECORDS / name / "results.json" for name in ("bench-2-threads", "bench-quick", "race-2-cores"))


def copied(source: Path, target: Path, age: int = 0) -> Path:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)
    os.utime(target, (1e9 - age, 1e9 - age))
    return target


def offered(desk: Desk) -> dict[str, str]:
    return {each["name"]: each["group"] for each in desk.files()["files"]}


def code(desk: Desk, name: str) -> str:
    return next(each["code"] for each in desk.files()["files"] if each["name"] == name)


def test_own_files_come_first_the_newest_before_the_older(tmp_path: Path) -> None:
    copied(BENCH, tmp_path / "runs" / "a" / "results.json", age=9)
    copied(RACE, tmp_path / "runs" / "b" / "results.json", age=1)
    copied(BENCH, tmp_path / "runs" / "other.json")
    (tmp_path / "runs" / "c").mkdir()
    (tmp_path / "runs" / "c" / "results.json").write_text('{"kind": "groundup doctor"}')
    given = copied(BENCH, tmp_path / "x.json")
    found = list(offered(Desk(tmp_path, [given])).items())
    assert found[:3] == [(str(given), "given"), ("runs/b/results.json", "yours"), ("runs/a/results.json", "yours")]
    assert found[3] == ("race-2-cores/results.json", "recorded")
    assert {group for _, group in found[3:]} == {"recorded"}


def test_a_file_that_another_program_wrote_again_is_offered(tmp_path: Path) -> None:
    path = copied(RACE, tmp_path / "runs" / "a" / "results.json")
    path.write_text(json.dumps(json.loads(path.read_bytes()), separators=(",", ":")))
    assert offered(Desk(tmp_path, (), tmp_path / "no docs")) == {"runs/a/results.json": "yours"}


def test_a_file_that_is_removed_while_the_list_is_made_takes_no_other_along(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied(RACE, tmp_path / "runs" / "a" / "results.json")
    gone = copied(RACE, tmp_path / "runs" / "b" / "results.json")
    found = list(Desk(tmp_path)._yours())
    gone.unlink()
    monkeypatch.setattr(Desk, "_yours", lambda self: iter(found))
    assert "runs/a/results.json" in offered(Desk(tmp_path))


def test_a_folder_of_the_command_line_gives_its_results_file_once(tmp_path: Path) -> None:
    path = copied(BENCH, tmp_path / "runs" / "a" / "results.json")
    assert offered(Desk(tmp_path, [path.parent], tmp_path / "no docs")) == {str(path): "given"}


def test_a_link_out_of_the_runs_is_not_followed(tmp_path: Path) -> None:
    outside = copied(BENCH, tmp_path / "secret" / "results.json")
    inside = tmp_path / "studio" / "runs" / "a"
    inside.mkdir(parents=True)
    (inside / "results.json").symlink_to(outside)
    assert offered(Desk(tmp_path / "studio", (), tmp_path / "no docs")) == {}


def test_only_files_that_are_offered_can_be_asked_for(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    for wrong in ("", "/etc/passwd", "../../pyproject.toml", "0" * 16):
        for ask in (lambda name: desk.shown(name, ""), desk.report):
            with pytest.raises(ValueError, match="not there any more"):
                ask(wrong)


def test_a_large_file_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("groundup.studio.benchmarks.desk.MOST_BYTES", 1000)
    desk = Desk(tmp_path)
    with pytest.raises(ValueError, match=r"bench-2-threads/results.json: 617,838 bytes"):
        desk.shown(code(desk, "bench-2-threads/results.json"), "")


@pytest.mark.parametrize(
    ("source", "nearest"),
    [(RACE, "race-2-cores"), (BENCH, "bench-2-threads"), (QUICK, "bench-quick")],
    ids=["race", "bench", "quick"],
)
def test_a_run_stands_beside_the_recorded_one_of_its_kind(tmp_path: Path, source: Path, nearest: str) -> None:
    desk = Desk(tmp_path, [copied(source, tmp_path / "mine.json")])
    sides = desk.shown(code(desk, str(tmp_path / "mine.json")), NEAREST)["sides"]
    assert [each["name"] for each in sides] == [str(tmp_path / "mine.json"), f"{nearest}/results.json"]
    assert [each["label"] for each in sides] == ["Yours", "Recorded"]
    assert all("AMD EPYC · 2 cores" in each["about"] and "2026-11-" in each["about"] for each in sides)


def test_nothing_is_nearest_where_no_record_has_the_same_work(tmp_path: Path) -> None:
    desk = Desk(tmp_path, [copied(RECORDS / "integers" / "results.json", tmp_path / "mine.json")], tmp_path / "no docs")
    shown = desk.shown(code(desk, str(tmp_path / "mine.json")), NEAREST)
    assert len(shown["sides"]) == 1
    assert shown["comparison"] is None


def test_bars_are_speeds_beside_the_first_stage_and_the_emulator_has_none(tmp_path: Path) -> None:
    document = json.loads(RACE.read_bytes())
    for stage in document["stages"]:
        for epoch in stage["epochs"]:
            epoch["seconds"] *= 2  # a machine of half the speed
    mine = tmp_path / "mine.json"
    mine.write_text(json.dumps(document))
    desk = Desk(tmp_path, [mine])
    work = desk.shown(code(desk, str(mine)), NEAREST)["works"][0]
    assert work["group"] == "An epoch of training"
    assert (work["title"], work["base"]) == ("784-32-10, batch 32, mnist-subset, float64", "stage 1: pure Python")
    stages = {row.stage: row.seconds for row in read(RACE.read_bytes(), "race").rows if row.kind == "epoch"}
    first, *others, emulated = work["contenders"]
    slow, fast = stages["stage1_pure_python"], stages["stage2_numpy"]
    assert [bar["text"] for bar in first["bars"]] == [duration(2 * slow), duration(slow)]
    assert others[0]["who"] == "stage 2: NumPy"
    assert [bar["length"] for bar in others[0]["bars"]] == pytest.approx([slow / fast] * 2)
    assert others[0]["bars"][0]["text"] == f"{three_digits(slow / fast)} times · {duration(2 * fast)}"
    assert emulated["who"] == "stage 4: CUDA, emulated on the CPU: not the time of a GPU"
    assert [bar["length"] for bar in emulated["bars"]] == [0, 0]


def test_a_work_that_one_file_lacks_stands_behind_those_of_both(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    works = desk.shown(*(code(desk, f"{name}/results.json") for name in ("bench-quick", "bench-2-threads")))["works"]
    assert [work["common"] for work in works] == sorted((work["common"] for work in works), reverse=True)
    (epoch,) = [each for each in works if each["title"] == "784-32-10, batch 32, 600 images of mnist-subset, float64"]
    assert not epoch["common"]
    assert epoch["base"] == "stage 1: pure Python"
    assert [bool(bar) for bar in epoch["contenders"][0]["bars"]] == [True, False]


def test_a_lone_contender_is_measured_by_its_time() -> None:
    from groundup.studio.benchmarks.side_by_side import Side, document

    results = load(BENCH)
    rows = [row for row in results.rows if row.kind == "epoch" and row.stage == "stage3_c"][:1]
    alone = Side("", "", "your run", type(results)(rows, (), results.environment))
    (work,) = document(alone, None)["works"]
    assert work["base"] == ""
    assert work["contenders"][0]["bars"] == [{"length": 1 / rows[0].seconds, "text": duration(rows[0].seconds)}]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"", "mine.json is not JSON"),
        (b"[]", "mine.json is no results file: expected a JSON object"),
        (b'{"kind": "<img onerror>"}', 'mine.json: expected a results file of groundup race or .* got kind "<img'),
        (b'{"kind": "groundup profile"}', 'got kind "groundup profile"'),
        (b'{"kind": "groundup bench", "schema": 2}', "mine.json has version 2 of the format and this reads 3"),
        (b'{"kind": "groundup race"}', "mine.json: schema: is missing"),
        (b"\xff\xfe", "mine.json is not JSON"),
        (b"[" * 100_000, "mine.json is not JSON"),
    ],
)
def test_a_wrong_file_is_a_sentence_with_its_name(text: bytes, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        read(text, "mine.json")
