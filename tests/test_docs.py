"""The docs keep their word: every command in them runs, every link inside them leads somewhere."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])

SHORTER = {
    "race": ["--limit", "100", "--epochs", "1"],
    "train": ["--epochs", "1"],
    "check": ["--quick"],
    "bench": ["--quick", "--sizes", "32"],
}
"""What makes a command quick enough for a test; test_race runs the race as it stands."""

SHORTER_MODULES = {"stage4_numba_cuda.emulator.speed": ["--quick"]}
"""The same for `python -m MODULE`."""


def commands() -> list[str]:
    """Every command line of the docs' code blocks that starts with groundup or python, without its comment."""
    found = set()
    for page in PAGES:
        for line in page.read_text(encoding="utf-8").splitlines():
            match = re.match(r"\s{4,}\$? ?((?:GROUNDUP_DATA=\S+ )?(?:groundup|python) [^#]*)", line)
            if match and not match[1].startswith(("python -m venv", "groundup is", "groundup/")):
                found.add(re.sub(r" > \S+$", "", match[1].strip()))
    return sorted(found)


def test_the_docs_have_commands() -> None:
    assert {"groundup race", "groundup check", "groundup doctor"} <= set(commands())


def in_the_checkout(arguments: list[str]) -> list[str]:
    """The arguments, scripts of the checkout with their whole path: commands run in another folder."""
    return [str(ROOT / each) if each.endswith(".py") and (ROOT / each).is_file() else each for each in arguments]


@pytest.mark.slow
@pytest.mark.parametrize("command", commands())
def test_command_of_the_docs_runs(command: str, tmp_path: Path) -> None:
    environment = dict(os.environ)
    if command.startswith("GROUNDUP_DATA="):
        if "GROUNDUP_DATA" not in os.environ:
            pytest.skip("needs the full data sets: set GROUNDUP_DATA to their folder")
        environment["GROUNDUP_DATA"] = str(Path(os.environ["GROUNDUP_DATA"]).resolve())
        command = command.split(" ", 1)[1]
    program, *arguments = shlex.split(command)
    if program == "groundup":
        replaced = [*in_the_checkout(arguments), *SHORTER.get(arguments[0], [])]
        arguments = ["-c", "from shared.cli import main; main()", *replaced]
    else:
        shorter = SHORTER_MODULES.get(arguments[1], []) if arguments[0] == "-m" else []
        arguments = [*in_the_checkout(arguments), *shorter]
    result = subprocess.run([sys.executable, *arguments], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_inside_the_docs_lead_to_files(page: Path) -> None:
    text = re.sub(r"```.*?```|`[^`]*`|^    .*?$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    for target in re.findall(r"(?<!\\)\]\(([^)#]+)", text):  # outside code, where kernel[1, 32](x) is no link
        if not target.startswith(("http:", "https:")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}, which is not there"
