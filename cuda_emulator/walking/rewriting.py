"""Rewrite the learner's function for a walk: it stops with `yield` before each statement and at each access.

    tile[y] = a[i]                  yield 4                                    the mark of the statement
                                    __walk_1 = yield (5, __cuda__.checked(a, "a"), i)
                                    yield (6, __cuda__.checked(tile, "tile"), y, __walk_1)
    while k < n:                    yield 7
                                    while (yield 8) or k < n:                  the answer to a mark is None
    for k in range(n):              yield 9
                                    for k in range(n): yield 10
    helper(x)                       yield from __cuda__.called(11, __function__(helper), x)

All else is as in step mode (stepping/step_rewrite.py).
"""

from __future__ import annotations

import ast
import copy
from types import CodeType
from typing import Any

from ..compiler.reading.names import UNKNOWN, cuda_path, look_up
from ..compiler.reading.nested import NestedFunction, nested_functions
from ..compiler.reading.signatures import by_position
from ..compiler.reading.source import FunctionSource
from ..intrinsics import BARRIERS, STORES
from ..stepping.step_numbers import OPERATORS
from ..stepping.step_rewrite import CUDA, FUNCTION, Rewrite, device_source, parameters_of
from .marks import Kind, Mark, Plan


def compile_walk(source: FunctionSource, is_kernel: bool, plan: Plan) -> CodeType:
    """The code of a module that defines the rewritten function, a generator. What it finds is added to the plan."""
    tree = copy.deepcopy(source.tree)
    tree.decorator_list, tree.returns = [], None
    tree.args = parameters_of(source, tree.args)
    rewrite = WalkRewrite(source, is_kernel, plan)
    tree.body = [new for old in tree.body for new in rewrite.statements(old)]
    module = ast.Module(body=[tree], type_ignores=[])
    ast.fix_missing_locations(module)
    return compile(module, source.filename, "exec")


