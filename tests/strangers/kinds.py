"""The files that strangers send, kind by kind, and the commands that read them.

checkpoint    last.safetensors in a run's folder, with right checksums and with wrong ones; the files beside it
idx           the four files of MNIST, gzipped or not
results       results.json of a benchmark or a race, and reports of GPUs
progress      progress.toml in a learner's folder
"""

from __future__ import annotations

import copy
import functools
import gzip
import io
import json
import random
import shutil
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy

from groundup import look
from groundup.course.learner import learners_folder
from groundup.course.manifest import course
from groundup.train import load_dataset as load_for_training
from shared.bench.on_gpu import gpu_record
from shared.training.checkpoints import checksum
from shared.training.epochs import EpochRunner
from tests.promises.earlier_files import MADE
from tests.shared.data.idx_files import idx_bytes, small_mnist
from tests.strangers.damage import RAW, as_text, damaged, exchanged

ROOT = MADE.parents[2]
DRAWN_EVERY = 20
"""One in so many results files is drawn."""

REPLACED = ("metrics.jsonl", "run.json", "steps.jsonl")
"""Files that a training writes anew when it goes on, whatever is in them."""

NO_STEP = "no step is taken here"


@dataclass
class Case:
    """Files as they lie there for some commands.

    what: how they were made; commands: arguments of the program; names: of which an error must hold one
    """

    what: str
    commands: Sequence[Sequence[str]]
    names: Sequence[str]
    files: Mapping[Path, bytes] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.restore()

    def restore(self) -> None:
        for path, content in self.files.items():
            path.write_bytes(content)

    def changed(self) -> str:
        """The name of a file that is not as it was; "" if all are."""
        kept = {path: content for path, content in self.files.items() if path.name not in REPLACED}
        return next((str(path) for path, content in kept.items() if path.read_bytes() != content), "")


