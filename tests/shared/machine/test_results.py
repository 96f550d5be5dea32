"""results: JSON that every reader can read, and folders that are refused before the work begins."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from shared.machine.results import as_json, results_folder, write_json


def test_numbers_that_json_has_no_word_for_become_strings() -> None:
    text = as_json({"values": [math.nan, math.inf, (-math.inf,), 1.5]})
    assert json.loads(text) == {"values": ["nan", "inf", ["-inf"], 1.5]}


def test_numpy_values_become_plain_ones() -> None:
    document = {"array": np.array([[1, 2]]), "scalar": np.float64(0.5), "count": np.int64(3), "nan": np.float32("nan")}
    assert json.loads(as_json(document)) == {"array": [[1, 2]], "scalar": 0.5, "count": 3, "nan": "nan"}


def test_write_json_replaces_the_file_and_leaves_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "new" / "results.json"
    write_json(path, {"run": 1})
    write_json(path, {"run": 2, "unit": "µs"})
    assert json.loads(path.read_text(encoding="utf-8")) == {"run": 2, "unit": "µs"}
    assert [entry.name for entry in path.parent.iterdir()] == ["results.json"]


def test_results_folder_makes_the_folder_and_leaves_it_empty(tmp_path: Path) -> None:
    folder = results_folder(tmp_path / "a" / "b")
    assert list(folder.iterdir()) == []


def test_a_file_in_the_way_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match=r"cannot write results into .*file: .*; choose another --out"):
        results_folder(tmp_path / "file")
