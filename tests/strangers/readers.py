"""Every reader of a file that a stranger may have made, once: the file as it should be, its place, and who reads it.

    READERS["the studio's list of networks"].read(folder)

A reader of a page shows what it can, or raises ValueError or OSError with a sentence. Anything else is a fault.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from groundup import look
from groundup.course.learner import record
from groundup.run_architecture import NetworkForm
from groundup.studio.benchmarks import desk, side_by_side
from groundup.studio.digits import networks
from groundup.studio.digits.own_set import OwnSet
from groundup.studio.runs import curves, overview
from groundup.studio.runs.folders import RunFolder
from shared.bench.on_gpu import gpu_record
from shared.bench.records import document as results_file
from shared.data.pictures import Wanted, read_one
from shared.machine.processes import ROOT
from shared.profile import document as profile_file
from shared.training.checkpoints import load_checkpoint, read_about
from shared.training.run_facts import read_facts
from tests.promises.earlier_files import MADE


@dataclass(frozen=True)
class Reader:
    """name: of the file that a stranger made; right: its content; beside: files that lie there, too; read: reads it"""

    name: str
    right: Callable[[], bytes]
    read: Callable[[Path], Any]
    beside: Callable[[], Mapping[str, bytes]] = dict


RUN = MADE / "trained" / "stage2"
RECORDS = ROOT / "docs" / "benchmarks"


FACTS = json.dumps(
    {"format": 1, "stage": "stage2_numpy", "layers": ["1: 784 x 10"], "epochs": 1, "steps_per_epoch": 94}
    | {"batch_size": 64, "samples": 6000, "state": "done", "reason": "", "gpus": [], "no_gpus": "none"}
    | {
        "sessions": [
            {"command": ["groundup"], "folder": "/", "began": 1.5, "first_step": 0, "pid": 7, "mark": "x y"}
            | {"ended": 2.5}
        ]
    }
).encode()
STEPS = b"""{"step":1,"epoch":1,"loss":2.56,"steps":1,"rate":0.1,"seconds":0.06,"weights":[16.0],"gradients":[1.8]}
{"step":2,"epoch":1,"loss":2.5,"steps":1,"rate":0.1,"seconds":0.09,"memory":93413376,"cores":0.6,"gpu":[[0.5,9.0]]}
"""


def _of_run(name: str) -> Callable[[], bytes]:
    return (RUN / name).read_bytes


def _run(folder: Path) -> RunFolder:
    return RunFolder("x", "x", folder / "runs" / "x", folder / "runs")


@cache
def _own() -> dict[str, bytes]:
    import tempfile

    with tempfile.TemporaryDirectory() as home:
        own = OwnSet(Path(home))
        own.add(np.full(784, 7, np.uint8), 3)
        return {path.name: path.read_bytes() for path in own.folder.iterdir()}


def _mine(name: str) -> Reader:
    beside = lambda: {f"my-digits/{each}": content for each, content in _own().items()}  # noqa: E731
    return Reader(f"my-digits/{name}", lambda: _own()[name], lambda folder: OwnSet(folder).about(), beside)


def _page(path: Path) -> Reader:
    def read(folder: Path) -> str:
        results = desk.read((folder / "theirs.json").read_bytes(), "theirs")
        side = side_by_side.Side("", "theirs", side_by_side.YOURS, results)
        return json.dumps(side_by_side.document(side, side), allow_nan=False)

    return Reader("theirs.json", path.read_bytes, read)


def _listed(folder: Path) -> Any:
    found = networks.listed(folder / "runs")
    assert found[0]["name"] == networks.DEFAULT, "a strange run took the network away that ships"
    assert "nan" not in json.dumps(found, allow_nan=False)
    return found


def _overview(folder: Path) -> Any:
    return json.dumps(overview.overview(_run(folder)), allow_nan=False)


@cache
def _photograph() -> bytes:
    from PIL import Image

    fields = Image.Exif()
    fields[274], fields[305] = 6, "groundup"  # the camera was turned; the program
    content = io.BytesIO()
    Image.fromarray(np.arange(63, dtype=np.uint8).reshape(9, 7)).save(content, "JPEG", exif=fields)
    return content.getvalue()


CHECKPOINT = "runs/x/last.safetensors"
READERS: dict[str, Reader] = {
    "a checkpoint": Reader(
        CHECKPOINT, _of_run("last.safetensors"), lambda folder: load_checkpoint(folder / CHECKPOINT)
    ),
    "what a checkpoint says": Reader(
        CHECKPOINT, _of_run("last.safetensors"), lambda folder: read_about(folder / CHECKPOINT)
    ),
    "the studio's list of networks": Reader(CHECKPOINT, _of_run("last.safetensors"), _listed),
    "the studio's network": Reader(
        CHECKPOINT, _of_run("last.safetensors"), lambda folder: networks.load(folder / "runs", "x")
    ),
    "the studio's list of runs": Reader(CHECKPOINT, _of_run("last.safetensors"), _overview),
    "the facts of a run": Reader("run.json", lambda: FACTS, lambda folder: read_facts(folder / "run.json")),
    "the facts of a run in the studio": Reader("runs/x/run.json", lambda: FACTS, _overview),
    "the epochs of a run": Reader(
        "m.jsonl", _of_run("metrics.jsonl"), lambda folder: look._records(folder / "m.jsonl")
    ),
    "the epochs of a run in the studio": Reader(
        "m.jsonl",
        _of_run("metrics.jsonl"),
        lambda folder: json.dumps(curves.epoch_columns(folder / "m.jsonl", {}, 10), allow_nan=False),
    ),
    "the steps of a run in the studio": Reader(
        "steps.jsonl", lambda: STEPS, lambda folder: curves.tail(folder / "steps.jsonl")
    ),
    "own drawings: labels": _mine("train-labels-idx1-ubyte"),
    "own drawings: images": _mine("train-images-idx3-ubyte"),
    "a photograph": Reader(
        "theirs.jpg", _photograph, lambda folder: read_one(folder / "theirs.jpg", Wanted(False, (5, 5)))
    ),
    "results of bench": Reader(
        "theirs.json",
        (RECORDS / "bench-quick" / "results.json").read_bytes,
        lambda folder: results_file.load(folder / "theirs.json"),
    ),
    "a GPU report": Reader(
        "theirs.json",
        sorted(gpu_record.RECORDS.rglob(gpu_record.REPORT))[-1].read_bytes,
        lambda folder: gpu_record.load(folder / "theirs.json"),
    ),
    "bench on the page": _page(RECORDS / "bench-quick" / "results.json"),
    "a race on the page": _page(RECORDS / "race-2-cores" / "results.json"),
    "a profile": Reader(
        "theirs.json",
        (RECORDS / "profile-lenet5" / "profile.json").read_bytes,
        lambda folder: profile_file.results_of(results_file.read_json(folder / "theirs.json"), "theirs"),
    ),
    "the profile of a run": Reader(
        "runs/x/profile.json",
        (RECORDS / "profile-lenet5" / "profile.json").read_bytes,
        lambda folder: NetworkForm.of(load_checkpoint(folder / CHECKPOINT)),
        lambda: {CHECKPOINT: (RUN / "last.safetensors").read_bytes()},
    ),
    "a learner's progress": Reader(
        "progress.toml",
        lambda: b'current = "1.1"\n\n[tasks."1.1"]\nstate = "passed"\nhints = 2\n',
        lambda folder: record.load(folder / "progress.toml"),
    ),
}
