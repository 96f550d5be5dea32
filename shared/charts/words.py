"""Numbers as headlines, labels and alternative texts say them."""

from __future__ import annotations

from collections.abc import Sequence

NO_BREAK = "\u00a0"
"""A space at which no line breaks: between a number and its unit."""

_COUNTS = ("no", "one", "two", "three", "four", "five", "six")


def three_digits(value: float) -> str:
    """A number as charts and tables show it, without an exponent: 0.0312, 4.57, 183, 12,400."""
    rounded = float(f"{value:.3g}")
    return f"{rounded:,.0f}" if abs(rounded) >= 100 else f"{rounded:.3g}"


def two_digits(value: float) -> str:
    """The same where the third digit would be noise: 0.031, 4.6, 180, 12,000."""
    rounded = float(f"{value:.2g}")
    return f"{rounded:,.0f}" if abs(rounded) >= 10 else f"{rounded:.2g}"


def many(value: float) -> str:
    """A large number: '1.06 million', '12,400'."""
    return f"{three_digits(value / 1e6)}{NO_BREAK}million" if value >= 999_500 else three_digits(value)


def share(value: float) -> str:
    """A share in percent: '0.023 %', '4.1 %', '98 %', '118 %'."""
    return f"{100 * value:.0f}{NO_BREAK}%" if value >= 0.0995 else f"{100 * value:.2g}{NO_BREAK}%"


def percent(value: float) -> str:
    """An accuracy in percent, to a tenth: '97.6 %'."""
    return f"{100 * value:.1f}{NO_BREAK}%"


def times(value: float) -> str:
    """A factor: '7.4 times'."""
    return f"{two_digits(value)}{NO_BREAK}times"


def duration(seconds: float) -> str:
    """A time in the unit that suits it: '26 s', '526 ms', '4.1 µs'."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= 0.9995 * scale:
            return f"{three_digits(seconds / scale)}{NO_BREAK}{unit}"
    return f"{three_digits(seconds / 1e-9)}{NO_BREAK}ns"


def size_of(number: float) -> str:
    """A number of bytes: '24 KiB', '3 GiB'."""
    for unit, scale in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if number >= scale:
            return f"{three_digits(number / scale)}{NO_BREAK}{unit}"
    return f"{number:.0f} bytes"


def count(number: int) -> str:
    """'three', and '12' where words end."""
    return _COUNTS[number] if number < len(_COUNTS) else str(number)


def listed(items: Sequence[str]) -> str:
    """'a', 'a and b', 'a, b and c'."""
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}" if items else ""


def capital(text: str) -> str:
    """The text with its first letter large."""
    return text[:1].upper() + text[1:]
