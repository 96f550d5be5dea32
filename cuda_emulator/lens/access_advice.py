"""The remedy of an access that costs more than its data need: which threads should take which elements.

The lanes of the costliest request show the pattern: how far the elements of neighbouring lanes are apart, and along
which index of the array.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from typing import Literal

from ..words.numbers import count, listed
from .profile import Access, Profile
from .syntax import declared_shape, shared_array

Pattern = Literal["rows", "layout", "stride", "none"]
"""How neighbouring lanes of a request differ. rows: in an index that is not the last; layout: likewise, with a fixed
last index; stride: in the last index, by more than one; none: without a constant step."""


def steps(access: Access) -> tuple[int, ...] | None:
    """The difference of the indices of neighbouring lanes, if most of them have the same."""
    example = access.example
    if example is None or len(example.indices) < 2:
        return None
    pairs = zip(example.indices, example.indices[1:], strict=False)
    differences = Counter(tuple(b - a for a, b in zip(one, other, strict=True)) for one, other in pairs)
    step, times = differences.most_common(1)[0]
    return step if times * 2 > len(example.indices) - 1 else None


def of_one_element(access: Access) -> bool:
    """Whether most neighbouring lanes take the same element, as the 16 lanes of a block's row do."""
    step = steps(access)
    return step is not None and not any(step)


def pattern(access: Access) -> Pattern:
    """The pattern of the costliest request."""
    step = steps(access)
    if step is None or not any(step):
        return "none"
    if len(step) > 1 and any(step[:-1]):
        last = index_texts(access)[-1:]
        return "layout" if last and last[0].lstrip("-").isdigit() else "rows"
    return "stride" if abs(step[-1]) > 1 else "none"


def index_texts(access: Access) -> list[str]:
    """The expressions of the indices: ["row", "k"] for `a[row, k]`; [] if the text is no such expression."""
    try:
        node = ast.parse(access.site.text, mode="eval").body
    except SyntaxError:
        return []
    if not isinstance(node, ast.Subscript):
        return []
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    return [ast.unparse(part) for part in parts]


def coalescing_remedy(kind: Pattern, accesses: list[Access], profile: Profile) -> str:
    """The remedy of accesses to global memory with one pattern."""
    arrays = listed(list(dict.fromkeys(access.array for access in accesses)))
    if kind == "stride":
        apart = abs((steps(accesses[0]) or (0,))[-1])
        return (
            f"Neighbouring threads are {count(apart)} elements apart. Let thread i take element i, and go on by the "
            "number of all threads."
        )
    if kind == "layout":
        return (
            f"Store {arrays} the other way round, with the index of the thread last: one array for each component, "
            "instead of one record after the other."
        )
    if kind == "none":
        return (
            f"The addresses of neighbouring threads have no pattern. Sort the indices, or copy the part of {arrays} "
            "that a block needs into shared memory in order."
        )
    opposite = [access for access in profile.accesses if _along_rows(access)]
    if opposite:
        other = opposite[0]
        return (
            f"Stage it through a shared tile: `{other.site.text}` goes along rows already, so swapping x and y would "
            "only move the cost there. Copy a tile of 32 x 33 elements to shared memory row by row, call "
            "cuda.syncthreads(), and take its columns from there."
        )
    first = next((part for part in index_texts(accesses[0])[:1]), "the first index")
    source = "\n".join(line for _, _, lines in profile.source for line in lines)
    grid = re.search(r"(\w+)\s*,\s*(\w+)\s*=\s*cuda\.grid\(2\)", source)
    if grid and grid[1] == first:
        return (
            f"Swap x and y: `{grid[2]}, {grid[1]} = cuda.grid(2)`, and swap the two numbers of the grid and of the "
            f"block in the launch. Then neighbouring threads have neighbouring values of {grid[2]}."
        )
    if grid or re.search(r"cuda\.(threadIdx|blockIdx)\.y", source):
        return f"Swap x and y: let cuda.threadIdx.x run along the last index of {arrays}; now it runs along `{first}`."
    return (
        f"Each thread goes along a row of its own. Let the 32 threads of a warp share a row of {arrays} (lane k takes "
        "columns k, k + 32, ...), or stage a tile of rows through shared memory."
    )


def _along_rows(access: Access) -> bool:
    """Whether neighbouring lanes of an access to global memory take neighbouring elements of a row."""
    step = steps(access)
    return access.space == "global" and step is not None and len(step) > 1 and not any(step[:-1]) and abs(step[-1]) == 1


def bank_remedy(access: Access, profile: Profile) -> str:
    """The remedy of bank conflicts."""
    example, step = access.example, steps(access)
    if example is None or step is None or not any(step):
        return f"Let the lanes of a warp use words of {access.array} in different banks, best neighbouring words."
    if len(step) > 1 and any(step[:-1]):
        rows = _rows(access, profile)
        declared = shared_array(profile, access.array)
        if rows is not None:
            new = f"({rows[0]}, {rows[1] + 1})"
            where = "its declaration"
            text = f"shape {new}"
            if declared is not None and declared_shape(declared[1]) is not None:
                dtype = [ast.unparse(argument) for argument in declared[1].args[1:2]]
                dtype += [ast.unparse(keyword.value) for keyword in declared[1].keywords if keyword.arg == "dtype"]
                where = f"line {declared[0][1]}"
                text = f"`cuda.shared.array({', '.join([new, *dtype])})`"
            return f"Pad the row to {rows[1] + 1}: {text} in {where}. Then a column lies in different banks."
        return f"Pad the last axis of {access.array} by one element, so that a column lies in different banks."
    if abs(step[-1]) == 1:  # then it is not neighbours that meet, but lanes of different rows
        return (
            f"Neighbouring lanes use neighbouring elements, but a warp reaches several rows of {access.array}, which "
            f"begin in banks that others use. Let a warp take its elements from one row, or pad the rows of "
            f"{access.array} so that each begins where the one before it ended (the banks repeat after 32 words)."
        )
    return (
        f"Neighbouring lanes are {count(abs(step[-1]))} elements apart. Let neighbouring lanes use neighbouring "
        f"elements of {access.array}: in a tree `s[t] += s[t + k]` with k from half the block down, instead of steps "
        "that grow."
    )


def _rows(access: Access, profile: Profile) -> tuple[int, int] | None:
    """(rows, columns) of a shared array of two axes, from the addresses of the lanes."""
    example = access.example
    size = next((each.elements for each in profile.reuse if each.array == access.array and each.space == "shared"), 0)
    if example is None or not size or any(len(index) != 2 for index in example.indices):
        return None
    (row, column), address = example.indices[0], example.addresses[0]
    for (other_row, other_column), other in zip(example.indices, example.addresses, strict=True):
        if other_row != row:
            elements = (other - address) // example.size - (other_column - column)
            columns = elements // (other_row - row)
            return (size // columns, columns) if columns > 0 and size % columns == 0 else None
    return None
