"""What belongs to one tab of the browser: a training, a walk through a kernel. It ends some time after the tab.

A page opens a session when it is loaded and gets its name; every later request names it. A browser says nothing when a
tab is killed, but the tab's stream of events ends then. So a session whose last stream has ended, and that nobody
asked for since, is closed after UNWATCHED seconds; one that never had a stream after IDLE seconds. A browser opens at
most six connections to a server, so a hidden tab closes its stream and says so: its session has IDLE seconds, too.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

from groundup.studio.answers import Refused

UNWATCHED = 30.0
IDLE = 1800.0
MOST = 16
"""Sessions at a time; another one ends the one that was not used for longest."""


class Closing(Protocol):
    """What a session holds: its threads and child processes have ended when close() returns."""

    def close(self) -> None: ...


@dataclass
class _Session:
    page: str
    thing: Any
    used: float
    streams: int = 0
    streamed: bool = False
    """Whether it ever had a stream of events, and has not said since that its tab is hidden."""


@dataclass
class Sessions:
    """All open sessions. Every method may be called by any thread."""

    clock: Callable[[], float] = time.monotonic
    _open: dict[str, _Session] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def open(self, page: str, thing: Closing) -> str:
        """Keep an object for a tab of this page. Returns the session's name, which cannot be guessed."""
        name = secrets.token_urlsafe(12)
        with self._lock:
            self._open[name] = _Session(page, thing, self.clock())
            spare = sorted(self._open, key=lambda each: (self._open[each].streams > 0, self._open[each].used))
            ended = [self._open.pop(each) for each in spare[: max(0, len(self._open) - MOST)]]
        for each in ended:
            each.thing.close()
        return name

    def get(self, page: str, name: object) -> Any:
        """The object of a session.

        Raises Refused where the session has ended, or belongs to another page.
        """
        with self._lock:
            session = self._open.get(name) if isinstance(name, str) else None
            if session is None or session.page != page:
                raise Refused("this tab's session has ended; load the page again to begin a new one", 404)
            session.used = self.clock()
            return session.thing

    def holds(self, name: str) -> bool:
        """Whether this session has not ended; then it counts as used."""
        with self._lock:
            session = self._open.get(name)
            if session is not None:
                session.used = self.clock()
            return session is not None

    def hide(self, name: object) -> None:
        """The tab is hidden and closes its stream; it will open another one when it is seen again."""
        with self._lock:
            session = self._open.get(name) if isinstance(name, str) else None
            if session is not None:
                session.used, session.streamed = self.clock(), False

    def close(self, name: str) -> None:
        """End a session; one that has ended already stays ended."""
        with self._lock:
            session = self._open.pop(name, None)
        if session is not None:
            session.thing.close()

    def close_all(self) -> None:
        """End every session."""
        for name in list(self._open):
            self.close(name)

    @contextmanager
    def watched(self, name: str | None) -> Iterator[None]:
        """For the time of a stream of events: its session is not idle."""
        self._count(name, 1)
        try:
            yield
        finally:
            self._count(name, -1)

    def sweep(self) -> list[str]:
        """Close the sessions that nobody watches any more: their names."""
        now = self.clock()
        with self._lock:
            gone = [
                name
                for name, each in self._open.items()
                if each.streams == 0 and now - each.used > (UNWATCHED if each.streamed else IDLE)
            ]
        for name in gone:
            self.close(name)
        return gone

    def _count(self, name: str | None, change: int) -> None:
        with self._lock:
            session = self._open.get(name) if name else None
            if session is not None:
                session.streams += change
                session.streamed = session.streamed or change > 0
                session.used = self.clock()
