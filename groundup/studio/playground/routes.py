"""What the playground's page asks for: a training of its own for every tab, and its pictures as they come."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from groundup.studio.answers import Refused, action
from groundup.studio.events import Latest, stream

if TYPE_CHECKING:  # NumPy is imported when a page is opened, not when the studio starts
    from groundup.studio.app import Studio
    from groundup.studio.playground.player import Player

PAGE = "playground"


class Tab:
    """A training and the mailbox with its newest picture. begin(publish): makes the training"""

    def __init__(self, begin: Callable[[Callable[[Any], None]], Any]) -> None:
        self.latest = Latest()
        self.player = begin(self.latest.put)

    async def pictures(self) -> AsyncIterator[Any]:
        """The newest picture, again and again; the training rests when nobody takes them."""
        self.player.watched(1)
        try:
            async for picture in self.latest.values():
                yield picture
        finally:
            self.player.watched(-1)

    def close(self) -> None:
        self.player.close()
        self.latest.close()


def routes(studio: Studio) -> list[Route]:
    """The page's questions and actions. Every action but `open` names the session that `open` returned."""

    def tab(name: object) -> Tab:
        session: Tab = studio.sessions.get(PAGE, name)
        return session

    def player(body: dict[str, Any]) -> Player:
        found: Player = tab(body.get("session")).player
        return found

    def open_(request: Request, body: dict[str, Any]) -> dict[str, Any]:
        from groundup.studio.playground.player import Player
        from groundup.studio.playground.settings import Settings

        settings = Settings.from_json(_settings(body))
        opened = Tab(lambda publish: Player(settings, publish))
        return {"session": studio.sessions.open(PAGE, opened), **opened.player.scene()}

    def step(request: Request, body: dict[str, Any]) -> dict[str, Any]:
        return player(body).step(_whole(body, "count"))

    def run(request: Request, body: dict[str, Any]) -> dict[str, Any]:
        return player(body).run(_whole(body, "speed"))

    def pause(request: Request, body: dict[str, Any]) -> dict[str, Any]:
        return player(body).pause()

    def begin(request: Request, body: dict[str, Any]) -> dict[str, Any]:
        return player(body).begin()

    def change(request: Request, body: dict[str, Any]) -> dict[str, Any]:
        from groundup.studio.playground.settings import Settings

        return player(body).change(Settings.from_json(_settings(body)))

    def watch(request: Request) -> Response:
        name = request.query_params.get("session")
        return stream(request, tab(name).pictures(), name)

    async def watching(request: Request) -> Response:
        return watch(request)

    actions = {"open": open_, "step": step, "run": run, "pause": pause, "begin": begin, "change": change}
    return [
        *(Route(f"/api/{PAGE}/{name}", action(does), methods=["POST"]) for name, does in actions.items()),
        Route(f"/api/{PAGE}/watch", watching),
    ]


def _settings(body: dict[str, Any]) -> dict[str, Any]:
    settings = body.get("settings", {})
    if not isinstance(settings, dict):
        raise Refused(f"settings: expected a JSON object, got {type(settings).__name__}")
    return settings


def _whole(body: dict[str, Any], name: str) -> int:
    value = body.get(name, 1)
    if isinstance(value, bool) or not isinstance(value, int):
        raise Refused(f"{name}: expected a whole number, got {value!r}")
    return value
