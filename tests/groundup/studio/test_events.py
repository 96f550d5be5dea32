"""Server-sent events: the newest value to each reader, JSON that strict readers take, and an end."""

from __future__ import annotations

import asyncio
import json
import threading
import time

import pytest

from groundup.studio.answers import dumps
from groundup.studio.events import Latest


def collected(latest, slowly=0.0):
    async def read():
        found = []
        async for value in latest.values():
            found.append(value)
            await asyncio.sleep(slowly)
        return found

    return asyncio.run(read())


def test_a_reader_gets_the_value_that_was_there_before():
    latest = Latest()
    latest.put(1)
    latest.put(2)
    latest.close()
    assert collected(latest) == [2]


def test_a_slow_reader_misses_old_values_and_never_the_last():
    latest = Latest()

    def put():
        for value in range(200):
            latest.put(value)
            time.sleep(0.0005)
        latest.close()

    thread = threading.Thread(target=put)
    thread.start()
    found = collected(latest, slowly=0.01)
    thread.join()
    assert found == sorted(set(found))
    assert found[-1] == 199
    assert len(found) < 200


def test_putting_without_readers_or_after_a_reader_has_gone_does_no_harm():
    latest = Latest()

    async def first():
        async for value in latest.values():
            return value

    latest.put("seen")
    assert asyncio.run(first()) == "seen"
    latest.put("nobody reads this")
    latest.close()


def test_nan_and_infinity_are_sent_as_null():
    text = dumps({"loss": float("nan"), "list": [1.5, float("inf"), {"deep": float("-inf")}], "tuple": (float("nan"),)})
    assert json.loads(text, parse_constant=pytest.fail) == {
        "loss": None,
        "list": [1.5, None, {"deep": None}],
        "tuple": [None],
    }
