"""Somebody else's package under the name of one of ours, such as a folder `shared` beside a script.

Python imports the first package of a name that it finds, and looks first where the script lies, or in the folder that
one stands in (`python -m`), then in those of PYTHONPATH. Our packages would then import modules that are not there. So
`groundup` looks before it imports anything. Only the standard library is imported here.
"""

from __future__ import annotations

import os
import sys
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
"""The folder that holds our packages: a checkout, or an environment's site-packages."""

NAMES = ("shared", "cuda_emulator", "stage1_pure_python", "stage2_numpy", "stage3_c", "stage4_numba_cuda")
"""Our packages beside this one."""


def leave_working_folder() -> None:
    """Import nothing more from the folder that one stands in, which `python -m` puts first: its files may be a
    stranger's."""
    try:
        here = os.getcwd()
    except OSError:  # the folder was deleted: nothing can be imported from it
        return
    if not sys.flags.safe_path and sys.path[:1] in ([""], [here]) and Path(here).resolve() != ROOT:
        del sys.path[0]


def put_first() -> None:
    """Let Python find our packages before all others of their names: for the doctor, who tells of the others."""
    if hidden():
        sys.path.insert(0, str(ROOT))


def hidden() -> str:
    """A sentence about a package that Python imports in place of one of ours; "" where there is none."""
    for name in NAMES:
        place = _place(find_spec(name))
        if place is not None and not _is_ours(place, name):
            return (
                f"{place} is not groundup's, and Python imports it in place of groundup's package {name}. Rename it, "
                "or take the folder that holds it from PYTHONPATH, or start in another folder"
            )
    return ""


def namesakes() -> list[str]:
    """Every package of somebody else that has the name of one of ours, in the folder that one stands in or where Python
    looks."""
    try:
        folders = [os.getcwd(), *sys.path]
    except OSError:
        folders = sys.path
    elsewhere = [folder for folder in folders if folder and Path(folder).resolve() != ROOT]
    places = {name: _place(PathFinder.find_spec(name, elsewhere)) for name in NAMES}
    return [str(place) for name, place in places.items() if place is not None and not _is_ours(place, name)]


def holds(folder: Path, name: str) -> bool:
    """Whether a folder other than ours has a module or package of this name that is one of ours."""
    package = name.partition(".")[0]
    return package in NAMES and folder.resolve() != ROOT and PathFinder.find_spec(package, [str(folder)]) is not None


def _place(spec: ModuleSpec | None) -> Path | None:
    """The folder of a package, or the file of a module."""
    if spec is None:
        return None
    folders = list(spec.submodule_search_locations or ())
    return Path(folders[0] if folders else str(spec.origin))


def _is_ours(place: Path, name: str) -> bool:
    return place.resolve() == ROOT / name
