"""Step 6: find the type of every variable with Numba's own inference.

Numba gets the kernel in normal form, before it is cut. The arrays that carry variables over a cut need a dtype; and a
type error is found here, while the tree still has the learner's line numbers.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numba
import numpy as np
from numba import types
from numba.core import compiler, errors
from numba.core.compiler_machinery import PassManager
from numba.core.registry import cpu_target
from numba.core.typed_passes import NopythonTypeInference
from numba.np import numpy_support

from ...intrinsics import SHUFFLES
from ..reading.source import FunctionSource
from ..trees import ASSIGNED, HAS, LENT, Collective, assign, call, constant, copied, load, stored_names, unguarded, walk
from ..unit import Unit

HIDDEN = (
    *("_tx", "_ty", "_tz", "_bx", "_by", "_bz", "_bdx", "_bdy", "_bdz", "_gdx", "_gdy", "_gdz"),
    *("_block", "_thread", "_lane", "_threads", "_path"),
)
RESULT_TYPES = {
    **dict.fromkeys(("all_sync", "any_sync", "eq_sync"), "np.bool_"),
    **dict.fromkeys(("ballot_sync", "match_any_sync", "match_all_sync"), "np.int32"),
    **dict.fromkeys(("syncthreads_count", "syncthreads_and", "syncthreads_or"), "np.int32"),
    "activemask": "np.uint32",
}
SHUFFLED = (types.int32, types.int64, types.float32, types.float64)


class TypesOnly(compiler.CompilerBase):
    """Numba's compiler pipeline, up to type inference."""

    def define_pipelines(self) -> list[PassManager]:
        """The untyped passes, then inference, and nothing after it."""
        pipeline = compiler.DefaultPassBuilder.define_untyped_pipeline(self.state, "types only")
        pipeline.add_pass(NopythonTypeInference, "types")
        pipeline.finalize()
        self.state.cr = self.state  # the result of the pipeline
        return [pipeline]


def variable_types(
    unit: Unit,
    argument_types: tuple[types.Type, ...],
    functions: Mapping[str, Callable[..., Any]],
    contexts: Mapping[str, Sequence[str]],
) -> dict[str, types.Type | None]:
    """The type of each variable of the unit; None for a variable with several types that cannot be unified.

    functions: {name: device function or helper}
    contexts: {name of a device function: its hidden arguments}
    Raises KernelError, with the learner's line, if Numba finds no types.
    """
    names = [*unit.parameters, *unit.constants, *unit.arrays, *HIDDEN, "_status"]
    passed_types = [
        *argument_types,
        *(numba.typeof(value) for value in unit.constants.values()),
        *(array_type(array.dtype, len(array.shape), unit.strided(name)) for name, array in unit.arrays.items()),
        *([types.int64] * len(HIDDEN)),
        types.CPointer(types.int64),
    ]
    body = uncut(unit.body, contexts)
    function = python_function(unit, names, body or [ast.Pass()], functions)
    context, target = cpu_target.typing_context, cpu_target.target_context
    context.refresh()
    target.refresh()
    inference = TypesOnly(context, target, None, tuple(passed_types), types.none, compiler.Flags(), {})
    inference.state.flags.nrt = True  # without it, values that may hold an array have no type
    inference.state.flags.error_model = "numpy"
    try:
        inference.compile_extra(function)
    except errors.NumbaError as error:
        raise typing_error(unit, error) from None
    except NotImplementedError as error:
        raise without_code(unit.source, error) from error
    types_of: dict[str, list[types.Type]] = {}
    arguments = {f"arg.{name}" for name in names}  # Numba's names of the values that are passed in
    for name, kind in inference.state.typemap.items():
        stem = name.partition(".")[0]
        if stem and not stem.startswith("$") and name not in arguments:
            types_of.setdefault(stem, []).append(types.unliteral(kind))
    check_shuffles(unit, types_of)
    marks = {name: types.boolean for name in stored_names(unit.body) if name.startswith(HAS)}
    return {name: one_type(context, kinds) for name, kinds in types_of.items()} | marks


