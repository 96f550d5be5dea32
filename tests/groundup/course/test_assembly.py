"""The learner's copies inside the real stage, also where they are of an earlier version."""

from pathlib import Path

from groundup.course.assembly import C_FOLDER, assemble
from groundup.course.learner.workspace import Workspace
from groundup.course.manifest import ROOT, course
from tests.groundup.course.course_helpers import new_folder

TASK = course().task("6.2")

ADD = "\nvoid NAME(add)(size_t size, const real *a, const real *b, real *sum) {"


def c_files(learner: Workspace, folder: Path) -> set[str]:
    assembled = assemble(learner, [TASK], folder)
    return {path.name for path in Path(assembled.csrc).iterdir()}


def test_the_folder_of_c_has_what_is_needed_today_and_nothing_of_an_earlier_grading(tmp_path: Path) -> None:
    learner, folder = new_folder(tmp_path / "learner"), tmp_path / "check"
    projects = {path.name for path in (ROOT / C_FOLDER).glob("*.[ch]")}
    assert c_files(learner, folder) == projects
    copy = learner.folder / TASK.file
    today = copy.read_text(encoding="utf-8")
    assert ADD in today
    copy.write_text(today[: today.index(ADD)] + "\n", encoding="utf-8")
    assert c_files(learner, folder) == {*projects, "dense_rest.c"}
    copy.write_text(today, encoding="utf-8")
    (folder / C_FOLDER / "gone.c").write_text("int gone;\n")
    assert c_files(learner, folder) == projects
