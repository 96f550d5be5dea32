"""Makes a learner's folder, finds the one that is there, opens it, and repairs one without a readable progress.toml."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from groundup.course.learner import record as record_file
from groundup.course.learner.migration import migration_notice
from groundup.course.learner.project_files import CASES, files, program, stubbed
from groundup.course.learner.record import LearnersRecord
from groundup.course.learner.workspace import BUILT, Workspace
from groundup.course.manifest import Course
from shared.machine import regular
from shared.machine.atomic import write_atomically

DEFAULT = "groundup-course"

VARIABLE = "GROUNDUP_COURSE"

ELSEWHERE = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE")
"""Variables that make git work on another repository than the one of its folder."""


README = """\
# Your copy of groundup

You write every part of the network yourself, inside the project's own files. Each exercise is a function whose body is
missing; its docstring says what it has to do.

    groundup learn           where you are, and what is next
    groundup learn check     grade the current task
    groundup learn hint      an idea; ask again for a plan, and again for nearly the code

`groundup learn --help` lists the rest: watch, debug, solution, next, skip, reset, status, checkpoint, cases. What you
have done stands in progress.toml. The folder detective has programs with a fault in each, which you find and mend:
`groundup learn cases` lists them. The folder .groundup holds what is built from your files, and copies of what was
reset.

Start Python itself in another folder: in this one it would find your files before groundup's own.
"""


def start(folder: Path, course: Course) -> tuple[Workspace, list[str]]:
    """Make the folder, or write the files that are missing in an existing one.

    Returns the folder, opened, and the files that were missing. The detective exercises of a folder that never had any
    are written, too, and were not missing. Raises ValueError if the folder holds other things.
    """
    folder = folder.absolute()
    state = folder / record_file.NAME
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file; name a folder that is not there yet")
    if is_checkout(folder):
        raise ValueError(f"{folder} is the project itself; name a folder that is empty or not there yet")
    ours = state.is_file() or has_learners_files(folder, course)
    if folder.is_dir() and any(folder.iterdir()) and not ours:
        raise ValueError(f"{folder} has other things in it; name a folder that is empty or not there yet")
    folder.mkdir(parents=True, exist_ok=True)
    if not state.exists():
        record_file.save(LearnersRecord(course.tasks[0].id), state)
    workspace = opened(folder, course)
    had_cases = (folder / CASES).exists()
    texts = {file: stubbed(file, course) for file in files(course) if not (folder / file).exists()}
    texts |= {case.file: program(case) for case in course.cases if not (folder / case.file).exists()}
    for file, text in texts.items():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        write_atomically(folder / file, text.encode())
    written = [file for file in texts if had_cases or not file.startswith(f"{CASES}/")]
    for name, text in (("README.md", README), (".gitignore", f"/{BUILT}/\n/debug/\n/runs/\n__pycache__/\n")):
        if not (folder / name).exists():
            write_atomically(folder / name, text.encode())
    return workspace, written


def opened(folder: Path, course: Course) -> Workspace:
    """Open a learner's folder. Of one from an earlier version, standard error says which tasks ask anew."""
    workspace = Workspace(folder.absolute(), course, record_file.load(folder / record_file.NAME))
    if message := migration_notice(workspace.folder, course):
        print(message, file=sys.stderr)
    return workspace


def repair(folder: Path, course: Course) -> str:
    """Put an empty progress.toml in the place of one that is missing or cannot be read, if the folder is a learner's.

    Returns what was wrong, as a message, with the copy that was kept; "" if nothing was wrong, or the folder is new.
    What has passed is not known afterwards: passing.grade_again finds out.
    Raises ValueError if progress.toml is a folder.
    """
    folder = folder.absolute()
    state = folder / record_file.NAME
    if not has_learners_files(folder, course) or is_checkout(folder):
        return ""
    sentence = f"{state} was missing and is there again"
    if state.exists():
        try:
            record_file.load(state)
            return ""
        except ValueError as error:
            if not state.is_file():
                raise
            kept = Workspace(folder, course, LearnersRecord("")).keep(state)
            sentence = f"{str(error).partition('. ')[0]}; it was made anew, and the old one is {kept}"
    record_file.save(LearnersRecord(course.tasks[0].id), state)
    return sentence


