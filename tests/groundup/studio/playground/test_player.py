"""A training that runs by itself: it can be paused, changed and closed at any moment, and says when it fails."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from groundup.studio.playground import player as module
from groundup.studio.playground.player import Player
from groundup.studio.playground.settings import Settings

SMALL = Settings(data="xor", samples=20, layers=(3,), batch_size=5)


class Pictures(list[dict[str, Any]]):
    """What was published, and a way to wait for more of it."""

    def __init__(self) -> None:
        self.came = threading.Condition()

    def put(self, picture: dict[str, Any]) -> None:
        with self.came:
            self.append(picture)
            self.came.notify_all()

    def wait(self, count: int) -> None:
        with self.came:
            assert self.came.wait_for(lambda: len(self) >= count, timeout=200), f"{len(self)} pictures came"


@pytest.fixture
def pictures() -> Pictures:
    return Pictures()


@pytest.fixture
def player(pictures: Pictures) -> Iterator[Player]:
    made = Player(SMALL, pictures.put)
    yield made
    made.close()


def test_a_step_answers_with_its_picture(player: Player) -> None:
    assert player.step()["step"] == 1
    assert player.step(10)["step"] == 11
    assert [point["step"] for point in player.scene()["curves"]] == [1, 11]


def test_a_running_training_publishes_pictures_until_it_is_paused(player: Player, pictures: Pictures) -> None:
    player.run(speed=2)
    pictures.wait(5)
    stopped = player.pause()
    published = len(pictures)
    assert not stopped["running"]
    steps = [picture["step"] for picture in pictures]
    assert steps == sorted(set(steps))
    time.sleep(0.1)
    assert len(pictures) <= published + 1  # one that was on its way
    assert player.scene()["picture"]["step"] == stopped["step"]


def test_a_running_training_takes_other_settings(player: Player, pictures: Pictures) -> None:
    player.run()
    pictures.wait(2)
    steps = player.change(Settings(**{**SMALL.__dict__, "learning_rate": 0.5}))["picture"]["step"]
    assert steps >= 2
    pictures.wait(len(pictures) + 2)
    assert player.running
    assert player.change(Settings(**{**SMALL.__dict__, "layers": (2, 2)}))["sizes"] == [2, 2, 2, 2]
    pictures.wait(len(pictures) + 3)
    assert pictures[-1]["step"] < 1000


def test_a_running_training_rests_while_nobody_looks(player: Player, pictures: Pictures) -> None:
    player.run()
    player.watched(1)
    pictures.wait(2)
    player.watched(1)  # a new stream begins before the end of the old one is noticed
    player.watched(-1)
    pictures.wait(len(pictures) + 2)
    player.watched(-1)
    time.sleep(0.1)
    published = len(pictures)
    time.sleep(0.2)
    assert len(pictures) == published
    assert player.running
    player.watched(1)
    pictures.wait(published + 2)


def test_back_at_the_start_everything_is_forgotten(player: Player) -> None:
    first = player.step()
    player.step(5)
    scene = player.begin()
    assert (scene["picture"]["step"], scene["curves"]) == (0, [])
    assert player.step()["loss"] == first["loss"]


def test_a_failure_in_the_thread_reaches_the_page(
    player: Player, pictures: Pictures, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise MemoryError("there is no memory left")

    monkeypatch.setattr(module, "picture", broken)
    with pytest.raises(MemoryError):
        player.run()
    pictures.wait(1)
    assert pictures[0] == {"error": "MemoryError: there is no memory left"}
    assert not player.running


def test_a_closed_player_has_no_thread(pictures: Pictures) -> None:
    player = Player(SMALL, pictures.put)
    player.run(speed=1000)
    pictures.wait(1)
    player.close()
    published = len(pictures)
    time.sleep(0.1)
    assert len(pictures) == published
    assert not [each for each in threading.enumerate() if each.name == "playground"]


def test_a_long_training_is_remembered_with_fewer_points(player: Player, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "REMEMBERED", 20)
    for _ in range(50):
        player.step()
    steps = [point["step"] for point in player.scene()["curves"]]
    assert 10 <= len(steps) <= 20
    assert steps == sorted(set(steps))
