"""Numbers as text: the one place that decides how a number is written for people.

    digits, three_digits, two_digits    no unit: 0.0312, 4.57, 183, 12,400
    count                               65,536, and an average as 4.5
    duration, size_of, quantity         in the unit that suits: 34.5 ms, 48 KiB, 19.5 TFLOP/s
    times, many                         2.2 times, 1.06 million
    as_fast, up_to                      7.4 times as fast, 2 times as slow, as fast; up to 7.4 times as fast
    share, counted_share                percentages, each as precise as it deserves
    percent, noise_text
    in_words, plural, listed            three; 2 requests; a, b and c

No number has an exponent unless it is beyond all everyday sizes (140, not 1.4e+02), and thousands have commas.

gap: what stands between a number and its unit. A space by default; NO_BREAK in figures and pages, whose lines are
broken by machine; "" in the narrow tables of the terminal.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

NO_BREAK = "\u00a0"
"""A space at which no line breaks."""

_WORDS = ("no", "one", "two", "three", "four", "five", "six")
_LARGEST = 1e15
"""From here on a number has an exponent."""


def digits(value: float, number: int) -> str:
    """The value to this many significant digits: 0.0312, 4.57, 183, 12,400."""
    rounded = float(f"{value:.{number}g}")
    if not abs(rounded) < _LARGEST:  # so that nan and infinity come here, too
        return f"{value:.{number}g}"
    if abs(rounded) >= 10 ** (number - 1):
        return f"{rounded:,.0f}"
    return f"{Decimal(repr(rounded)).normalize():f}"


def three_digits(value: float) -> str:
    """A number with three digits, as charts and tables show it: 0.0312, 4.57, 183, 12,400."""
    return digits(value, 3)


def two_digits(value: float) -> str:
    """A number with two digits, where a third one would be noise: 0.031, 4.6, 180, 12,000."""
    return digits(value, 2)


def count(value: float) -> str:
    """A whole number in full, 65,536; an average with three digits: 4.5, 0.25."""
    return f"{value:,.0f}" if float(value).is_integer() or abs(value) >= 999.5 else three_digits(value)


def duration(seconds: float, gap: str = " ") -> str:
    """A time: '26 s', '526 ms', '4.1 µs', '3 ns'."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= 0.9995 * scale or seconds == 0:
            return f"{three_digits(seconds / scale)}{gap}{unit}"
    return f"{three_digits(seconds / 1e-9)}{gap}ns"


def size_of(number: float, gap: str = " ") -> str:
    """A number of bytes: '128 B', '24 KiB', '1.5 MiB', where 1 KiB is 1,024 B."""
    for unit, scale in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if number >= scale:
            return f"{_whole_or_three(number / scale)}{gap}{unit}"
    return f"{count(number)}{gap}B"


def quantity(value: float, unit: str, gap: str = " ") -> str:
    """A quantity with a prefix for a power of a thousand: '19.5 TFLOP/s', '12.6 MB' (decimal, as bandwidths are)."""
    prefixes = ("", "k", "M", "G", "T", "P")
    power = 0
    while value >= 999.5 and power < len(prefixes) - 1:
        value /= 1000
        power += 1
    return f"{three_digits(value)}{gap}{prefixes[power]}{unit}"


def times(value: float, gap: str = " ") -> str:
    """A factor: '7.4 times'."""
    return f"{two_digits(value)}{gap}times"


def as_fast(factor: float, gap: str = " ") -> str:
    """How fast one is beside another: '7.4 times as fast', '2 times as slow'; 'as fast' where that would be 1 times."""
    larger, word = (factor, "fast") if factor >= 1 else (1 / factor, "slow")
    return "as fast" if two_digits(larger) == "1" else f"{times(larger, gap)} as {word}"


def up_to(factor: float, gap: str = " ") -> str:
    """The speed-up of the best of many cases in words: 'up to 7.4 times as fast'. factor: at least 1"""
    fast = as_fast(factor, gap)
    return fast if fast == "as fast" else f"up to {fast}"


def many(value: float, gap: str = " ") -> str:
    """A large number: '1.06 million', '12,400'."""
    return f"{three_digits(value / 1e6)}{gap}million" if value >= 999_500 else three_digits(value)


def share(value: float, gap: str = " ") -> str:
    """A share of a whole with two digits, and without decimals from 10 % on: '0.023 %', '4.1 %', '98 %', '118 %'."""
    return f"{100 * value:.0f}{gap}%" if value >= 0.0995 else f"{two_digits(100 * value)}{gap}%"


def counted_share(value: float, gap: str = " ") -> str:
    """A counted share from 0 to 1 with three digits: '12.5 %', '100 %'. Nearly nothing and nearly all are called so."""
    if 0 < value < 0.001:
        return f"below 0.1{gap}%"
    if 0.999 < value < 1:
        return f"above 99.9{gap}%"
    return f"{three_digits(100 * value)}{gap}%"


def percent(value: float, gap: str = " ") -> str:
    """An accuracy to a tenth of a percent: '97.6 %'."""
    return f"{100 * value:.1f}{gap}%"


def noise_text(value: float, gap: str = " ") -> str:
    """How far another run may be off: '3 %', '0.4 %', 'over 100 %' (more digits would claim to know more)."""
    if value > 1:
        return f"over 100{gap}%" if gap else ">100%"
    return f"{100 * value:.0f}{gap}%" if value >= 0.0095 else f"{100 * value:.1f}{gap}%"


def in_words(number: int) -> str:
    """'three', and '12' from seven on."""
    return _WORDS[number] if number < len(_WORDS) else str(number)


def plural(value: float, one: str, several: str = "", gap: str = " ") -> str:
    """'1 request', '2 requests'. several: the plural, where it is not `one` with an s."""
    return f"{count(value)}{gap}{one if value == 1 else several or one + 's'}"


def listed(items: Sequence[str]) -> str:
    """'a', 'a and b', 'a, b and c'."""
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}" if items else ""


def _whole_or_three(value: float) -> str:
    return f"{value:,.0f}" if float(value).is_integer() else three_digits(value)