class Checkpoints:
    """Runs of `groundup train`, which `look` looks into and `train --resume` goes on with."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "run"
        shutil.copytree(MADE / "trained" / "stage2", self.folder)
        # What the right files of a fuzz would make again and again: images, figures and steps.
        load_once = functools.cache(load_for_training)
        import groundup.train
        from groundup import trained

        trained.load_dataset = load_once
        groundup.train.load_dataset = load_once  # type: ignore[assignment]
        look.write_page = lambda *_: None  # type: ignore[assignment]
        EpochRunner.rest_of_epoch = _no_step  # type: ignore[method-assign]
        self.right = [self.folder / "last.safetensors", _begun(folder / "images", "--model", "lenet5")]
        self.contents = [path.read_bytes() for path in self.right]
        self.opened = [_opened(content) for content in self.contents]

    def case(self, rng: random.Random, number: int) -> Case:
        which = int(rng.random() < 0.3)
        path = self.right[which]
        files, what = {path: self.contents[which]}, "right"
        way = number % 8
        if way < 2:
            what, files[path] = "damaged", damaged(self.contents[which], rng, _head(self.contents[which]))
        elif way < 6:
            what, files[path] = "exchanged", self._exchanged(which, rng)
        elif way == 6:
            what, files[path] = "crafted", self._crafted(which, rng)
        elif which == 0:
            beside = path.with_name(rng.choice(["metrics.jsonl", "run.json", "steps.jsonl"]))
            text = (self.folder / "metrics.jsonl").read_bytes() if beside.name == "metrics.jsonl" else b"{}\n" * 3
            what, files[beside] = beside.name, rng.choice([damaged(text, rng), rng.choice(RAW)])
        resume = ["train", "2", "--resume", str(path.parent), "--quiet"]
        return Case(what, [["look", str(path)], resume], [str(path.parent), NO_STEP], files)

    def _exchanged(self, which: int, rng: random.Random) -> bytes:
        about, tensors = self.opened[which]
        text = as_text(exchanged(about, rng))
        return _saved(text, tensors)

    def _crafted(self, which: int, rng: random.Random) -> bytes:
        about, tensors = self.opened[which]
        about, tensors = copy.deepcopy(about), dict(tensors)
        name = rng.choice(sorted(tensors))
        array = tensors[name]
        way = rng.randrange(9)
        if way == 0:
            del tensors[name]
        elif way == 1:
            strange = (np.float16, np.int64, np.bool_, np.uint8, np.float64)
            tensors[name] = array.astype(rng.choice(strange))
        elif way == 2:
            tensors[name] = rng.choice(
                [array.reshape(-1), array[:1], np.zeros((0, 5), np.float32), np.ones((), np.float32)]
            )
        elif way == 3:
            tensors[name] = np.full_like(array, rng.choice([np.nan, np.inf, 1e38, -1.0]))
        elif way == 4:
            tensors[rng.choice(["x", "parameters.99", "../x", "a" * 3000, "parameters.-1"])] = array
        elif way == 5:
            return _saved(rng.choice(RAW[:11]).decode("utf-8", "replace"), tensors)
        elif way == 6:
            length = rng.choice([0, 1, 2**31, 2**32, 2**60, 2**63, 2**64 - 1, len(self.contents[which]), 100 * 2**20])
            return struct.pack("<Q", length) + self.contents[which][8:]
        elif way == 7:
            return _with_header(self.contents[which], lambda header: exchanged(header, rng))
        else:
            about |= rng.choice(_GREEDY)
        return _saved(json.dumps(about), tensors)


def _layers(number: int, layer: Any) -> dict[str, Any]:
    return {"format": 2, "architecture": {"input_shape": [1, 28, 28], "layers": [layer] * number}}


_GREEDY: tuple[dict[str, Any], ...] = (
    _layers(200_000, {"kind": "BatchNorm"}),
    _layers(1000, {"kind": "Conv", "out_channels": 1, "size": 1, "padding": 500}),
    _layers(3, {"kind": "Conv", "out_channels": 10**9, "size": 1}),
    {"layer_sizes": [784] + [1] * 200_000 + [10]},
    {"layer_sizes": [784, 100_000_000, 10]},
    {"optimizer": {"name": "Adam", "hyperparameters": {}, "steps": 10**30, "buffers": ["m"] * 200_000}},
)
"""Headers that ask for much."""


def _opened(content: bytes) -> tuple[Any, dict[str, np.ndarray]]:
    header = json.loads(content[8 : _head(content)])
    return json.loads(header["__metadata__"]["groundup"]), safetensors.numpy.load(content)


def _saved(text: str, tensors: dict[str, np.ndarray]) -> bytes:
    arrays = {name: np.ascontiguousarray(array) for name, array in tensors.items()}
    text = text.encode("utf-8", "replace").decode()
    return bytes(safetensors.numpy.save(arrays, {"groundup": text, "sha256": checksum(text, arrays)}))


def _with_header(content: bytes, change: Callable[[Any], Any]) -> bytes:
    """The file with a changed safetensors header."""
    text = as_text(change(json.loads(content[8 : _head(content)]))).encode("utf-8", "replace")
    return struct.pack("<Q", len(text)) + text + content[_head(content) :]


def _head(content: bytes) -> int:
    return 8 + int(struct.unpack("<Q", content[:8])[0])


def _begun(folder: Path, *options: str) -> Path:
    """The checkpoint of a run that has not taken a step."""
    from tests.program import run

    run("train", "2", "--run-dir", str(folder), "--quiet", *options)
    return folder / "last.safetensors"


def _no_step(self: EpochRunner, position: Any) -> Any:
    raise ValueError(NO_STEP)


class Data:
    """Files in MNIST's form, which `train --data-dir` reads."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "mnist"
        self.folder.mkdir()
        self.right = {name: idx_bytes(array) for name, array in small_mnist().items()}
        EpochRunner.rest_of_epoch = _no_step  # type: ignore[method-assign]
        self.bombs = [gzip.compress(bytes(size << 20), 9) for size in (16, 128)]

    def case(self, rng: random.Random, number: int) -> Case:
        for path in self.folder.iterdir():
            path.unlink()
        packed, name = bool(number % 2), rng.choice(sorted(self.right))
        contents = dict(self.right)
        way, what = rng.randrange(5), "crafted"
        if way == 0:
            contents[name] = _idx_header(rng) + contents[name][rng.choice([8, 16]) :]
        elif way == 1:
            what, contents[name] = "damaged inside", damaged(contents[name], rng, 16)
        found = {each: gzip.compress(content, 1) if packed else content for each, content in contents.items()}
        if way == 2:
            what, found[name] = "damaged", damaged(found[name], rng, 16)
        elif way == 3:
            count = rng.choice([5, 60_000, 60_001, 13_000_000])
            head = _idx_header(rng, [count, 28, 28] if "images" in name else [count])
            what = "bomb"
            found[name] = (
                gzip.compress(head) + rng.choice(self.bombs) * rng.choice([1, 40]) + rng.choice([b"", b"\0" * 9, b"x"])
            )
        elif way == 4:
            found[name] = rng.choice([*RAW, gzip.compress(b"") * 5000, b"\x1f\x8b\x08\x1f" + b"\xff" * 5000])
        files = {self.folder / (f"{each}.gz" if packed else each): content for each, content in found.items()}
        argv = [
            "train",
            "2",
            "--dataset",
            "mnist",
            "--data-dir",
            str(self.folder),
            "--run-dir",
            str(self.folder.parent / "r"),
        ]
        argv += ["--overwrite", "--quiet", "--hidden", "none"]
        return Case(what, [argv], [str(self.folder), NO_STEP], files)


def _idx_header(rng: random.Random, shape: Sequence[int] | None = None) -> bytes:
    sizes = [0, 1, 5, 12, 28, 60_000, 2**31, 2**32 - 1]
    shape = [rng.choice(sizes) for _ in range(rng.choice([0, 1, 3, 3, 8, 32, 33, 255]))] if shape is None else shape
    code = rng.choice([8, 8, 9, 0x0B, 0x0C, 0x0D, 0x0E, 0, 255])
    return struct.pack(">HBB", rng.choice([0, 0, 0, 7]), code, len(shape)) + struct.pack(f">{len(shape)}I", *shape)


