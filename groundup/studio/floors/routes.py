"""The addresses of the page Floors.

GET  /api/floors/rooms                            the rooms with their functions, and the stages
GET  /api/floors/function?room=…&name=…&rungs=…   one function on every stage; rungs: of a ladder, with commas between
POST /api/floors/run                              a call on all stages: room, name, rungs and a seed
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.routing import Route

from groundup.studio.answers import action, question
from groundup.studio.floors.rooms import FUNCTIONS
from shared.contract import STAGE_TITLES

if TYPE_CHECKING:
    from groundup.studio.app import Studio
    from groundup.studio.floors.running import Runs


def routes(studio: Studio) -> list[Route]:
    """The page's routes."""

    @cache
    def runs() -> Runs:
        from groundup.studio.floors.running import Runs  # the stages, when somebody looks at a function

        return Runs()

    def function(request: Request) -> dict[str, Any]:
        return runs().function(*_named(request.query_params), "prepare" in request.query_params)

    def run(request: Request, body: dict[str, Any]) -> dict[str, Any]:
        return runs().run(*_named(body), body.get("seed"))

    return [
        Route("/api/floors/rooms", question(lambda request: {"rooms": FUNCTIONS, "stages": [*STAGE_TITLES.values()]})),
        Route("/api/floors/function", question(function)),
        Route("/api/floors/run", action(run), methods=["POST"]),
    ]


def _named(asked: Mapping[str, Any]) -> tuple[str, str, tuple[str, ...]]:
    room, name, rungs = (str(asked.get(each, "")) for each in ("room", "name", "rungs"))
    return room, name, tuple(rungs.split(","))
