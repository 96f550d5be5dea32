"""Every reader of strangers' files, with damaged and crafted ones: a value or a sentence, soon, in little memory."""

from __future__ import annotations

import json
import random
import re
import struct
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from groundup.studio.digits import networks
from shared.machine import strict_json
from shared.training.checkpoints import CheckpointError, load_checkpoint, read_about
from tests.shared.data.idx_files import idx_bytes
from tests.strangers.damage import HUGE, RAW, as_text, damaged, exchanged
from tests.strangers.kinds import _head, _opened, _saved
from tests.strangers.readers import CHECKPOINT, READERS, RUN, Reader
from tests.wide import WIDE, widely

COUNT = 400 if WIDE else 8
TEXTS = RAW if WIDE else tuple(each for each in RAW if len(each) < 10_000)
LONGEST = 10.0
OVERFLOWING: tuple[Any, ...] = (float("inf"), float("nan"), HUGE, -HUGE, 10**309, 2**64)


def variants(reader: Reader, rng: random.Random) -> Iterator[bytes]:
    """Contents that are not as they should be."""
    right = reader.right()
    yield right
    yield from TEXTS
    while True:
        way = rng.randrange(4)
        if way == 0:
            yield damaged(right, rng, _head(right) if reader.name == CHECKPOINT else 40)
        elif reader.name == CHECKPOINT:
            about, tensors = _opened(right)
            changed = exchanged(about, rng, OVERFLOWING) if way == 1 else exchanged(about, rng)
            yield _saved(twice(as_text(changed)) if way == 3 else as_text(changed), tensors)
        elif reader.name.endswith(".json"):
            document = json.loads(right)
            changed = exchanged(document, rng, OVERFLOWING) if way == 1 else exchanged(document, rng)
            text = twice(as_text(changed)) if way == 3 else as_text(changed)
            yield text.encode("utf-8", "surrogatepass")
        elif reader.name.endswith(".jsonl"):
            lines = right.splitlines()
            at = rng.randrange(len(lines))
            lines[at] = as_text(exchanged(json.loads(lines[at]), rng)).encode("utf-8", "surrogatepass")
            yield b"\n".join(lines) + b"\n"
        elif "idx" in reader.name:
            code = rng.choice([8, 9, 0x0B, 0x0C, 0x0D, 0x0E, 0, 255])
            yield right[:2] + bytes([code]) + right[3:]
        else:
            yield damaged(right, rng)


def twice(text: str) -> str:
    """The object with its first name once more, at its end."""
    found = re.match(r'\s*\{\s*("(?:[^"\\]|\\.)*"\s*:)', text)
    return f"{text.rstrip()[:-1]}, {found[1]} 1}}" if found else text


def placed(reader: Reader, folder: Path) -> Path:
    """Where the file belongs, with those beside it there."""
    for place, content in reader.beside().items():
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        (folder / place).write_bytes(content)
    (folder / reader.name).parent.mkdir(parents=True, exist_ok=True)
    return folder / reader.name


@pytest.mark.parametrize("name", READERS)
def test_no_file_of_a_stranger_surprises_its_reader(name: str, tmp_path: Path) -> None:
    reader = READERS[name]
    path = placed(reader, tmp_path)
    made = variants(reader, random.Random(7))
    read = 0
    for number in range(COUNT + len(TEXTS)):
        path.unlink(missing_ok=True)
        path.write_bytes(content := next(made))
        begin, said = time.process_time(), "read"
        try:
            reader.read(tmp_path)
            read += 1
        except (ValueError, OSError) as error:
            said = str(error)
        assert said, content[:300]
        assert number or said == "read", "the right file"
        assert time.process_time() - begin < LONGEST, content[:300]
    assert read


def checkpoint(change: Callable[[dict[str, Any], dict[str, np.ndarray]], str | None]) -> bytes:
    """The run's checkpoint with another document or other tensors, and the right checksum."""
    about, tensors = _opened((RUN / "last.safetensors").read_bytes())
    text = change(about, tensors)
    return _saved(json.dumps(about) if text is None else text, tensors)


def with_number(value: str) -> bytes:
    return checkpoint(lambda about, tensors: json.dumps(about | {"progress": {"x": 12345}}).replace("12345", value))


def mixed(about: dict[str, Any], tensors: dict[str, np.ndarray]) -> None:
    name = sorted(tensors)[0]
    tensors[name] = tensors[name].astype(np.float32 if tensors[name].dtype == np.float64 else np.float64)


