"""A learner who has a GPU gets the verdicts of one who has none, and from a page's programs what the page says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.stage4_numba_cuda.machine.needed import needs_numba_cuda
from tests.stage4_numba_cuda.machine.process import ROOT, run
from tests.wide import widely

pytestmark = needs_numba_cuda

GRADE = """
import json, sys
from pathlib import Path
from groundup.course.judging.judge import judge
from groundup.course.manifest import course
from stage4_numba_cuda.backend import BACKEND
from tests.groundup.course.course_helpers import new_folder, write

learner, task = new_folder(Path(sys.argv[1])), course().task("9.1")
write(learner, task, "i < a.size", sys.argv[2])
verdict = judge(learner, task)
print(json.dumps([BACKEND.name, verdict.passed, verdict.failed_check, f"{verdict.what} {verdict.cause}"]))
"""


@pytest.mark.parametrize(
    ("guard", "passes", "check", "words"),
    [("i <= a.size", False, "shape", "one too many"), ("i < len(a)", True, "", "")],
)
def test_an_exercise_is_graded_on_the_emulator_though_there_is_a_gpu(
    guard: str, passes: bool, check: str, words: str, tmp_path: Path
) -> None:
    """One index too many is an error on the emulator; on a GPU it would often pass unseen."""
    done = run(["-c", GRADE, str(tmp_path / "course"), guard], tmp_path, GROUNDUP_CUDA="")
    assert done.returncode == 0, done.stderr
    backend, *verdict, said = json.loads(done.stdout.splitlines()[-1])
    assert (backend, verdict) == ("gpu", [passes, check])
    assert words in said
    assert not any("cuLaunchKernelEx" in log.read_text() for log in tmp_path.glob("log.txt"))


PAGE = """
import sys
from tests.docs import docs_runner
from tests.docs.test_docs import ROOT, programs

blocks = programs(ROOT / "docs" / "weeks" / sys.argv[1])
docs_runner.python_page([(block.page, block.line, block.text, output and output.text) for block, output in blocks])
"""


@pytest.mark.parametrize("week", widely([f"week{week:02}.md" for week in (10, 9, *range(11, 19))]))
def test_the_programs_of_a_week_do_what_the_page_says_where_there_is_a_gpu(week: str, tmp_path: Path) -> None:
    asks = "start Python with `GROUNDUP_CUDA=emulator`" in (ROOT / "docs" / "weeks" / week).read_text()
    (tmp_path / "page.py").write_text(PAGE)
    done = run([str(tmp_path / "page.py"), week], tmp_path, GROUNDUP_CUDA="emulator" if asks else "")
    assert done.returncode == 0, done.stderr
