"""One pass, in a process of its own: it reads a plan, measures, and writes a line of JSON for everything it finds.

    python -c "from shared.bench.running.worker import main; main()" < PLAN.json

The lines, one object each, on standard output:

    {"environment": {...}}      what this process runs on, once its libraries are loaded
    {"unavailable": {...}}      what cannot be measured here, and why
    {"row": {...}}, {"curve": {...}}
    {"done": 3}                 job 3 of the plan is done

Everything else that a library or a stage prints goes to standard error.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Sequence
from typing import Any, TextIO

from shared.bench.measuring.rows import BenchRow, Curve
from shared.bench.peers import pytorch
from shared.bench.running.plan import Bench, Plan, jobs
from shared.contract import StageUnavailable, load_stage
from shared.machine.environment import environment
from shared.machine.results import as_json_line


def main() -> None:
    """Carry out the plan on standard input; ends quietly if the parent process has ended or asks for it."""
    lines, sys.stdout = sys.stdout, sys.stderr
    try:
        order = json.load(sys.stdin)
        for message in messages(Plan.from_dict(order["plan"]), order["pass"], order["jobs"]):
            print(as_json_line(message), file=lines, flush=True)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        # Python would try to flush the pipe once more at the end, and complain.
        _abandon(lines)
        sys.exit(1)


def messages(plan: Plan, number: int, numbers: Sequence[int]) -> Iterator[dict[str, Any]]:
    """The messages of the process, as each is known. number: of this pass, from 1. numbers: of the jobs to do."""
    stages, unavailable = [], {}
    for name in plan.stages:
        try:
            stages.append(load_stage(name))
        except StageUnavailable as reason:
            unavailable[name] = str(reason)
    torch, version_or_reason = pytorch.load_torch(plan.threads)
    if torch is None:
        unavailable["pytorch"] = version_or_reason
    yield {"environment": environment() | {"pytorch": version_or_reason if torch else None}}
    yield {"unavailable": unavailable}
    bench = Bench(plan, stages, torch, number)
    every = jobs(plan)
    for i in numbers:
        for found in every[i].rows(bench):
            yield {"curve" if isinstance(found, Curve) else "row": found.as_dict()}
        yield {"done": i}


def read(message: dict[str, Any]) -> BenchRow | Curve | None:
    """The row or curve in a line of a pass; None for other lines."""
    if "row" in message:
        return BenchRow.from_dict(message["row"])
    return Curve.from_dict(message["curve"]) if "curve" in message else None


def _abandon(lines: TextIO) -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), lines.fileno())
