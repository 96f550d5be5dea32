"""Week 24: which operation of a profile to mend, and which places of an image speak for a class."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from groundup import grad_cam as of_images
from groundup.course.checks import repeated
from groundup.course.checks.check import Check, Tally, Wrong, unchanged
from groundup.course.checks.exercise import Exercise
from groundup.course.checks.exercise_checks import checks_of
from groundup.course.checks.mistakes import Mistake
from shared.profile import gain

UNKNOWN = -1.0
"""Stands for None, a roof that was not measured."""


def mended(times: np.ndarray, step: float, chosen: int, saved: float | None = None) -> dict[str, Any]:
    """The answer that names this operation; saved: by how much the step gets shorter, None for the right number."""
    least = times[1, chosen]
    right = times[0, chosen] - least if least != UNKNOWN else 0.0
    return {"operation": float(chosen), "step": step - (right if saved is None else saved)}


def first_to_mend() -> list[Check]:
    """24.7: what to mend first, and the step after it."""
    function = gain.first_to_mend

    def call(times: np.ndarray, step: float) -> dict[str, Any]:
        seconds, least = times[0].tolist(), [None if each == UNKNOWN else each for each in times[1].tolist()]
        handed = [*seconds], [*least]
        found = function(seconds, least, step)
        if handed != (seconds, least):
            raise Wrong(
                "first_to_mend changes the lists that it gets", cause="the table of the profile is printed from them"
            )
        if found is None:
            return {"operation": -1.0, "step": step}
        if not isinstance(found, tuple) or len(found) != 2:
            raise Wrong("first_to_mend", expected="(number, seconds) or None", got=repr(found)[:80])
        return {"operation": float(found[0]), "step": float(found[1])}

    def gains(times: np.ndarray) -> np.ndarray:
        return np.where(times[1] == UNKNOWN, 0.0, times[0] - times[1])

    def reference(times: np.ndarray, step: float) -> dict[str, Any]:
        saved = gains(times)
        if not saved.size or saved.max() <= 0:
            return {"operation": -1.0, "step": step}
        return mended(times, step, int(saved.argmax()))

    def arguments(rng: np.random.Generator, size: tuple[int, float]) -> tuple[Any, ...]:
        """Some operations far from their roofs and some near; of the share `unknown` no roof is known."""
        count, unknown = size
        seconds = rng.uniform(1, 100, count) * 1e-6
        least = np.where(rng.random(count) < unknown, UNKNOWN, seconds * rng.uniform(0.02, 1.0, count))
        return np.array([seconds, least]), float(seconds.sum() * 1.25)

    def chosen(text: str, by: Callable[[np.ndarray], np.ndarray]) -> Mistake:
        """The mistake that takes the largest of another measure, and nothing where that is nowhere above 0."""

        def wrong(times: np.ndarray, step: float) -> Any:
            measure = by(times)
            return float(np.argmax(measure)) if measure.max(initial=0.0) > 0 else -1.0

        return Mistake(text, wrong, "operation")

    def stepped(text: str, saved: Callable[[np.ndarray, int], float]) -> Mistake:
        def wrong(times: np.ndarray, step: float) -> Any:
            number = int(reference(times, step)["operation"])
            return step - saved(times, number) if number >= 0 else None

        return Mistake(text, wrong, "step")

    def never(times: np.ndarray, step: float) -> Any:
        return -1.0 if gains(times).max(initial=0.0) > 0 else None

    us = 1e-6
    by_hand = np.array([[765, 330, 127, 4], [125, 63, 1, 4]]) * us
    return checks_of(
        Exercise(
            call=call,
            reference=reference,
            show=lambda times, step: f"first_to_mend of {times.shape[1]} operations, a step of {1e6 * step:.4g} µs",
            hand=[
                # The slowest is at its roof already, and the least efficient takes hardly any time
                ((np.array([[90, 30, 2], [88, 10, 0.01]]) * us, 130 * us), {"operation": 1.0, "step": 110 * us}),
                ((by_hand, 1300 * us), {"operation": 0.0, "step": 660 * us}),
                # A roof of 0 is known: the operation moves nothing and computes nothing
                ((np.array([[3, 5], [0, 4]]) * us, 10 * us), {"operation": 0.0, "step": 7 * us}),
                # Of the slowest nothing is known; two others gain the same, and the first of them is taken
                (
                    (np.array([[90, 9, 12], [UNKNOWN / us, 4, 7]]) * us, 120 * us),
                    {"operation": 1.0, "step": 115 * us},
                ),
                # A roof of 0 is one like any other
                ((np.array([[50, 30], [0, 1]]) * us, 100 * us), {"operation": 0.0, "step": 50 * us}),
                # Nothing to gain: at the roof, faster than it, and unknown
                ((np.array([[5, 5, 5], [5, 6, UNKNOWN / us]]) * us, 20 * us), {"operation": -1.0, "step": 20 * us}),
            ],
            arguments=arguments,
            typical=(9, 0.2),
            sizes=[(1, 0.0), (1, 1.0), (0, 0.0), (2, 0.0), (30, 0.5), (200, 0.1)],
            mistakes=[
                chosen(
                    "this is the slowest operation: if it is at its roof, mending it gains nothing",
                    lambda t: np.where(t[1] == UNKNOWN, 0.0, t[0]),
                ),
                chosen(
                    "this is the least efficient one, the farthest from its roof as a share: of a short one that is "
                    "little time",
                    lambda t: np.where(t[1] == UNKNOWN, 0.0, 1 - t[1] / t[0]),
                ),
                chosen(
                    "this is the one whose roof allows the least: that says nothing of its time",
                    lambda t: 1 / np.maximum(np.abs(t[1]), 1e-12),
                ),
                chosen(
                    "an operation without a roof is chosen: what it could gain is not known",
                    lambda t: np.where(t[1] == UNKNOWN, t[0], t[0] - t[1]),
                ),
                Mistake(
                    "None is for a step in which nothing is to be gained: here something is",
                    never,
                    "operation",
                ),
                Mistake(
                    "an operation is named where none gains: at its roof, or faster, there is nothing to mend",
                    lambda times, step: 0.0 if times.size and gains(times).max() <= 0 else None,
                    "operation",
                ),
                stepped(
                    "this is the step without the operation: it still takes what its roof allows", lambda t, i: t[0, i]
                ),
                stepped("this takes the operation's roof from the step: only what it gains goes", lambda t, i: t[1, i]),
                Mistake(
                    "this is the time that is gained: what is left of the step is asked for",
                    lambda times, step: float(gains(times).max(initial=0.0)) or None,
                    "step",
                ),
                Mistake(
                    "the step has more in it than its operations: take its own time, and not their sum",
                    lambda times, step: (
                        float(times[0].sum() - gains(times).max()) if times.size and gains(times).max() > 0 else None
                    ),
                    "step",
                ),
            ],
        )
    )


def evidence(maps: np.ndarray, slopes: np.ndarray, **other: Any) -> np.ndarray:
    """Grad-CAM in float64, with known mistakes: other weights, another sum, another end, another scale."""
    maps, slopes = maps.astype(np.float64), slopes.astype(np.float64)
    weights = other.get("weights", lambda slopes: slopes.mean(axis=(2, 3), keepdims=True))(slopes)
    found = other.get("cut", lambda each: np.maximum(each, 0))((weights * maps).sum(axis=1))
    if "scale" in other:
        scaled: np.ndarray = other["scale"](found)
        return scaled
    largest = found.max(axis=(1, 2), keepdims=True)
    return np.asarray(found / np.where(largest > 0, largest, 1))


def grad_cam() -> list[Check]:
    """24.8: which places speak for a class."""
    function = of_images.grad_cam

    def call(maps: np.ndarray, slopes: np.ndarray) -> Any:
        handed = repeated.handed(maps), repeated.handed(slopes)
        with np.errstate(invalid="raise"):
            try:
                found = function(*handed)
            except FloatingPointError as error:
                raise Wrong(f"grad_cam divides 0 by 0 ({error})", cause=NOTHING) from None
        repeated.returned(found, handed)
        unchanged(Tally(), (maps, slopes), handed, ("maps", "slopes"))
        return found

    def arguments(rng: np.random.Generator, size: tuple[Any, ...]) -> tuple[np.ndarray, np.ndarray]:
        shape, *dark = size
        maps, slopes = rng.standard_normal(shape), rng.standard_normal(shape)
        for image in dark:  # an image with no evidence
            maps[image], slopes[image] = np.maximum(maps[image], 0), -np.abs(slopes[image])
        return maps, slopes

    def other(text: str, **change: Any) -> Mistake:
        return Mistake(text, lambda maps, slopes: evidence(maps, slopes, **change))

    def by(largest: Callable[[np.ndarray], Any]) -> Callable[[np.ndarray], np.ndarray]:
        return lambda found: found / np.where(largest(found) > 0, largest(found), 1)

    def shifted(found: np.ndarray) -> np.ndarray:
        low, high = found.min(axis=(1, 2), keepdims=True), found.max(axis=(1, 2), keepdims=True)
        return (found - low) / np.where(high > low, high - low, 1)

    def mean_of(change: Callable[[np.ndarray], np.ndarray]) -> Callable[[np.ndarray], np.ndarray]:
        return lambda slopes: change(slopes).mean(axis=(2, 3), keepdims=True)

    one = np.array([[[[1.0, 0.0], [2.0, 4.0]], [[3.0, 1.0], [0.0, 0.0]]]])
    up = np.array([[[[1.0, 1.0], [3.0, 3.0]], [[-1.0, -1.0], [-1.0, -1.0]]]])  # means 2 and -1
    return checks_of(
        Exercise(
            call=call,
            fresh=True,
            reference=evidence,
            show=lambda maps, slopes: f"grad_cam of maps {maps.shape}",
            hand=[
                ((one, up), [[[0.0, 0.0], [0.5, 1.0]]]),  # 2 - 3, 0 - 1, 4, 8
                ((one, -np.abs(up)), [[[0.0, 0.0], [0.0, 0.0]]]),
                (
                    (np.concatenate([one, one]), np.concatenate([up, -up])),
                    [
                        [[0.0, 0.0], [0.5, 1.0]],
                        [[1.0, 1.0], [0.0, 0.0]],  # -2 + 3, 1, -4, -8
                    ],
                ),
                ((np.zeros((1, 2, 1, 3)), np.ones((1, 2, 1, 3))), [[[0.0, 0.0, 0.0]]]),
            ],
            arguments=arguments,
            typical=((3, 4, 5, 2), 1),
            sizes=[((1, 1, 1, 1),), ((1, 7, 1, 6),), ((5, 2, 3, 8), 0, 4), ((2, 16, 7, 7),), ((4, 3, 9, 1), 2)],
            again=[((3, 4, 5, 2), 1), ((6, 4, 5, 2),), ((1, 4, 5, 2), 0), ((3, 4, 5, 2), 1), ((3, 4, 5, 2),)],
            special=(),
            factors=(1e4, 1e-6),
            terms=lambda maps, slopes: 4 * maps[0].size,
            scale=lambda maps, slopes: _rounding(maps, slopes),
            mistakes=[
                Mistake(
                    "what speaks against the class counts as 0: where the sum is negative, so would this be",
                    lambda maps, slopes: evidence(maps, slopes, cut=lambda each: each),
                ),
                other("what speaks against the class counts as 0, and not as evidence for it", cut=np.abs),
                other(
                    "the weight of a map is the mean of its slopes over all places, and not each place's own slope",
                    weights=lambda slopes: slopes,
                ),
                other(
                    "negative slopes belong to the mean, too: only the sum over the maps is cut at 0",
                    weights=mean_of(lambda slopes: np.maximum(slopes, 0)),
                ),
                other("a slope's sign says whether a map speaks for the class", weights=mean_of(np.abs)),
                other(
                    "this is the largest slope of each map: its weight is their mean",
                    weights=lambda slopes: slopes.max(axis=(2, 3), keepdims=True),
                ),
                other(
                    "one weight for all maps: each map has its own, the mean over its places",
                    weights=lambda slopes: slopes.mean(axis=(1, 2, 3), keepdims=True),
                ),
                Mistake(
                    "what a map has below 0 counts, too: only the sum over the maps is cut at 0",
                    lambda maps, slopes: evidence(np.maximum(maps, 0), slopes),
                ),
                other("every map counts the same: its weight is the mean of its slopes", weights=np.ones_like),
                other(
                    "each image is divided by its own largest evidence, and not by that of the batch",
                    scale=by(lambda found: found.max()),
                ),
                other("each image is divided by its largest evidence", scale=lambda found: found),
                other(
                    "each image is divided by its largest evidence, so that 1 is the most: these add up to 1",
                    scale=by(lambda found: found.sum(axis=(1, 2), keepdims=True)),
                ),
                other(
                    "the least evidence is taken off: 0 is where nothing speaks for the class, and not the least place",
                    scale=shifted,
                ),
                Mistake(
                    "cut at 0 map by map: the maps are added up first, so that one may speak against another",
                    _cut_by_map,
                ),
            ],
        )
    )


NOTHING = (
    "in an image where nothing speaks for the class the largest evidence is 0: its result is 0 everywhere, so divide "
    "by 1 there"
)


def _cut_by_map(maps: np.ndarray, slopes: np.ndarray) -> np.ndarray:
    found = np.maximum(slopes.mean(axis=(2, 3), keepdims=True) * maps, 0).sum(axis=1)
    largest = found.max(axis=(1, 2), keepdims=True)
    return np.asarray(found / np.where(largest > 0, largest, 1))


def _rounding(maps: np.ndarray, slopes: np.ndarray) -> Any:
    """How large the terms are beside the largest evidence, by which they are divided."""
    terms = np.abs(slopes).mean(axis=(2, 3), keepdims=True) * np.abs(maps)
    largest = np.maximum((slopes.mean(axis=(2, 3), keepdims=True) * maps).sum(axis=1), 0).max(
        axis=(1, 2), keepdims=True
    )
    return terms.sum(axis=1).max(axis=(1, 2), keepdims=True) / np.where(largest > 0, largest, 1)


GRADES: dict[str, Callable[[], list[Check]]] = {
    "24.7": first_to_mend,
    "24.8": grad_cam,
}
