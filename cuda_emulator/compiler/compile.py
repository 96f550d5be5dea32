"""Compile a kernel for arguments of certain types: all steps in order.

source.py       reads the text, the syntax tree and the values of names (names.py)
normalise.py    rewrites the kernel in a smaller language, by the rules of expressions.py, calls.py, statements.py,
                assignments.py and declarations.py; inline.py inlines device functions that synchronise;
                unassigned.py finds the variables that may have no value where they are read
webs.py         gives each independent use of a variable its own name
uniformity.py   finds the variables that are the same for all threads of a block
infer.py        finds the types of variables with Numba's inference
regions.py      cuts the kernel at its collectives; recompute.py finds variables that need not be carried over a cut
ownership.py    finds out whether a variable can own memory
emit.py         writes the generated source: emit_regions.py the tree of regions, emit_collectives.py barriers and
                shuffles, thread_code.py the statements of one thread; cache.py stores it. For a traced kernel,
                trace_code.py and trace_tree.py add the calls that record events, and trace_tables.py explains these
Numba           compiles the source to machine code, which is stored in the cache beside it (machine_code.py)
"""

from __future__ import annotations

import ast
import hashlib
import linecache
import math
import sys
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numba.core import errors, types

from .. import helpers
from ..errors import KernelError, KernelWarning
from ..helpers.half import learn_float16
from ..helpers.status import launch_numbers
from ..hooks import progress
from ..runtime.grid_barriers import Together
from ..runtime.limits import SHARED_BYTES, most_together
from . import cache
from .analysis.infer import in_short, variable_types, without_code
from .analysis.regions import Regions
from .analysis.uniformity import Uniformity, lower_masked_for_loops
from .analysis.webs import split_webs
from .diagnoses import absent_lane, failure, notes
from .machine_code import MachineCode
from .reading.normalise import normalise, normalise_device
from .reading.source import FunctionSource
from .reading.statements import WAITS
from .trees import Collective, contains, walk
from .unit import Unit
from .writing.emit import LINE, Emitter, device_function, header, rounded
from .writing.thread_code import Sites, Variant, context_of


@dataclass(frozen=True)
class CompiledKernel:
    """A kernel, compiled for arguments of certain types.

    run: run(*arguments, *constants, grid, block, first_block, end_block, dynamic_bytes, status), and with Variant.check
        also thread_order and block_order: permutations of the block's threads and the grid's blocks; of a kernel with
        barriers across the grid also the workspace of all blocks, and where each block waits (runtime/grid_barriers.py)
    constants: the global arrays that it reads
    source: the generated Python
    places: (file, line, text) of each place that `status` refers to by number
    shared_bytes: bytes of static shared memory of a block; prints: whether it calls print()
    may_loop: whether it has a loop with an unknown number of iterations; waits: one that waits for another thread
    facts: all names of the generated module; TRACE, MEMORY and FENCE of a traced kernel explain its events
    """

    name: str
    run: Callable[..., None]
    constants: tuple[np.ndarray[Any, Any], ...]
    source: str
    places: list[tuple[str, int, str]]
    shared_bytes: int
    prints: bool
    may_loop: bool
    waits: bool
    facts: Mapping[str, Any]

    @property
    def cooperative(self) -> bool:
        """Whether its blocks meet at barriers across the grid, so that all of them must run at the same time."""
        return bool(self.facts["MEETINGS"])

    def max_cooperative_grid_blocks(self, blockdim: int | tuple[int, ...], dynsmemsize: int = 0) -> int:
        """The most blocks of a grid that meets at barriers: those that the device holds at the same time.

        blockdim: threads of a block, an int or a tuple; dynsmemsize: bytes of dynamic shared memory of a block
        """
        threads = math.prod(blockdim) if isinstance(blockdim, tuple) else blockdim
        return most_together(threads, self.shared_bytes + dynsmemsize)

    def together(self, grid: tuple[int, int, int], block: tuple[int, int, int], dynamic_bytes: int) -> Together | None:
        """The state of a launch whose blocks meet at barriers across the grid; None for a kernel without them."""
        if not self.cooperative:
            return None
        share = workspace_bytes(self.facts, block, dynamic_bytes)
        places = [self.places[site] for site in self.facts["MEETINGS"]]
        return Together(self.name, places, grid, workspace(share * math.prod(grid)), share)

    def failure(self, status: np.ndarray[Any, Any], grid: tuple[int, ...], block: tuple[int, ...]) -> KernelError:
        """The error for a stopped run, from its status array."""
        return failure(self.name, self.places, status, grid, block)

    def absent_lane(
        self, status: np.ndarray[Any, Any], grid: tuple[int, ...], block: tuple[int, ...], difference: str
    ) -> KernelError:
        """The error for results that depend on a lane that takes no part in a shuffle, as status[READ_SITE] says."""
        return absent_lane(self.name, self.places, status, grid, block, difference)

    def notes(self, status: np.ndarray[Any, Any]) -> list[str]:
        """The warnings after a run that ended normally."""
        return notes(self.places, status)


