"""The docs keep their word: every command and program in them runs, every link inside them leads somewhere.

docs_blocks.py has the rule for code blocks; this file runs what it says is to be run.
"""

import importlib
import importlib.util
import os
import re
import shlex
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.docs import docs_runner
from tests.docs.docs_blocks import PAGES, ROOT, Block, blocks, commands, complaint, page_blocks, programs
from tests.wide import wide

SHORTER = {
    "race": ["--limit", "100", "--epochs", "1", "--stages", "2,3"],
    "train": ["--epochs", "1"],
    "check": ["--quick", "--dtype", "float64"],
    "check --int8": [],
    "check 3": [],
    "bench": ["--quick", "--stages", "2", "--only", "memory", "--passes", "1"],
    "profile": ["--repeat", "1", "--batch", "2"],
    "learn watch": ["--once"],
    "studio": ["--no-browser", "--port", "0"],
    "serve": ["--port", "0"],
}
"""What makes a command quick enough for a test; test_race runs the race as it stands, test_bench_command the rest."""

SHORTER_COMMANDS = {"groundup check": ["2"]}
"""The same for a whole command: test_check_command has all stages checked."""

SHORTER_MODULES = {
    "shared.bench.emulator.emulator_speed": ["--quick"],
    "groundup.gpu_report": ["--quick", "--only", "device"],
}
"""The same for `python -m MODULE`."""

NEEDS = {"--compile": "numba_cuda", "torch_layers.py": "torch", ".onnx": "onnxruntime"}
"""A word of a command, and the package without which the command can only say that it is missing."""

EXITS = {
    "groundup learn check": {0, 1},  # and checkpoint
    "groundup learn watch": {0, 1},
    "groundup learn debug": {0, 1},
    "groundup learn solution": {0, 1},
}
"""What a command that begins so may exit with besides 0: an exercise that nobody has touched yet does not pass."""

RUN_ELSEWHERE = {
    "groundup check stage4": "test_check_command checks all stages at once",
    "GROUNDUP_EMULATOR=nobounds groundup train stage4": "test_emulator_limits reads the word; the rest is run without",
    "GROUNDUP_TENSOR_CORES=tf32 groundup train stage4 --model lenet5": "test_precision reads the word and steps",
    "python examples/classics.py": "test_classics runs the script for each stage",
    "python -m shared.bench.emulator.emulator_speed --json emulator.json": "test_emulator_speed runs the command",
}
"""Commands that take long and that another test runs, and which."""

TASK = re.compile(r"\b\d+\.\d+\b")
"""A task's name, such as 10.2."""

WORKSPACE = "groundup-course"
"""The folder that `groundup learn start` makes."""

GIVEN = {"docs/benchmarks/schema.md": {"runs/bench/results.json": "docs/benchmarks/bench-quick/results.json"}}
"""Page -> files that its programs find in their folder -> where they come from."""


BEFORE = {
    "docs/guides/export.md": [
        "groundup train stage2 --run-dir runs/digits",
        "groundup export runs/digits --out digits.onnx",
    ]
}
"""Page -> the commands of it that have to be run before its programs."""


# ---- the rule


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_block_is_run_or_marked(page: Path) -> None:
    wrong = [said for block in page_blocks(page) if (said := complaint(block))]
    wrong += [
        f"{block.place}: a test cannot run {line!r}: put <!-- illustration: REASON --> before the block"
        for block in page_blocks(page)
        for line in runnable(block)
        if not re.match(r"(GROUNDUP_\w+=\S+ )*(groundup|python3?|cd) |groundup$", line)
    ]
    programs(page)
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("```\nx\n```", "p.md:1: this block names no language"),
        ("```bash\nls\n```", "p.md:1: a test cannot run 'bash'"),
        ("```c\nint groundup(void);\n\nint zero;\n```", "p.md:1: this C stands in no file"),
        ("<!-- listing: a -->\n\n```python\nx\n```", "p.md:3: listings belong to docs/emulator.md and docs/lens.md"),
    ],
)
def test_a_block_that_nothing_runs_is_found(text: str, said: str) -> None:
    (block,) = blocks(text, "p.md")
    assert said in complaint(block)
    (marked,) = blocks(f"<!-- illustration: a reason -->\n\n{text.rpartition('-->')[2].strip()}", "p.md")
    assert complaint(marked) == ""


# ---- commands


def runnable(block: Block) -> list[str]:
    """The commands of a block that are run."""
    return commands(block) if block.language == "console" and not block.mark else []


def in_course(line: str) -> bool:
    """Whether a command needs a learner's folder."""
    return line.startswith(("groundup learn", "cd ")) or "--mine" in line.split()


