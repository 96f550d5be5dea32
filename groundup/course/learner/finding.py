"""Makes a learner's folder, finds the one that is there, and opens it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from groundup.course.learner import record as record_file
from groundup.course.learner.migration import PLACES, migrate
from groundup.course.learner.project_files import files, stubbed
from groundup.course.learner.record import LearnersRecord
from groundup.course.learner.workspace import BUILT, Workspace
from groundup.course.manifest import Course
from shared.machine.atomic import write_atomically

DEFAULT = "groundup-course"

VARIABLE = "GROUNDUP_COURSE"


README = """\
# Your copy of groundup

You write every part of the network yourself, inside the project's own files. Each exercise is a function whose body is
missing; its docstring says what it has to do.

    groundup learn           where you are, and what is next
    groundup learn check     grade the current task
    groundup learn hint      a nudge; ask again for a plan, and again for nearly the code

`groundup learn --help` lists the rest: watch, solution, next, skip, reset, status, checkpoint. What you have done
stands in progress.toml. The folder .groundup holds what is built from your files, and copies of what was reset.

Start Python itself in another folder: in this one it would find your files before groundup's own.
"""


def start(folder: Path, course: Course) -> tuple[Workspace, list[str]]:
    """Make the folder, or write the files that are missing in an existing one.

    Returns the folder, opened, and the files that were written. Raises ValueError if the folder holds other things.
    """
    folder = folder.absolute()
    state = folder / record_file.NAME
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file; name a folder that is not there yet")
    ours = state.is_file() or any((folder / file).is_file() for file in [*files(course), *PLACES])
    if folder.is_dir() and any(folder.iterdir()) and not ours:
        raise ValueError(f"{folder} has other things in it; name a folder that is empty or not there yet")
    folder.mkdir(parents=True, exist_ok=True)
    if not state.exists():
        record_file.save(LearnersRecord(course.tasks[0].id), state)
    workspace = opened(folder, course)
    written = []
    for file in files(course):
        path = folder / file
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, stubbed(file, course).encode())
            written.append(file)
    for name, text in (("README.md", README), (".gitignore", f"/{BUILT}/\n/runs/\n__pycache__/\n")):
        if not (folder / name).exists():
            write_atomically(folder / name, text.encode())
    return workspace, written


def opened(folder: Path, course: Course) -> Workspace:
    """Open a learner's folder.

    A folder of an earlier version is migrated first; standard error says which files were moved.
    """
    workspace = Workspace(folder.absolute(), course, record_file.load(folder / record_file.NAME))
    told = migrate(workspace.folder, course, workspace.record, workspace.keep)
    if told:
        workspace.save()
        print(told, file=sys.stderr)
    return workspace


def commit_first(folder: Path) -> str:
    """Make a new folder a git repository with a first commit, if git is installed and no repository is around it.

    Returns a message for the learner, "" if nothing was done.
    """
    git = shutil.which("git")
    if git is None:
        return ""
    inside = subprocess.run([git, "-C", str(folder), "rev-parse", "--is-inside-work-tree"], capture_output=True)
    if inside.returncode == 0:
        return ""
    # Without a name git makes no commit, and a learner who has never used git has not set one.
    has_name = subprocess.run([git, "config", "user.email"], cwd=folder, capture_output=True).returncode == 0
    name = [] if has_name else ["-c", "user.name=groundup learn", "-c", "user.email=learn@localhost"]
    for command in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "--message", "The stubs, as they come"]):
        done = subprocess.run([git, *name, *command], cwd=folder, capture_output=True, text=True)
        if done.returncode != 0:
            return f"git {command[0]} did not work, which is no harm: {done.stderr.strip()}"
    return "under git, with a first commit"


def locate(given: Path | None, course: Course) -> Workspace:
    """Find and open the learner's folder.

    Tried in this order: the folder given, GROUNDUP_COURSE, this folder and those above it, groundup-course in this
    folder. Raises ValueError, with the command that makes one, if none of them is a learner's folder.
    """
    chosen = given or (Path(os.environ[VARIABLE]) if os.environ.get(VARIABLE) else None)
    if chosen is not None:
        candidates = [chosen]
    else:
        here = Path.cwd()
        candidates = [here, *here.parents, here / DEFAULT]
    for folder in candidates:
        state = folder / record_file.NAME
        if state.is_file():
            return opened(folder, course)
    looked = f"{chosen} has no {record_file.NAME}" if chosen else "there is no course folder here"
    raise ValueError(f"{looked}; groundup learn start makes one")


def folder_for_start(course: Course) -> Path:
    """The folder that other commands would find; if they find none, the one that `groundup learn start` makes."""
    try:
        return locate(None, course).folder
    except ValueError:
        return Path(os.environ.get(VARIABLE) or DEFAULT)
