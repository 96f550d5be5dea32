"""Code in a fresh process: for what can only be measured once in a process's life, like an import or its memory.

The process has its threads settled and finds the package that runs now, wherever either was started from. It is asked
with a line of JSON on its standard input, and its last line of standard output is its answer.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

from shared.bench.threads import variables as with_threads
from shared.machine import processes

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
    environment = processes.finding_our_packages(with_threads(threads) | dict(variables or {}))
    command = [sys.executable, "-P", "-c", code]
    done = processes.run(command, patience, variables=environment, text=json.dumps(request))
    if done.code is None:
        raise ChildProcessError(f"its process took longer than {patience:g} s")
    if done.code:
        said = done.last_error or "it said nothing"
        raise ChildProcessError(f"its process ended with exit code {done.code}: {said}")
    try:
        return json.loads(done.output.strip().splitlines()[-1])
    except (IndexError, ValueError) as error:
        raise ChildProcessError(f"its process answered {done.output[-80:]!r}; expected a line of JSON") from error
