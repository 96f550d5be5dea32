"""Choose the requests of an access that the pictures show: the costliest, and others of its block to compare."""

from __future__ import annotations

import numpy as np

from ..trace import Trace
from .compiled import Array
from .memories import Places
from .requests import Requests


def choose(trace: Trace, places: Places, requests: Requests, costliest: int) -> tuple[list[int], list[int]]:
    """(numbers of requests, the round of each); the costliest is the first.

    The others are of the same block, place and array: of the first, the last and the costliest's warp, the first, the
    last and the costliest's round.
    """
    events, first = trace.events, requests.first
    event = first[costliest]
    low, high = np.searchsorted(requests.block, [requests.block[costliest], requests.block[costliest] + 1])
    here = first[low:high]
    mine = (events["site"][here] == events["site"][event]) & (places.of[here] == places.of[event])
    numbers = np.flatnonzero(mine) + low
    warps = events["thread"][first[numbers]] >> 5
    own = int(events["thread"][event]) >> 5
    of_warp = {int(warp): numbers[warps == warp] for warp in _ends(np.unique(warps), own)}
    number = int(np.flatnonzero(of_warp[own] == costliest)[0])
    rounds = _ends(np.arange(max(map(len, of_warp.values()))), number)
    chosen = [(int(those[each]), int(each)) for those in of_warp.values() for each in rounds if each < len(those)]
    chosen.sort(key=lambda pair: pair[0] != costliest)
    return [request for request, _ in chosen], [each for _, each in chosen]


def _ends(values: Array, chosen: int) -> list[int]:
    """The first, the last and the chosen of ascending values, each once."""
    return sorted({int(values[0]), int(values[-1]), chosen})