def has_learners_files(folder: Path, course: Course) -> bool:
    """Whether a folder holds a file of the course."""
    return any((folder / file).is_file() for file in files(course))


def is_checkout(folder: Path) -> bool:
    """Whether a folder is the project itself, which has all files of the course, too: a clone, or site-packages."""
    return (folder / "shared" / "contract.py").is_file()


def commit_first(folder: Path) -> str:
    """Make a new folder a git repository of its own with a first commit, if git is installed.

    So it is in a clone of the project, too, which ignores the folder. Returns a message for the learner, "" if nothing
    was done.
    """
    git = shutil.which("git")
    if git is None or (folder / ".git").exists():
        return ""
    # A hook of another repository sets variables that lead git there.
    variables = {name: value for name, value in os.environ.items() if name not in ELSEWHERE}
    # Without a name git makes no commit, and a learner who has never used git has not set one.
    asked = subprocess.run([git, "config", "user.email"], cwd=folder, capture_output=True, env=variables)
    name = [] if asked.returncode == 0 else ["-c", "user.name=groundup learn", "-c", "user.email=learn@localhost"]
    unsigned = ["-c", "commit.gpgsign=false"]  # a signature may ask for a password
    for command in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "--message", "The stubs, as they come"]):
        call = [git, *name, *unsigned, *command]
        done = subprocess.run(call, cwd=folder, capture_output=True, text=True, env=variables)
        if done.returncode != 0:
            return f"git {command[0]} did not work, which is no harm: {done.stderr.strip()}"
    return "under git, with a first commit"


def locate(requested: Path | None, course: Course, here: Path | None = None) -> Workspace:
    """Find and open the learner's folder. here: the folder to start from, None for the one that the process is in

    Tried in this order: the folder given, GROUNDUP_COURSE, this folder and those above it, groundup-course in this
    folder. Raises ValueError, with the command that helps, if none of them is a learner's folder, or the one that is
    lacks its progress.toml.
    """
    chosen = requested or _of_variable()
    folder = chosen or _nearest(course, here)
    if folder is None:
        raise ValueError("there is no course folder here; groundup learn start makes one")
    if (folder / record_file.NAME).exists():
        return opened(folder, course)
    start_it = f"groundup learn start {shlex.quote(str(folder))}" if requested else "groundup learn start"
    if has_learners_files(folder, course) and not is_checkout(folder):
        again = f"{start_it} makes it again, and grades what you have written"
        raise ValueError(f"{folder} has your files, but no {record_file.NAME}; {again}")
    raise ValueError(f"{folder} has no {record_file.NAME}; {start_it} makes one")


def folder_for_start(course: Course) -> Path:
    """The folder that other commands would find; if they find none, the one that `groundup learn start` makes."""
    return _of_variable() or _nearest(course) or Path(DEFAULT)


def around(folder: Path, course: Course) -> Path | None:
    """The learner's folder that a folder lies in; None if it lies in none."""
    return next((each for each in folder.absolute().parents if _is_learners(each, course)), None)


def _of_variable() -> Path | None:
    return Path(os.environ[VARIABLE]) if os.environ.get(VARIABLE) else None


def _nearest(course: Course, here: Path | None = None) -> Path | None:
    """The learner's folder among this folder, those above it, and groundup-course in this folder."""
    now = here or Path.cwd()
    return next((each for each in (now, *now.parents, now / DEFAULT) if _is_learners(each, course)), None)


def _is_learners(folder: Path, course: Course) -> bool:
    """Whether it is a learner's folder. Another program's progress.toml does not make it one."""
    if has_learners_files(folder, course):
        return not is_checkout(folder)
    state = folder / record_file.NAME
    if not state.is_file():
        return False
    with regular.opened(state) as file:  # it may be another program's, of any length
        return b"groundup" in file.read(record_file.MOST_BYTES)
