"""Settings come from a page's request: a wrong one is refused with a sentence that names it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from groundup.studio.playground.embedded import data
from groundup.studio.playground.sets import make
from groundup.studio.playground.settings import SETS, Settings


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"rate": 1}, "unknown setting 'rate'; the playground has activation, batch_size"),
        ({"data": "moons"}, "data: unknown 'moons'; choose one of xor, clouds"),
        ({"data": ["xor"]}, r"data: expected a name, got \['xor'\]"),
        ({"stage": "5"}, "unknown stage '5'"),
        ({"stage": 3}, "stage: expected a name, got 3"),
        ({"learning_rate": float("nan")}, "learning_rate: expected a number from 0 to 10, got nan"),
        ({"noise": 10**400}, "noise: expected a number from 0 to 0.5, got 1000"),
        ({"data": "own", "points": [[10**400, 0, 0]] * 4}, "points: x of number 1: expected a number from -10 to 10"),
        ({"learning_rate": "0.1"}, "learning_rate: expected a number, got '0.1'"),
        ({"batch_size": 2.5}, "batch_size: expected a whole number, got 2.5"),
        ({"batch_size": 0}, "batch_size: expected a whole number from 1 to 1,000, got 0"),
        ({"dropout": 0.95}, "dropout: expected a number from 0 to 0.9, got 0.95"),
        ({"layers": [4, 0]}, "layers: number 2: expected a whole number from 1 to 128, got 0"),
        ({"layers": [2] * 7}, "layers: expected at most 6 hidden layers, got 7"),
        ({"layers": "44"}, "layers: expected a list of sizes, got '44'"),
        ({"seed": True}, "seed: expected a whole number, got True"),
        ({"data": "own"}, "points: a set of your own needs at least 4 points and 2 classes"),
        ({"data": "own", "points": [[0, 0, 0]] * 9}, "needs at least 4 points and 2 classes"),
        ({"data": "own", "points": [[0, 0, 0]] * 2000}, "points: expected at most 1,000 points, got 2,000"),
        ({"data": "own", "points": [[0, 0]]}, r"points: number 1: expected \[x, y, class\], got \[0, 0\]"),
        ({"data": "own", "points": [[0, 0, 5]]}, "points: class of number 1: expected a whole number from 0 to 4"),
        ({"data": "own", "points": [[0, 1e9, 0]]}, "points: y of number 1: expected a number from -10 to 10"),
    ],
)
def test_a_wrong_setting_is_refused_in_words(values: dict[str, Any], says: str) -> None:
    with pytest.raises((ValueError, TypeError), match=says):
        Settings.from_json(values)


def test_settings_survive_the_way_to_the_page_and_back() -> None:
    settings = Settings.from_json({"stage": "3", "layers": [3, 2], "seed": 7})
    assert settings.stage == "stage3_c"
    assert Settings.from_json(settings.to_json()) == settings


@pytest.mark.parametrize("data", [name for name in SETS if name not in ("own", "digits")])
@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_a_made_set_lies_in_the_square_and_has_test_points_of_its_own(data: str, noise: float) -> None:
    settings = Settings(data=data, noise=noise, seed=3)
    made, again = make(settings), make(settings)
    assert (len(made.train), len(made.test)) == (200, 100)
    assert np.abs(np.concatenate([made.train.x, made.test.x])).max() < (1.0 if noise == 0.0 else 1.4)
    np.testing.assert_array_equal(made.train.x, again.train.x)
    if data != "xor" or noise:
        assert not set(map(tuple, made.train.x.tolist())) & set(map(tuple, made.test.x.tolist()))


def test_points_of_ones_own_are_kept_as_they_are() -> None:
    points = ((-1.0, 0.5, 0), (1.0, 0.25, 1), (0.0, 0.0, 2), (0.5, -0.5, 2))
    made = make(Settings(data="own", points=points))
    both = [
        *zip(made.train.x.tolist(), made.train.y, strict=True),
        *zip(made.test.x.tolist(), made.test.y, strict=True),
    ]
    assert made.classes == 3
    assert sorted((*map(float, x), int(y)) for x, y in both) == sorted(points)


def test_an_exported_page_carries_checked_settings() -> None:
    carried = data({"data": "spirals", "layers": [8, 8], "folder": "/tmp"})
    assert carried["settings"]["layers"] == (8, 8)
    with pytest.raises(ValueError, match="data: an exported page has no images"):
        data({"data": "digits"})
    with pytest.raises(ValueError, match="noise: expected a number from 0"):
        data({"noise": 3})