def one_type(context: Any, kinds: list[types.Type]) -> types.Type | None:
    """The type that can hold all of these; None if there is none."""
    return kinds[0] if len(set(kinds)) == 1 else context.unify_types(*kinds)


def carried_dtype(unit: Unit, name: str, variable_types: Mapping[str, types.Type | None]) -> np.dtype[Any]:
    """The dtype of the array that carries a variable over a cut. Raises KernelError if it is no number."""
    kind = variable_types.get(name, types.int64)  # a mask or lane that nothing else uses has no type: an integer
    line = next(
        (part.lineno for part in walk(unit.body) if isinstance(part, ast.Name) and part.id == name),
        unit.source.first_line,
    )
    spelled = unit.learners_name(name)
    if kind is None:
        raise unit.source.error(
            f"{spelled!r} has two types that do not go together, and is needed on both sides of a cuda.syncthreads() "
            "or shuffle; give each its own name",
            line,
        )
    try:
        return np.dtype(numpy_support.as_dtype(kind))
    except (errors.NumbaError, TypeError):
        is_view = isinstance(kind, types.Array)
        content = "a view of an array" if is_view else f"a value of type {kind}"
        instead = "Index the array itself after the barrier" if is_view else "Keep its parts in variables of their own"
        raise unit.source.error(
            f"{spelled!r} holds {content} on both sides of a cuda.syncthreads() or shuffle; only numbers can be kept "
            f"there. {instead}",
            line,
        ) from None


def array_type(dtype: np.dtype[Any], dimensions: int, strided: bool) -> types.Type:
    """Numba's type of a shared or local array: the one that the emitted code has, so that the device functions which
    get it are compiled once, and not for two layouts."""
    return types.Array(numba.from_dtype(dtype), dimensions, "A" if strided else "C")


def python_function(
    unit: Unit, names: list[str], body: list[ast.stmt], functions: Mapping[str, Callable[..., Any]]
) -> Callable[..., Any]:
    """The uncut kernel as a Python function with the learner's line numbers."""
    module = ast.parse(f"def {unit.source.name}({', '.join(names)}): pass")
    definition = module.body[0]
    assert isinstance(definition, ast.FunctionDef)
    for part in ast.walk(definition):
        ast.copy_location(part, unit.source.tree)
    definition.body = body
    ast.fix_missing_locations(module)
    scope: dict[str, Any] = dict(functions)
    exec(compile(module, unit.source.filename, "exec"), scope)
    found: Callable[..., Any] = scope[unit.source.name]
    return found


def uncut(body: Sequence[ast.stmt], contexts: Mapping[str, Sequence[str]]) -> list[ast.stmt]:
    """A copy of the statements without collectives."""
    rewriter = Uncut(contexts)
    done: list[ast.stmt] = []
    for statement in body:
        new = rewriter.visit(copied(statement))
        done += new if isinstance(new, list) else [new]
    return done


class Uncut(ast.NodeTransformer):
    """Replaces each collective by assignments with the types of its results."""

    def __init__(self, contexts: Mapping[str, Sequence[str]]) -> None:
        self.contexts = contexts

    def visit_Collective(self, node: Collective) -> Any:
        """Assign a value of the right type to each result."""
        if not node.results:
            return ast.copy_location(ast.Pass(), node)
        # Every operand is used here: Numba removes an unused variable and gives it no type.
        first = 1 if node.path in SHUFFLES else 0
        operands = [node.operands[first], *node.operands[:first], *node.operands[first + 1 :]] if node.operands else []
        value: ast.expr = constant(0)
        if node.path in SHUFFLES:
            value = ast.Subscript(value=ast.Tuple(elts=operands, ctx=ast.Load()), slice=constant(0), ctx=ast.Load())
        elif operands:
            tests: list[ast.expr] = [call("bool", operand) for operand in operands]
            pair = ast.Tuple(elts=tests, ctx=ast.Load())
            value = ast.Subscript(value=pair, slice=constant(0), ctx=ast.Load())
        if node.path not in SHUFFLES:
            value = call(RESULT_TYPES[node.path], value)
        new: list[ast.stmt] = [assign(node.results[0].id, value)]
        if len(node.results) == 2:
            new.append(assign(node.results[1].id, call("np.bool_", constant(1))))
        return self.at(node, new)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """Replace _raise(...) by None and _assigned(_has_v, v) by v, and pass the hidden arguments to device
        functions."""
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id in (ASSIGNED, LENT):
            return unguarded(node)
        if isinstance(node.func, ast.Name) and node.func.id == "_raise":
            return ast.copy_location(constant(None), node)
        if isinstance(node.func, ast.Name) and node.func.id in self.contexts:
            node.args += [ast.copy_location(load(name), node) for name in self.contexts[node.func.id]]
        return node

    @staticmethod
    def at(node: ast.stmt, new: list[ast.stmt]) -> list[ast.stmt]:
        """`new`, with the line numbers of `node`."""
        for statement in new:
            for part in ast.walk(statement):
                ast.copy_location(part, node)
        return new


