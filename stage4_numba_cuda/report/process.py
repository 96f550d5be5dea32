"""Running another program with a time limit, it and all that it starts."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import IO

ROOT = Path(__file__).resolve().parents[2]
"""The folder that holds the packages: where `python -m stage4_numba_cuda...` finds them without an installation."""

WITHOUT_SESSIONS = sys.platform == "win32"


def run_limited(command: list[str], seconds: float, output: IO[str] | None = None) -> int | None:
    """Its exit code, or None where it had to be stopped. output: a file for what it prints; None shows it.

    What is still running after `seconds`, or when this process is interrupted, is killed with its own processes.
    """
    errors = subprocess.STDOUT if output is not None else None
    process = subprocess.Popen(
        command, cwd=ROOT, stdout=output, stderr=errors, text=True, start_new_session=not WITHOUT_SESSIONS
    )
    try:
        return process.wait(timeout=max(seconds, 1.0))
    except subprocess.TimeoutExpired:
        return None
    finally:
        if process.poll() is None:
            _kill(process)


def _kill(process: subprocess.Popen[str]) -> None:
    if WITHOUT_SESSIONS:
        process.kill()
    else:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
