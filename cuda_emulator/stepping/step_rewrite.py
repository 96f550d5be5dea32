"""Rewrite the learner's function so that step mode can run it, with the same file, lines and columns.

    cuda.threadIdx.x                 __cuda__.threadIdx.x: the namespace of the running thread
    cuda.syncthreads()               (yield ("syncthreads",)): the thread stops here until the scheduler resumes it
    x if c else 0.0                  __numbers__.unified(x if c else 0.0, 0.0): both values have one type
    a[i] = a[i] + b                  __cuda__.checked(a, "a")[i] = __numbers__.add(__cuda__.checked(a, "a")[i], b)
    helper(x)                        __function__(helper)(x), with `yield from` before it if it synchronises
    return                           return 12: the line of the return statement

Tracebacks and pdb show the learner's source, since line and column numbers do not change.
"""

from __future__ import annotations

import ast
import copy
import math
from types import CodeType, FrameType
from typing import Any

import numba
import numpy as np

from ..compiler.functions import DeviceFunction
from ..compiler.reading import groups
from ..compiler.reading.expressions import NO_VALUE
from ..compiler.reading.inline import FOR_COMPILERS, BoundSource, constant_arguments
from ..compiler.reading.inline import by_position as in_order_of_parameters
from ..compiler.reading.names import UNKNOWN, callable_in_kernels, constant, cuda_path, look_up
from ..compiler.reading.nested import NestedFunction, nested_functions
from ..compiler.reading.signatures import by_position
from ..compiler.reading.source import FunctionSource, own_nodes
from ..errors import KernelError
from ..intrinsics import COLLECTIVES, GRID_BARRIER, LOADS, NOT_SUPPORTED, STORES, not_supported
from .step_namespace import Thread
from .step_numbers import OPERATORS

CUDA, NUMBERS, FUNCTION = "__cuda__", "__numbers__", "__function__"


def device_source(value: Any) -> FunctionSource | None:
    """The source of a function that a kernel may call (device function, kernel or numba.njit function); else None."""
    source = getattr(callable_in_kernels(value), "source", None)
    return source if isinstance(source, FunctionSource) else None


def synchronises(source: FunctionSource, seen: tuple[FunctionSource, ...] = ()) -> bool:
    """Whether the function, or a function that it calls, has a barrier, a shuffle or a vote."""
    for node in own_nodes(source.tree.body):
        if isinstance(node, ast.Call):
            if cuda_path(source, node.func) in COLLECTIVES or groups.is_barrier(source, node):
                return True
            function = look_up(source, node.func)
            called = device_source(function)
            if called is None or any(called.tree is known.tree for known in (source, *seen)):
                continue
            if not isinstance(function, NestedFunction):
                _, called = Rewrite(source, False).bound(node, called)
            if synchronises(called, (source, *seen)):
                return True
    return False


def compile_step(source: FunctionSource, is_kernel: bool) -> CodeType:
    """The code of a module that defines the rewritten function."""
    tree = copy.deepcopy(source.tree)
    tree.decorator_list, tree.returns = [], None
    tree.args = parameters_of(source, tree.args)
    rewrite = Rewrite(source, is_kernel)
    tree.body = [new for old in tree.body for new in rewrite.statements(old)]
    module = ast.Module(body=[tree], type_ignores=[])
    ast.fix_missing_locations(module)
    return compile(module, source.filename, "exec")


def parameters_of(source: FunctionSource, arguments: ast.arguments) -> ast.arguments:
    """The function's parameters without annotations. Those bound to functions and types are names, and go."""
    for argument in (*arguments.posonlyargs, *arguments.args):
        argument.annotation = None
    if isinstance(source, BoundSource):
        arguments.posonlyargs = [each for each in arguments.posonlyargs if each.arg not in source.bound]
        arguments.args = [each for each in arguments.args if each.arg not in source.bound]
        arguments.defaults = []  # a call gives the others all
    return arguments