def check_shuffles(unit: Unit, types_of: Mapping[str, list[types.Type]]) -> None:
    """Refuse a shuffle of anything but 32- and 64-bit signed integers and floats: numba-cuda's rule."""
    for statement in unit.body:
        for part in ast.walk(statement):
            if not isinstance(part, Collective) or part.path not in SHUFFLES:
                continue
            operand = part.operands[1]
            assert isinstance(operand, ast.Name)
            for kind in types_of.get(operand.id, []):
                if kind not in SHUFFLED:
                    raise unit.source.error(
                        f"cuda.{part.path}() moves int32, int64, float32 and float64; this value is {kind}. Convert it "
                        "first, for example with int32(...)",
                        part,
                    )


def typing_error(unit: Unit, error: errors.NumbaError) -> Exception:
    """A KernelError with the part of Numba's message that concerns the learner's line."""
    clash = re.search(r"Cannot unify (.+) and (.+) for '([^'.]+)", str(error))
    if clash:
        return two_types(unit, clash[3], *(re.sub(r"Literal\[(\w+)\]\([^()]*\)", r"\1", clash[k]) for k in (1, 2)))
    line = getattr(getattr(error, "loc", None), "line", None) or unit.source.first_line
    missing = re.search(r"Variable '([^']+)' is not defined", str(error))
    if missing:
        return unit.source.error(unassigned_everywhere(unit.learners_name(missing[1])), line)
    return unit.source.error(f"Numba finds no types for this: {in_short(error)}", line)


def without_code(source: FunctionSource, error: NotImplementedError) -> Exception:
    """A KernelError for what has types, and for which Numba then writes no code."""
    remedy = ": convert it with np.float32() first" if "float16" in str(error) else ""
    return source.error(f"Numba cannot compile this kernel: {error}{remedy}", None)


def unassigned_everywhere(name: str) -> str:
    """The message for a variable that is read where no path has assigned it."""
    return (
        f"{name!r} has no value yet: no line before this one assigns it. Give it a first value, before the loop "
        "if there is one"
    )


def in_short(error: errors.NumbaError) -> str:
    """Numba's message without the chain of functions and overloads around it."""
    lines = [text.strip() for text in errors.termcolor().errmsg(str(error)).splitlines()]
    chatter = ("File ", "During:", "def ", "<source", "Failed in", "Overload of function", "- Of which")
    said = [text for text in lines if text and not text.startswith(chatter)]
    refusal = next((text for text in said if "not supported by the emulator" in text), None)
    if refusal is not None:
        return refusal.rpartition("TypingError: ")[2]
    first = next((text for text in said if not text.startswith("-")), "no types fit")
    detail = next((text for text in said if text.startswith(("No match", "Use of unsupported", ">>>"))), "")
    return first if detail in ("", first) else f"{first} {detail}"


def two_types(unit: Unit, name: str, first: str, second: str) -> Exception:
    """The error for a variable with two types that cannot be unified; it points to the last assignment."""
    stores = (part for part in walk(unit.body) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store))
    return unit.source.error(
        f"{unit.learners_name(name)!r} is {first} on one path and {second} on another, and a variable has one type; "
        "give each its own name",
        max((part.lineno for part in stores if part.id == name), default=unit.source.first_line),
    )
