"""The addresses of the page Floors.

GET /api/floors/rooms            the rooms, the stages, and where the speeds come from
GET /api/floors/room?name=…      the functions of one room
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.routing import Route

from groundup.studio.answers import question

if TYPE_CHECKING:
    from groundup.studio.app import Studio


def routes(studio: Studio) -> list[Route]:
    """The page's routes."""
    return [Route("/api/floors/rooms", question(_rooms)), Route("/api/floors/room", question(_room))]


def _rooms(request: Request) -> dict[str, Any]:
    from groundup.studio.floors import page_rows

    return page_rows.rooms()


def _room(request: Request) -> dict[str, Any]:
    from groundup.studio.floors import page_rows

    return page_rows.room(request.query_params.get("name", ""))
