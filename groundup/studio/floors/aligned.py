"""Lines of several texts beside each other: those that do the same thing in one row, and what changed from the left.

aligned(texts)      the rows: for each text the number of its line, or None
changes(texts, row) how each line of a row differs from that of the text before

Lines are alike by the words that they share, rare ones counting more. Between such lines the others stand as they come.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise, zip_longest

Row = list[int | None]

LEAST = 0.3
"""How alike two lines have to be, from 0 to 1, to stand beside each other for that."""

SAME = (
    *("- subtract", "* multiply", "/ divide", "+ add", "for while range", "exp exps exponential"),
    *("max largest maximum best", "sum sums total", "grad gradient gradients slope dy"),
)
"""Words that mean the same in other languages or on other stages, the first for all of them."""

SAME_WORD = {word: words.split()[0] for words in SAME for word in words.split()}


def aligned(texts: Sequence[Sequence[str]]) -> list[Row]:
    """Each text's lines stand in their own order, and every line in one row."""
    rows: list[Row] = []
    for k, text in enumerate(texts):
        left = [next((texts[at][i] for at in range(k - 1, -1, -1) if (i := row[at]) is not None), "") for row in rows]
        pairs = _pairs(_alike(left, text), len(text))
        rows = [[*(rows[at] if at is not None else [None] * k), line] for at, line in pairs]
    return rows


def changes(texts: Sequence[Sequence[str]], row: Row) -> list[str]:
    """For each text: "same" as in the text before, "changed", "new", "gone", or "" if there is nothing to compare."""
    found = [""]
    for k, (i, j) in enumerate(pairwise(row)):
        if not texts[k] or not texts[k + 1] or i is j is None:
            found.append("")
        elif i is None or j is None:
            found.append("new" if i is None else "gone")
        else:
            found.append("same" if texts[k][i].split() == texts[k + 1][j].split() else "changed")
    return found


def _words(line: str) -> set[str]:
    if re.match(r"\w.*\(", line):  # no spaces before it: the function itself
        return {"def "}
    return {SAME_WORD.get(word, word.lower()) for word in re.findall(r"[A-Za-z]+|\d+|[-+*/<>]", line)}


def _alike(left: Sequence[str], right: Sequence[str]) -> list[list[float]]:
    """How alike each line of both is, from 0 to 1, by the words that occur on both sides, rare ones counting more."""
    sides = [[_words(line) for line in side] for side in (left, right)]
    counts = [Counter(word for line in side for word in line) for side in sides]
    weights = {word: 1 / (counts[0][word] + counts[1][word]) for word in counts[0].keys() & counts[1].keys()}
    size = [[sum(weights.get(word, 0) ** 2 for word in line) for line in side] for side in sides]
    return [
        [
            sum(weights[word] ** 2 for word in one & other if word in weights) / math.sqrt(a * b) if a and b else 0.0
            for other, b in zip(sides[1], size[1], strict=True)
        ]
        for one, a in zip(sides[0], size[0], strict=True)
    ]


def _pairs(alike: list[list[float]], right: int) -> list[tuple[int | None, int | None]]:
    """The lines of both in order, those beside each other whose likeness adds up to the most (Needleman, Wunsch)."""
    left = len(alike)
    best = [[0.0] * (right + 1) for _ in range(left + 1)]
    for i in range(left - 1, -1, -1):
        for j in range(right - 1, -1, -1):
            together = alike[i][j] + best[i + 1][j + 1] if alike[i][j] >= LEAST else 0.0
            best[i][j] = max(together, best[i + 1][j], best[i][j + 1])
    pairs: list[tuple[int | None, int | None]] = []
    i = j = from_i = from_j = 0
    while i < left and j < right:
        if alike[i][j] >= LEAST and best[i][j] == alike[i][j] + best[i + 1][j + 1]:
            pairs += [*zip_longest(range(from_i, i), range(from_j, j)), (i, j)]
            i = from_i = i + 1
            j = from_j = j + 1
        elif best[i][j] == best[i + 1][j]:
            i += 1
        else:
            j += 1
    return [*pairs, *zip_longest(range(from_i, left), range(from_j, right))]
