"""Step 2: the kernel in normal form, a smaller language that the later steps can take apart.

    what the learner writes                     normal form
    cuda.threadIdx.x, cuda.grid(1)              _tx, _bx * _bdx + _tx
    TILE, config.TILE, float32                  16, 16, np.float32
    x, y = cuda.grid(2); M, K = A.shape         one assignment for each name
    acc += v; A[i] += v                         acc = acc + v; A[i] = A[i] + v
    v += cuda.shfl_down_sync(m, v, 4) * 2       a Collective statement of its own, its result in a variable
    cuda.shared.array(...)                      an entry in unit.shared; no statement
    helper(x) that synchronises                 its statements, in place (inline.py)

A collective leaves its expression, so whatever Python would have evaluated before it and could change meanwhile (a
load, an atomic) is put in a variable first: the order of evaluation stays the learner's.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from types import FunctionType
from typing import Any

import numpy as np

from . import names
from .errors import KernelError
from .functions import DeviceFunction
from .intrinsics import ATOMICS, BITS, COLLECTIVES, FENCES, INDEX, VOTES, Intrinsic
from .source import FunctionSource
from .statics import RESERVED, as_dtype, describe_kind, static_expression
from .trees import (
    JUMPS,
    Collective,
    assign,
    call,
    constant,
    contains,
    copied,
    expression,
    index_parts,
    load,
    loaded_names,
    negate,
    placed,
    store,
    stored_names,
)
from .unit import ArrayDeclaration, Unit

#: Local memory of one thread on a device, in bytes.
LOCAL_BYTES = 512 * 1024
SHORT = {"threadIdx": "_t", "blockIdx": "_b", "blockDim": "_bd", "gridDim": "_gd"}
PLAIN_EXPRESSIONS = (ast.BinOp, ast.UnaryOp, ast.Compare, ast.Tuple, ast.Slice, ast.Starred)
UNSUPPORTED_EXPRESSIONS = {
    ast.List: "a device has no lists; use a tuple, or cuda.local.array(shape, dtype)",
    ast.ListComp: "a device has no lists; use a loop and cuda.local.array(shape, dtype)",
    ast.Dict: "a device has no dictionaries",
    ast.Set: "a device has no sets",
    ast.Lambda: "a lambda cannot be compiled for a device; write a function with @cuda.jit(device=True)",
    ast.JoinedStr: "f-strings are not supported in a kernel; give print several arguments",
    ast.NamedExpr: "':=' is not supported by the emulator; assign in a statement of its own",
}
STATEMENTS_WITHOUT_SUPPORT = {
    ast.Try: "try",
    ast.With: "with",
    ast.FunctionDef: "a def inside a kernel",
    ast.ClassDef: "class",
    ast.Delete: "del",
    ast.Import: "import",
    ast.ImportFrom: "import",
    ast.Global: "global",
    ast.Nonlocal: "nonlocal",
    ast.Match: "match",
    ast.AsyncFor: "async for",
    ast.AsyncWith: "async with",
}


def normalise(source: FunctionSource) -> Unit:
    """The normal form of a kernel. KernelError, with file and line, where it uses what the emulator cannot run."""
    unit = Unit(source)
    worker = Normaliser(unit, source)
    unit.parameters = [worker.rename(name) for name in source.parameters]
    unit.body = worker.statements(source.tree.body)
    return unit


def normalise_device(source: FunctionSource, stack: tuple[FunctionSource, ...]) -> Unit:
    """The normal form of a device function that does not synchronise. stack: the functions whose calls led to it."""
    unit = Unit(source)
    worker = Normaliser(unit, source, stack=stack)
    worker.is_device = True
    unit.parameters = [worker.rename(name) for name in source.parameters]
    unit.body = worker.statements(source.tree.body)
    return unit


class Normaliser:
    """Rewrites one function into `unit`.

    prefix: put before its variables' names where the function is inlined into another
    aliases: parameters that stand for the caller's arrays, where it is inlined
    """

    def __init__(self, unit: Unit, source: FunctionSource, prefix: str = "", stack: tuple[Any, ...] = ()) -> None:
        self.unit, self.source, self.prefix, self.stack = unit, source, prefix, stack
        self.aliases: dict[str, str] = {}
        self.before: list[ast.stmt] = []  # statements that have to run before the one at hand
        self.lazy = 0  # > 0 inside an operand that Python may skip
        self.is_device = False  # whether `return value` is allowed

    def error(self, message: str, node: ast.AST) -> KernelError:
        """A KernelError that points to `node`."""
        return self.source.error(message, node)

    def rename(self, name: str) -> str:
        """How the generated source spells the learner's variable."""
        if name in self.aliases:
            return self.aliases[name]
        spelled = self.prefix + name
        if spelled.startswith("_"):
            spelled = "u" + spelled
        while spelled in RESERVED or (spelled != name and spelled in self.source.stored and not self.prefix):
            spelled += "_"
        if spelled != name:
            self.unit.spelled[spelled] = name
        return spelled

    # ---------------------------------------------------------------- expressions

    def expression(self, node: ast.expr) -> ast.expr:
        """`node` in normal form. Collectives in it become statements in self.before."""
        result = self._expression(node)
        return placed(result, node)

    def _expression(self, node: ast.expr) -> ast.expr:
        if isinstance(node, ast.Constant):
            return node
        if isinstance(node, ast.Name | ast.Attribute):
            return self.name_or_attribute(node)
        if isinstance(node, ast.Call):
            return self.call(node)
        if isinstance(node, ast.Subscript):
            return self.subscript(node)
        if isinstance(node, ast.IfExp):
            test = self.expression(node.test)
            body, orelse = self.skippable(node.body), self.skippable(node.orelse)
            return ast.IfExp(test=test, body=body, orelse=orelse)
        if isinstance(node, ast.BoolOp):
            first = self.expression(node.values[0])
            return ast.BoolOp(op=node.op, values=[first, *(self.skippable(value) for value in node.values[1:])])
        if isinstance(node, PLAIN_EXPRESSIONS):
            return self.with_children(node)
        reason = UNSUPPORTED_EXPRESSIONS.get(type(node), f"{type(node).__name__} is not supported by the emulator")
        raise self.error(reason, node)

    def skippable(self, node: ast.expr) -> ast.expr:
        """An operand that Python may skip: no collective may be in it."""
        self.lazy += 1
        try:
            return self.expression(node)
        finally:
            self.lazy -= 1

    def with_children(self, node: ast.expr) -> ast.expr:
        """`node` with its operands in normal form, evaluated in Python's order."""
        fields = [(name, value) for name, value in ast.iter_fields(node) if isinstance(value, ast.expr | list)]
        operands: list[ast.expr] = []
        for _, value in fields:
            operands += [item for item in (value if isinstance(value, list) else [value]) if isinstance(item, ast.expr)]
        done = iter(self.in_order(operands))
        new = type(node)(**dict(ast.iter_fields(node)))
        for name, value in fields:
            if isinstance(value, list):
                setattr(new, name, [next(done) if isinstance(item, ast.expr) else item for item in value])
            else:
                setattr(new, name, next(done))
        return ast.copy_location(new, node)

    def in_order(self, nodes: Sequence[ast.expr]) -> list[ast.expr]:
        """Several operands in normal form. Where one brings a collective, the earlier ones that read memory are kept in
        variables, so that they are still read before it."""
        done: list[ast.expr] = []
        for node in nodes:
            mark = len(self.before)
            new = self.expression(node)
            if len(self.before) > mark:
                for position, earlier in enumerate(done):
                    if contains(earlier, (ast.Subscript, ast.Call)):
                        kept = self.unit.fresh("kept")
                        self.before.insert(mark, placed(assign(kept, earlier), node))
                        mark += 1
                        done[position] = placed(load(kept), node)
            done.append(new)
        return done

    def name_or_attribute(self, node: ast.Name | ast.Attribute) -> ast.expr:
        """A variable; or what a global name stands for; or an attribute of either."""
        if isinstance(node, ast.Name) and node.id in self.source.stored:
            return load(self.rename(node.id))
        value = names.look_up(self.source, node)
        if value is names.UNKNOWN:
            if isinstance(node, ast.Attribute):
                owner = names.look_up(self.source, node.value)
                if owner is not names.UNKNOWN and not isinstance(owner, np.ndarray):
                    raise self.error(f"{ast.unparse(node.value)!r} has no attribute {node.attr!r}", node)
                return ast.Attribute(value=self.expression(node.value), attr=node.attr, ctx=ast.Load())
            raise self.error(f"the name {node.id!r} is not defined", node)
        return self.static(value, node)

    def static(self, value: Any, node: ast.expr) -> ast.expr:
        """What stands for a global in the generated source."""
        if isinstance(value, Intrinsic):
            return self.intrinsic_value(value.path, node)
        if isinstance(value, np.ndarray):
            return load(self.constant_array(value, node))
        found = static_expression(value)
        if found is not None:
            return found
        text = ast.unparse(node)
        if isinstance(value, DeviceFunction):
            raise self.error(f"{text!r} is a device function: call it; it cannot be stored or passed on", node)
        raise self.error(
            f"{text!r} is {describe_kind(value)}; a kernel can use numbers, tuples of them, NumPy arrays, types, the "
            "functions of math and NumPy, and device functions",
            node,
        )

    def constant_array(self, value: np.ndarray[Any, Any], node: ast.expr) -> str:
        """The name of the hidden argument that brings a global array. Numba freezes global arrays; so does this."""
        if value.dtype.kind not in "biufcV":
            raise self.error(f"{ast.unparse(node)!r} is an array of {value.dtype}; a kernel can use numbers", node)
        name = names.array_name(ast.unparse(node), value)
        if name not in self.unit.constants:
            frozen = value.copy()
            frozen.flags.writeable = False
            self.unit.constants[name] = frozen
            self.unit.spelled[name] = ast.unparse(node)
        return name

    def intrinsic_value(self, path: str, node: ast.expr) -> ast.expr:
        """cuda.X that is not called."""
        first, _, last = path.partition(".")
        if first in INDEX and last in ("x", "y", "z"):
            return load(SHORT[first] + last)
        if path == "laneid":
            return load("_lane")
        if path == "warpsize":
            return constant(32)
        if path in INDEX:
            raise self.error(f"cuda.{path} has the fields .x, .y and .z; take one of them", node)
        raise self.unsupported(path, node)

    def unsupported(self, path: str, node: ast.AST) -> KernelError:
        """For a part of cuda that the emulator does not have."""
        return self.error(f"cuda.{path} is not supported by the emulator", node)

    def subscript(self, node: ast.Subscript) -> ast.expr:
        """array[index]."""
        value, index = self.in_order([node.value, node.slice])
        return ast.Subscript(value=value, slice=index, ctx=ast.Load())

    # ---------------------------------------------------------------- calls

    def call(self, node: ast.Call) -> ast.expr:
        """A call: of CUDA's own functions, of a device function, or of what Numba knows."""
        function = names.look_up(self.source, node.func)
        if isinstance(function, Intrinsic):
            return self.intrinsic_call(function.path, node)
        if isinstance(function, DeviceFunction):
            from .inline import device_call  # the two call each other: inlining normalises the function it inlines

            return device_call(self, function, node)
        if getattr(function, "is_cuda_kernel", False):
            raise self.error(
                "a kernel cannot launch a kernel; mark the function @cuda.jit(device=True) to call it", node
            )
        if isinstance(function, FunctionType) and static_expression(function) is None:
            raise self.error(
                f"{ast.unparse(node.func)!r} is a plain Python function; a kernel can call it once it is marked "
                "@cuda.jit(device=True)",
                node,
            )
        if function is print:
            self.unit.prints = True
        target = node.func
        operands = [target, *node.args, *(keyword.value for keyword in node.keywords)]
        new_target, *new = self.in_order(operands)
        arguments, values = new[: len(node.args)], new[len(node.args) :]
        keywords = [ast.keyword(arg=old.arg, value=value) for old, value in zip(node.keywords, values, strict=True)]
        return ast.Call(func=new_target, args=arguments, keywords=keywords)

    def intrinsic_call(self, path: str, node: ast.Call) -> ast.expr:
        """cuda.X(...)."""
        if path in COLLECTIVES:
            return self.collective(path, node)
        if path in FENCES:
            return constant(None)
        if path in ("grid", "gridsize"):
            return self.grid(path, node)
        if path == "const.array_like" and len(node.args) == 1:
            return self.expression(node.args[0])
        if path in ("shared.array", "local.array"):
            raise self.error(f"cuda.{path}(shape, dtype) must be assigned to a name, in a statement of its own", node)
        if node.keywords:
            raise self.error(f"cuda.{path}() takes its arguments by position in the emulator", node)
        arguments = self.in_order(node.args)
        if path.startswith("atomic.") and path[7:] in ATOMICS:
            expected = {"cas": 4, "compare_and_swap": 3}.get(path[7:], 3)
            if len(arguments) != expected:
                raise self.error(f"cuda.{path}() takes {expected} arguments; {len(arguments)} came", node)
            return call(f"_atomic_{path[7:]}", *arguments)
        if path in BITS:
            if path == "lanemask_lt":
                arguments = [load("_lane")]
            # A thread's index has 32 bits on a device, and these functions count bits.
            arguments = [
                call("np.int32", a) if self.is_index(a) and path not in ("fma", "selp") else a for a in arguments
            ]
            return call(f"_{path}", *arguments)
        if path in INDEX:
            raise self.error(f"cuda.{path} is not a function; write cuda.{path}.x", node)
        raise self.unsupported(path + "()", node)

    @staticmethod
    def is_index(node: ast.expr) -> bool:
        """Whether this is threadIdx.x or one of its kin, bare."""
        return isinstance(node, ast.Name) and node.id.startswith("_") and node.id[1:-1] in ("t", "b", "bd", "gd")

    def grid(self, path: str, node: ast.Call) -> ast.expr:
        """cuda.grid(n) and cuda.gridsize(n) in terms of the indices."""
        dimensions = names.constant(self.source, node.args[0]) if len(node.args) == 1 else None
        if dimensions not in (1, 2, 3):
            raise self.error(f"cuda.{path}() takes the number of dimensions: 1, 2 or 3, written as a constant", node)
        pattern = "_b{0} * _bd{0} + _t{0}" if path == "grid" else "_gd{0} * _bd{0}"
        parts = [expression(pattern.format(axis)) for axis in "xyz"[:dimensions]]
        return parts[0] if dimensions == 1 else ast.Tuple(elts=parts, ctx=ast.Load())

    def collective(self, path: str, node: ast.Call) -> ast.expr:
        """A barrier, shuffle or vote: a statement of its own, its result in a variable."""
        if self.lazy:
            raise self.error(
                f"cuda.{path}() inside 'a if c else b', 'and' or 'or' is not supported by the emulator: not every "
                "thread may reach it. Call it in a statement of its own, before",
                node,
            )
        wanted = {"syncthreads": (0,), "activemask": (0,), "syncwarp": (0, 1)}.get(path)
        if wanted is None:
            wanted = (1,) if path.startswith("syncthreads") else (2,) if path in VOTES else (3,)
        if len(node.args) not in wanted or node.keywords:
            count = " or ".join(map(str, wanted))
            raise self.error(f"cuda.{path}() takes {count} arguments by position; {len(node.args)} came", node)
        arguments = self.in_order(node.args) if node.args else []
        operands: list[ast.expr] = []
        for position, argument in enumerate(arguments):
            is_value = position == (0 if path.startswith("syncthreads") else 1)  # every thread brings its own
            if isinstance(argument, ast.Constant) and not is_value:
                operands.append(argument)
                continue
            kept = self.unit.fresh("operand")
            self.before.append(placed(assign(kept, argument), node))
            operands.append(placed(load(kept), node))
        if path in ("syncthreads", "syncwarp"):
            self.before.append(Collective(path, operands, [], node.lineno))
            return constant(None)
        results = [self.unit.fresh("result") for _ in range(2 if path == "match_all_sync" else 1)]
        self.before.append(placed(Collective(path, operands, [store(r) for r in results], node.lineno), node))
        if len(results) == 1:
            return load(results[0])
        return ast.Tuple(elts=[load(result) for result in results], ctx=ast.Load())

    # ---------------------------------------------------------------- statements

    def statements(self, body: Sequence[ast.stmt]) -> list[ast.stmt]:
        """A list of statements in normal form."""
        done: list[ast.stmt] = []
        for statement in body:
            outer, self.before = self.before, []
            new = self.statement(statement)
            done += [placed(part, statement) for part in [*self.before, *new]]
            self.before = outer
            if isinstance(statement, JUMPS):  # what follows is never reached
                break
        return done or [placed(ast.Pass(), body[0])] if body else []

    def statement(self, node: ast.stmt) -> list[ast.stmt]:
        """One statement in normal form: none, one or several."""
        if isinstance(node, ast.Pass | ast.Break | ast.Continue):
            return [] if isinstance(node, ast.Pass) else [node]
        if isinstance(node, ast.Expr):
            if isinstance(node.value, ast.Constant):  # a docstring
                return []
            value = self.expression(node.value)
            return [ast.Expr(value=value)] if contains(value, ast.Call) else []
        if isinstance(node, ast.AnnAssign):
            return [] if node.value is None else self.assignment([node.target], node.value, node)
        if isinstance(node, ast.Assign):
            return self.assignment(node.targets, node.value, node)
        if isinstance(node, ast.AugAssign):
            return self.augmented(node)
        if isinstance(node, ast.If):
            test = self.expression(node.test)
            return [ast.If(test=test, body=self.statements(node.body), orelse=self.statements(node.orelse))]
        if isinstance(node, ast.For | ast.While):
            return self.loop(node)
        if isinstance(node, ast.Return):
            return self.returned(node)
        if isinstance(node, ast.Assert):
            said = "" if node.msg is None else f": {self.text_of(node.msg)}"
            failure = self.raised(f"assert {ast.unparse(node.test)}{said}")
            return [ast.If(test=negate(self.expression(node.test)), body=[placed(failure, node)], orelse=[])]
        if isinstance(node, ast.Raise):
            return [self.raised("raise" if node.exc is None else f"raise {ast.unparse(node.exc)}")]
        what = STATEMENTS_WITHOUT_SUPPORT.get(type(node), type(node).__name__)
        raise self.error(f"{what} is not supported by the emulator inside a kernel", node)

    def text_of(self, node: ast.expr) -> str:
        """An assertion's message, as text."""
        value = names.look_up(self.source, node)
        return value if isinstance(value, str) else ast.unparse(node)

    def raised(self, text: str) -> ast.stmt:
        """The statement that ends the launch with the learner's own words."""
        self.unit.raised.append(text)
        return ast.Expr(value=call("_raise", constant(len(self.unit.raised) - 1)))

    def returned(self, node: ast.Return) -> list[ast.stmt]:
        """return; with a value in device functions only."""
        if node.value is None or (isinstance(node.value, ast.Constant) and node.value.value is None):
            return [ast.Return(value=None)]
        if not self.is_device:
            raise self.error("a kernel cannot return a value: write it into an array that you pass in", node)
        return [ast.Return(value=self.expression(node.value))]

    def loop(self, node: ast.For | ast.While) -> list[ast.stmt]:
        """A loop. Where the test of a `while` has a collective, the test becomes a statement of the body."""
        word = "for" if isinstance(node, ast.For) else "while"
        if node.orelse:
            raise self.error(f"{word}/else is not supported by the emulator", node)
        if isinstance(node, ast.For):
            iterated = self.expression(node.iter)
            target = self.target(node.target)
            return [ast.For(target=target, iter=iterated, body=self.statements(node.body), orelse=[])]
        outer, self.before = self.before, []
        test = self.expression(node.test)
        first, self.before = self.before, outer
        body = self.statements(node.body)
        if first:
            leave = placed(ast.If(test=negate(test), body=[ast.Break()], orelse=[]), node)
            return [ast.While(test=constant(True), body=[*first, leave, *body], orelse=[])]
        self.warn_of_waiting(node, test, body)
        return [ast.While(test=test, body=body, orelse=[])]

    def warn_of_waiting(self, node: ast.While, test: ast.expr, body: list[ast.stmt]) -> None:
        """Warn where a loop can only end because of what another thread writes."""
        atomics = any(
            isinstance(part, ast.Call) and isinstance(part.func, ast.Name) and part.func.id.startswith("_atomic_")
            for part in ast.walk(test)
        )
        reads = contains(test, ast.Subscript) and not loaded_names(test) & stored_names(body)
        writes = {
            part.value.id
            for statement in body
            for part in ast.walk(statement)
            if isinstance(part, ast.Subscript) and isinstance(part.ctx, ast.Store) and isinstance(part.value, ast.Name)
        }
        leaves = contains(body, JUMPS)
        if atomics or (reads and not writes & loaded_names(test) and not leaves):
            self.unit.warnings.append(
                (
                    node.lineno,
                    "this loop waits for what another thread writes. The emulator runs the threads of a block one after "
                    "another between barriers, so it may wait for ever (Ctrl-C ends it); on a device such loops can hang "
                    "too. Use cuda.syncthreads(), or a second kernel",
                )
            )

    def augmented(self, node: ast.AugAssign) -> list[ast.stmt]:
        """target += value, as target = target + value."""
        if isinstance(node.target, ast.Name):
            read = ast.copy_location(ast.Name(id=node.target.id, ctx=ast.Load()), node)
            old, value = self.in_order([read, node.value])
            return [ast.Assign(targets=[store(self.rename(node.target.id))], value=ast.BinOp(old, node.op, value))]
        if not isinstance(node.target, ast.Subscript):
            raise self.error("only names and array elements can be augmented in a kernel", node)
        element = self.with_children(node.target)
        assert isinstance(element, ast.Subscript)
        element.slice = self.settled(element.slice, node)
        read_element = copied(element)
        read_element.ctx = ast.Load()
        old_element: ast.expr = read_element
        mark = len(self.before)
        value = self.expression(node.value)
        if len(self.before) > mark:  # the value brought a collective: the element is read before it
            kept = self.unit.fresh("kept")
            self.before.insert(mark, placed(assign(kept, old_element), node))
            old_element = load(kept)
        return [ast.Assign(targets=[element], value=ast.BinOp(left=old_element, op=node.op, right=value))]

    def settled(self, index: ast.expr, node: ast.AST) -> ast.expr:
        """The index with every part that must not be evaluated twice put in a variable."""
        parts = []
        for part in index_parts(index):
            if contains(part, (ast.Call, ast.Subscript)):
                kept = self.unit.fresh("index")
                self.before.append(placed(assign(kept, part), node))
                part = load(kept)
            parts.append(part)
        return parts[0] if not isinstance(index, ast.Tuple) else ast.Tuple(elts=parts, ctx=ast.Load())

    def assignment(self, targets: list[ast.expr], value: ast.expr, node: ast.stmt) -> list[ast.stmt]:
        """One or several assignments of one value to one name or element each."""
        if isinstance(value, ast.Call):
            path = names.cuda_path(self.source, value.func)
            if path in ("shared.array", "local.array"):
                return self.declaration(path, targets, value, node)
        if len(targets) == 1 and isinstance(targets[0], ast.Tuple | ast.List):
            return self.unpacked(targets[0], self.expression(value), node)
        if len(targets) == 1 and isinstance(targets[0], ast.Subscript):
            base, index = targets[0].value, targets[0].slice
            new_value, new_base, new_index = self.in_order([value, base, index])
            return [
                ast.Assign(targets=[ast.Subscript(value=new_base, slice=new_index, ctx=ast.Store())], value=new_value)
            ]
        new_value = self.expression(value)
        if len(targets) == 1:
            return [ast.Assign(targets=[self.target(targets[0])], value=new_value)]
        kept = self.unit.fresh("value")
        done: list[ast.stmt] = [assign(kept, new_value)]
        for target in targets:
            done += (
                self.unpacked(target, load(kept), node)
                if isinstance(target, ast.Tuple | ast.List)
                else [ast.Assign(targets=[self.target(target)], value=load(kept))]
            )
        return done

    def target(self, node: ast.expr) -> ast.expr:
        """Something that is assigned to."""
        if isinstance(node, ast.Name):
            return store(self.rename(node.id))
        if isinstance(node, ast.Subscript):
            base, index = self.in_order([node.value, node.slice])
            return ast.Subscript(value=base, slice=index, ctx=ast.Store())
        if isinstance(node, ast.Attribute):
            return ast.Attribute(value=self.expression(node.value), attr=node.attr, ctx=ast.Store())
        if isinstance(node, ast.Tuple | ast.List):
            return ast.Tuple(elts=[self.target(element) for element in node.elts], ctx=ast.Store())
        raise self.error(f"{ast.unparse(node)!r} cannot be assigned to in a kernel", node)

    def unpacked(self, target: ast.Tuple | ast.List, value: ast.expr, node: ast.stmt) -> list[ast.stmt]:
        """a, b = value: one assignment each. A swap goes through variables of its own."""
        count = len(target.elts)
        done: list[ast.stmt] = []
        if isinstance(value, ast.Tuple):
            if len(value.elts) != count:
                raise self.error(f"{count} names on the left, {len(value.elts)} values on the right", node)
            parts: list[ast.expr] = list(value.elts)
            assigned = {self.rename(e.id) for e in target.elts if isinstance(e, ast.Name)}
            only_names = all(isinstance(e, ast.Name) for e in target.elts)
            if not only_names or assigned & loaded_names(parts):
                kept = [self.unit.fresh("value") for _ in parts]
                done += [assign(name, part) for name, part in zip(kept, parts, strict=True)]
                parts = [load(name) for name in kept]
        elif isinstance(value, ast.Attribute) and value.attr in ("shape", "strides"):
            parts = [ast.Subscript(value=copied(value), slice=constant(i), ctx=ast.Load()) for i in range(count)]
        else:
            kept_tuple = self.unit.fresh("value")
            done.append(assign(kept_tuple, value))
            parts = [ast.Subscript(value=load(kept_tuple), slice=constant(i), ctx=ast.Load()) for i in range(count)]
        for element, part in zip(target.elts, parts, strict=True):
            if isinstance(element, ast.Tuple | ast.List):
                done += self.unpacked(element, part, node)
            else:
                done.append(ast.Assign(targets=[self.target(element)], value=part))
        return done

    def declaration(self, path: str, targets: list[ast.expr], value: ast.Call, node: ast.stmt) -> list[ast.stmt]:
        """name = cuda.shared.array(shape, dtype): an entry in the unit's tables."""
        if len(targets) != 1 or not isinstance(targets[0], ast.Name):
            raise self.error(f"cuda.{path}(shape, dtype) must be assigned to one name", node)
        given: dict[str, ast.expr] = dict(zip(("shape", "dtype", "alignment"), value.args, strict=False))
        given.update({keyword.arg: keyword.value for keyword in value.keywords if keyword.arg})
        if not {"shape", "dtype"} <= set(given):
            raise self.error(f"cuda.{path} needs a shape and a dtype", node)
        shape = names.constant(self.source, given["shape"])
        dimensions = shape if isinstance(shape, tuple) else (shape,)
        if not all(isinstance(n, int | np.integer) and not isinstance(n, bool) and n >= 0 for n in dimensions):
            raise self.error(
                f"the shape of cuda.{path} is {ast.unparse(given['shape'])!r}; it must be known when the kernel is compiled: "
                "a number, a global or captured constant, or a tuple of those. For a size known at the launch only, use "
                "cuda.shared.array(0, dtype) and kernel[blocks, threads, stream, bytes]",
                node,
            )
        try:
            dtype = as_dtype(names.constant(self.source, given["dtype"]))
        except TypeError:
            raise self.error(
                f"the dtype of cuda.{path} is {ast.unparse(given['dtype'])!r}; it must be a Numba or NumPy type", node
            ) from None
        if dtype.kind not in "biufcV":
            raise self.error(f"cuda.{path} cannot hold {dtype}; it holds booleans, integers and floats", node)
        name = self.rename(targets[0].id)
        if path == "local.array" and int(np.prod(dimensions)) * dtype.itemsize > LOCAL_BYTES:
            raise self.error(
                f"{targets[0].id!r} takes {int(np.prod(dimensions)) * dtype.itemsize:,} bytes of every thread's local memory; a "
                f"device has {LOCAL_BYTES:,}. Use a global array that you pass in",
                node,
            )
        table = self.unit.shared if path == "shared.array" else self.unit.local
        new = ArrayDeclaration(name, tuple(int(n) for n in dimensions), dtype, node.lineno)
        known = self.unit.arrays.get(name)
        if known is not None and not (self.prefix and (known.shape, known.dtype) == (new.shape, new.dtype)):
            raise self.error(f"{targets[0].id!r} is declared twice; give the second array a name of its own", node)
        table[name] = new
        return []
