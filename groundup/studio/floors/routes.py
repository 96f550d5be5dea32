"""The addresses of the page Floors.

GET  /api/floors/rooms                              the rooms with their functions, and the stages
GET  /api/floors/function?room=…&name=…&rungs=…     one function on every stage; rungs: of a ladder, with commas between
POST /api/floors/run                                a call on all stages: room, name, rungs and a seed
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.routing import Route

from groundup.studio.answers import action, question

if TYPE_CHECKING:
    from groundup.studio.app import Studio
    from groundup.studio.floors.running import Runs


def routes(studio: Studio) -> list[Route]:
    """The page's routes."""

    @cache
    def runs() -> Runs:
        from groundup.studio.floors.running import Runs  # the stages, when somebody looks at a function

        return Runs()

    def rooms(request: Request) -> dict[str, Any]:
        from groundup.studio.floors import columns

        return columns.rooms()

    def function(request: Request) -> dict[str, Any]:
        from groundup.studio.floors import columns

        asked = request.query_params
        name = asked.get("room", ""), asked.get("name", ""), tuple(asked.get("rungs", "").split(","))
        if "prepare" in asked:
            runs().prepare(*name)
        return columns.function(*name)

    def run(request: Request, body: dict[str, Any]) -> dict[str, Any]:
        room, name, rungs = (str(body.get(each, "")) for each in ("room", "name", "rungs"))
        return runs().run(room, name, tuple(rungs.split(",")), body.get("seed"))

    return [
        Route("/api/floors/rooms", question(rooms)),
        Route("/api/floors/function", question(function)),
        Route("/api/floors/run", action(run), methods=["POST"]),
    ]
