"""`groundup check --compile`: stage 4's kernels through the compiler of a GPU, which needs none, as a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from itertools import groupby
from typing import Any

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from groundup.compiling.check import CAPABILITIES, Measurement, all_faults, architecture, compile_all, jobs
from groundup.doctor.facts import dotted
from groundup.kernels.catalogue import CATALOGUE
from groundup.kernels.entries import DTYPES, Capability, Entry
from groundup.progress_lines import SELDOM, as_it_goes
from shared.machine.results import as_json
from shared.machine.software import extra
from shared.terminal import TextConsole

SASS = extra("sass")
NARROWEST = 100
"""Columns of the table; names take more lines before it gets narrower."""


def check_kernels(
    kernels: Sequence[str], architectures: Sequence[str], dtype: str | None = None, json: bool = False
) -> None:
    """Compile the kernels, print the result, and leave with exit code 1 where something is wrong.

    kernels: parts of names, like "softmax"; all kernels if empty. architectures: like "9.0" or "sm_90"; all if empty
    Raises ValueError for a name that fits nothing, and where there is no compiler.
    """
    entries, capabilities = _entries(kernels), _capabilities(architectures)
    work = jobs(entries, capabilities, DTYPES if dtype is None else (dtype,))
    if not work:
        raise ValueError("there is nothing to compile: these kernels need a newer architecture or another dtype")
    with as_it_goes("starting the compiler", json=json, every=SELDOM) as say:
        measurements = compile_all(work, lambda job, done: say(f"{done} of {len(work)}: {job.title}", done / len(work)))
    faults = all_faults(measurements)
    if json:
        typer.echo(as_json(_document(entries, measurements)), nl=False)
    else:
        _show(entries, capabilities, measurements)
    if faults:
        typer.echo("\n".join(faults), err=True)
        raise typer.Exit(1)


def _entries(kernels: Sequence[str]) -> list[Entry]:
    for name in kernels:
        if not any(name in entry.kernel for entry in CATALOGUE):
            files = sorted({entry.kernel.partition(".")[0] for entry in CATALOGUE})
            raise ValueError(f"no kernel has {name!r} in its name; the files are {', '.join(files)}")
    return [entry for entry in CATALOGUE if not kernels or any(name in entry.kernel for name in kernels)]


def _capabilities(architectures: Sequence[str]) -> list[Capability]:
    known = {text: capability for capability in CAPABILITIES for text in (dotted(capability), architecture(capability))}
    for text in architectures:
        if text not in known:
            raise ValueError(f"unknown architecture {text!r}; choose one of {', '.join(map(dotted, CAPABILITIES))}")
    return sorted({known[text] for text in architectures}) or list(CAPABILITIES)


def _show(entries: Sequence[Entry], capabilities: Sequence[Capability], measurements: Sequence[Measurement]) -> None:
    console = TextConsole()
    console.width = max(console.width, NARROWEST)  # where a terminal is narrower, it wraps the lines itself
    table = Table(
        title="Stage 4's kernels, compiled",
        title_justify="left",
        title_style="bold",
        box=SIMPLE_HEAD,
        pad_edge=False,
        show_edge=False,
        padding=(0, 1, 0, 0),
    )
    table.add_column("kernel", overflow="fold", min_width=24)
    for heading in ("dtype", "registers", "spills", "shared", *map(dotted, capabilities), "FFMA"):
        table.add_column(heading, justify="left" if heading == "dtype" else "right", no_wrap=True)
    by_name = {entry.kernel: entry for entry in entries}
    named = ""
    for (kernel, dtype), group in groupby(measurements, key=lambda m: (m.kernel, m.dtype)):
        row = _row(by_name[kernel], dtype, capabilities, list(group))
        table.add_row("" if kernel == named else Text(kernel), *row)
        named = kernel
    console.print(table)
    console.print(
        "registers: of a thread, the most on any architecture / the budget; spills, shared: bytes.\n"
        "7.5 to 12.0: the share of a multiprocessor's threads that can live at once on that architecture.\n"
        "FFMA: the share of a product's inner loop that multiplies and adds, and how many 128-bit loads from\n"
        "shared memory are in it; the worse of 8.0 and 9.0.\n",
        highlight=False,
    )
    wanted = any(entry.share is not None for entry in entries) and "float32" in {m.dtype for m in measurements}
    if wanted and not any(m.hot_loop for m in measurements) and {(8, 0), (9, 0)} & set(capabilities):
        console.print(f"inner loops: not looked at, nvdisasm is not installed: {SASS}", markup=False, highlight=False)
    if not any(m.faults for m in measurements):
        console.print(f"All {len(measurements)} compile and stay within their budgets.", style="green")


def _row(entry: Entry, dtype: str, capabilities: Sequence[Capability], group: list[Measurement]) -> list[Text]:
    """The cells of one kernel and dtype behind its name; what is wrong is red."""
    usages = [m.usage for m in group if m.usage is not None]
    registers = max((usage.registers for usage in usages), default=None)
    spills = max((usage.spills + usage.stack for usage in usages), default=None)
    shared = max((usage.shared for usage in usages), default=None)
    budget = entry.budget(dtype)
    at = {m.capability: m for m in group}
    loops = [m.hot_loop for m in group if m.hot_loop is not None]
    cells = [
        Text(dtype),
        _cell("-" if registers is None else f"{registers}/{budget}", registers is not None and registers > budget),
        _cell("-" if spills is None else str(spills), bool(spills)),
        _cell("-" if shared is None else str(shared), False),
    ]
    for capability in capabilities:
        measurement = at.get(capability)
        if measurement is None:
            cells.append(_cell(f"needs {dotted(entry.needs)}", False))
        elif measurement.occupancy is None:
            cells.append(_cell("fails", True))
        else:
            cells.append(_cell(f"{measurement.occupancy.share:.0%}", bool(measurement.faults)))
    if loops:
        share, wide = min(loop.share for loop in loops), min(loop.wide_loads for loop in loops)
        cells.append(_cell(f"{share:.0%}" + (f", {wide}" if wide else ""), False))
    else:
        cells.append(Text(""))
    return cells


def _cell(text: str, wrong: bool) -> Text:
    return Text(text, "bold red" if wrong else "")


def _document(entries: Sequence[Entry], measurements: Sequence[Measurement]) -> dict[str, Any]:
    by_name = {entry.kernel: entry for entry in entries}
    return {
        "ok": not any(m.faults for m in measurements),
        "kernels": [
            {
                "kernel": m.kernel,
                "dtype": m.dtype or None,
                "architecture": dotted(m.capability),
                "threads": by_name[m.kernel].threads,
                "budget": by_name[m.kernel].budget(m.dtype),
                "usage": asdict(m.usage) if m.usage else None,
                "occupancy": asdict(m.occupancy) if m.occupancy else None,
                "inner_loop": asdict(m.hot_loop) | {"share": m.hot_loop.share} if m.hot_loop else None,
                "faults": list(m.faults),
            }
            for m in measurements
        ],
    }
