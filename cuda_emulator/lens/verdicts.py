"""The verdict on one access: what memory had to do for it, and whether that is more than the data need."""

from __future__ import annotations

from ..words.numbers import count, counted_share, plural
from .advice import Level
from .profile import Access

COSTLY = 2
"""An access is costly if it needs at least this many times the sectors or passes of an ideal one."""


def global_verdict(access: Access) -> tuple[str, Level]:
    """("32 sectors/request (12.5 %), 4 would do", level) for an access to global memory."""
    fetched = f"{plural(access.sectors_per_request, 'sector')}/request"
    if access.broadcasts == access.requests and access.sectors == access.requests:
        return f"{fetched}, one address for all lanes (broadcast)", "fine"
    text = f"{fetched} ({counted_share(access.efficiency)})"
    ideal = access.ideal_sectors / access.requests if access.requests else 0.0
    if access.sectors > access.ideal_sectors:
        text += f", {count(ideal)} would do"
    costly = access.sectors >= COSTLY * access.ideal_sectors > 0
    return text, "costly" if costly else "fine"


def shared_verdict(access: Access) -> tuple[str, Level]:
    """("32-way bank conflict" or "no bank conflict", level) for an access to shared memory."""
    if access.wavefronts <= access.ideal_wavefronts:
        broadcast = access.requests and access.broadcasts == access.requests
        return "no bank conflict" + (", one address for all lanes (broadcast)" if broadcast else ""), "fine"
    text = f"{access.most_ways}-way bank conflict"
    if access.ways != access.most_ways:
        text = f"up to {text}, {count(access.ways)} passes for one on average"
    return text, "costly" if access.ways >= COSTLY or access.most_ways >= 2 * COSTLY else "fine"
