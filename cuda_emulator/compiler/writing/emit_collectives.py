"""Step 7c: write barriers, votes and shuffles as calls that take the values of all threads of the block."""

from __future__ import annotations

import ast
from collections.abc import Collection

from ...intrinsics import BARRIERS, GRID_BARRIER
from ..analysis.regions import ALIVE, CollectiveCall
from ..trees import Collective
from .thread_code import Sites, Variant
from .writer import Writer

WARP_FUNCTIONS = {
    "shfl_sync": "shuffle_index",
    "shfl_up_sync": "shuffle_up",
    "shfl_down_sync": "shuffle_down",
    "shfl_xor_sync": "shuffle_xor",
    "all_sync": "vote_all",
    "any_sync": "vote_any",
    "eq_sync": "vote_eq",
    "ballot_sync": "vote_ballot",
    "match_any_sync": "match_any",
    "match_all_sync": "match_all",
}
BLOCK_VOTES = {
    "syncthreads_count": "block_count",
    "syncthreads_and": "block_and",
    "syncthreads_or": "block_or",
}


def write_collective(
    part: CollectiveCall,
    carried: Collection[str],
    masks: Collection[str],
    variant: Variant,
    sites: Sites,
    write: Writer,
) -> None:
    """Write a barrier, a vote or a shuffle.

    carried: variables with a value for each thread; masks: the names of all masks
    """
    node, here = part.collective, part.mask or "None"
    alive = ALIVE if ALIVE in masks else "None"
    site = sites.number(node, f"cuda.{node.path}")
    operands = [operand(expression, carried) for expression in node.operands]
    if node.path in BARRIERS or node.path == GRID_BARRIER:
        barrier(part.mask, alive, site, variant, write)
        if node.results:
            vote(node, operands[0], here, carried, write)
        return
    checked = f"{'_status' if variant.bounds else 'None'}, {site}, _block"
    if node.path == "activemask":
        write(f"_active_mask(_all_{node.results[0].id}, {here}, _threads)")
    elif node.path == "syncwarp":
        members = operands[0] if operands else "0xffffffff"
        write(f"_sync_warp({members}, {here}, {alive}, _threads, {checked})")
    else:
        members, value, *lane = operands  # the helpers' first argument is the value
        arguments = [*(f"_all_{result.id}" for result in node.results), value, members, *lane]
        write(f"_{WARP_FUNCTIONS[node.path]}({', '.join(arguments)}, {here}, {alive}, _threads, {checked})")


def operand(node: ast.expr, carried: Collection[str]) -> str:
    """The text of an operand: the array of all threads' values, or the block's one value."""
    if isinstance(node, ast.Name) and node.id in carried:
        return f"_all_{node.id}"
    return ast.unparse(node)


def barrier(mask: str | None, alive: str, site: int, variant: Variant, write: Writer) -> None:
    """Write the check of a barrier under a mask; else the end of the loop over the threads is the barrier."""
    if mask is not None and mask != ALIVE:
        function = "_barrier" if variant.divergence == "error" else "_warn_divergent_barrier"
        write(f"{function}({mask}, {alive}, _status, {site}, _block)")
    if mask is not None and alive != "None" and variant.check:
        write(f"_note_returned_threads({alive}, _status, {site}, _block)")


def vote(node: Collective, values: str, here: str, carried: Collection[str], write: Writer) -> None:
    """Write a vote of the whole block, like syncthreads_count: it has one result."""
    counted = f"_{BLOCK_VOTES[node.path]}({values}, {here}, _threads)"
    name = node.results[0].id
    if name in carried:
        write(f"_vote = {counted}")
        write.for_all(f"_all_{name}", "_vote")
    else:
        write(f"{name} = {counted}")