class Rewrite(ast.NodeTransformer):
    def __init__(self, source: FunctionSource, is_kernel: bool) -> None:
        self.source, self.is_kernel = source, is_kernel
        self.temporaries = 0

    def statements(self, node: ast.stmt) -> list[ast.stmt]:
        new = self.visit(node)
        return new if isinstance(new, list) else [new]

    # ---- names

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        path = cuda_path(self.source, node)
        if path is None:
            return self.generic_visit(node)  # type: ignore[return-value]
        return self._cuda(path, node)

    def visit_Name(self, node: ast.Name) -> ast.expr:
        path = cuda_path(self.source, node) if isinstance(node.ctx, ast.Load) else None
        return node if path is None else self._cuda(path, node)

    def _cuda(self, path: str, node: ast.expr) -> ast.expr:
        if path.split(".")[0] in NOT_SUPPORTED:
            raise self.source.error(not_supported(path), node)
        new: ast.expr = _name(CUDA)
        for name in path.split("."):
            new = ast.Attribute(value=new, attr=name, ctx=ast.Load())
        return _at(new, node)

    # ---- calls

    def visit_Call(self, node: ast.Call) -> ast.expr:
        if groups.is_barrier(self.source, node) and not node.args:
            return self._collective(GRID_BARRIER, node)
        path = cuda_path(self.source, node.func)
        if path is not None:
            node = by_position(self.source, path, node)
        if path in LOADS and len(node.args) == 2:
            return self.visit_Subscript(_element(node, ast.Load()))
        if path in (*LOADS, *STORES):
            raise self.source.error(
                f"cuda.{path}() takes {'an array and an index' if path in LOADS else 'an array, an index and a value'}"
                + (", in a statement of its own" if path in STORES else ""),
                node,
            )
        if path in COLLECTIVES:
            return self._collective(path, node)
        if path is not None and path.startswith(("shared.", "local.", "const.")):
            return self._array(path, node)
        if path is not None and path.startswith("atomic.") and node.args:
            return self._atomic(node)
        return self._function(node) if path is None else self.generic_visit(node)  # type: ignore[return-value]

    def visit_Expr(self, node: ast.Expr) -> ast.stmt:
        """A call as a statement: cuda.stcg(array, i, value) becomes array[i] = value."""
        path = cuda_path(self.source, node.value.func) if isinstance(node.value, ast.Call) else None
        if path not in STORES:
            return self.generic_visit(node)  # type: ignore[return-value]
        assert isinstance(node.value, ast.Call)
        call = by_position(self.source, path, node.value)
        if len(call.args) != 3:
            return self.generic_visit(node)  # type: ignore[return-value]
        target = self.visit_Subscript(_element(call, ast.Store()))
        return _at(ast.Assign(targets=[target], value=self.visit(call.args[2])), node)

    def _collective(self, path: str, node: ast.Call) -> ast.expr:
        arguments = [self.visit(argument) for argument in (*node.args, *(keyword.value for keyword in node.keywords))]
        request = ast.Tuple(elts=[ast.Constant(value=path), *arguments], ctx=ast.Load())
        return _at(ast.Yield(value=request), node)

    def _array(self, path: str, node: ast.Call) -> ast.expr:
        shape = node.args[0] if node.args else next((word.value for word in node.keywords if word.arg == "shape"), None)
        if not path.startswith("const.") and (shape is None or constant(self.source, shape) is UNKNOWN):
            raise self.source.error(
                f"cuda.{path} needs a shape that is known when the kernel is compiled: a number or a global constant"
                + (
                    "; a size that changes from launch to launch is dynamic shared memory: shape 0" * ("shared" in path)
                ),
                node,
            )
        site = ast.Tuple(
            elts=[ast.Constant(value=part) for part in (self.source.filename, node.lineno, node.col_offset)],
            ctx=ast.Load(),
        )
        new: ast.Call = self.generic_visit(node)  # type: ignore[assignment]
        new.keywords = [word for word in new.keywords if word.arg != "alignment"]
        new.args = [site, *new.args[:2]]
        return new

    def _atomic(self, node: ast.Call) -> ast.expr:
        array = self._checked(node.args[0])
        rest = [self.visit(argument) for argument in node.args[1:]]
        return _at(ast.Call(func=self.visit(node.func), args=[array, *rest], keywords=[]), node)

    def _function(self, node: ast.Call) -> ast.expr:
        value = look_up(self.source, node.func)
        called = None if value is UNKNOWN else device_source(value)
        if called is not None and not isinstance(value, NestedFunction):
            node, called = self.bound(node, called)
        new: ast.Call = self.generic_visit(node)  # type: ignore[assignment]
        if isinstance(value, NestedFunction):
            return _at(ast.YieldFrom(value=new), node) if synchronises(value.source) else new
        if called is not None:
            new.func = _at(ast.Call(func=_name(FUNCTION), args=[new.func], keywords=[]), node)
            return _at(ast.YieldFrom(value=new), node) if synchronises(called) else new
        name = _number_function(value)
        if name is None:
            return new
        first = [] if name in ("least", "greatest", "pow") else [new.func]
        return self._number(name, first + new.args, node)

    def error(self, message: str, node: ast.AST) -> KernelError:
        """A KernelError that points to `node`."""
        return self.source.error(message, node)

    def bound(self, node: ast.Call, called: FunctionSource) -> tuple[ast.Call, FunctionSource]:
        """A call that passes functions or types, and the function called with these in place of its parameters."""
        given = [*node.args, *(keyword.value for keyword in node.keywords)]
        if not any(isinstance(look_up(self.source, argument), FOR_COMPILERS) for argument in given):
            return node, called
        arguments = in_order_of_parameters(self, called, node)
        bound = constant_arguments(self, called, arguments)
        passed = next((each for each in given if isinstance(look_up(self.source, each), DeviceFunction)), None)
        if not bound and passed is not None:
            raise self.source.error(f"{ast.unparse(passed)!r} {NO_VALUE}", passed)
        if not bound:
            return node, called
        name = f"__bound_{node.lineno}_{node.col_offset}__"
        self.source.names[name] = function = DeviceFunction(called.function)
        function.__dict__["source"] = source = BoundSource(called, bound)
        rest = [argument for name, argument in zip(called.parameters, arguments, strict=True) if name not in bound]
        return _at(ast.Call(func=_name(name), args=rest, keywords=[]), node), source

    # ---- arithmetic

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        name = OPERATORS[type(node.op).__name__]
        return self._number(name, [self.visit(node.left), self.visit(node.right)], node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        operand = self.visit(node.operand)
        if isinstance(node.op, ast.Not):
            return _at(ast.UnaryOp(op=node.op, operand=operand), node)
        return self._number(OPERATORS[type(node.op).__name__], [operand], node)

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        new: ast.Compare = self.generic_visit(node)  # type: ignore[assignment]
        if not any(isinstance(op, ast.Is | ast.IsNot | ast.In | ast.NotIn) for op in new.ops):
            new.left = self._number("exact", [new.left], node)
            new.comparators = [self._number("exact", [right], node) for right in new.comparators]
        return new

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        """A value that is not chosen gives its type, too, if it is a constant: computing another one might fail.

        Two constants are left alone: a compiler makes each of the type that is needed.
        """
        new: ast.IfExp = self.generic_visit(node)  # type: ignore[assignment]
        constants = [copy.deepcopy(each) for each in (new.body, new.orelse) if self._is_constant(each)]
        return self._number("unified", [new, *constants], node) if len(constants) == 1 else new

    def _is_constant(self, node: ast.expr) -> bool:
        """Whether an expression is a literal, with its sign, or a global number."""
        if isinstance(node, ast.Call):  # __numbers__.neg(1.0)
            return ast.unparse(node.func).startswith(NUMBERS) and all(map(self._is_constant, node.args))
        if isinstance(node, ast.Name) and node.id in self.source.stored:
            return False
        return isinstance(node, ast.Constant | ast.Name) and constant(self.source, node) is not UNKNOWN

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        if type(node.value) is int and node.value >= 2**63:
            return self._number("strong", [node], node)
        return node

    def _number(self, name: str, arguments: list[ast.expr], node: ast.AST) -> ast.expr:
        function = ast.Attribute(value=_name(NUMBERS), attr=name, ctx=ast.Load())
        return _at(ast.Call(func=function, args=arguments, keywords=[]), node)

    # ---- memory

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        if isinstance(look_up(self.source, node.value), numba.types.Type):
            return node
        return _at(ast.Subscript(value=self._checked(node.value), slice=self.visit(node.slice), ctx=node.ctx), node)

    def _checked(self, array: ast.expr) -> ast.expr:
        text = ast.Constant(value=ast.unparse(array))
        function = ast.Attribute(value=_name(CUDA), attr="checked", ctx=ast.Load())
        return _at(ast.Call(func=function, args=[self.visit(array), text], keywords=[]), array)

    def visit_AugAssign(self, node: ast.AugAssign) -> list[ast.stmt]:
        """`x += y` in single steps, in Python's order: the array, the index, the old value, y, the store."""
        name = OPERATORS[type(node.op).__name__]
        target = node.target
        if isinstance(target, ast.Subscript):
            array, index = self._temporary(), self._temporary()
            before = [_set(array, self._checked(target.value), node), _set(index, self.visit(target.slice), node)]
            read = ast.Subscript(value=_name(array), slice=_name(index), ctx=ast.Load())
            write: ast.expr = ast.Subscript(value=_name(array), slice=_name(index), ctx=ast.Store())
        elif isinstance(target, ast.Attribute):  # a record's field
            record = self._temporary()
            before = [_set(record, self.visit(target.value), node)]
            read = ast.Attribute(value=_name(record), attr=target.attr, ctx=ast.Load())  # type: ignore[assignment]
            write = ast.Attribute(value=_name(record), attr=target.attr, ctx=ast.Store())
        else:
            before, write = [], target
            read = copy.deepcopy(target)  # type: ignore[assignment]
            read.ctx = ast.Load()
        value = self._number(name, [read, self.visit(node.value)], node)
        return [*before, _at(ast.Assign(targets=[write], value=value), node)]

    def _temporary(self) -> str:
        self.temporaries += 1
        return f"__step_{self.temporaries}"

    # ---- return, raise, assert; statements that a kernel cannot have

    def visit_Return(self, node: ast.Return) -> ast.stmt:
        if not self.is_kernel:
            return self.generic_visit(node)  # type: ignore[return-value]
        if node.value is not None and constant(self.source, node.value) is not None:
            raise self.source.error("a kernel returns nothing: write the result into an array", node)
        return _at(ast.Return(value=ast.Constant(value=node.lineno)), node)

    def visit_Raise(self, node: ast.Raise) -> ast.stmt:
        said = ast.unparse(node)
        return self._stop(said, node, None if node.exc is None else self.visit(node.exc))

    def visit_Assert(self, node: ast.Assert) -> ast.stmt:
        said = ast.unparse(node)
        arguments = [] if node.msg is None else [self.visit(node.msg)]
        cause = ast.Call(func=_name("AssertionError"), args=arguments, keywords=[])
        test = ast.UnaryOp(op=ast.Not(), operand=self.visit(node.test))
        return _at(ast.If(test=test, body=[self._stop(said, node, cause)], orelse=[]), node)

    def _stop(self, said: str, node: ast.stmt, cause: ast.expr | None) -> ast.stmt:
        """A statement that raises a KernelError with the text of the learner's statement, `said`.

        cause: the learner's exception, whose message contains values
        """
        function = ast.Attribute(value=_name(CUDA), attr="raised", ctx=ast.Load())
        error = ast.Call(func=function, args=[ast.Constant(value=said)], keywords=[])
        return _at(ast.Raise(exc=error, cause=cause), node)

    # ---- functions inside a kernel: they stay where they are

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.stmt:
        inner = Rewrite(nested_functions(self.source)[node.name].source, is_kernel=False)
        node.body = [new for old in node.body for new in inner.statements(old)]
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.stmt:
        """An assignment; that of a lambda is rewritten like a function."""
        targets = [target.id for target in node.targets if isinstance(target, ast.Name)]
        if not isinstance(node.value, ast.Lambda) or not targets:
            return self.generic_visit(node)  # type: ignore[return-value]
        inner = Rewrite(nested_functions(self.source)[targets[0]].source, is_kernel=False)
        node.value.body = inner.visit(node.value.body)
        return node

    def _refuse(self, node: ast.AST) -> ast.AST:
        raise self.source.error("this function inside a kernel is not supported by the emulator: give it a name", node)

    visit_AsyncFunctionDef = visit_Lambda = visit_ClassDef = _refuse


def _number_function(value: Any) -> str | None:
    """The name of the function of step_numbers that replaces a call of `value`; None if Python's own is used."""
    if value is min or value is max:
        return "least" if value is min else "greatest"
    if value is pow:
        return "pow"
    if isinstance(value, numba.types.Type) or (isinstance(value, type) and issubclass(value, int | float | np.generic)):
        return "convert"
    if isinstance(value, np.ufunc):
        return "universal"
    if getattr(value, "__module__", None) == "math" and getattr(math, value.__name__, None) is value:
        return "mathematics"
    return None


def _element(node: ast.Call, context: ast.expr_context) -> ast.Subscript:
    """The element array[i] of a call cuda.ldcg(array, i) or cuda.stcg(array, i, value)."""
    return _at(ast.Subscript(value=node.args[0], slice=node.args[1], ctx=context), node)


def _name(name: str) -> ast.Name:
    return ast.Name(id=name, ctx=ast.Load())


def _set(name: str, value: ast.expr, node: ast.AST) -> ast.stmt:
    return _at(ast.Assign(targets=[ast.Name(id=name, ctx=ast.Store())], value=value), node)


def _at(new: Any, old: ast.AST) -> Any:
    """`new` with the position of `old`; its parts get the same position if they have none."""
    ast.copy_location(new, old)
    for part in ast.walk(new):
        if isinstance(part, ast.expr | ast.stmt) and (part is not new) and not hasattr(part, "end_lineno"):
            ast.copy_location(part, old)
    return new


def running_thread(frame: FrameType | None) -> tuple[FrameType, Thread] | None:
    """The innermost frame of a kernel's or device function's own lines around a frame, and the thread that runs it."""
    while frame is not None and CUDA not in frame.f_globals:
        frame = frame.f_back
    return None if frame is None else (frame, frame.f_globals[CUDA].running)
