"""The number formats of `shared.numbers` for figures and pages: no line breaks between a number and its unit."""

from __future__ import annotations

from functools import partial

from shared import numbers
from shared.numbers import NO_BREAK, in_words, listed, three_digits, two_digits

__all__ = [
    "NO_BREAK",
    "as_fast",
    "capital",
    "duration",
    "in_words",
    "listed",
    "many",
    "noise_text",
    "percent",
    "plural",
    "share",
    "size_of",
    "three_digits",
    "times",
    "two_digits",
    "up_to",
]

as_fast = partial(numbers.as_fast, gap=NO_BREAK)
duration = partial(numbers.duration, gap=NO_BREAK)
many = partial(numbers.many, gap=NO_BREAK)
noise_text = partial(numbers.noise_text, gap=NO_BREAK)
percent = partial(numbers.percent, gap=NO_BREAK)
plural = partial(numbers.plural, gap=NO_BREAK)
share = partial(numbers.share, gap=NO_BREAK)
size_of = partial(numbers.size_of, gap=NO_BREAK)
times = partial(numbers.times, gap=NO_BREAK)
up_to = partial(numbers.up_to, gap=NO_BREAK)


def capital(text: str) -> str:
    """The text with its first letter large."""
    return text[:1].upper() + text[1:]
