"""Error messages for a stopped run: the status numbers become a sentence with the file, the line and a remedy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import KernelError
from ..helpers import status as codes

Places = Sequence[tuple[str, int, str]]


def position(linear: int, shape: Sequence[int]) -> tuple[int, int, int]:
    """(x, y, z) of the thread or block with this linear number, x fastest."""
    x, y, _ = shape
    return linear % x, linear // x % y, linear // (x * y)


def numbers(values: Any, count: int) -> str:
    """The first `count` numbers as a tuple, or a single number."""
    shown = [int(value) for value in values[:count]]
    return str(shown[0]) if count == 1 else f"({', '.join(map(str, shown))})"


def failure(
    kernel: str, places: Places, status: np.ndarray[Any, Any], grid: Sequence[int], block: Sequence[int]
) -> KernelError:
    """The error for a stopped run.

    places: (file, line, text) by site; status: the status array after the run; grid, block: shape of the launch
    """
    code, site = int(status[codes.CODE]), int(status[codes.SITE])
    filename, line, subject = places[site]
    where = f"block {position(int(status[codes.BLOCK]), grid)}"
    if status[codes.THREAD] >= 0:
        where += f", thread {position(int(status[codes.THREAD]), block)}"
    detail = [int(value) for value in status[codes.DETAIL : codes.DETAIL + 7]]
    sentence = {
        codes.OUT_OF_BOUNDS: lambda: out_of_bounds(subject, detail, where),
        codes.NEGATIVE_INDEX: lambda: negative_index(subject, detail, where),
        codes.DIVERGENT_BARRIER: lambda: divergent_barrier(subject, detail, where),
        codes.WARP_MEMBERS: lambda: warp_members(subject, detail, where),
        codes.NOT_A_MEMBER: lambda: not_a_member(subject, detail, where),
        codes.OTHER_MASK: lambda: other_mask(subject, detail, where),
        codes.RAISED: lambda: f"{subject}: in {where}",
        codes.UNASSIGNED: lambda: unassigned(subject, where),
    }[code]()
    return KernelError(sentence, filename=filename, line=line, kernel=kernel)


def shape_text(detail: Sequence[int]) -> tuple[str, str, int]:
    """(index as text, shape as text, axis). The status holds no more than three axes."""
    axis = detail[0]
    axes = max([k + 1 for k in range(3) if detail[4 + k] != 0 or k == axis] or [1])
    shape = [str(value) for value in detail[4 : 4 + axes]]
    return numbers(detail[1:4], axes), f"({', '.join(shape)}{',' if axes == 1 else ''})", axis


def out_of_bounds(name: str, detail: Sequence[int], where: str) -> str:
    """The message for an index outside an array."""
    index, shape, axis = shape_text(detail)
    along = "" if index.isdigit() or index.lstrip("-").isdigit() else f" along axis {axis}"
    return (
        f"{name}[{index.strip('()')}] is out of bounds{along}: {name} has shape {shape}; in {where}. On a device this "
        "reads or writes someone else's memory. Guard the access with an `if`, or launch fewer threads"
    )


def negative_index(name: str, detail: Sequence[int], where: str) -> str:
    """The message for a computed negative index, which is legal and almost always a mistake."""
    index, shape, _ = shape_text(detail)
    return (
        f"{name}[{index.strip('()')}] counts from the end of {name}, which has shape {shape}; in {where}. "
        "A computed negative index wraps silently on a device. Guard the access with an `if`; a literal one, like "
        "[-1], is taken as meant"
    )


def divergent_barrier(name: str, detail: Sequence[int], where: str) -> str:
    """The message for a barrier that only a part of the threads reaches."""
    here, alive, _ = detail[:3]
    return (
        f"{name}() was reached by {here} of the {alive} live threads of {where}. On a device this hangs or corrupts "
        "memory. Move it out of the branch or loop, so that every thread of the block reaches it"
    )


def warp_members(name: str, detail: Sequence[int], where: str) -> str:
    """The message for a warp collective whose mask names lanes that do not reach it."""
    named, here, _ = detail[:3]
    return (
        f"{name}() names {named} live lanes of the warp in its mask, and {here} of them are here; in {where}. On a "
        "device this hangs or gives garbage. Name the lanes that take this path, or move the call out of the branch"
    )


def not_a_member(name: str, detail: Sequence[int], where: str) -> str:
    """The message for a warp collective whose mask does not name the calling lane."""
    return (
        f"{name}() is called with the mask {detail[0] & 0xFFFFFFFF:#010x}, which does not name the calling lane; in "
        f"{where}. A mask names every lane that takes part: 0xffffffff for the whole warp"
    )


def other_mask(name: str, detail: Sequence[int], where: str) -> str:
    """The message for a warp collective whose lanes have different masks."""
    own, lane, theirs = detail[:3]
    return (
        f"{name}() is called with the mask {own & 0xFFFFFFFF:#010x}, which names lane {lane}, and that lane calls it "
        f"with {theirs & 0xFFFFFFFF:#010x}; in {where}. All lanes that take part must have the same mask: on a device "
        "this hangs or gives garbage"
    )


def unassigned(name: str, where: str) -> str:
    """The message for a variable that the thread has not assigned."""
    return (
        f"{name!r} has no value yet: this thread has not assigned it; in {where}. On a device it holds whatever its "
        f"register holds. Assign {name!r} on every path that leads here: give it a first value before the `if` or the "
        "loop"
    )


def absent_lane(
    kernel: str,
    places: Places,
    status: np.ndarray[Any, Any],
    grid: Sequence[int],
    block: Sequence[int],
    difference: str,
) -> KernelError:
    """The error for a shuffle that reads from a lane that takes no part, if the launch's results depend on it.

    status: of a run with such a read; difference: a sentence about the results, without a full stop
    """
    filename, line, call = places[int(status[codes.READ_SITE]) - 1]
    thread, lane = int(status[codes.READ_THREAD]), int(status[codes.READ_LANE])
    other, threads = thread - thread % 32 + lane, block[0] * block[1] * block[2]
    if other >= threads:
        why = f"which is not in the block: it has {threads} threads"
        remedy = "Launch whole warps of 32 threads, or read only from lanes that are there"
    else:
        why = "which takes no part: the mask does not name it, or it has returned"
        remedy = "Name every lane that is read from, and let each of them make the call"
    where = f"block {position(int(status[codes.READ_BLOCK]), grid)}, thread {position(thread, block)}"
    return KernelError(
        f"{call}() reads from lane {lane}, {why}; in {where}. On a device this gives garbage. The result depends on "
        f"it: {difference}. {remedy}",
        filename=filename,
        line=line,
        kernel=kernel,
    )


def notes(places: Places, status: np.ndarray[Any, Any]) -> list[str]:
    """Warnings after a run that ended normally: barriers that a part of the threads did not reach."""
    told = []
    if status[codes.DIVERGED_SITE]:
        filename, line, what = places[int(status[codes.DIVERGED_SITE]) - 1]
        told.append(
            f"{filename}:{line}: {what}() was reached by a part of the block's live threads (divergence='warn')"
        )
    if status[codes.EXITED_SITE]:
        filename, line, what = places[int(status[codes.EXITED_SITE]) - 1]
        told.append(
            f"{filename}:{line}: {int(status[codes.EXITED_COUNT])} threads of a block had returned before {what}(). "
            "The barrier does not wait for them; code after it must not rely on what they would have written"
        )
    return told
