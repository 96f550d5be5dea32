"""What changes while it is watched: server-sent events, one JSON value each.

A page listens with an EventSource. It is a GET whose answer does not end, so the guard of `security.py` holds for it,
too, and the browser connects again by itself.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from typing import Any

from starlette.requests import Request
from starlette.responses import StreamingResponse

from groundup.studio.answers import dumps

KEEP_ALIVE = 10.0
"""Seconds without an event after which a comment is sent, so that a lost connection is noticed."""

LOOK = 0.25
"""Seconds between two looks whether the studio is about to end."""


class Latest:
    """A mailbox that keeps the newest value only: a slow reader misses old pictures and never waits for them.

    `put` and `close` may be called by any thread; `values` belongs to the server's event loop.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._value: Any = None
        self._version = 0
        self._closed = False
        self._readers: set[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = set()

    def put(self, value: object) -> None:
        """Replace the value and wake the readers."""
        with self._lock:
            self._value = value
            self._version += 1
        self._wake()

    def close(self) -> None:
        """End every reader's iteration, after the last value."""
        with self._lock:
            self._closed = True
        self._wake()

    async def values(self) -> AsyncIterator[Any]:
        """The newest value, then each newer one; values put meanwhile are skipped, but for the last of them."""
        reader = (asyncio.get_running_loop(), asyncio.Event())
        with self._lock:
            self._readers.add(reader)
        seen = 0
        try:
            while True:
                with self._lock:
                    version, value, closed = self._version, self._value, self._closed
                if version != seen:
                    seen = version
                    yield value
                elif closed:
                    return
                else:
                    await reader[1].wait()
                    reader[1].clear()
        finally:
            with self._lock:
                self._readers.discard(reader)

    def _wake(self) -> None:
        with self._lock:
            readers = [reader for reader in self._readers if not reader[0].is_closed()]
        for loop, event in readers:
            loop.call_soon_threadsafe(event.set)


def stream(request: Request, values: AsyncIterator[Any], session: str | None = None) -> StreamingResponse:
    """The values as server-sent events until they end, the tab is gone, or the studio ends.

    At the end of the values an event named "end" is sent, so that the browser does not connect again.
    session: the tab's session (`Sessions.open`), which ends some time after its last stream
    """
    studio = request.app.state.studio

    async def lines() -> AsyncIterator[str]:
        with studio.sessions.watched(session):
            waiting: asyncio.Future[Any] | None = None
            sent = time.monotonic()
            try:
                while not studio.ending.is_set():
                    waiting = waiting or asyncio.ensure_future(anext(values))
                    done, _ = await asyncio.wait({waiting}, timeout=LOOK)
                    if done:
                        try:
                            value = waiting.result()
                        except StopAsyncIteration:
                            break
                        finally:
                            waiting = None
                        yield f"data: {dumps(value)}\n\n"
                        sent = time.monotonic()
                    elif time.monotonic() - sent > KEEP_ALIVE:
                        yield ": still here\n\n"
                        sent = time.monotonic()
                yield "event: end\ndata: {}\n\n"
            finally:
                if waiting is not None:
                    waiting.cancel()
                    await asyncio.wait({waiting})
                await values.aclose()  # type: ignore[attr-defined]  # an async generator has it

    return StreamingResponse(lines(), media_type="text/event-stream")
