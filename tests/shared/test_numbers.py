"""shared.numbers: what every command, table, figure and page prints for a number."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared import numbers

EVERYDAY = st.floats(1e-12, 9e14)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (numbers.three_digits(12_400.4), "12,400"),
        (numbers.three_digits(0.03124), "0.0312"),
        (numbers.three_digits(-3.14159), "-3.14"),
        (numbers.three_digits(math.inf), "inf"),
        (numbers.two_digits(140), "140"),
        (numbers.digits(3e20, 2), "3e+20"),
        (numbers.count(65536), "65,536"),
        (numbers.count(16.5), "16.5"),
        (numbers.duration(1234.0), "1,230 s"),
        (numbers.duration(0.0345), "34.5 ms"),
        (numbers.duration(6.78e-6), "6.78 µs"),
        (numbers.duration(3e-9), "3 ns"),
        (numbers.duration(0.0), "0 s"),
        (numbers.size_of(12), "12 B"),
        (numbers.size_of(1536), "1.5 KiB"),
        (numbers.size_of(1023 << 20), "1,023 MiB"),
        (numbers.quantity(6.7e13, "flop/s"), "67 Tflop/s"),
        (numbers.quantity(12.64e6, "B"), "12.6 MB"),
        (numbers.quantity(999.7, "B"), "1 kB"),
        (numbers.times(2.246), "2.2 times"),
        (numbers.as_fast(7.43), "7.4 times as fast"),
        (numbers.as_fast(0.25), "4 times as slow"),
        (numbers.as_fast(1.04), "as fast"),
        (numbers.up_to(7.43), "up to 7.4 times as fast"),
        (numbers.up_to(1.02), "as fast"),
        (numbers.many(1_064_000), "1.06 million"),
        (numbers.share(1.184), "118 %"),
        (numbers.share(0.041), "4.1 %"),
        (numbers.share(0.00047), "0.047 %"),
        (numbers.share(0.98, gap=""), "98%"),
        (numbers.percent(0.976), "97.6 %"),
        (numbers.counted_share(0.125), "12.5 %"),
        (numbers.counted_share(1.0), "100 %"),
        (numbers.counted_share(0.0001), "below 0.1 %"),
        (numbers.noise_text(0.034), "3 %"),
        (numbers.noise_text(0.004, gap=""), "0.4%"),
        (numbers.noise_text(2.5), "over 100 %"),
        (numbers.in_words(3), "three"),
        (numbers.plural(1, "request"), "1 request"),
        (numbers.plural(2000, "request"), "2,000 requests"),
        (numbers.plural(2, "class", "classes"), "2 classes"),
        (numbers.listed(["a", "b", "c"]), "a, b and c"),
        (numbers.listed(["a"]), "a"),
        (numbers.listed([]), ""),
    ],
)
def test_numbers_read_as_people_write_them(text: str, expected: str) -> None:
    assert text == expected


@pytest.mark.parametrize(
    "write", [numbers.three_digits, numbers.duration, numbers.size_of, numbers.share, numbers.many]
)
@given(value=EVERYDAY)
def test_no_everyday_number_has_an_exponent(write: object, value: float) -> None:
    assert not re.search(r"\de", write(value))  # type: ignore[operator]


@given(EVERYDAY)
def test_three_digits_are_off_by_less_than_half_a_percent(value: float) -> None:
    assert float(numbers.three_digits(value).replace(",", "")) == pytest.approx(value, rel=0.005)


@given(st.floats(1e-9, 1e6))
def test_a_duration_in_its_unit_is_the_number_of_seconds(seconds: float) -> None:
    number, unit = numbers.duration(seconds).split(" ")
    scale = {"s": 1, "ms": 1e-3, "µs": 1e-6, "ns": 1e-9}[unit]
    assert float(number.replace(",", "")) * scale == pytest.approx(seconds, rel=0.005)


def test_the_gap_stands_between_the_number_and_its_unit() -> None:
    assert numbers.duration(0.5, gap=numbers.NO_BREAK) == "500\u00a0ms"
    assert numbers.plural(2, "thread", gap=numbers.NO_BREAK) == "2\u00a0threads"