def shortened(line: str) -> tuple[str, ...]:
    """A command's words, variables in front and all, as a test runs it."""
    words = shlex.split(re.sub(r" > \S+$", "", line))
    program = next(number for number, word in enumerate(words) if not word.startswith("GROUNDUP_"))
    variables, (name, *arguments) = words[:program], words[program:]
    if name == "groundup":
        arguments = [re.sub(r"^(stage\d)_\w+$", r"\1", each) for each in arguments]
        of_kind = SHORTER.get(" ".join(arguments[:2]), SHORTER.get(arguments[0], []))
        more = [*SHORTER_COMMANDS.get(line, []), *of_kind]
        return (*variables, name, *in_the_checkout(without(arguments, more)), *more)
    shorter = SHORTER_MODULES.get(arguments[1], []) if arguments[0] == "-m" else []
    return (*variables, "python", *in_the_checkout(arguments), *shorter)


def without(arguments: list[str], more: list[str]) -> list[str]:
    """The arguments but for the options that `more` sets, too: commands that differ in these only are run once."""
    names = {each for each in more if each.startswith("--")}
    valued = {name for name, after in pairwise([*more, "--"]) if name in names and not after.startswith("--")}
    kept, skip = [], False
    for each in arguments:
        if not skip and each not in names:
            kept.append(each)
        skip = not skip and each in valued
    return kept


def in_the_checkout(arguments: list[str]) -> list[str]:
    """The arguments, scripts of the checkout (SCRIPT.py or SCRIPT.py:KERNEL) with their whole path: commands run in
    another folder."""
    scripts = [each.partition(":")[0] for each in arguments]
    return [
        str(ROOT / each) if script.endswith(".py") and (ROOT / script).is_file() else each
        for each, script in zip(arguments, scripts, strict=True)
    ]


def all_commands() -> list[str]:
    """Every command of the docs that needs no learner's folder, once: of several that a test would run in the same
    words, the first."""
    lines = [line for page in PAGES for block in page_blocks(page) for line in runnable(block)]
    mine = [line for line in lines if not in_course(line) and line not in RUN_ELSEWHERE]
    return sorted({shortened(line): line for line in reversed(mine)}.values())


def course_pages() -> dict[Path, list[tuple[str, bool]]]:
    """Page -> its commands for a learner's folder, in order, each with whether it is run.

    Of commands that differ in nothing but the task, the first of each phase is run, of all pages together, and of the
    checkpoints the first: grading takes seconds, and the course's own tests do it with every task. Of the others the
    task has to exist.
    """
    found: dict[Path, list[tuple[str, bool]]] = {}
    seen = set()
    for page in PAGES:
        for line in [line for block in page_blocks(page) for line in runnable(block) if in_course(line)]:
            kind = TASK.sub(lambda match: f"phase {phase_of(match[0])}", re.sub(r"checkpoint \d+", "checkpoint", line))
            found.setdefault(page, []).append((line, kind not in seen))
            seen.add(kind)
    return found


def phase_of(task: str) -> int:
    """The phase that a task's week is in."""
    from groundup.course.manifest import course

    week = int(task.partition(".")[0])
    return next(phase.number for phase in course().phases for each in phase.weeks if each.number == week)


def run(words: tuple[str, ...], folder: Path) -> docs_runner.Ran:
    """Run a command's words in a folder; skip the test where the machine lacks what it needs."""
    environment = dict(os.environ)
    for word, package in NEEDS.items():
        if any(word in each for each in words) and importlib.util.find_spec(package) is None:
            pytest.skip(f"needs {package}, which is not installed")
    while words[0].startswith("GROUNDUP_"):
        name, _, value = words[0].partition("=")
        if name == "GROUNDUP_DATA":
            if name not in os.environ:
                pytest.skip("needs the full data sets: set GROUNDUP_DATA to their folder")
            value = str(Path(os.environ[name]).resolve())
        environment[name] = value
        words = words[1:]
    return docs_runner.in_a_process(docs_runner.command, folder, environment, words)


def test_the_docs_have_commands() -> None:
    assert {"groundup race", "groundup check", "groundup doctor"} <= set(all_commands())
    assert RUN_ELSEWHERE.keys() <= {line for page in PAGES for block in page_blocks(page) for line in runnable(block)}


