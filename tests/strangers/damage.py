"""Damage: bits that flip, files that end early, JSON values in whose place stands something else."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator, Sequence
from typing import Any

HUGE = 10**400

JUNK: tuple[Any, ...] = (
    *(None, True, False, -1, 0, 1, 2, 1.5, -0.5, 5e-324, 1e308, -1e308, 2**31, 2**63, 10**30, HUGE),
    *(
        float("nan"),
        float("inf"),
        "",
        "x",
        "relu",
        "[/x]",
        "\x00\x1b[31mred",
        "$\\frac{",
        "../../etc/passwd",
        "100000000",
    ),
    *(
        "a" * 3000,
        "\ud800",
        [],
        [[]],
        [1],
        [None],
        ["x", 2],
        [1e308, 1e308],
        {},
        {"x": 1},
        {"kind": "Conv"},
        [[1, 2], [3]],
    ),
)
"""Values for any place of a document."""

RAW = (
    *(b"", b"[]", b"1", b"null", b'"x"', b"{", b"NaN", b"\xff\xfe", b"\x00" * 100, b"9" * 5000, b"[" * 200_000),
    *(b'{"a":' * 100_000, b"[" + b"[]," * 900_000 + b"1]", b"[" + b"0," * 3_000_000 + b"0]", b"\xef\xbb\xbf{}"),
    *(
        b'{"kind":' + b"9" * 5000 + b"}",
        b'{"kind":"groundup bench","schema":3}',
        b"a=" + b"[" * 50_000,
        b"a." * 5000 + b"a=1",
    ),
)
"""Texts that no program writes."""


def damaged(content: bytes, rng: random.Random, head: int = 0) -> bytes:
    """The content with flipped bits, cut off, or with a part doubled. head: bytes that are hit more often"""
    way = rng.randrange(4)
    if way == 0 or not content:
        return content[: rng.randrange(rng.choice([len(content), max(head, 1), 20]) + 1)]
    found = bytearray(content)
    if way == 1:
        at = rng.randrange(len(found))
        found[at:at] = found[max(0, at - rng.randrange(1, 40)) : at]
        return bytes(found)
    for _ in range(rng.choice([1, 1, 2, 8])):
        at = rng.randrange(min(head, len(found)) if head and rng.random() < 0.7 else len(found))
        found[at] ^= 1 << rng.randrange(8)
    return bytes(found)


def exchanged(document: Any, rng: random.Random, values: Sequence[Any] = JUNK, more: float = 0.3) -> Any:
    """The JSON document with another value in one place or several, or without one of its fields."""
    found = copy.deepcopy(document)
    while True:
        places = list(_places(found))
        container, key = rng.choice(places) if places else (None, None)
        if container is None:
            return rng.choice(values)
        if rng.random() < 0.2:
            del container[key]
        elif isinstance(container, dict) and rng.random() < 0.1:
            container[f"{key}s"] = container.pop(key)  # a field that was renamed
        else:
            container[key] = copy.deepcopy(rng.choice(values))
        if rng.random() > more:
            return found


def as_text(document: Any) -> str:
    """The document as JSON, with what JSON does not have: NaN, half characters and whole numbers without an end."""
    return json.dumps(document).replace(f'"{HUGE}"', str(HUGE))


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """(container, key) of every value inside the document; a list of many like values counts for four."""
    keys: Any = list(value) if isinstance(value, dict) else range(len(value))
    if isinstance(value, list) and len(value) > 4:
        keys = random.Random(len(value)).sample(range(len(value)), 4)
    for key in keys:
        yield value, key
        if isinstance(value[key], dict | list):
            yield from _places(value[key])
