"""A learner's folder from an earlier version: files move to their new places, imports are mended, nothing is lost."""

from pathlib import Path

import pytest

from groundup.cli import main
from groundup.course.learner.finding import locate
from groundup.course.learner.migration import PLACES, mended
from groundup.course.learner.project_files import stubbed
from groundup.course.learner.workspace import Workspace
from groundup.course.manifest import ROOT, course
from tests.groundup.course.course_helpers import mark_passed, new_folder, write

OLD, NEW = "shared/inside.py", "groundup/inside.py"
TASK = course().task("17.1")
OLD_IMPORT = "from shared.datasets import load_dataset\n"
NEW_IMPORT = "from shared.data.datasets import load_dataset\n"


@pytest.fixture
def learner(tmp_path: Path) -> Workspace:
    """A folder with an answer in it, in the state of a version whose inside.py lay in shared."""
    made = new_folder(tmp_path / "course")
    write(made, TASK, "    _check_classes", f"    {OLD_IMPORT}    _check_classes")
    mark_passed(made, TASK)
    (made.folder / NEW).rename(made.folder / OLD)
    return made


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("old", PLACES)
def test_the_table_leads_from_places_that_are_gone_to_places_that_exist(old: str) -> None:
    assert not list((ROOT / old).rglob("*.py"))
    assert not old.endswith(".py") or not (ROOT / old).is_file()
    assert (ROOT / PLACES[old]).exists()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("from shared.datasets import load_dataset\r\n", "from shared.data.datasets import load_dataset\r\n"),
        ("import shared.datasets as d, math", "import shared.data.datasets as d, math"),
        ("import shared.inside\nshared.inside.saliency()", "import groundup.inside\ngroundup.inside.saliency()"),
        ("from shared import inside  # mine", "from groundup import inside  # mine"),
        (
            "from shared import (\n    contract,  # one\n    inside,  # (two)\n)  # three\nx = 1",
            "from shared import contract  # one; (two); three\nfrom groundup import inside\nx = 1",
        ),
        ("from shared import inside, \\\n    live\n", "from groundup import inside\nfrom groundup import live\n"),
        ("from shared.training import (\r\n    train,\r\n)", "from shared.training.loop import (\r\n    train,\r\n)"),
        ("from shared import contract, live as l", "from shared import contract\nfrom groundup import live as l"),
        ("    from shared import training", "    from shared.training import loop as training"),
        ("from shared.training import train, evaluate", "from shared.training.loop import train, evaluate"),
        ("import shared.training\nshared.training.train", "import shared.training.loop\nshared.training.loop.train"),
        ("from stage4_numba_cuda.emulator.trace import x", "from cuda_emulator.trace import x"),
        ("from .emulator import cuda", "from cuda_emulator import cuda"),
        ("from . import emulator, launch", "from . import launch\nimport cuda_emulator as emulator"),
    ],
)
def test_import_lines_name_the_new_places(before: str, after: str) -> None:
    place = "stage4_numba_cuda/steps.py"
    assert mended(before, place, place) == after
    assert mended(after, place, place) == after, "mended once, it stays"


@pytest.mark.parametrize(
    "text",
    [
        "from shared.training import checkpoints",
        "from shared.training import (\n    checkpoints,  # train\n)",
        "from shared import (\n    contract,\n)",
        "from shared.contract import load_stage",
        "from . import activations, graphs",
        "from .buffers import Buffers  # from shared.datasets import nothing",
        "tile = cuda.shared.array((16, 16), float32)\nprint('from shared.datasets import x')",
    ],
)
def test_all_other_lines_stay(text: str) -> None:
    assert mended(text, "stage4_numba_cuda/steps.py", "stage4_numba_cuda/steps.py") == text


def test_an_attribute_gets_its_new_name_in_the_file_that_uses_it() -> None:
    before, after = "self.optimizer.kept.steps += steps\n", "self.optimizer._state.steps += steps\n"
    assert mended(before, "stage4_numba_cuda/steps.py", "stage4_numba_cuda/steps.py") == after
    assert mended(before, "stage2_numpy/network.py", "stage2_numpy/network.py") == before


def test_a_relative_import_still_means_the_same_module_in_another_folder() -> None:
    before = "from .datasets import a\nfrom .contract import b\nfrom . import inside, contract\n"
    after = (
        "from shared.data.datasets import a\nfrom shared.contract import b\n"
        "from shared import contract\nfrom groundup import inside\n"
    )
    assert mended(before, "shared/live.py", "groundup/live.py") == after