def compile_kernel(
    source: FunctionSource, argument_types: tuple[types.Type, ...], variant: Variant | None = None
) -> CompiledKernel:
    """Compile a kernel, or find it in the cache.

    Raises KernelError, with file and line, for what a device or the emulator does not support.
    """
    variant = variant or Variant()
    reached = cache.Reached(source)
    path = cache.path_of(reached, (tuple(str(kind) for kind in argument_types), variant))
    kept = None if path is None else cache.read(path)
    if "float16" in f"{argument_types} {kept}":
        learn_float16()
    if path is not None and kept is not None:
        module = execute(str(path), kept, path, reached.files)
        arrays = reached.global_arrays() if module["CONSTANTS"] else {}
        constants = tuple(arrays[name] for name in module["CONSTANTS"])
        warn(source, module["WARNINGS"])
    else:
        progress(f"compiling {source.name}")
        text, unit, functions = generate(source, argument_types, variant)
        if path is not None:
            cache.write(path, text)
        name = f"<generated for {source.name}>" if path is None else str(path)
        module = execute(name, text, path, reached.files)
        module.update(functions)
        constants = tuple(unit.constants.values())
        warn(source, unit.warnings)
    return CompiledKernel(
        source.name,
        runner(source, module, len(source.parameters) + len(constants)),
        constants,
        module["SOURCE"],
        module["PLACES"],
        module["SHARED_BYTES"],
        module["PRINTS"],
        module["MAY_LOOP"],
        any(sentence.startswith(WAITS) for _, sentence in module["WARNINGS"]),
        module,
    )


def warn(source: FunctionSource, messages: list[tuple[int, str]]) -> None:
    """Show the warnings about a kernel that compiles."""
    for line, sentence in messages:
        warnings.warn(str(source.error(sentence, line)), KernelWarning, stacklevel=4)


def runner(source: FunctionSource, module: dict[str, Any], inputs: int) -> Callable[..., None]:
    """A function that calls the module's `run` with a new workspace, and converts errors of Numba to KernelErrors.

    inputs: the number of arguments before the grid and the block
    """
    run = module["run"]
    has_workspace = bool(module["MEETINGS"])

    def checked(*arguments: Any) -> None:
        grid, block, first, end, dynamic_bytes, *others = arguments[inputs:]
        # With barriers across the grid the launch owns the workspace of all blocks: it outlives a call of `run`.
        own = () if has_workspace else (workspace(workspace_bytes(module, block, dynamic_bytes)),)
        numbers = launch_numbers(grid, block, first, end, dynamic_bytes)
        try:
            run(*arguments[:inputs], numbers, *others, *own)
        except errors.NumbaError as error:
            raise source.error(f"Numba cannot compile this kernel: {in_short(error)}", None) from error
        except NotImplementedError as error:
            raise without_code(source, error) from error

    return checked


