"""The results of shuffles, votes and matches in step mode: their definitions in plain Python.

`calls` is {lane: its arguments (mask, value, ...)} of the active lanes. The result of a lane depends on the active
lanes that its own mask names.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..intrinsics import GRID_BARRIER, SHUFFLES
from ..poison import poison_value

WARP = 32
ALL_LANES = 0xFFFFFFFF

Calls = dict[int, tuple[Any, ...]]

#: The lane that lane `own` reads from. Only the low five bits of the operand are used, as in PTX.
_SOURCES: dict[str, Callable[[int, int], int]] = {
    "shfl_sync": lambda own, lane: lane,
    "shfl_up_sync": lambda own, delta: own - delta,
    "shfl_down_sync": lambda own, delta: own + delta,
    "shfl_xor_sync": lambda own, mask: own ^ mask,
}


def members(call: tuple[Any, ...]) -> int:
    """The mask of a call, as a number from 0 to 2^32 - 1; -1 or no argument means all lanes."""
    return int(call[0]) & ALL_LANES if call else ALL_LANES


def mask_of(lanes: Any) -> int:
    """The mask that names these lanes."""
    return sum(1 << lane for lane in lanes)


def _signed(mask: int) -> int:
    """The same 32 bits as an int32, numba-cuda's type for ballots and matches. Lane 31 is the sign."""
    return mask - 2**32 if mask >> 31 else mask


def answers(name: str, calls: Calls) -> dict[int, Any]:
    """{lane: result of cuda.NAME}."""
    return {own: _answer(name, own, calls) for own in calls}


def _answer(name: str, own: int, calls: Calls) -> Any:
    if name == "activemask":
        return np.uint32(mask_of(calls))
    seen = {lane: call for lane, call in calls.items() if members(calls[own]) >> lane & 1}
    if name in SHUFFLES:
        source, value = _SOURCES[name](own, int(calls[own][2]) % WARP), calls[own][1]
        if source in seen:
            return calls[source][1]
        # A warp has no lane beyond 0 and 31. What comes from a lane that takes no part is undefined on a device.
        return poison_value(np.asarray(value).dtype) if 0 <= source < WARP else value
    if name == "syncwarp":
        return None
    if name in ("match_any_sync", "match_all_sync"):
        alike = mask_of(lane for lane, call in seen.items() if _bits(call[1]) == _bits(calls[own][1]))
        if name == "match_any_sync":
            return np.int32(_signed(alike))
        agreed = alike == mask_of(seen)
        return np.int32(_signed(alike if agreed else 0)), agreed
    trues = [lane for lane, call in seen.items() if call[1] != 0]
    if name == "ballot_sync":
        return np.int32(_signed(mask_of(trues)))
    return {"all_sync": len(trues) == len(seen), "any_sync": bool(trues), "eq_sync": len(trues) in (0, len(seen))}[name]


def _bits(value: Any) -> Any:
    """The value that a match compares: an integer, or the bytes of a float (NaN matches NaN, 0.0 not -0.0)."""
    return np.asarray(value).tobytes() if isinstance(value, float | np.floating) else int(value)


#: The result of a block's barrier for every thread, from the list of all threads' values.
BLOCK_ANSWERS: dict[str, Callable[[list[Any]], Any]] = {
    "syncthreads": lambda values: None,
    GRID_BARRIER: lambda values: None,
    "syncthreads_count": lambda values: np.int32(sum(value != 0 for value in values)),
    "syncthreads_and": lambda values: np.int32(all(value != 0 for value in values)),
    "syncthreads_or": lambda values: np.int32(any(value != 0 for value in values)),
}
