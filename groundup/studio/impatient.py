"""A connection that waits for a request only so long."""

from __future__ import annotations

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

TO_SEND = 10.0
"""Seconds for all of a request."""


class Impatient(H11Protocol):
    """A connection that is closed where a request is not there as a whole after TO_SEND seconds: whoever sends the half
    of one would hold it for ever. Between two requests uvicorn's timeout_keep_alive counts."""

    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._wait()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.conn.trailing_data[0]:  # of a second request, which came with the first
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._stop()

    def _wait(self) -> None:
        if self.conn.their_state not in (h11.IDLE, h11.SEND_BODY):
            self._stop()
        elif self._late is None:
            self._late = self.loop.call_later(TO_SEND, self.transport.close)

    def _stop(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None
