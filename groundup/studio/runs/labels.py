"""The name and the note that a reader gives to a run: label.json in the run's folder.

read_label    {"title": …, "note": …}, both "" where there is none
write_label   the other way
"""

from __future__ import annotations

import json
from pathlib import Path

from groundup.studio.answers import Refused
from groundup.studio.runs.folders import RunFolder
from shared.machine import regular, strict_json
from shared.machine.atomic import write_atomically

LABEL = "label.json"
LONGEST = {"title": 80, "note": 2000}


def read_label(run: RunFolder) -> dict[str, str]:
    """Raises OSError or ValueError for a file that is no label."""
    path = run.file(LABEL)
    saved = strict_json.loads(regular.read(path, 20_000)) if path is not None else {}
    if not isinstance(saved, dict):
        raise ValueError(f"{LABEL} should be a JSON object, and is {type(saved).__name__}")
    return {name: str(saved.get(name, ""))[:most] for name, most in LONGEST.items()}


def write_label(run: RunFolder, title: object, note: object) -> None:
    """Replaces the label. Raises Refused for what is no text or too long, OSError where the folder takes no file."""
    texts = {"title": title, "note": note}
    for name, text in texts.items():
        if not isinstance(text, str) or len(text) > LONGEST[name]:
            raise Refused(f"{name}: expected a text of at most {LONGEST[name]} characters")
    path = run.path / LABEL
    if Path(path).is_symlink():
        raise Refused(f"{LABEL} is a link, which the studio does not write through")
    write_atomically(path, json.dumps(texts, indent=1).encode())
