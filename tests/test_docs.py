"""The docs keep their word: every command in them runs, every link inside them leads somewhere."""

import importlib.util
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from shared.contract import ROOMS

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])

SHORTER = {
    "race": ["--limit", "100", "--epochs", "1", "--stages", "2,3"],
    "train": ["--epochs", "1"],
    "check": ["--quick", "--dtype", "float64"],
    "bench": ["--quick", "--stages", "2", "--only", "memory", "--passes", "1"],
}
"""What makes a command quick enough for a test; test_race runs the race as it stands, test_bench_command the rest."""

SHORTER_COMMANDS = {"groundup check": ["2"]}
"""The same for a whole command: test_check_command has all stages checked."""

SHORTER_MODULES = {
    "stage4_numba_cuda.emulator.speed": ["--quick"],
    "stage4_numba_cuda.gpu_report": ["--quick", "--only", "device"],
}
"""The same for `python -m MODULE`."""

NEEDS = {"--compile": "numba_cuda", "torch_layers.py": "torch"}
"""A word of a command, and the package without which the command can only say that it is missing."""


def commands() -> list[str]:
    """Every command line of the docs' code blocks that starts with groundup or python, without its comment; variables
    of ours may stand in front."""
    found = set()
    for page in PAGES:
        for line in page.read_text(encoding="utf-8").splitlines():
            match = re.match(r"\s{4,}\$? ?((?:GROUNDUP_\w+=\S+ )*(?:groundup|python3?) [^#]*)", line)
            if match and not match[1].startswith(("python -m venv", "groundup is", "groundup/")):
                found.add(re.sub(r" > \S+$", "", match[1].strip()))
    return sorted(found)


def test_the_docs_have_commands() -> None:
    assert {"groundup race", "groundup check", "groundup doctor"} <= set(commands())


def in_the_checkout(arguments: list[str]) -> list[str]:
    """The arguments, scripts of the checkout (SCRIPT.py or SCRIPT.py:KERNEL) with their whole path: commands run in
    another folder."""
    scripts = [each.partition(":")[0] for each in arguments]
    return [
        str(ROOT / each) if script.endswith(".py") and (ROOT / script).is_file() else each
        for each, script in zip(arguments, scripts, strict=True)
    ]


@pytest.mark.slow
@pytest.mark.parametrize("command", commands())
def test_command_of_the_docs_runs(command: str, tmp_path: Path) -> None:
    environment = dict(os.environ)
    for word, package in NEEDS.items():
        if word in command and importlib.util.find_spec(package) is None:
            pytest.skip(f"needs {package}, which is not installed")
    words = shlex.split(command)
    while words[0].startswith("GROUNDUP_"):
        name, _, value = words.pop(0).partition("=")
        if name == "GROUNDUP_DATA":
            if name not in os.environ:
                pytest.skip("needs the full data sets: set GROUNDUP_DATA to their folder")
            value = str(Path(os.environ[name]).resolve())
        environment[name] = value
    program, *arguments = words
    if program == "groundup":
        replaced = [*in_the_checkout(arguments), *SHORTER_COMMANDS.get(command, []), *SHORTER.get(arguments[0], [])]
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


def test_the_floor_plan_names_every_module_of_stage_4() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    stage = ROOT / "stage4_numba_cuda"
    modules = {module.name for folder in (stage, stage / "kernels") for module in folder.glob("[!_]*.py")}
    rooms = {f"{room}.py" for room in (*ROOMS, "train")}  # every stage has them, and the page tells them once
    for name in sorted(modules - rooms):
        part_of = re.sub(r"^(compile|report)_\w+\.py$", r"\1_*.py", name)
        assert name in page or part_of in page, f"docs/architecture.md says nothing of {name}"
