"""The matmul ladders of a race: every rung of every stage on one product, beside NumPy's.

    measured         in this process, where the libraries have a thread on every core
    on_one_thread    in a process that was started with one thread

One product and few rounds are enough for a chart; `groundup bench` measures the ladders properly.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import replace

from shared.bench.kinds.ladders import ladder_rows
from shared.bench.measuring import children
from shared.bench.measuring.compared_candidates import Effort
from shared.bench.measuring.rows import BenchRow
from shared.contract import Stage, load_stage
from shared.machine.results import as_json_line

EFFORT = Effort(repeats=5, group_limit=2.0)

PATIENCE = 600.0
"""Seconds for the process: beside other programs even a GPU's kernels are compiled in fewer."""

CODE = "from groundup.race_ladders import main; main()"


def measured(stages: Sequence[Stage], size: int) -> list[BenchRow]:
    """The rows of these stages. size: of the square matrices."""
    return list(ladder_rows(stages, sizes=[size], effort=EFFORT))


def on_one_thread(stages: Sequence[Stage], size: int) -> list[BenchRow]:
    """The rows of these stages on one thread, for a machine on which another program computes, too.

    A library with a thread on every core then waits for whole time slices of the scheduler: beside a library that takes
    a hundred times as long as on an idle machine, every rung of the chart would be faster than the library.
    Raises ChildProcessError where the process fails.
    """
    if not stages:
        return []
    order = {"stages": [stage.name for stage in stages], "size": size}
    found = children.ask(CODE, order, threads=1, patience=PATIENCE)
    return [BenchRow.from_dict(row) for row in found["rows"]]


def main() -> None:
    """Carry out the order on standard input. What the stages print goes to standard error."""
    lines, sys.stdout = sys.stdout, sys.stderr
    order = json.load(sys.stdin)
    stages = [load_stage(name) for name in order["stages"]]
    rows = ladder_rows(stages, sizes=[order["size"]], effort=replace(EFFORT, threads=1))
    print(as_json_line({"rows": [row.as_dict() for row in rows]}), file=lines, flush=True)
