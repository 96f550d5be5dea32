"""Step 7c: barriers, votes and shuffles as text: calls on what all threads of the block bring to them."""

from __future__ import annotations

import ast
from collections.abc import Collection

from .regions import ALIVE, Meeting
from .thread_code import Sites, Variant
from .trees import Collective
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


def meeting(
    part: Meeting, carried: Collection[str], masks: Collection[str], variant: Variant, sites: Sites, write: Writer
) -> None:
    """Write a barrier, a vote or a shuffle. carried: variables with one value per thread; masks: all that there are."""
    node, here = part.collective, part.mask or "None"
    alive = ALIVE if ALIVE in masks else "None"
    site = sites.number(node, f"cuda.{node.path}")
    operands = [operand(given, carried) for given in node.operands]
    if node.path.startswith("syncthreads"):
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
        members, value, *lane = operands  # the helpers take the value first
        arguments = [*(f"_all_{result.id}" for result in node.results), value, members, *lane]
        write(f"_{WARP_FUNCTIONS[node.path]}({', '.join(arguments)}, {here}, {alive}, _threads, {checked})")


def operand(node: ast.expr, carried: Collection[str]) -> str:
    """An operand: the array of all threads' values, or the one value of the block."""
    if isinstance(node, ast.Name) and node.id in carried:
        return f"_all_{node.id}"
    return ast.unparse(node)


def barrier(mask: str | None, alive: str, site: int, variant: Variant, write: Writer) -> None:
    """The end of one loop over the threads is a barrier already; under a mask, it has to be checked."""
    if mask is not None and mask != ALIVE:
        function = "_barrier" if variant.divergence == "error" else "_met_in_part"
        write(f"{function}({mask}, {alive}, _status, {site}, _block)")
    if mask is not None and alive != "None" and variant.check:
        write(f"_some_returned({alive}, _status, {site}, _block)")


def vote(node: Collective, values: str, here: str, carried: Collection[str], write: Writer) -> None:
    """The result of syncthreads_count and its kin: one for the block."""
    counted = f"_{BLOCK_VOTES[node.path]}({values}, {here}, _threads)"
    name = node.results[0].id
    if name in carried:
        write(f"_vote = {counted}")
        write.for_all(f"_all_{name}", "_vote")
    else:
        write(f"{name} = {counted}")
