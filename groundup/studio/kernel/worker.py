"""The process in which a kernel of the page runs: `python -m groundup.studio.kernel.worker`. workers.py starts it.

It reads requests from its standard input and writes the answers to its standard output, one JSON object a line. What
the kernel's script prints goes to standard error. When the input ends, because the studio has, the process ends, too,
whatever it is doing, with what the script has started.
"""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
import traceback
from typing import Any

from cuda_emulator import KernelError
from cuda_emulator.inspection import ScriptFailed
from shared.contract import StageUnavailable
from shared.machine import processes

MEGABYTES = 2000
"""That a script or a learner's kernel may take beyond what the process holds at its beginning."""


def main() -> None:
    """Answer until the input ends."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
    os.dup2(2, 1)
    requests = _requests(os.fdopen(os.dup(0), encoding="utf-8"))
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    opened: Any = None
    for line in iter(requests.get, None):
        request = json.loads(line)
        try:
            if request["do"] == "open":
                opened, answer = _open(request)
            else:
                answer = _answer(opened, request)
        except BaseException as error:  # what a learner's code raises is reported, SystemExit too
            answer = {"error": error_text(error)}
        out.write(json.dumps(answer, separators=(",", ":")) + "\n")
        out.flush()


def _requests(given: Any) -> queue.Queue[str | None]:
    """The lines of the input, read by a thread, so that its end is noticed while a kernel runs."""
    lines: queue.Queue[str | None] = queue.Queue()

    def read() -> None:
        for line in given:
            lines.put(line)
        processes.end_own_group()

    threading.Thread(target=read, daemon=True).start()
    return lines


def _open(request: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    from groundup.course.judging.memory_limit import limit_memory
    from groundup.studio.kernel.targets import open_target

    if request["target"].get("kind") == "warm":  # the page is there and nothing is chosen yet: import what it takes
        import groundup.kernels.launching
        import groundup.studio.kernel.opened  # noqa: F401

        return None, {}
    if request["target"].get("kind") != "project":
        limit_memory(MEGABYTES, lambda: None)
    opened = open_target(request["target"])
    return opened, {"about": opened.about(), "walk": opened.walk(request["block"], request["warp"])}


def _answer(opened: Any, request: dict[str, Any]) -> dict[str, Any]:
    if opened is None:
        raise ValueError("no kernel is open; choose one")
    if request["do"] == "walk":
        return {"walk": opened.walk(request["block"], request["warp"])}
    if request["do"] == "race":
        return {"race": opened.race(request["block"], request["warp"], request["barriers"])}
    if request["do"] == "verdicts":
        return {"verdicts": opened.verdicts()}
    raise ValueError(f"do: expected open, walk, race or verdicts, got {request['do']!r}")


def error_text(error: BaseException) -> str:
    """The sentence for the page."""
    if isinstance(error, ScriptFailed):
        cause = error.__cause__ or error
        return f"{error}: {''.join(traceback.format_exception_only(cause)).strip()}"
    if isinstance(error, KernelError):
        return "\n".join([str(error), *getattr(error, "__notes__", ())])
    if isinstance(error, ValueError | TypeError | OSError | StageUnavailable):
        return str(error)
    if isinstance(error, SystemExit):
        return f"the script ended itself (exit code {error.code!r}) before the kernel could be walked through"
    return "".join(traceback.format_exception_only(error)).strip()


if __name__ == "__main__":
    main()
    sys.exit(0)