@wide
@pytest.mark.parametrize("line", all_commands())
def test_command_of_the_docs_runs(line: str, tmp_path: Path) -> None:
    folder = tmp_path / "here"
    folder.mkdir()
    # It looks into what an earlier command of the page has trained, unless it draws an architecture.
    if found := re.match(r"groundup (?:(?:look|predict|export|serve) (?!--)|check (?:\d )?--int8 )(\S+)", line):
        model = " --model lenet5" if "lenet5" in found[1] else ""
        assert run(shortened(f"groundup train stage2{model} --run-dir {found[1]}"), folder).code == 0
    for name in re.findall(r"\S+\.png", line) if line.startswith("groundup predict") else ():
        Image.fromarray(np.full((40, 30), 255, np.uint8)).save(folder / name)
    ran = run(shortened(line), folder)
    assert ran.code == 0, ran.output


@wide
@pytest.mark.parametrize(
    ("page", "steps"), [pytest.param(*each, id=str(each[0].relative_to(ROOT))) for each in course_pages().items()]
)
def test_the_commands_of_a_page_run_in_a_fresh_learners_folder(
    page: Path, steps: list[tuple[str, bool]], tmp_path: Path
) -> None:
    """In the page's order. A page that does not start a folder finds one and stands in it."""
    from groundup.course.manifest import course

    for name in [name for line, _ in steps for name in TASK.findall(line)]:
        course().task(name)
    here = tmp_path / "here"
    here.mkdir()
    if not any(is_run for _, is_run in steps):
        return
    wanted = [line for line, is_run in steps if is_run or line.startswith(("cd ", "groundup learn start"))]
    if not any(line.startswith("groundup learn start") for line, _ in steps):
        assert run(("groundup", "learn", "start"), here).code == 0
        here = here / WORKSPACE
    for line in wanted:
        if line.startswith("cd "):
            here = here / line.removeprefix("cd ").strip()
            continue
        ran = run(shortened(line), here)
        allowed = {0}.union(*(codes for start, codes in EXITS.items() if line.startswith(start)))
        assert ran.code in allowed, f"{line} exits with {ran.code}\n{ran.output}"


COMPILED_ALWAYS = {"week09", "cuda"}
"""Of the pages with kernels, those whose programs `make test` runs; compiling kernels takes seconds a page."""


KERNELS = re.compile(r"@cuda\.jit|stage4_numba_cuda")
"""What the programs of a page with kernels hold: kernels of their own, or the project's."""


WITH_PROGRAMS = [
    pytest.param(
        page,
        id=str(page.relative_to(ROOT)),
        marks=wide if page.stem not in COMPILED_ALWAYS and any(KERNELS.search(b.text) for b, _ in found) else (),
    )
    for page in PAGES
    if (found := programs(page))
]
"""The pages with Python to run."""


@pytest.mark.parametrize("page", WITH_PROGRAMS)
def test_the_python_of_a_page_runs_and_prints_what_the_page_says(page: Path, tmp_path: Path) -> None:
    folder = tmp_path / "here"
    folder.mkdir()
    for name, source in GIVEN.get(page.relative_to(ROOT).as_posix(), {}).items():
        (folder / name).parent.mkdir(parents=True)
        (folder / name).write_bytes((ROOT / source).read_bytes())
    for line in BEFORE.get(page.relative_to(ROOT).as_posix(), ()):
        assert run(shortened(line), folder).code == 0
    steps = [(block.page, block.line, block.text, output and output.text) for block, output in programs(page)]
    ran = docs_runner.in_a_process(docs_runner.python_page, folder, dict(os.environ), steps)
    assert ran.code == 0, ran.output


# ---- links and names


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_inside_the_docs_lead_to_files(page: Path) -> None:
    text = re.sub(r"```.*?```|`[^`]*`|^    .*?$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    for target in re.findall(r"(?<!\\)\]\(([^)#]+)", text):  # outside code, where kernel[1, 32](x) is no link
        if not target.startswith(("http:", "https:")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}, which is not there"


def test_every_figure_is_drawn_by_a_script_and_stands_on_a_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """But for the lens's, which test_lens_page draws anew."""
    figures = ROOT / "docs" / "figures"
    monkeypatch.syspath_prepend(str(figures))
    drawn = {
        f"{name}.svg" for script in figures.glob("draw*.py") for name in importlib.import_module(script.stem).FIGURES
    }
    there = {path.name for path in figures.glob("*.svg") if not path.name.startswith("lens-")}
    assert drawn == there, "draw them: python docs/figures/draw.py, or the script beside it that has them"
    texts = [page.read_text(encoding="utf-8") for page in [*PAGES, *ROOT.glob("docs/notebooks/*.ipynb")]]
    for name in sorted(there):
        assert any(f"figures/{name})" in text for text in texts), f"no page shows docs/figures/{name}"
        svg = (figures / name).read_text(encoding="utf-8")
        assert "prefers-color-scheme:dark" in svg, f"docs/figures/{name} has no dark palette"
