"""The parameter names of CUDA's own functions, so that a kernel can pass arguments by name: cuda.grid(ndim=1)."""

from __future__ import annotations

import ast

from ...intrinsics import ATOMICS, LOADS, SHUFFLES, STORES, VOTES
from .source import FunctionSource

#: The parameter names of numba-cuda, by path below `cuda`.
PARAMETERS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("grid", "gridsize"), ("ndim",)),
    **dict.fromkeys(("syncthreads", "activemask", "lanemask_lt"), ()),
    **dict.fromkeys(("syncthreads_count", "syncthreads_and", "syncthreads_or"), ("predicate",)),
    "syncwarp": ("mask",),
    **dict.fromkeys(SHUFFLES, ("mask", "value", "delta")),
    "shfl_sync": ("mask", "value", "src_lane"),
    "shfl_xor_sync": ("mask", "value", "lane_mask"),
    **{name: ("mask", "value" if name.startswith("match") else "predicate") for name in VOTES},
    **{f"atomic.{name}": ("ary", "idx", "val") for name in ATOMICS},
    "atomic.cas": ("ary", "idx", "old", "val"),
    "atomic.compare_and_swap": ("ary", "old", "val"),
    **dict.fromkeys(LOADS, ("array", "i")),
    **dict.fromkeys(STORES, ("array", "i", "value")),
}


def by_position(source: FunctionSource, path: str, node: ast.Call) -> ast.Call:
    """The call of cuda.PATH with all arguments by position. A call without named arguments stays as it is, and so does
    that of a function whose parameter names are unknown.

    Raises KernelError for an unknown name, for an argument that is given twice, and for one that is missing.
    """
    parameters = PARAMETERS.get(path)
    if parameters is None or not node.keywords:
        return node
    by_name = dict(zip(parameters, node.args, strict=False))
    for keyword in node.keywords:
        if keyword.arg not in parameters or keyword.arg in by_name:
            said = f"has no argument {keyword.arg!r}, or it is given twice" if keyword.arg else "takes no ** arguments"
            raise source.error(f"cuda.{path}({', '.join(parameters)}) {said}", node)
        by_name[keyword.arg] = keyword.value
    missing = [name for name in parameters if name not in by_name]
    if missing:
        raise source.error(
            f"cuda.{path}({', '.join(parameters)}) is called without {', '.join(map(repr, missing))}", node
        )
    arguments = [*(by_name[name] for name in parameters), *node.args[len(parameters) :]]
    return ast.copy_location(ast.Call(func=node.func, args=arguments, keywords=[]), node)
