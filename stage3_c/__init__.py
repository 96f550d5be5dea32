"""The third stage: the same network in C, called through ctypes. NumPy holds the memory; C does every computation.

Beside the rooms that every stage has:

    csrc/                        the C, by room, with one header, groundup.h; pool.c, the threads
    build, compiler, filelock    compiles it on first use, finds a compiler, waits while another process compiles
    library                      every C function's types; checks each array as it crosses
    parts                        the layers that have no weights, forward beside backward
    operations                   a network as a list of operations for C
    plan, addresses              the memory of the operations, and the arrays whose addresses C keeps
    steps                        a training step in ever fewer calls
    optimizer_state              what an optimizer keeps, and checks before C changes it
    step_notes                   when each operation of a step ended that is one call: for `groundup profile`
    eight_bits                   products of whole numbers: a ladder of its own, up to the instructions made for them
    ceilings                     the fastest multiplication and copying that this machine can do: roofs for a benchmark
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import shared

if getattr(shared, "PROJECT", "") != "groundup":
    raise SystemExit(f"error: {shared} is imported in place of groundup's package shared: give it another name")

_facts: dict[str, Any] = {}


def prepare() -> None:
    """Compile the C on first use and load it; shared.contract.load_stage calls this before it imports the rooms.

    Raises shared.contract.StageUnavailable where no compiler works, build.CompileError (a ValueError) where the
    sources do not compile, OSError where the library cannot be written or loaded, ValueError for a bad
    GROUNDUP_THREADS.
    """
    if _facts:
        return
    from . import build, library  # here and not above: importing the package alone must build nothing

    loaded = library.load()
    threads = library.thread_count()
    simd_bits = 8 * library.plain_function("simd_bytes")()
    built = build.find_built(Path(loaded._name).parent)
    compiler: dict[str, Any] = {}
    if built:
        undone = " (its fast mathematics is undone)" if built.fast_math else ""
        compiler = {"compiler": built.compiler.version + undone, "flags": list(built.flags)}
    _facts.update(compiler, simd_bits=simd_bits, threads=threads)


def facts() -> dict[str, Any]:
    """What a measurement must be read with: the compiler, its flags, simd_bits (the width of the registers) and
    threads; empty before `prepare`. Nothing is built for the answer."""
    return dict(_facts)