def workspace_bytes(facts: Mapping[str, Any], block: tuple[int, int, int], dynamic_bytes: int) -> int:
    """The size of the workspace of a block: its shared arrays, and the arrays with an entry for each thread."""
    x, y, z = block
    own: int = facts["BLOCK_BYTES"] + rounded(dynamic_bytes)
    return own + sum(rounded(each * x * y * z) for each in facts["THREAD_BYTES"])


def workspace(size: int) -> np.ndarray[Any, Any]:
    """`size` bytes of memory that start at a cache line."""
    memory = np.empty(size + LINE, np.uint8)
    return memory[-memory.__array_interface__["data"][0] % LINE :][:size]


def generate(
    source: FunctionSource, argument_types: tuple[types.Type, ...], variant: Variant
) -> tuple[str, Unit, dict[str, Any]]:
    """(text of the generated module, kernel in normal form, {name: compiled device function}).

    Type inference has compiled the device functions, so that they need not be compiled again.
    """
    unit = normalise(source, argument_types)
    if unit.shared_bytes > SHARED_BYTES:
        raise source.error(
            f"{source.name!r} declares {unit.shared_bytes:,} bytes of shared memory for each block; {SHARED_BYTES:,} "
            "(48 KB) is what every device has. Use smaller tiles, or a smaller dtype",
            max(unit.shared.values(), key=lambda array: array.nbytes).line,
        )
    refuse_reassigned_arrays(unit)
    if variant.check:
        warn_of_overlap(unit)
    split_webs(unit)
    sites = Sites(cache.Reached(source).files)
    devices = DeviceFunctions(variant, sites)
    devices.add(unit)
    records = sorted({array.dtype for array in unit.arrays.values() if array.dtype.kind == "V"}, key=str)
    uniformity = Uniformity(unit)
    # The new `while` loops have statements and variables that the first analysis has not seen.
    if lower_masked_for_loops(unit, uniformity):
        uniformity = Uniformity(unit)
    functions = devices.for_inference()
    inferred = variable_types(unit, argument_types, functions, devices.contexts)
    devices.refuse_returned_arrays(functions)
    parts = Regions(unit, uniformity, inferred) if contains(unit.body, Collective) else None
    emitter = Emitter(unit, parts, variant, inferred, devices.contexts, sites)
    body = emitter.source(devices.texts)
    where = f"{Path(source.filename).name} line {source.first_line}"
    source_text = f"{header(source.name, where, argument_types, body, records)}\n\n\n{body}\n"
    of_emitter = emitter.facts()  # before the places, since it may add one
    facts = [
        f"PLACES = {sites.places!r}",
        f"SHARED_BYTES = {unit.shared_bytes}",
        f"PRINTS = {unit.prints or devices.prints}",
        # `run` itself has one `_go_on`, for the blocks.
        f"MAY_LOOP = {body.count('_go_on(_status)') > 1 or 'while ' in body}",
        f"CONSTANTS = {list(unit.constants)!r}",
        f"WARNINGS = {unit.warnings!r}",
        *of_emitter,
    ]
    return (
        source_text + "\n\n# Data for the emulator.\n" + "\n".join(facts) + "\n",
        unit,
        {name: functions[name] for name in devices.contexts},
    )


def warn_of_overlap(unit: Unit) -> None:
    """Say where two arrays of dynamic shared memory, which all begin at its first byte, have different types."""
    whole = [array for array in unit.shared.values() if array.shape == (0,) and not array.sliced]
    for array in whole[1:]:
        if array.dtype != whole[0].dtype:
            first, second = (unit.learners_name(each.name) for each in (whole[0], array))
            sentence = (
                f"{second!r} and {first!r} are the same dynamic shared memory with two types: each begins at its first "
                "byte. If both are in use at once, let one begin behind the other: cuda.shared.array(0, dtype)[count:]"
            )
            unit.warnings.append((array.line, sentence))


