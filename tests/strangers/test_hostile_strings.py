"""Hostile texts in every place where a name can stand, through every command: nothing raw comes out.

A place is a command and what it is called with. A command without a place fails the first test. The pages of the studio
have tests of their own (tests/browser/studio and tests/groundup/studio): a name is put into each as a text node.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import typer

from groundup.cli import program
from tests.program import run
from tests.promises.earlier_files import MADE
from tests.strangers.hostile import HOSTILE, as_file_name, assert_clean, in_one_line, raw_in
from tests.strangers.kinds import _opened, _saved
from tests.wide import wide

MARK = "qqq"
"""Before each hostile text: where it is found in what is shown, the text is, too."""

TINY = ["--hidden", "2", "--epochs", "1", "--batch-size", "200"]
Calls = Iterator[Sequence[str]]


@dataclass(frozen=True)
class Place:
    """A place for a text.

    command: of the program; what: which place
    calls: (an empty folder, the text) -> the arguments of the calls, one after the other
    shown: whether the text has to be in what comes out
    """

    command: str
    what: str
    calls: Callable[[Path, str], Calls]
    shown: bool = True


def option(*argv: str) -> Callable[[Path, str], Calls]:
    """A call with the text in place of TEXT."""

    def calls(folder: Path, text: str) -> Calls:
        yield [text if each == "TEXT" else each for each in argv]

    return calls


def named(folder: Path, text: str, suffix: str = "") -> Path:
    return folder / (as_file_name(text) + suffix)


def a_run(folder: Path, text: str) -> Calls:
    where = str(named(folder, text))
    yield ["train", "2", *TINY, "--run-dir", where]
    yield ["train", "2", *TINY, "--run-dir", where]
    yield ["train", "2", "--resume", where, "--epochs", "2"]


def looked_into(folder: Path, text: str) -> Calls:
    shutil.copytree(MADE / "trained" / "stage2", named(folder, text))
    yield ["look", str(named(folder, text)), "--out", str(folder / "figures")]


def asked(folder: Path, text: str) -> Calls:
    run = named(folder, text)
    shutil.copytree(MADE / "trained" / "stage2", run)
    yield ["predict", str(run), str(named(folder, text, ".png"))]
    yield ["export", str(run), "--out", str(named(folder, text, ".onnx"))]


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The places of the texts in a document."""
    if isinstance(value, str):
        yield path
    for key, each in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from leaves(each, (*path, key))


def with_text(document: Any, path: tuple[Any, ...], text: str) -> Any:
    changed = json.loads(json.dumps(document))
    place = changed
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = text
    return changed


def checkpoints(folder: Path, text: str) -> Calls:
    """Every text of a checkpoint, with a right checksum, and a name of its own among its notes and its tensors."""
    where = folder / "run"
    shutil.copytree(MADE / "trained" / "stage2", where)
    about, tensors = _opened((where / "last.safetensors").read_bytes())
    written = text.encode("utf-8", "replace").decode()
    several = [with_text(about, path, written) for path in leaves(about)]
    several.append({**about, "notes": {**about.get("notes", {}), written: written}})
    for document in several:
        (where / "last.safetensors").write_bytes(_saved(json.dumps(document), tensors))
        yield ["train", "2", "--resume", str(where), "--quiet", "--epochs", "1"]
    (where / "last.safetensors").write_bytes(_saved(json.dumps(about), {**tensors, written: tensors["parameters.0"]}))
    yield ["look", str(where / "last.safetensors")]


def results(folder: Path, text: str) -> list[Path]:
    """A results file with the text in each free place, one with it in all, and one with it as a name."""
    document = json.loads((MADE / "bench.json").read_text(encoding="utf-8"))
    kinds = {tuple("*" if isinstance(key, int) else key for key in path): path for path in leaves(document)}
    several = [with_text(document, path, text) for path in kinds.values()]
    everywhere = document
    for path in kinds.values():
        if path[0] in ("environment", "command"):
            everywhere = with_text(everywhere, path, text)
    several += [everywhere, {**document, "unavailable": {text: text}}, {**document, text: 1}]
    paths = []
    for number, each in enumerate(several):
        paths.append(folder / f"{number}.json")
        paths[-1].write_text(json.dumps(each), encoding="utf-8")
    return paths


def compared(folder: Path, text: str) -> Calls:
    for path in results(folder, text):
        yield ["bench", "compare", str(path), str(MADE / "bench.json")]
        yield ["bench", "compare", str(MADE / "bench.json"), str(path), "--json"]


def drawn(folder: Path, text: str) -> Calls:
    for path in results(folder, text)[-3:]:
        where = named(folder, text)
        where.mkdir(exist_ok=True)
        shutil.copy(path, where / "results.json")
        yield ["charts", str(where / "results.json")]


SCRIPT = """
import numpy as np
from numba import cuda

@cuda.jit
def kernel(x):
    # {comment}
    i = cuda.grid(1)
    if i < x.size:
        x[i] += 1  # {comment}
    {more}

kernel[1, 4](np.zeros(4, np.float32))
{end}
"""


def script(folder: Path, text: str, more: str = "pass", end: str = "") -> Path:
    """A script with the text in its name and in a comment."""
    path = named(folder, text, ".py")
    comment = re.sub(r"[\x00\r\n\x0b\x0c\x1c-\x1e\x85\u2028\u2029]", "", text).encode("utf-8", "ignore").decode()
    path.write_text(SCRIPT.format(comment=comment, more=more, end=end), encoding="utf-8")
    return path


