"""What lanes of a warp get from a shuffle, a vote or a match in step mode: the definitions, in plain Python.

`calls` maps each lane that is here to the arguments it brought: (mask, value, ...). A lane sees those lanes that are
here and named in its own mask.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..intrinsics import SHUFFLES

WARP = 32
ALL_LANES = 0xFFFFFFFF

Calls = dict[int, tuple[Any, ...]]

#: The lane that lane `own` reads from. The low five bits of the operand count, as in PTX.
_SOURCES: dict[str, Callable[[int, int], int]] = {
    "shfl_sync": lambda own, lane: lane,
    "shfl_up_sync": lambda own, delta: own - delta,
    "shfl_down_sync": lambda own, delta: own + delta,
    "shfl_xor_sync": lambda own, mask: own ^ mask,
}


def members(call: tuple[Any, ...]) -> int:
    """The mask of a call, as a number from 0 to 2^32 - 1; -1 and a missing one name every lane."""
    return int(call[0]) & ALL_LANES if call else ALL_LANES


def mask_of(lanes: Any) -> int:
    """The mask that names these lanes."""
    return sum(1 << lane for lane in lanes)


def _signed(mask: int) -> int:
    """The same 32 bits as an int32: what numba-cuda makes of ballots and matches. Lane 31 is its sign."""
    return mask - 2**32 if mask >> 31 else mask


def answers(name: str, calls: Calls) -> dict[int, Any]:
    """What cuda.NAME returns to each lane."""
    return {own: _answer(name, own, calls) for own in calls}


def _answer(name: str, own: int, calls: Calls) -> Any:
    if name == "activemask":
        return np.uint32(mask_of(calls))
    seen = {lane: call for lane, call in calls.items() if members(calls[own]) >> lane & 1}
    if name in SHUFFLES:
        source = _SOURCES[name](own, int(calls[own][2]) % WARP)
        return calls[source if source in seen else own][1]
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
    """What a match compares: the bytes of a float (NaN matches NaN, 0.0 does not match -0.0), an integer as it is."""
    return np.asarray(value).tobytes() if isinstance(value, float | np.floating) else int(value)


#: What a block's barrier returns to every thread, from the list of what each brought.
BLOCK_ANSWERS: dict[str, Callable[[list[Any]], Any]] = {
    "syncthreads": lambda values: None,
    "syncthreads_count": lambda values: np.int32(sum(value != 0 for value in values)),
    "syncthreads_and": lambda values: np.int32(all(value != 0 for value in values)),
    "syncthreads_or": lambda values: np.int32(any(value != 0 for value in values)),
}