class ResultFiles:
    """Results, which `bench compare` and `charts` read."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        reports = sorted(gpu_record.RECORDS.rglob(gpu_record.REPORT))[-1:]
        self.right = [
            MADE / "bench.json",
            ROOT / "docs/benchmarks/bench-quick/results.json",
            MADE / "race.json",
            *reports,
        ]
        self.texts = [path.read_bytes() for path in self.right]
        self.documents = [json.loads(text) for text in self.texts]
        _cheap_figures()

    def case(self, rng: random.Random, number: int) -> Case:
        which = rng.choice([0, 0, 1, 2, 3])
        way = number % 4
        if way == 0:
            what, content = "damaged", damaged(self.texts[which], rng, 1000)
        elif number % 40 == 1:
            what, content = "raw", rng.choice(RAW)
        else:
            what, content = "exchanged", as_text(exchanged(self.documents[which], rng)).encode("utf-8", "surrogatepass")
        path, out = self.folder / "theirs.json", str(self.folder / "out")
        pair = [str(path), str(self.right[0])]
        commands = [
            ["bench", "compare", *(pair if number % 2 else pair[::-1]), *(["--json"] if number % 3 else ["--all"])]
        ]
        if number % DRAWN_EVERY == 2 or which == 3:
            commands.append(["charts", str(path), "--out", out])
        return Case(f"{what} {self.right[which].name}", commands, [str(path)], {path: content})


def _cheap_figures() -> None:
    """Figures are laid out, which is where strange numbers and texts show, and not turned into pixels."""
    from matplotlib.figure import Figure

    def laid_out(self: Figure, path: Any, *args: Any, **options: Any) -> None:
        self.draw_without_rendering()
        if isinstance(path, io.BytesIO):
            path.write(b"pixels")
        elif hasattr(path, "write"):
            path.write('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9"></svg>')
        else:
            Path(path).write_bytes(b"")

    Figure.savefig = laid_out  # type: ignore[assignment, method-assign]


PROGRESS = b"""current = "1.2"

[tasks."1.1"]
state = "passed"
on = "2026-11-22"
digest = "0123456789abcdef"
hints = 2
revealed = true

[tasks."checkpoint 1"]
state = "passed"

[tasks.case1]
state = "skipped"
found = true
"""

ODD_PROGRESS = (
    *(b'current = "../../etc"', b'current = "\\u001b[31mX"', b"current = 1e400"),
    *(b'current="1.1"\n[tasks."1.1"]\nhints=-5', b'current="1.1"\n[tasks."1.1"]\nhints=99999999999999999999999'),
    *(b'current="1.1"\n[tasks."../x"]\nstate="passed"', b'current="1.1"\n[tasks."1.1"]\non="\\u001b[31mX"'),
    *(b'current="checkpoint 99"', b'current="1.1"\n[tasks."checkpoint x"]\nstate="passed"'),
    *('current="1.1"\n[tasks."²"]\nstate="passed"'.encode(), b'current="1.1"\n[tasks."1.1"]\non=2026-11-22'),
    *(b'current="1.1"\n[tasks."' + b"1." * 3000 + b'1"]\nstate="passed"', b'current="1.1"\n[tasks.""]\nhints=1'),
    *(b"x = '''" + b"a" * 3_000_000 + b"'''", b'current="1.1"\n' + b'[tasks."1.1"]\n' * 2, b"a = [" * 900 + b"]" * 900),
    *(b"a={b=" * 3000, b'current="1.1"\n[tasks."' + b"9" * 5000 + b'"]\nhints=1', b"a.a=" * 20_000),
)


class Progress:
    """A learner's folder, which every command of `learn` opens first."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "course"
        learners_folder.start(self.folder, course())

    def case(self, rng: random.Random, number: int) -> Case:
        way = number % 3
        content = damaged(PROGRESS, rng) if way == 0 else self._crafted(rng) if way == 1 else rng.choice(ODD_PROGRESS)
        if number % 50 == 1:
            content = rng.choice(RAW)
        asked = rng.choice(
            [[], ["status"], ["hint"], ["next"], ["skip"], ["status", "--json"], ["solution"], ["cases"]]
        )
        path = self.folder / "progress.toml"
        commands = [["learn", "--folder", str(self.folder), *asked]]
        return Case("progress", commands, [str(path), "--help", "groundup learn"], {path: content})

    def _crafted(self, rng: random.Random) -> bytes:
        lines = PROGRESS.split(b"\n")
        values = (b'"x"', b"-1", b"9" * 400, b"true", b"[]", b"{}", b"1e999", b"2026-11-22", b'"\\u0000"')
        for _ in range(rng.choice([1, 1, 3])):
            at = rng.randrange(len(lines))
            key = lines[at].split(b"=")[0]
            lines[at] = rng.choice(
                [key + b"= " + rng.choice(values), b"", rng.choice(lines), b"[tasks." + rng.choice(values) + b"]"]
            )
        return b"\n".join(lines)


KINDS: dict[str, Callable[[Path], Any]] = {
    "checkpoint": Checkpoints,
    "idx": Data,
    "results": ResultFiles,
    "progress": Progress,
}
