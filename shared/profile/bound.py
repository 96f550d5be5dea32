"""What keeps an operation from being faster.

An operation that does F operations on B bytes takes at least F / peak, and at least B / bandwidth. The longer of the
two is its roof. If the operation takes at most four times as long as its roof says, the roof is what bounds it: compute
or memory. Otherwise neither does, and the time goes into something that is no arithmetic and no transfer:

    interpreter    stage 1: Python looks at every number by itself
    calls          at its roof the operation would be shorter than a single call of a function
    latency        it waits: for the result before, for a thread to wake, for numbers from many places, or it does
                   instructions that are no arithmetic, such as moving numbers to where they are needed

The bandwidth is that of the smallest measured memory which holds the operation's bytes. Within a step they may lie
further away, so a share of a cache's roof says how much faster it could be at best.
"""

from __future__ import annotations

from shared.profile.operations import Operation
from shared.profile.roofs import MEMORY, Roofs
from shared.profile.step_profile import Bound

NEAR = 0.25
"""From this share of a roof on, the roof bounds it."""

COMPUTE, IN_MEMORY, NEITHER = "compute", "memory", "neither"


def bound_of(
    operation: Operation, seconds: float, dtype: str, threads: int, roofs: Roofs, call: float | None, interpreted: bool
) -> Bound:
    """What bounds an operation that takes so many seconds.

    call: seconds of a call of a function on a single number; None where the operation makes no calls
    interpreted: whether Python looks at every number
    """
    nearest = _nearest(operation, seconds, dtype, threads, roofs)
    if nearest.share is not None and nearest.share >= NEAR:
        return nearest
    if interpreted:
        reason = "interpreter"
    elif call is not None and nearest.share is not None and nearest.share * seconds < call:
        reason = "calls"
    else:
        reason = "latency"
    return Bound(NEITHER, nearest.share, reason)


def _nearest(operation: Operation, seconds: float, dtype: str, threads: int, roofs: Roofs) -> Bound:
    """The roof that is nearest, and how near."""
    peak, memory = roofs.peak_of(dtype, threads), roofs.roof_of(operation.bytes // max(1, operation.calls), threads)
    found = []
    if peak is not None:
        found.append(Bound(COMPUTE, operation.flops / peak / seconds, "peak"))
    if memory is not None:
        name, speed = memory
        roof = "memory" if name == MEMORY else f"{name} cache"
        found.append(Bound(IN_MEMORY, operation.bytes / speed / seconds, roof))
    return max(found, key=lambda each: each.share or 0.0, default=Bound(NEITHER, None, "unknown"))
