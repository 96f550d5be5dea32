"""Assignments in normal form: one value to one name or element, however much the learner puts into a statement."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from . import declarations, names
from .expressions import with_children
from .trees import assign, constant, contains, copied, index_parts, load, loaded_names, placed, store, subscript

if TYPE_CHECKING:
    from .normalise import Normaliser


def assignment(worker: Normaliser, targets: list[ast.expr], value: ast.expr, node: ast.stmt) -> list[ast.stmt]:
    """target = value, or first = second = value."""
    if isinstance(value, ast.Call):
        path = names.cuda_path(worker.source, value.func)
        if path in ("shared.array", "local.array"):
            declarations.declare(worker, path, targets, value, node)
            return []
    if len(targets) > 1:
        kept = worker.unit.fresh("value")
        done: list[ast.stmt] = [assign(kept, worker.expression(value))]
        return done + [part for each in targets for part in stored(worker, each, load(kept), node)]
    if isinstance(targets[0], ast.Subscript):  # Python evaluates the value first
        new_value, base, index = worker.in_order([value, targets[0].value, targets[0].slice])
        element = ast.copy_location(ast.Subscript(value=base, slice=index, ctx=ast.Store()), targets[0])
        return [ast.Assign(targets=[element], value=new_value)]
    return stored(worker, targets[0], worker.expression(value), node)


def stored(worker: Normaliser, to: ast.expr, value: ast.expr, node: ast.stmt) -> list[ast.stmt]:
    """`to = value`, where the value is in normal form already."""
    if isinstance(to, ast.Tuple | ast.List):
        return unpacked(worker, to, value, node)
    return [ast.Assign(targets=[target(worker, to)], value=value)]


def target(worker: Normaliser, node: ast.expr) -> ast.expr:
    """Something that is assigned to."""
    if isinstance(node, ast.Name):
        return store(worker.rename(node.id))
    if isinstance(node, ast.Subscript):
        base, index = worker.in_order([node.value, node.slice])
        return ast.copy_location(ast.Subscript(value=base, slice=index, ctx=ast.Store()), node)
    if isinstance(node, ast.Attribute):
        return ast.Attribute(value=worker.expression(node.value), attr=node.attr, ctx=ast.Store())
    if isinstance(node, ast.Tuple | ast.List):
        return ast.Tuple(elts=[target(worker, element) for element in node.elts], ctx=ast.Store())
    raise worker.error(f"{ast.unparse(node)!r} cannot be assigned to in a kernel", node)


def unpacked(worker: Normaliser, to: ast.Tuple | ast.List, value: ast.expr, node: ast.stmt) -> list[ast.stmt]:
    """a, b = value: one assignment each. A swap goes through variables of its own."""
    done: list[ast.stmt] = []
    if isinstance(value, ast.Tuple):
        if len(value.elts) != len(to.elts):
            raise worker.error(f"{len(to.elts)} names on the left, {len(value.elts)} values on the right", node)
        parts: list[ast.expr] = list(value.elts)
        assigned = {worker.rename(element.id) for element in to.elts if isinstance(element, ast.Name)}
        only_names = all(isinstance(element, ast.Name) for element in to.elts)
        if not only_names or assigned & loaded_names(parts):
            kept = [worker.unit.fresh("value") for _ in parts]
            done += [assign(name, part) for name, part in zip(kept, parts, strict=True)]
            parts = [load(name) for name in kept]
    else:
        if not (isinstance(value, ast.Attribute) and value.attr in ("shape", "strides")):
            whole = worker.unit.fresh("value")
            done.append(assign(whole, value))
            value = load(whole)
        parts = [subscript(copied(value), [constant(place)], ast.Load()) for place in range(len(to.elts))]
    for element, part in zip(to.elts, parts, strict=True):
        done += stored(worker, element, part, node)
    return done


def augmented(worker: Normaliser, node: ast.AugAssign) -> list[ast.stmt]:
    """target += value, as target = target + value."""
    if isinstance(node.target, ast.Name):
        read = ast.copy_location(ast.Name(id=node.target.id, ctx=ast.Load()), node)
        old, value = worker.in_order([read, node.value])
        return [ast.Assign(targets=[store(worker.rename(node.target.id))], value=ast.BinOp(old, node.op, value))]
    element = with_children(worker, node.target)
    indexed = element.value if isinstance(element, ast.Attribute) else element  # a record's field, or an element
    if isinstance(indexed, ast.Subscript):
        indexed.slice = settled(worker, indexed.slice, node)
    assert isinstance(element, ast.Attribute | ast.Subscript)
    read_element = copied(element)
    read_element.ctx = ast.Load()
    old_element: ast.expr = read_element
    mark = len(worker.before)
    value = worker.expression(node.value)
    if len(worker.before) > mark:  # the value brought a collective: the element is read before it
        kept = worker.unit.fresh("kept")
        worker.before.insert(mark, placed(assign(kept, old_element), node))
        old_element = load(kept)
    return [ast.Assign(targets=[element], value=ast.BinOp(left=old_element, op=node.op, right=value))]


def settled(worker: Normaliser, index: ast.expr, node: ast.AST) -> ast.expr:
    """The index with every part that must not be evaluated twice put in a variable."""
    parts = [
        worker.kept("index", part, node) if contains(part, (ast.Call, ast.Subscript)) else part
        for part in index_parts(index)
    ]
    return parts[0] if not isinstance(index, ast.Tuple) else ast.Tuple(elts=parts, ctx=ast.Load())