def failing_scripts(folder: Path, text: str) -> Calls:
    yield ["run", str(script(folder, text, end=f"raise ValueError({text!r})"))]
    yield ["run", str(script(folder, text, end=f"raise type({MARK!r}, (Exception,), {{}})({text!r})"))]
    yield ["run", str(script(folder, text, more="x[9] = 1"))]
    yield ["run", str(script(folder, text, more="return x[0] + 'a'"))]
    yield ["run", str(named(folder, text, "missing.py"))]


def lenses(folder: Path, text: str) -> Calls:
    target = f"{script(folder, text)}:kernel"
    yield ["lens", target]
    yield ["lens", target, "--html", str(folder / "page.html")]
    yield ["lens", f"{target}{text}"]
    yield ["lens", target, "--args", text]


def courses(folder: Path, text: str) -> Calls:
    where = named(folder, text)
    yield ["learn", "--folder", str(where), "start"]
    yield ["learn", "--folder", str(where), "status"]
    yield ["learn", "--folder", str(where), "check", text]
    file = next(path for path in where.rglob("*.py") if path.name == "matmul.py")
    right = file.read_text(encoding="utf-8")
    stub = re.findall(r"raise NotImplementedError.*", right)[0]
    for statement in (f"raise ValueError({text!r})", f"print({text!r}); print({text!r})", f"return {text!r}"):
        file.write_text(right.replace(stub, statement, 1), encoding="utf-8")
        yield ["learn", "--folder", str(where), "check", "1.1"]
    for line in (f"current = {json.dumps(text)}", f'current = "1.1"\n[tasks.{json.dumps(text)}]\nhints = 1'):
        (where / "progress.toml").write_text(line.encode("utf-8", "replace").decode(), encoding="utf-8")
        yield ["learn", "--folder", str(where), "status"]


def exported(folder: Path, text: str) -> Calls:
    where = named(folder, text)
    shutil.copytree(MADE / "trained" / "stage2", where)
    yield ["studio", "digits", str(where), "--export", str(folder / "digits.html")]
    yield ["studio", "kernel", "--walk", text, "--export", str(folder / "walk.html")]


def raced(folder: Path, text: str) -> Calls:
    yield ["race", "--stages", "2", *TINY, "--out", str(named(folder, text))]
    yield ["race", "--stages", text]


PLACES = [
    Place("race", "a folder and a stage", raced),
    Place("race", "a data set", option("race", "--dataset", "TEXT")),
    Place("train", "a folder", a_run),
    Place("train", "a stage", option("train", "TEXT")),
    Place("train", "a checkpoint", checkpoints),
    Place("look", "a run", looked_into),
    Place("predict", "a run and a picture", asked),
    Place("serve", "a network", option("serve", "TEXT")),
    Place("export", "a run and a file", option("export", "TEXT", "--out", "TEXT")),
    Place("check", "a stage", option("check", "TEXT")),
    Place("profile", "a network", option("profile", "2", "--model", "TEXT")),
    Place("profile", "a stage", option("profile", "TEXT")),
    Place("charts", "a results file", drawn),
    Place("doctor", "the environment", option("doctor")),
    Place("doctor", "the environment, as JSON", option("doctor", "--json")),
    Place("run", "a script", failing_scripts),
    Place("lens", "a script", lenses),
    Place("studio", "a run and a walk", exported),
    Place("studio", "a page", option("studio", "TEXT")),
    Place("bench", "results files", compared),
    Place("bench", "a network", option("bench", "--model", "TEXT")),
    Place("learn", "a course", courses),
]


def test_every_command_has_a_place() -> None:
    known = typer.main.get_command(program([]))
    assert {place.command for place in PLACES} == set(known.commands)  # type: ignore[attr-defined]


def cases() -> list[Any]:
    """Each place with one text for every run of the tests, and with all of them in the wide cases."""
    found = []
    for number, place in enumerate(PLACES):
        for at, name in enumerate(HOSTILE):
            marks = [] if at == number % len(HOSTILE) and place.what not in SLOW else [wide]
            found.append(pytest.param(place, name, marks=marks, id=f"{place.command}, {place.what}, {name}"))
    return found


SLOW = {
    "the environment",
    "the environment, as JSON",
    "a course",
    "a run",
    "a results file",
    "results files",
    "a folder and a stage",
    "a script",
}


@pytest.mark.parametrize(("place", "name"), cases())
def test_nothing_raw_comes_out(
    place: Place, name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = MARK + HOSTILE[name]
    monkeypatch.setenv("COLUMNS", "2000")
    monkeypatch.chdir(tmp_path)
    for variable in ("CC", "GROUNDUP_EMULATOR", "GROUNDUP_DATA"):
        if place.what.startswith("the environment"):
            monkeypatch.setenv(variable, text)
    shown = False
    for argv in place.calls(tmp_path, text):
        if any("\0" in each for each in argv):
            continue
        code = run(*argv)
        out, err = capfd.readouterr()
        assert code in (0, 1, 2), (argv, err)
        assert raw_in(out) == [], (argv, out[-2000:])
        assert raw_in(err) == [], (argv, err[-2000:])
        shown = shown or MARK in in_one_line(out + err)
        assert_clean(tmp_path)
    assert shown
