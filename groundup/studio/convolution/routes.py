"""The addresses of the page Convolution.

GET  /api/convolution/networks               the networks to choose from
GET  /api/convolution/network?name=…         one of them: its layers and filters
GET  /api/convolution/architecture?name=…    its drawing, an SVG with what it says
GET  /api/convolution/digits                 a test image of each digit, to look at without drawing
POST /api/convolution/maps                   what every layer makes of a drawing, and Grad-CAM
POST /api/convolution/pixel                  one number of a map, its receptive field, and the same by every stage
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.routing import BaseRoute, Route

from groundup.studio.answers import action, question
from groundup.studio.app import Studio

if TYPE_CHECKING:
    from groundup.studio.convolution.desk import Desk


def routes(studio: Studio) -> list[BaseRoute]:
    """The page's routes."""

    @cache
    def desk() -> Desk:
        from groundup.studio.convolution.desk import Desk  # matplotlib and the networks, when the page is asked for

        return Desk(studio.folder / "runs")

    def name(request: Request) -> str:
        return request.query_params.get("name", "")

    asked = {
        "networks": lambda request: {"networks": desk().networks()},
        "network": lambda request: desk().described(name(request)),
        "architecture": lambda request: desk().drawn(name(request)),
        "digits": lambda request: {"digits": desk().digits()},
    }
    done = {"maps": lambda request, body: desk().maps(body), "pixel": lambda request, body: desk().clicked(body)}
    return [
        *(Route(f"/api/convolution/{each}", question(function)) for each, function in asked.items()),
        *(Route(f"/api/convolution/{each}", action(function), methods=["POST"]) for each, function in done.items()),
    ]
