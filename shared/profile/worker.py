"""The roofs of the machine, or the profile of one stage, measured in a process of its own.

    python -c "from shared.profile.worker import main; main()" < ORDER.json

It writes lines of JSON on standard output: {"done": 0.4} while it works, {"environment": …} once its libraries are
loaded, and last {"roofs": …} or {"profile": …}. Everything else that is printed goes to standard error.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator, Mapping
from typing import Any

from shared.bench.kinds.steps import Case
from shared.bench.measuring import children
from shared.contract import StageUnavailable, load_stage
from shared.machine.environment import environment
from shared.machine.results import as_json_line
from shared.profile.measure import Effort, profile
from shared.profile.roofs import Roofs, measured

CODE = "from shared.profile.worker import main; main()"
SELDOM = 0.2
"""Seconds between two lines that say how much is done."""


def messages(order: Mapping[str, Any], threads: int) -> Iterator[dict[str, Any]]:
    """Carry out the order in a process with so many threads; gives each of its messages.

    Raises ChildProcessError where it ends before its work is done. It is ended where the caller stops listening.
    """
    complete = False
    for message in children.messages(CODE, order, threads=threads):
        complete = complete or order["what"] in message
        yield message
    if not complete:
        raise ChildProcessError("profile: the process that measures ended before its work was done")


def main() -> None:
    """Carry out the order on standard input; ends quietly if the parent process has ended or asks for it."""
    lines, sys.stdout = sys.stdout, sys.stderr

    def say(**message: Any) -> None:
        print(as_json_line(message), file=lines, flush=True)

    try:
        _carry_out(json.load(sys.stdin), say)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), lines.fileno())  # Python would flush the pipe once more, and complain
        sys.exit(1)


def _carry_out(order: Mapping[str, Any], say: Any) -> None:
    if order["what"] == "roofs":
        try:
            roofs = measured(load_stage(order["stage"]), order["threads"])
        except StageUnavailable:  # no compiler, so no loops in C: everything else can be measured without them
            roofs = Roofs()
        say(environment=environment())
        say(roofs=roofs.as_dict())
        return
    stage = load_stage(order["stage"])
    said = float("-inf")

    def done(share: float) -> None:
        nonlocal said
        if time.monotonic() - said > SELDOM:
            said = time.monotonic()
            say(done=share)

    case, effort = Case(**order["case"]), Effort(**order["effort"])
    result = profile(stage, case, order["threads"], Roofs.from_dict(order["roofs"]), effort, done)
    say(environment=environment())
    say(profile=result.as_dict())


def order_of_roofs(stage: str, threads: int) -> dict[str, Any]:
    """The order to measure the roofs with the loops of this stage."""
    return {"what": "roofs", "stage": stage, "threads": threads}


def order_of_profile(stage: str, case: Case, threads: int, roofs: Roofs, effort: Effort) -> dict[str, Any]:
    """The order to profile a stage."""
    told = {"rounds": effort.rounds, "seconds": effort.seconds}
    more = {"case": case._asdict(), "roofs": roofs.as_dict(), "effort": told}
    return {"what": "profile", "stage": stage, "threads": threads, **more}
