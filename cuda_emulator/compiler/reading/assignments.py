"""Assignments in normal form: each statement assigns one value to one name or element."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from ..trees import assign, constant, contains, copied, index_parts, load, loaded_names, placed, store, subscript
from . import declarations, groups, names
from .expressions import with_children

if TYPE_CHECKING:
    from .normalise import Normaliser


def assignment(normaliser: Normaliser, targets: list[ast.expr], value: ast.expr, node: ast.stmt) -> list[ast.stmt]:
    """`target = value`, or `first = second = value`."""
    if isinstance(value, ast.Call):
        path = names.cuda_path(normaliser.source, value.func)
        if path in ("shared.array", "local.array"):
            if declarations.has_another_value(normaliser, targets):
                return stored(
                    normaliser, targets[0], load(declarations.anonymous(normaliser, path, targets, value, node)), node
                )
            declarations.declare(normaliser, path, targets, value, node)
            return []
    if isinstance(value, ast.Subscript) and isinstance(value.value, ast.Call):  # cuda.shared.array(0, int32)[1:]
        path = names.cuda_path(normaliser.source, value.value.func)
        if path in ("shared.array", "local.array"):
            if not isinstance(value.slice, ast.Slice):
                raise normaliser.error(f"cuda.{path}(shape, dtype) must be assigned to a name, then indexed", node)
            whole = declarations.anonymous(normaliser, path, targets, value.value, node, sliced=True)
            view = ast.Subscript(value=load(whole), slice=normaliser.expression(value.slice), ctx=ast.Load())
            return stored(normaliser, targets[0], view, node)
    if groups.holds_group(normaliser, value) and all(isinstance(each, ast.Name) for each in targets):
        normaliser.expression(value)
        normaliser.unit.groups |= {normaliser.rename(each.id) for each in targets if isinstance(each, ast.Name)}
        return []
    if len(targets) > 1:
        variable = normaliser.unit.fresh("value")
        done: list[ast.stmt] = [assign(variable, normaliser.expression(value))]
        return done + [part for each in targets for part in stored(normaliser, each, load(variable), node)]
    if isinstance(targets[0], ast.Subscript):  # Python evaluates the value first
        new_value, base, index = normaliser.in_order([value, targets[0].value, targets[0].slice])
        element = ast.copy_location(ast.Subscript(value=base, slice=index, ctx=ast.Store()), targets[0])
        return [ast.Assign(targets=[element], value=new_value)]
    return stored(normaliser, targets[0], normaliser.expression(value), node)


def stored(normaliser: Normaliser, to: ast.expr, value: ast.expr, node: ast.stmt) -> list[ast.stmt]:
    """`to = value`, for a value that is in normal form already."""
    if isinstance(to, ast.Tuple | ast.List):
        return unpacked(normaliser, to, value, node)
    return [ast.Assign(targets=[target(normaliser, to)], value=value)]


def target(normaliser: Normaliser, node: ast.expr) -> ast.expr:
    """The normal form of an assignment's target."""
    if isinstance(node, ast.Name):
        return store(normaliser.rename(node.id))
    if isinstance(node, ast.Subscript):
        base, index = normaliser.in_order([node.value, node.slice])
        return ast.copy_location(ast.Subscript(value=base, slice=index, ctx=ast.Store()), node)
    if isinstance(node, ast.Attribute):
        return ast.Attribute(value=normaliser.expression(node.value), attr=node.attr, ctx=ast.Store())
    if isinstance(node, ast.Tuple | ast.List):
        return ast.Tuple(elts=[target(normaliser, element) for element in node.elts], ctx=ast.Store())
    raise normaliser.error(f"{ast.unparse(node)!r} cannot be assigned to in a kernel", node)


def unpacked(normaliser: Normaliser, to: ast.Tuple | ast.List, value: ast.expr, node: ast.stmt) -> list[ast.stmt]:
    """`a, b = value` as one assignment for each name. A swap uses temporary variables."""
    done: list[ast.stmt] = []
    if isinstance(value, ast.Tuple):
        if len(value.elts) != len(to.elts):
            raise normaliser.error(f"{len(to.elts)} names on the left, {len(value.elts)} values on the right", node)
        parts: list[ast.expr] = list(value.elts)
        assigned = {normaliser.rename(element.id) for element in to.elts if isinstance(element, ast.Name)}
        only_names = all(isinstance(element, ast.Name) for element in to.elts)
        if not only_names or assigned & loaded_names(parts):
            variables = [normaliser.unit.fresh("value") for _ in parts]
            done += [assign(name, part) for name, part in zip(variables, parts, strict=True)]
            parts = [load(name) for name in variables]
    else:
        if not (isinstance(value, ast.Attribute) and value.attr in ("shape", "strides")):
            whole = normaliser.unit.fresh("value")
            done.append(assign(whole, value))
            value = load(whole)
        parts = [subscript(copied(value), [constant(place)], ast.Load()) for place in range(len(to.elts))]
    for element, part in zip(to.elts, parts, strict=True):
        done += stored(normaliser, element, part, node)
    return done


def augmented(normaliser: Normaliser, node: ast.AugAssign) -> list[ast.stmt]:
    """`target += value` as `target = target + value`."""
    if isinstance(node.target, ast.Name):
        read = ast.copy_location(ast.Name(id=node.target.id, ctx=ast.Load()), node)
        old, value = normaliser.in_order([read, node.value])
        return [ast.Assign(targets=[store(normaliser.rename(node.target.id))], value=ast.BinOp(old, node.op, value))]
    element = with_children(normaliser, node.target)
    indexed = element.value if isinstance(element, ast.Attribute) else element  # a record's field, or an element
    if isinstance(indexed, ast.Subscript):
        indexed.slice = settled(normaliser, indexed.slice, node)
    assert isinstance(element, ast.Attribute | ast.Subscript)
    read_element = copied(element)
    read_element.ctx = ast.Load()
    old_element: ast.expr = read_element
    mark = len(normaliser.before)
    value = normaliser.expression(node.value)
    if len(normaliser.before) > mark:  # the value has a collective: the element is read before it
        variable = normaliser.unit.fresh("saved")
        normaliser.before.insert(mark, placed(assign(variable, old_element), node))
        old_element = load(variable)
    return [ast.Assign(targets=[element], value=ast.BinOp(left=old_element, op=node.op, right=value))]


def settled(normaliser: Normaliser, index: ast.expr, node: ast.AST) -> ast.expr:
    """The index; every part that must not be evaluated twice is put in a variable."""
    parts = [
        normaliser.in_variable("index", part, node) if contains(part, (ast.Call, ast.Subscript)) else part
        for part in index_parts(index)
    ]
    return parts[0] if not isinstance(index, ast.Tuple) else ast.Tuple(elts=parts, ctx=ast.Load())