def test_a_file_moves_with_its_answer_and_its_pass(learner: Workspace, capsys: pytest.CaptureFixture[str]) -> None:
    before = (learner.folder / OLD).read_text(encoding="utf-8")
    opened = locate(learner.folder, course())
    assert opened.text(NEW) == before.replace(OLD_IMPORT, NEW_IMPORT)
    assert opened.passed(TASK)
    assert not (learner.folder / OLD).exists()
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert f"{OLD} is {NEW} now" in said
    (kept,) = (learner.folder / ".groundup" / "old").rglob("inside.py")
    assert kept.read_text(encoding="utf-8") == before


def test_opening_it_again_changes_nothing_and_says_nothing(
    learner: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    locate(learner.folder, course())
    before = contents(learner.folder)
    capsys.readouterr()
    assert locate(learner.folder, course()).passed(TASK)
    assert contents(learner.folder) == before
    assert capsys.readouterr().err == ""


def test_a_new_folder_has_nothing_to_move(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    new_folder(tmp_path / "course")
    assert capsys.readouterr().err == ""
    assert not (tmp_path / "course" / ".groundup").exists()


def test_imports_of_a_file_that_has_not_moved_are_mended_too(
    learner: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    file = "stage2_numpy/activations.py"
    path = learner.folder / file
    text = path.read_text(encoding="utf-8")
    path.write_text(OLD_IMPORT + text, encoding="utf-8")
    assert locate(learner.folder, course()).text(file) == NEW_IMPORT + text
    assert f"mended in {file};" in capsys.readouterr().err


def test_start_moves_what_is_there_and_adds_what_is_missing(
    learner: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    for path in list(learner.folder.rglob("*.[pc]*")):
        if path.relative_to(learner.folder).as_posix() not in (OLD, "progress.toml") and path.is_file():
            path.unlink()
    (learner.folder / "progress.toml").unlink()
    with pytest.raises(SystemExit):
        main(["learn", "start", str(learner.folder)])
    assert NEW_IMPORT in (learner.folder / NEW).read_text(encoding="utf-8")
    assert (learner.folder / "stage3_c" / "csrc" / "dense.c").is_file()
    assert f"{OLD} is {NEW} now" in capsys.readouterr().err


def test_a_stub_that_waits_at_the_new_place_gives_way(learner: Workspace) -> None:
    (learner.folder / NEW).write_text(stubbed(NEW, course()), encoding="utf-8")
    assert locate(learner.folder, course()).passed(TASK)
    assert len(list((learner.folder / ".groundup" / "old").rglob("inside.py"))) == 2


def test_an_answer_at_the_new_place_stays_and_the_old_file_is_kept(
    learner: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = (learner.folder / OLD).read_bytes()
    answer = (ROOT / NEW).read_bytes()
    (learner.folder / NEW).write_bytes(answer)
    locate(learner.folder, course())
    assert (learner.folder / NEW).read_bytes() == answer
    (kept,) = (learner.folder / ".groundup" / "old").rglob("inside.py")
    assert kept.read_bytes() == mine
    assert f"{OLD} went to {kept}, because there is a {NEW}, too" in capsys.readouterr().err


@pytest.mark.parametrize("content", [b"\xff\xfe no text", b"def (:\n    from shared.datasets import x\n", b""])
def test_a_file_that_is_no_program_moves_all_the_same(learner: Workspace, content: bytes) -> None:
    (learner.folder / OLD).write_bytes(content)
    locate(learner.folder, course())
    assert (learner.folder / NEW).read_bytes() == content.replace(b"shared.datasets", b"shared.data.datasets")
    assert not (learner.folder / OLD).exists()


def test_a_file_that_is_too_long_is_neither_read_nor_copied(learner: Workspace) -> None:
    with (learner.folder / OLD).open("wb") as file:
        file.truncate(5_000_000)
    with pytest.raises(ValueError, match=f"{OLD}: 5,000,000 bytes, more than the 4,000,000 that are read"):
        locate(learner.folder, course())
    assert list((learner.folder / ".groundup").rglob("inside.py")) == []


def test_what_is_in_the_way_is_named_and_nothing_is_lost(
    learner: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    for path in (learner.folder / "groundup").iterdir():
        path.unlink()
    (learner.folder / "groundup").rmdir()
    (learner.folder / "groundup").write_text("a note of mine", encoding="utf-8")
    before = (learner.folder / OLD).read_bytes()
    with pytest.raises(SystemExit) as ended:
        main(["learn", "--folder", str(learner.folder), "status"])
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert said.startswith("error: ")
    assert f"its {OLD} could not be made today's {NEW}" in said
    assert (learner.folder / OLD).read_bytes() == before
    assert (learner.folder / "groundup").read_text(encoding="utf-8") == "a note of mine"