class WalkRewrite(Rewrite):
    """The rewriter of one function."""

    def __init__(self, source: FunctionSource, is_kernel: bool, plan: Plan) -> None:
        super().__init__(source, is_kernel)
        self.plan = plan
        self.loops: tuple[int, ...] = ()
        self.statement = -1
        self.line = source.tree.lineno
        self.assigns: tuple[str, ...] = ()

    # ---- marks

    def _mark(self, kind: Kind, text: str = "", begins: bool = False) -> int:
        """A new mark. begins: whether a statement begins there"""
        number = len(self.plan.marks)
        if begins:
            self.statement = number
        file, function = self.source.filename, self.source.name
        self.plan.marks.append(Mark(kind, self.statement, file, self.line, function, self.loops, text, self.assigns))
        return number

    def _halt(self, request: list[ast.expr] | int, node: ast.AST) -> ast.expr:
        value: ast.expr = (
            ast.Constant(value=request) if isinstance(request, int) else ast.Tuple(elts=request, ctx=ast.Load())
        )
        return _like(ast.Yield(value=value), node)

    def _access(self, mark: int, parts: list[ast.expr], node: ast.AST) -> ast.expr:
        return self._halt([ast.Constant(value=mark), *parts], node)

    def visit(self, node: ast.AST) -> Any:
        """A statement with its mark before it; any other node as in step mode."""
        if not isinstance(node, ast.stmt) or _says_nothing(node):
            return super().visit(node)
        outside = self.statement, self.line, self.assigns
        self.line, self.assigns = node.lineno, _assigned(node)
        if isinstance(node, ast.For | ast.While):
            new = self._loop(node)
        else:
            mark = self._mark("line", begins=True)
            made = super().visit(node)
            new = [_statement(self._halt(mark, node), node), *(made if isinstance(made, list) else [made])]
        self.statement, self.line, self.assigns = outside
        return new

    def _loop(self, node: ast.For | ast.While) -> list[ast.stmt]:
        enter = self._mark("enter", "while" if isinstance(node, ast.While) else "for", begins=True)
        around = self.loops
        if isinstance(node, ast.For):
            node.iter, node.target = self.visit(node.iter), self.visit(node.target)
        self.loops = (*around, enter)
        stop = self._halt(self._mark("round"), node)
        if isinstance(node, ast.While):
            node.test = _like(ast.BoolOp(op=ast.Or(), values=[stop, self.visit(node.test)]), node.test)
        body = [new for old in node.body for new in self.statements(old)]
        node.body = body if isinstance(node, ast.While) else [_statement(stop, node), *body]
        self.loops = around
        node.orelse = [new for old in node.orelse for new in self.statements(old)]
        return [_statement(self._halt(enter, node), node), node]

    # ---- accesses

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        """A read."""
        text = ast.unparse(node)  # before its parts are rewritten
        new: Any = super().visit_Subscript(node)
        if new is node or not isinstance(node.ctx, ast.Load):  # a type like float32[:]
            return node
        return self._access(self._mark("read", text), [new.value, new.slice], node)

    def visit_Assign(self, node: ast.Assign) -> Any:
        """An assignment; each element that it assigns is written after the value is known."""
        if isinstance(node.value, ast.Lambda) and any(isinstance(target, ast.Name) for target in node.targets):
            name = next(target.id for target in node.targets if isinstance(target, ast.Name))
            inner = self._inside(nested_functions(self.source)[name].source)
            node.value.body = inner.visit(node.value.body)
            return node
        if isinstance(node.value, ast.Call) and isinstance(node.targets[0], ast.Name):
            site = self.source.filename, node.value.lineno, node.value.col_offset
            self.plan.declared[site] = node.targets[0].id
        node.value = self.visit(node.value)
        writes: list[ast.stmt] = []
        node.targets = [self._target(target, writes) for target in node.targets]
        return [node, *writes]

    def _target(self, target: ast.expr, writes: list[ast.stmt]) -> ast.expr:
        """The target with a variable for each element of an array; the writes to the elements are added to `writes`."""
        if isinstance(target, ast.Tuple | ast.List):
            target.elts = [self._target(part, writes) for part in target.elts]
        elif isinstance(target, ast.Starred):
            target.value = self._target(target.value, writes)
        elif isinstance(target, ast.Subscript):
            name, text = self._temporary(), ast.unparse(target)
            parts = [self._checked(target.value), self.visit(target.slice), _load(name)]
            mark = self._mark("write", text)
            writes.append(_statement(self._access(mark, parts, target), target))
            return _like(ast.Name(id=name, ctx=ast.Store()), target)
        else:
            changed: ast.expr = self.visit(target)
            return changed
        return target

    def visit_AugAssign(self, node: ast.AugAssign) -> list[ast.stmt]:
        """`x[i] += y`: a read and a write of one element."""
        if not isinstance(node.target, ast.Subscript):
            return super().visit_AugAssign(node)
        text = ast.unparse(node.target)
        array, index, value = self._temporary(), self._temporary(), self._temporary()
        before = [
            _set(array, self._checked(node.target.value), node),
            _set(index, self.visit(node.target.slice), node),
        ]
        place = [_load(array), _load(index)]
        old = self._access(self._mark("read", text), list(place), node)
        result = self._number(OPERATORS[type(node.op).__name__], [old, self.visit(node.value)], node)
        write = self._access(self._mark("write", text), [*place, _load(value)], node)
        return [*before, _set(value, result, node), _statement(write, node)]

    def visit_Expr(self, node: ast.Expr) -> Any:
        """A call as a statement: cuda.stcg(array, i, value) becomes array[i] = value."""
        path = cuda_path(self.source, node.value.func) if isinstance(node.value, ast.Call) else None
        if path not in STORES:
            return self.generic_visit(node)
        assert isinstance(node.value, ast.Call)
        call = by_position(self.source, path, node.value)
        if len(call.args) != 3:
            raise self.source.error(f"cuda.{path}() takes an array, an index and a value", node)
        target = _like(ast.Subscript(value=call.args[0], slice=call.args[1], ctx=ast.Store()), node)
        return self.visit_Assign(_like(ast.Assign(targets=[target], value=call.args[2]), node))

    def _atomic(self, node: ast.Call) -> ast.expr:
        text = ast.unparse(node)
        array = self._checked(node.args[0])
        rest = [self.visit(argument) for argument in node.args[1:]]
        operation: ast.expr = self.visit(node.func)
        return self._access(self._mark("atomic", text), [array, operation, *rest], node)

    # ---- calls, and functions inside a kernel

    def _collective(self, path: str, node: ast.Call) -> ast.expr:
        if path in BARRIERS and (self.source.filename, node.lineno) in self.plan.removed:
            return _like(ast.Constant(value=None), node)
        return super()._collective(path, node)

    def _function(self, node: ast.Call) -> ast.expr:
        value = look_up(self.source, node.func)
        nested = isinstance(value, NestedFunction)
        if not nested and (value is UNKNOWN or device_source(value) is None):
            return super()._function(node)
        called = None if nested else device_source(value)
        if called is not None:
            node, _ = self.bound(node, called)
        new: ast.Call = self.generic_visit(node)  # type: ignore[assignment]
        mark = self._mark("call")
        self._mark("return")  # the number after it
        if not nested:
            new.func = _like(ast.Call(func=_load(FUNCTION), args=[new.func], keywords=[]), node)
        new.args = [ast.Constant(value=mark), new.func, *new.args]
        new.func = ast.Attribute(value=_load(CUDA), attr="called", ctx=ast.Load())
        return _like(ast.YieldFrom(value=new), node)

    def _inside(self, source: FunctionSource) -> WalkRewrite:
        return WalkRewrite(source, False, self.plan)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.stmt:
        """A function inside a kernel: it stays where it is."""
        inner = self._inside(nested_functions(self.source)[node.name].source)
        node.body = [new for old in node.body for new in inner.statements(old)]
        return node


def _says_nothing(node: ast.stmt) -> bool:
    """Whether a statement does nothing that can be seen: a docstring, or the def of a nested function."""
    return isinstance(node, ast.FunctionDef) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))


def _assigned(node: ast.stmt) -> tuple[str, ...]:
    """The variables that a statement itself assigns, without those of the statements in it."""
    targets: list[ast.expr] = []
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, ast.AugAssign | ast.AnnAssign | ast.For):
        targets = [node.target]
    names = [part for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)]
    return tuple(part.id for part in names if isinstance(part.ctx, ast.Store))


def _load(name: str) -> ast.Name:
    return ast.Name(id=name, ctx=ast.Load())


def _set(name: str, value: ast.expr, node: ast.AST) -> ast.stmt:
    return _like(ast.Assign(targets=[ast.Name(id=name, ctx=ast.Store())], value=value), node)


def _statement(value: ast.expr, node: ast.AST) -> ast.stmt:
    return _like(ast.Expr(value=value), node)


def _like(new: Any, old: ast.AST) -> Any:
    """`new` and its parts with the position of `old`, where they have none."""
    for part in ast.walk(new):
        if isinstance(part, ast.expr | ast.stmt) and not hasattr(part, "end_lineno"):
            ast.copy_location(part, old)
    return new
