"""Cooperative groups: the group of all blocks of the launch, `g = cuda.cg.this_grid()`, and its barrier, `g.sync()`.

The group leaves no code: a variable that holds it is remembered, and its sync() becomes a collective. A device function
may get the group as an argument; it is inlined, so that its parameter is another name of the caller's variable.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from ...intrinsics import THIS_GRID
from ..trees import load
from .names import cuda_path
from .source import FunctionSource, own_nodes

if TYPE_CHECKING:
    from .normalise import Normaliser

GROUP = "_this_grid"
"""The name of the group where it is used without a variable, as in cuda.cg.this_grid().sync()."""


def makes_group(source: FunctionSource, node: ast.expr) -> bool:
    """Whether `node` is cuda.cg.this_grid()."""
    return isinstance(node, ast.Call) and cuda_path(source, node.func) == THIS_GRID


def is_barrier(source: FunctionSource, node: ast.Call) -> bool:
    """Whether the call is sync() of the group of all blocks, by the text of this function alone.

    A parameter may be the group: only the call of the function tells.
    """
    if not (isinstance(node.func, ast.Attribute) and node.func.attr == "sync"):
        return False
    group = node.func.value
    if not isinstance(group, ast.Name):
        return makes_group(source, group)
    values = [
        part.value
        for part in own_nodes(source.tree.body)
        if isinstance(part, ast.Assign)
        and any(isinstance(target, ast.Name) and target.id == group.id for target in part.targets)
    ]
    return all(makes_group(source, value) for value in values) if values else group.id in source.parameters


def holds_group(normaliser: Normaliser, node: ast.expr) -> bool:
    """Whether `node` is the group, or a variable or an argument that holds it."""
    if isinstance(node, ast.Name) and node.id in normaliser.source.stored:
        return normaliser.rename(node.id) in normaliser.unit.groups
    return makes_group(normaliser.source, node)


def group_of(normaliser: Normaliser, node: ast.Call) -> ast.expr:
    """The expression that stands for the group as an argument of a device function."""
    if node.args or node.keywords:
        raise normaliser.error(f"cuda.{THIS_GRID}() takes no arguments", node)
    normaliser.unit.groups.add(GROUP)
    return load(GROUP)
