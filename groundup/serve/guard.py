"""Who is answered, and what is counted of every request.

Without a key the service answers this machine alone, and any website that is open in a browser here can send it
requests: so they must name it as their host (DNS rebinding), and come from no other website. With a key, every request
carries it, `Authorization: Bearer KEY`; only the page and the health of the service are seen without.
"""

from __future__ import annotations

import hmac
import time
from collections.abc import Callable, Collection

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from groundup.serve.metrics import Metrics
from groundup.studio.security import HEADERS, values

OPEN = ("/", "/page.js", "/studio.css", "/v2/health/live", "/v2/health/ready")
"""What is answered without the key."""

RETRY = b"1"
"""Seconds after which a refused client may come again."""


class Guard:
    """Stands before the application. key: "" for none; hosts: under which it answers then, with their port
    is_ending: whether connections should be closed after their answer"""

    def __init__(
        self, app: ASGIApp, key: str, hosts: Collection[str], metrics: Metrics, is_ending: Callable[[], bool]
    ) -> None:
        self.app, self.key, self.hosts, self.metrics, self.is_ending = app, key, hosts, metrics, is_ending

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, status = time.perf_counter(), 500

        async def noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                given = {name for name, _ in message["headers"]}
                added = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
                added += [(b"retry-after", RETRY)] if status == 503 else []
                added += [(b"accept-encoding", b"identity")] if status == 415 else []
                added += [(b"connection", b"close")] if self.is_ending() else []
                message["headers"] = [*message["headers"], *(each for each in added if each[0] not in given)]
            await send(message)

        try:
            await (self._refusal(scope) or self.app)(scope, receive, noted)
        finally:
            address = getattr(scope.get("endpoint"), "__name__", "other")
            self.metrics.seconds.labels(address, status).observe(time.perf_counter() - began)

    def _refusal(self, scope: Scope) -> ASGIApp | None:
        """The answer to a request that is refused, or None."""
        if self.key:
            if scope["path"] in OPEN or any(map(self._is_key, values(scope, b"authorization"))):
                return None
            return self._no("key", "expected the header Authorization: Bearer and the key of this service", 401)
        hosts = values(scope, b"host")
        if len(hosts) != 1 or hosts[0].lower() not in self.hosts:
            return self._no("host", f"this service answers only under {' and '.join(sorted(self.hosts))}", 403)
        foreign = any(origin not in {f"http://{host}" for host in self.hosts} for origin in values(scope, b"origin"))
        if foreign or any(site not in ("same-origin", "none") for site in values(scope, b"sec-fetch-site")):
            return self._no("host", "the request comes from another website", 403)
        return None

    def _is_key(self, value: str) -> bool:
        kind, _, key = value.partition(" ")
        same = hmac.compare_digest(key.strip().encode("utf-8", "replace"), self.key.encode())
        return same and kind.lower() == "bearer"

    def _no(self, reason: str, sentence: str, status: int) -> ASGIApp:
        self.metrics.refusals.labels(reason).inc()
        headers = {"www-authenticate": "Bearer"} if status == 401 else None
        return JSONResponse({"error": sentence}, status, headers)
