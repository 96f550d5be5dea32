"""The colours of every figure, each with a value for a light and one for a dark screen.

A figure is drawn once, in the light values. In its SVG file those become variables that have both values (`svg.py`),
and for a dark PNG the artists are given the dark values (`save.py`). So a light value stands for one dark value only:
where two colours are alike on a light screen and differ on a dark one, the last digit tells them apart.
"""

from __future__ import annotations

from matplotlib.colors import to_hex, to_rgb

from shared.bench.measuring.rows import LIBRARIES
from shared.contract import STAGES
from shared.markup import Palette

READABLE = 4.5
"""The least contrast of text with its paper (Web Content Accessibility Guidelines 2.2, level AA)."""

INK, QUIET, RULE, PAPER = "#222222", "#595959", "#DDDDDD", "#FFFFFF"
"""Text and lines that matter; small print; lines that only guide the eye; the ground."""

BLACK, WHITE = "#222223", "#FFFFFE"
"""Text on marks that are bright on both screens; text on marks that are dark on both."""

BLUE, ORANGE, GREEN, PINK = "#0072B2", "#E69F00", "#009E73", "#CC79A7"
VERMILION, SKY, YELLOW = "#D55E00", "#56B4E9", "#F0E442"
"""Okabe and Ito's palette (https://jfly.uni-koeln.de/color/): colour-blind readers can tell them apart."""

DEEP_BLUE = "#0072B3"
"""BLUE that stays as it is on a dark screen, where BLUE turns into SKY."""

GREY = "#8C8C8C"

CONTENDERS = dict(zip((*STAGES, *LIBRARIES), (BLUE, ORANGE, GREEN, PINK, GREY, VERMILION, GREY), strict=True))
"""Stage or library -> its colour."""


def luminance(colour: str) -> float:
    """How light a colour is, in [0, 1], as the guidelines of READABLE define it."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(colour)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """The contrast of two colours: from 1, the same colour, to 21, black on white."""
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def mixed(colour: str, other: str, share: float) -> str:
    """The colour with this share of the other one in it."""
    red, green, blue = (a + share * (b - a) for a, b in zip(to_rgb(colour), to_rgb(other), strict=True))
    return to_hex((red, green, blue)).upper()


def _readable(colour: str, ink: str, paper: str) -> str:
    """The colour with as much of the ink in it as text needs to be readable on this paper: often none."""
    tries = (mixed(colour, ink, step / 20) for step in range(21))
    return next(each for each in tries if contrast(each, paper) >= READABLE)


def _text(colour: str) -> tuple[str, str]:
    return _readable(colour, INK, PAPER), _readable(_dark(colour), _dark(INK), _dark(PAPER))


def _mix(colour: str, other: str, share: float) -> tuple[str, str]:
    return mixed(colour, other, share), mixed(_dark(colour), _dark(other), share)


def _dark(colour: str) -> str:
    return next((dark for light, dark in _PAIRS.values() if light == colour), colour)


_PAIRS = {
    "ink": (INK, "#ECECEC"),
    "quiet": (QUIET, "#B4B8C0"),
    "rule": (RULE, "#363B45"),
    "paper": (PAPER, "#16181D"),
    "black": (BLACK, "#16181D"),
    "white": (WHITE, "#ECECEC"),
    "blue": (BLUE, SKY),
}
SHADES = 16
"""Steps from paper to the colour of the commonest mistake."""

PALETTE: Palette = {
    **_PAIRS,
    "roof": _mix(INK, PAPER, 0.35),
    "band": _mix(QUIET, PAPER, 0.55),
    **{f"text-{who}": _text(colour) for who, colour in CONTENDERS.items()},
    **{f"pale-{who}": _mix(colour, PAPER, 0.4) for who, colour in CONTENDERS.items()},
    **{f"shade-{step}": _mix(PAPER, VERMILION, step / SHADES) for step in range(1, SHADES)},
}
"""Name -> the colour on a light and on a dark screen. A colour that is not here is the same on both."""

ROOF, BAND = PALETTE["roof"][0], PALETTE["band"][0]
"""The roofs of a roofline; a broad line behind others."""

_ON_DARK = {light.lower(): dark for light, dark in PALETTE.values()}
_AS_TEXT = {colour: PALETTE[f"text-{who}"][0] for who, colour in CONTENDERS.items()}


def on_dark(colour: str) -> str:
    """What a colour of a figure is on a dark screen. colour: `#rrggbb`."""
    return _ON_DARK.get(colour.lower(), colour)


def readable(colour: str) -> str:
    """A contender's colour for text: darker, or on a dark screen lighter, where text could not be read in it."""
    return _AS_TEXT[colour]


def pale(who: str) -> str:
    """A contender's colour as a broad line under others. It is mixed with the paper and not transparent: markers would
    darken a transparent line."""
    return PALETTE[f"pale-{who}"][0]


def shade(share: float) -> str:
    """A shade between paper at 0 and VERMILION at 1, in SHADES steps."""
    step = round(share * SHADES)
    return PAPER if step == 0 else VERMILION if step == SHADES else PALETTE[f"shade-{step}"][0]


def text_on(colour: str) -> str:
    """The colour of text on a patch of this colour: dark or light, whichever can be read better on either screen."""
    on_light = max((INK, PAPER), key=lambda each: contrast(each, colour))
    dark = max((INK, PAPER), key=lambda each: contrast(on_dark(each), on_dark(colour)))
    return {(INK, INK): INK, (PAPER, PAPER): PAPER, (INK, PAPER): BLACK, (PAPER, INK): WHITE}[on_light, dark]
