"""Sessions live as long as their tab, and end what they hold."""

from __future__ import annotations

import pytest

from groundup.studio.answers import Refused
from groundup.studio.sessions import IDLE, MOST, UNWATCHED, Sessions


class Thing:
    def __init__(self):
        self.closed = 0

    def close(self):
        self.closed += 1


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def sessions(clock):
    return Sessions(clock)


def test_a_session_is_found_by_its_name_on_its_own_page_only(sessions):
    thing = Thing()
    name = sessions.open("playground", thing)
    assert sessions.get("playground", name) is thing
    for page, asked in (("kernel", name), ("playground", name + "x"), ("playground", None), ("playground", 3)):
        with pytest.raises(Refused, match="this tab's session has ended; load the page again"):
            sessions.get(page, asked)


def test_a_session_ends_some_time_after_its_last_stream(sessions, clock):
    thing = Thing()
    name = sessions.open("playground", thing)
    with sessions.watched(name):
        clock.now += 10 * IDLE
        assert sessions.sweep() == []
    clock.now += UNWATCHED - 1
    assert sessions.sweep() == []
    clock.now += 2
    assert sessions.sweep() == [name]
    assert thing.closed == 1


def test_a_hidden_tab_that_closes_its_stream_has_longer_until_it_is_seen_again(sessions, clock):
    thing = Thing()
    name = sessions.open("playground", thing)
    with sessions.watched(name):
        sessions.hide(name)  # the end of the stream is noticed later
    clock.now += IDLE - 1
    assert sessions.sweep() == []
    with sessions.watched(name):
        clock.now += 10 * IDLE
        assert sessions.sweep() == []
    clock.now += UNWATCHED + 1  # killed
    assert sessions.sweep() == [name]
    sessions.hide(name)
    sessions.hide(None)
    assert thing.closed == 1


def test_a_session_without_a_stream_ends_when_nobody_asked_for_long(sessions, clock):
    thing = Thing()
    name = sessions.open("kernel", thing)
    clock.now += IDLE - 1
    sessions.get("kernel", name)
    clock.now += IDLE - 1
    assert sessions.sweep() == []
    clock.now += 2
    assert sessions.sweep() == [name]


def test_another_session_than_the_most_ends_the_one_that_was_not_used_for_longest(sessions, clock):
    things = [Thing() for _ in range(MOST + 1)]
    names = []
    for thing in things[:-1]:
        clock.now += 1
        names.append(sessions.open("kernel", thing))
    sessions.get("kernel", names[0])
    with sessions.watched(names[1]):
        sessions.open("kernel", things[-1])
    assert [thing.closed for thing in things] == [0, 0, 1] + [0] * (MOST - 2)


def test_closing_twice_closes_once_and_all_are_closed_at_the_end(sessions):
    things = [Thing(), Thing()]
    names = [sessions.open("kernel", thing) for thing in things]
    sessions.close(names[0])
    sessions.close(names[0])
    sessions.close_all()
    assert [thing.closed for thing in things] == [1, 1]


def test_a_stream_of_a_session_that_has_ended_does_no_harm(sessions):
    with sessions.watched("gone"), sessions.watched(None):
        pass
    assert sessions.sweep() == []
