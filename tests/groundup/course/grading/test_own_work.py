"""An answer that leaves the work to another function is refused, also where a helper, a macro or an alias hides it."""

from pathlib import Path

import pytest

from groundup.course.grading.own_work import MAY_CALL, declared_functions
from groundup.course.judging.judge import judge
from groundup.course.judging.verdict import Verdict
from groundup.course.learner.functions import replaced
from groundup.course.learner.project_files import solution
from groundup.course.learner.workspace import Workspace
from groundup.course.manifest import course
from tests.groundup.course.course_helpers import new_folder
from tests.stages import REASONS
from tests.wide import wide, widely

PRODUCT = "(size_t m, size_t k, size_t n, const real *a, const real *b, real *c)"

CALLS = "    {0}(m, k, n, a, b, c);\n"

needs_c = pytest.mark.skipif(bool(REASONS.get("stage3_c")), reason=REASONS.get("stage3_c") or "stage 3 can be built")


@pytest.fixture
def learner(tmp_path: Path) -> Workspace:
    return new_folder(tmp_path / "learner")


def verdict(learner: Workspace, task_id: str, function: str, before: str = "", after: str = "") -> Verdict:
    """The verdict on a function, with text of the learner's own before and after it in the file."""
    task = course().task(task_id)
    path = learner.folder / task.file
    path.write_text(
        replaced(path.read_text(encoding="utf-8"), learner.place(task), f"{before}{function}") + after, encoding="utf-8"
    )
    return judge(learner, task)


def calling(name: str) -> str:
    """matmul_ijk that calls another function with its own arguments."""
    text = solution(course().task("6.4"))
    return text[: text.index("{") + 1] + "\n" + CALLS.format(name) + "}\n"


@needs_c
@pytest.mark.parametrize(
    ("before", "called", "within"),
    widely(
        [
            (f"static void mine{PRODUCT} {{ NAME(matmul_ikj)(m, k, n, a, b, c); }}\n", "mine", ", in mine"),
            ("#define OTHER NAME(matmul_ikj)\n", "OTHER", ", in OTHER"),
        ]
    ),
)
def test_a_call_hidden_in_the_learners_own_helper_is_found(
    learner: Workspace, before: str, called: str, within: str
) -> None:
    found = verdict(learner, "6.4", calling(called), before)
    assert not found.passed
    assert found.failed_check == "way"
    assert found.what == f"matmul_ijk calls matmul_ikj{within}"
    assert (
        found.cause == "matmul_ikj is another function of the project, and does the work of this one: write it yourself"
    )


@needs_c
def test_a_name_in_a_comment_is_no_call(learner: Workspace) -> None:
    text = solution(course().task("6.4"))
    assert verdict(learner, "6.4", text.replace("{", "{ /* not NAME(matmul_ikj) */", 1)).passed


@pytest.mark.parametrize(
    ("task", "new", "after", "says"),
    widely(
        [
            ("1.1", "return mine(a, b)", "def mine(a, b):\n    return np.matmul(a, b).tolist()\n", "mine uses numpy"),
            ("1.1", "return mine(a, b)", "def mine(a, b):\n    return zip_rows_columns(a, b)\n", "mine uses zip_rows"),
            ("1.1", "return product(a, b)", "product = multiply_in_c\n", "index_loops uses multiply_in_c"),
            ("1.1", "return globals()['multiply_in_c'](a, b)", "", "index_loops uses globals"),
        ]
    ),
)
def test_a_helper_an_alias_or_a_look_up_hides_nothing_in_python(
    learner: Workspace, task: str, new: str, after: str, says: str
) -> None:
    text = solution(course().task(task))
    function = text[: text.index("    c = ")] + f"    {new}\n"
    found = verdict(learner, task, function, after=f"\n\nimport numpy as np\n\n\n{after}")
    assert not found.passed
    assert found.failed_check == "way"
    assert says in found.what
    assert found.line > 0


def test_what_may_be_called_is_declared_in_the_header() -> None:
    declared = declared_functions()
    assert {"matmul_ikj", "relu_backward", "network_step"} <= declared
    assert frozenset().union(*MAY_CALL.values()) <= declared


@wide
@pytest.mark.parametrize(
    ("task", "before", "old", "new"),
    widely(
        [
            ("9.2", "from numba import int32\n\n\n", "i = cuda.grid(1)", "i = int32(cuda.grid(1))"),
            ("9.4", "", "total", "forward"),
        ]
    ),
)
def test_a_kernel_may_take_numbas_types_and_name_a_variable_like_another_kernel(
    learner: Workspace, task: str, before: str, old: str, new: str
) -> None:
    text = solution(course().task(task))
    assert old in text
    assert verdict(learner, task, text.replace(old, new), before).passed


@needs_c
@wide
def test_a_variable_named_like_a_function_of_the_header_is_no_call(learner: Workspace) -> None:
    text = solution(course().task("6.5"))
    assert "peak" in declared_functions()
    biggest = "#define BIGGER(x, y) ((x) > (y) ? (x) : (y))\n\n"
    answer = text.replace("z[j] > largest ? z[j] : largest", "BIGGER(z[j], largest)").replace("largest", "peak")
    assert verdict(learner, "6.5", answer, biggest).passed
