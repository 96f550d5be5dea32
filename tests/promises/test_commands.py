"""What a script may rely on since commit aa8f7fd: commands and options, keys of JSON, variables of the environment."""

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer

from groundup.cli import program
from groundup.course.manifest import ROOT
from tests.program import run
from tests.promises.earlier_files import MADE, copied
from tests.wide import widely

COMMANDS: dict[str, dict[str, str]] = json.loads((MADE / "commands.json").read_text())
"""By command, its options ("flag" or "value") and arguments."""

DOCUMENTS: dict[str, dict[str, list[str]]] = json.loads((MADE / "documents.json").read_text())
"""By command, the keys of its JSON document: under "" its own, under a name those of each row of that list."""

QUICK = ("train 2", "bench compare", "learn")
VARIABLES = ("CACHE", "COURSE", "CSRC", "CUDA", "DATA", "EMULATOR", "LEARN_SECONDS", "SANITIZE", "THREADS", "TRACEBACK")
PACKAGES = ("groundup", "shared", "cuda_emulator", "stage3_c", "stage4_numba_cuda")


@cache
def root() -> Any:
    return typer.main.get_command(program([]))


@cache
def described(command: Any, name: str = "") -> dict[str, dict[str, str]]:
    """A command and those below it, as describe.sh wrote them down."""
    found: dict[str, dict[str, str]] = {name: {}}
    for each in command.params:
        if each.param_type_name == "argument":
            found[name][each.name] = "argument"
        else:
            kind = "flag" if each.is_flag else "value"
            found[name] |= dict.fromkeys([*each.opts, *each.secondary_opts], kind)
    for own, below in getattr(command, "commands", {}).items():
        found |= described(below, f"{name} {own}".strip())
    return found


@pytest.mark.parametrize("command", COMMANDS, ids=lambda name: name or "groundup")
def test_a_command_still_takes_every_option_that_it_took(command: str) -> None:
    now, called = described(root())[command], root()
    options = {name: kind for name, kind in COMMANDS[command].items() if kind != "argument"}
    assert options.items() <= now.items()
    for word in command.split():
        called = called.commands[word]
    arguments = [each for each in called.params if each.param_type_name == "argument"]
    # They have no names when they are typed: a script and its arguments may be one argument of many words.
    assert len(COMMANDS[command]) - len(options) <= len(arguments) or any(each.nargs == -1 for each in arguments)


@pytest.mark.parametrize(
    "command", widely(sorted(DOCUMENTS, key=lambda name: not name.startswith(QUICK)), first=3), ids=str
)
def test_a_json_document_still_has_every_key_that_it_had(
    command: str, learner: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    copied("stage2", tmp_path / "trained")
    arguments = [str(MADE / part) if part.startswith("bench") and "." in part else part for part in command.split()]
    run(*arguments, "--json")
    document = json.loads(capsys.readouterr().out)
    for name, keys in DOCUMENTS[command].items():
        part = document if name == "" else document[name]
        rows = list(part.values()) if name == "verdicts" else part if name else [part]
        for row in rows:
            assert set(keys) <= row.keys(), name or command


@pytest.mark.parametrize("name", VARIABLES)
def test_a_variable_of_the_environment_is_still_read(name: str) -> None:
    texts = (path.read_text(encoding="utf-8") for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
    assert any(re.search(rf'"GROUNDUP_{name}"', text) for text in texts)
