"""Code in a fresh process: for what can only be measured once in a process's life, like an import or its memory.

The process has its threads settled and finds the package that runs now, wherever either was started from. It is asked
with a line of JSON on its standard input, and its last line of standard output is its answer.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from shared.bench.threads import variables as with_threads

PATIENCE = 180.0
"""Seconds: stage 4's kernels are compiled in far fewer."""


def ask(
    code: str,
    request: object = None,
    *,
    threads: int,
    variables: Mapping[str, str] | None = None,
    patience: float = PATIENCE,
) -> Any:
    """Run the code in a new Python, which reads the request from its standard input; returns its answer.

    variables: environment variables beside this process's own.
    Raises ChildProcessError where it fails, with the last line that it wrote to standard error, where its answer is no
    JSON, and where it takes longer than `patience` seconds.
    """
    environment = with_threads(threads) | dict(variables or {})
    folders = [str(Path(__file__).resolve().parents[2]), environment.get("PYTHONPATH", "")]
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, folders))
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-c", code],
            input=json.dumps(request),
            env=environment,
            capture_output=True,
            text=True,
            encoding="utf-8",
            errors="replace",
            timeout=patience,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise ChildProcessError(f"its process took longer than {patience:g} s") from error
    if done.returncode:
        said = done.stderr.strip().splitlines() or ["it said nothing"]
        raise ChildProcessError(f"its process ended with exit code {done.returncode}: {said[-1]}")
    try:
        return json.loads(done.stdout.strip().splitlines()[-1])
    except (IndexError, ValueError) as error:
        raise ChildProcessError(f"its process answered {done.stdout[-80:]!r}; expected a line of JSON") from error
