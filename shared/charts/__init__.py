"""The figures, in one house style, and what puts them together.

    drawing    colours, sizes, axes, words and files: what every figure is made with
    figures    one file for each figure
    book       all of them, in reading order
    report     one HTML file of figures, tables and environment

A figure is a function from `Results` to a `Chart`, or to None where too little was measured for it.
"""

import contextlib
import importlib
import os
import sys
from pathlib import Path


def _import_matplotlib() -> None:
    """Import matplotlib without the settings of this user and of the folder that one stands in.

    Our figures start from its defaults (drawing/style.py). A backend that is not installed, which a notebook's terminal
    names in MPLBACKEND, or a matplotlibrc that is no text would end the import, and with it a race after minutes.
    """
    names = {"MATPLOTLIBRC": os.devnull, "MPLBACKEND": None}
    before = {name: os.environ.get(name) for name in names}
    here = os.path.lexists("matplotlibrc")  # this one comes before the variable's
    try:
        _set(names)
        with contextlib.chdir(Path(__file__).parent) if here else contextlib.nullcontext():
            matplotlib = importlib.import_module("matplotlib")
    finally:
        _set(before)
    if before["MPLBACKEND"]:
        with contextlib.suppress(ValueError):  # one that matplotlib does not know
            matplotlib.rcParams["backend"] = before["MPLBACKEND"]


def _set(variables: dict[str, str | None]) -> None:
    for name, value in variables.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


if "matplotlib" not in sys.modules:
    _import_matplotlib()