def buffers(value: float) -> Callable[[Any, dict[str, np.ndarray]], None]:
    def change(about: Any, tensors: dict[str, np.ndarray]) -> None:
        parameters = [name for name in tensors if name.startswith("parameters.")]
        about["optimizer"] = {"name": "SGD", "hyperparameters": {}, "steps": 1, "buffers": ["velocity"]}
        for name in [each for each in tensors if each.startswith("optimizer.")]:
            del tensors[name]
        for name in parameters:
            tensors[name.replace("parameters", "optimizer.velocity")] = np.full_like(tensors[name], value)

    return change


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (with_number("1e999"), "1e999 is a larger number than a float holds"),
        (with_number('{"a": 1, "b": 2, "a": 3}'), "the name 'a' stands twice in one object"),
        (checkpoint(mixed), "its tensors are of several types: .* a stage computes in one"),
        (checkpoint(buffers(np.inf)), "optimizer.velocity.0 holds numbers that are not finite"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_what_no_training_writes_is_refused(content: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "last.safetensors").write_bytes(content)
    with pytest.raises(CheckpointError, match=message):
        load_checkpoint(tmp_path / "last.safetensors")


def test_buffers_that_are_finite_are_read(tmp_path: Path) -> None:
    (tmp_path / "last.safetensors").write_bytes(checkpoint(buffers(0.5)))
    assert set(load_checkpoint(tmp_path / "last.safetensors").optimizer_state["buffers"]) == {"velocity"}


@pytest.mark.parametrize("text", ['{"a":1e309}', "[" + "9" * 309 + "]", '{"a":{"b":1,"b":1}}', '[{"":0,"":0}]'])
def test_strict_json_refuses_what_loses_something(text: str) -> None:
    with pytest.raises(ValueError, match=r"larger|stands twice"):
        strict_json.loads(text)


def test_strict_json_reads_all_that_a_float_holds() -> None:
    values = [1.7976931348623157e308, -1e-320, 10**307, {"a": 1, "b": {"a": 1}}]
    assert strict_json.loads(json.dumps(values)) == values


# ---- the lists of the studio


def listed(folder: Path, *contents: bytes) -> list[dict[str, str]]:
    for number, content in enumerate(contents):
        place = folder / "runs" / f"run{number}"
        place.mkdir(parents=True)
        (place / "last.safetensors").write_bytes(content)
    return networks.listed(folder / "runs")


def told(**more: Any) -> bytes:
    def change(about: dict[str, Any], tensors: Any) -> str:
        record = {"epoch": 1, "test_accuracy": 0.5} | more.pop("record", {})
        text = json.dumps(about | {"progress": {"record": record}} | more)
        return text.replace('"HUGE"', "1" + "0" * 400)

    return checkpoint(change)


STRANGE = {
    "a stage that is a list": told(stage=["x"]),
    "an accuracy without an end": told(record={"test_accuracy": "HUGE"}),
    "an accuracy that is none": told(record={"test_accuracy": float("nan")}),
    "an accuracy of 700 %": told(record={"test_accuracy": 7}),
    "a negative epoch": told(record={"epoch": -3}),
    "a format that is a list": told(format=[2]),
}


@pytest.mark.parametrize("name", STRANGE)
def test_a_strange_checkpoint_takes_no_other_out_of_the_list(name: str, tmp_path: Path) -> None:
    right = (RUN / "last.safetensors").read_bytes()
    found = listed(tmp_path, STRANGE[name], right)
    names = [each["name"] for each in found]
    assert {networks.DEFAULT, "run1"} <= set(names)
    for each in found:
        assert "nan" not in each["about"]
        assert "700" not in each["about"]


@pytest.mark.parametrize("megabytes", widely([24, 4, 95]))
@pytest.mark.parametrize("form", ['["groundup text"]', "header", "document"])
def test_a_header_that_is_a_bomb_costs_a_list_nothing(form: str, megabytes: int, tmp_path: Path) -> None:
    items = "[" + "[]," * (megabytes * 300_000) + "[]]"
    texts = {
        "document": json.dumps({"__metadata__": {"groundup": items, "sha256": "0"}}),
        "header": f'{{"__metadata__":{{"groundup":"{{}}","sha256":"0"}},"x":{items}}}',
    }
    text = texts.get(form, json.dumps({"__metadata__": {"groundup": json.dumps(["x" * megabytes * 900_000])}})).encode()
    content = struct.pack("<Q", len(text)) + text
    tracemalloc.start()
    try:
        listed(tmp_path, content)
        with pytest.raises(CheckpointError, match=r"header|no checkpoint"):
            read_about(tmp_path / "runs" / "run0" / "last.safetensors")
        assert tracemalloc.get_traced_memory()[1] < 60e6
    finally:
        tracemalloc.stop()


def test_a_checkpoint_that_has_not_changed_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "last.safetensors"
    path.write_bytes((RUN / "last.safetensors").read_bytes())
    first = read_about(path)
    monkeypatch.setattr("shared.training.checkpoints.Stored.opened", pytest.fail)
    assert read_about(path) == first


# ---- the learner's own drawings


@pytest.mark.parametrize("name", ["own drawings: labels", "own drawings: images"])
def test_own_drawings_are_checked_as_any_set(name: str, tmp_path: Path) -> None:
    reader = READERS[name]
    placed(reader, tmp_path)
    right = reader.right()
    labels = np.frombuffer(right[8:], np.uint8)
    wrong = idx_bytes(labels + 200) if name.endswith("labels") else b"\0\0\x0b" + right[3:] + right[16:]
    (tmp_path / reader.name).write_bytes(wrong)
    with pytest.raises(ValueError, match=r"expected (labels from 0 to 9, but label|images, uint8 of shape)"):
        reader.read(tmp_path)


# ---- results files


@pytest.mark.parametrize("name", ["a race on the page", "bench on the page", "a profile"])
@pytest.mark.parametrize(
    ("fact", "value"),
    [("stage4_numba_cuda", 0), ("stage4_numba_cuda", ["x"]), ("libraries", 3), ("cores", "many"), ("gpus", {"a": 1})],
)
def test_facts_of_a_machine_are_checked_in_files_of_every_kind(
    name: str, fact: str, value: Any, tmp_path: Path
) -> None:
    reader = READERS[name]
    document = json.loads(reader.right())
    if not isinstance(document.get("environment"), dict):
        document["environment"] = {}
    document["environment"][fact] = value
    (tmp_path / reader.name).write_text(json.dumps(document))
    with pytest.raises(ValueError, match=rf"environment\.{fact}"):
        reader.read(tmp_path)