def refuse_reassigned_arrays(unit: Unit) -> None:
    """Refuse an assignment to the name of a shared or local array, whose declared shape the index checks use."""
    for node in walk(unit.body):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in unit.arrays:
            spelled = unit.learners_name(node.id)
            raise unit.source.error(
                f"{spelled!r} is a shared or local array, and is assigned anew: that is not supported by the emulator. "
                "Give the other value its own name; to take turns between two arrays, declare one of shape (2, ...)",
                node,
            )


class DeviceFunctions:
    """The plain device functions that a kernel calls, directly or through others; a callee is before its caller.

    texts: their generated sources; contexts: {name: hidden arguments}
    """

    def __init__(self, variant: Variant, sites: Sites) -> None:
        self.variant, self.sites = variant, sites
        self.texts: list[str] = []
        self.contexts: dict[str, list[str]] = {}
        self.prints = False
        self.with_arrays: dict[str, Unit] = {}

    def add(self, caller: Unit, stack: tuple[FunctionSource, ...] = ()) -> None:
        """Generate the device functions that `caller` calls."""
        stack = (*stack, caller.source)
        for name, function in caller.device_functions.items():
            unit = normalise_device(function.source, stack)
            unit.moves = function.moves
            self.rename_inner(unit, name)
            self.add(unit, stack)
            caller.constants.update(unit.constants)
            caller.spelled.update({constant: unit.spelled[constant] for constant in unit.constants})
            self.contexts[name] = [*context_of(unit, self.contexts, self.variant), *unit.constants]
            self.texts.append(device_function(unit, name, self.contexts[name], self.contexts, self.variant, self.sites))
            self.prints = self.prints or unit.prints
            caller.fence |= unit.fence
            refuse_reassigned_arrays(unit)
            if unit.local:
                self.with_arrays[name] = unit

    def rename_inner(self, unit: Unit, name: str) -> None:
        """Give unique names to the functions that a device function calls."""
        for inner in list(unit.device_functions):
            spelled = f"{name}__{inner.removeprefix('_device_')}"
            while spelled in self.contexts:
                spelled += "_"
            unit.device_functions[spelled] = unit.device_functions.pop(inner)
            for part in walk(unit.body):
                if isinstance(part, ast.Name) and part.id == inner:
                    part.id = spelled

    def for_inference(self) -> dict[str, Any]:
        """{name: value} of the generated functions and helpers, for type inference."""
        return execute("<device functions>", "\n\n".join([PRELUDE, *self.texts]), None, [])

    def refuse_returned_arrays(self, functions: dict[str, Any]) -> None:
        """Refuse a device function that returns an array and has local arrays, since these end with the call.

        functions: {name: compiled device function}
        """
        for name, unit in self.with_arrays.items():
            for signature in functions[name].nopython_signatures:
                if "array" in str(signature.return_type).lower():
                    raise unit.source.error(
                        f"{unit.source.name!r} returns an array, and has local arrays, which end with the call: that "
                        "is not supported by the emulator. Pass in the array that it fills",
                        unit.source.first_line,
                    )


PRELUDE = "import cmath\nimport math\nimport operator\nimport numpy as np"


def execute(filename: str, text: str, kept: Path | None, files: list[str]) -> dict[str, Any]:
    """Run generated source and return its namespace. kept: where the source lies in the cache, if it does; the machine
    code of its `run` is then stored beside it. files: the names that its tables write as FILES[number].

    The module's __name__ contains a hash of the text. Numba distinguishes functions by module, name, types and a number
    that it counts up in each process, also in machine code on disk. If all kernels had one module name, the functions
    `run` of two kernels, compiled by two processes, could have the same identity, and one would be used for the other.
    """
    scope: dict[str, Any] = {f"_{name}": getattr(helpers, name) for name in helpers.__all__}
    module = f"{helpers.__name__}.{hashlib.sha256(text.encode()).hexdigest()[:24]}"
    sys.modules[module] = helpers  # machine code from the disk imports its function's module
    scope.update(__name__=module, SOURCE=text, FILES=files)
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    exec(compile(text, filename, "exec"), scope)
    if kept is not None:
        scope["run"]._cache = MachineCode(kept)
    return scope
