"""What the page Race asks for: a race of its own for every tab, and its states as they come."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from groundup.studio.answers import action
from groundup.studio.events import stream
from groundup.studio.playground.routes import Tab

if TYPE_CHECKING:
    from groundup.studio.app import Studio


def routes(studio: Studio) -> list[Route]:
    """The page's actions. Every one but `open` names the session that `open` returned."""

    def race(body: dict[str, Any]) -> Any:
        return studio.sessions.get("race", body.get("session")).player

    def open_(request: Request, body: dict[str, Any]) -> dict[str, Any]:
        from groundup.studio.race.racing import Race, samples  # NumPy is imported when the page is opened

        tab = Tab(Race)
        about = {"lap": len(tab.player.data.train), "samples": samples(tab.player.data), "state": tab.player.state()}
        return {"session": studio.sessions.open("race", tab), **about}

    async def watch(request: Request) -> Response:
        name = request.query_params.get("session")
        return stream(request, studio.sessions.get("race", name).pictures(), name)

    actions = {
        "open": open_,
        "run": lambda request, body: race(body).run(True),
        "pause": lambda request, body: race(body).run(False),
        "begin": lambda request, body: race(body).begin(),
        "draw": lambda request, body: race(body).draw(body.get("pixels")),
    }
    made = [Route(f"/api/race/{name}", action(does), methods=["POST"]) for name, does in actions.items()]
    return [*made, Route("/api/race/watch", watch)]
