"""Code in a fresh process: for what can only be measured once in a process's life, like an import or its memory.

The process has its threads settled and finds the package that runs now, wherever either was started from. It is asked
with a line of JSON on its standard input.

    ask         waits for its answer, its last line of standard output
    messages    gives each line of its standard output as it comes, and holds the process to as many cores as threads
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping
from typing import Any

from shared.bench.measuring.threads import cores_to_hold, holding
from shared.bench.measuring.threads import variables as with_threads
from shared.machine import processes
from shared.machine.results import as_json_line

PATIENCE = 180.0
"""Seconds: stage 4's kernels are compiled in far fewer."""

UNTIL_ENDED = 5.0
"""Seconds that a process has to end when its messages are no longer wanted."""


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
    command = processes.python("-c", code)
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


def messages(code: str, request: Mapping[str, Any], *, threads: int) -> Iterator[dict[str, Any]]:
    """Run the code in a new Python, which reads the request from its standard input; gives each object that it writes.

    Raises ChildProcessError where it fails. It is ended where the caller stops listening.
    """
    child = processes.start(
        processes.python("-c", holding(cores_to_hold(threads)) + code),
        variables=processes.finding_our_packages(with_threads(threads)),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        encoding="utf-8",
    )
    assert child.stdin
    assert child.stdout
    try:
        child.stdin.write(as_json_line(request))
        child.stdin.close()
        for line in child.stdout:
            yield json.loads(line)
        code_at_end = child.wait()
    except BrokenPipeError:
        code_at_end = child.wait()
    finally:
        processes.end(child, UNTIL_ENDED)
        child.stdout.close()
    if code_at_end:
        how = f"was killed by signal {-code_at_end}" if code_at_end < 0 else f"ended with exit code {code_at_end}"
        raise ChildProcessError(f"its process {how}")
