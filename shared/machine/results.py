"""Results on disk: a folder that is known to take them before the work begins, and JSON that any reader can read.

NumPy is not imported: commands that work without it, such as those of the course, write JSON, too.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from shared.machine.atomic import new_file, why_not, write_atomically


def results_folder(path: Path) -> Path:
    """Make the folder and prove that files can be written there: better an error now than after minutes of work.

    Raises OSError naming the folder and the reason.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
        probe, file = new_file(path)
        file.close()
        probe.unlink()
    except OSError as error:
        raise OSError(
            f"cannot write results into {path}: {why_not(path / '-', error)}; choose another --out"
        ) from error
    return path


def as_json(document: Mapping[str, Any]) -> str:
    """The document as JSON text. JSON has no NaN and no infinity, so those become the strings "nan", "inf", "-inf"."""
    return json.dumps(_plain(document), indent=2, allow_nan=False, ensure_ascii=False) + "\n"


def as_json_line(document: Mapping[str, Any]) -> str:
    """The document as JSON on a single line, for a stream of objects. NaN and infinity become strings."""
    return json.dumps(_plain(document), allow_nan=False)


def write_json(path: Path, document: Mapping[str, Any]) -> Path:
    """Write `as_json(document)`, all of it or nothing; returns the path."""
    write_atomically(path, as_json(document).encode())
    return path


def _plain(value: object) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if hasattr(value, "tolist"):  # NumPy's arrays and scalars
        return _plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value
