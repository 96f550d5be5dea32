"""The addresses of the page Digits."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.routing import BaseRoute, Route

from groundup.studio.answers import action, question
from groundup.studio.app import Studio

NEAREST = 8


def routes(studio: Studio) -> list[BaseRoute]:
    """Questions about networks, answers to drawings, and the learner's own set."""
    from groundup.studio.digits import embedded, networks
    from groundup.studio.digits.answering import Answers
    from groundup.studio.digits.nearest import TrainingImages, why_none
    from groundup.studio.digits.own_set import OwnSet
    from groundup.studio.digits.pixels import drawing
    from groundup.studio.digits.reasons import reasons

    runs = studio.folder / "runs"
    answers, images, own = Answers(runs), TrainingImages(), OwnSet(studio.folder)

    def listed(request: Request) -> Any:
        return {"networks": networks.listed(runs)}

    def network(request: Request) -> Any:
        return embedded.network(answers.trained(_name(request)))

    def floors(request: Request) -> Any:
        return {"floors": answers.floors(_name(request))}

    def answer(request: Request, body: dict[str, Any]) -> Any:
        asked = body.get("floors")
        if not isinstance(asked, list):
            raise ValueError(f"floors: expected a list of numbers, got {type(asked).__name__}")
        pixels = drawing(body.get("pixels"), answers.trained(body.get("network", "")).form)
        return {"answers": [answers.answer(body.get("network", ""), stage, pixels) for stage in asked[:4]]}

    def why(request: Request, body: dict[str, Any]) -> Any:
        trained = answers.trained(body.get("network", ""))
        pixels = drawing(body.get("pixels"), trained.form)
        return {**reasons(trained, pixels), "version": trained.version}

    def nearest(request: Request, body: dict[str, Any]) -> Any:
        trained = answers.trained(body.get("network", networks.DEFAULT))
        pixels, why = drawing(body.get("pixels"), trained.form), why_none(trained.dataset)
        return {"nearest": [] if why else images.nearest(pixels, NEAREST), "of": len(images.split), "why": why}

    def tell(request: Request, body: dict[str, Any]) -> Any:
        return own.add(drawing(body.get("pixels")), body.get("label"))

    return [
        Route("/api/digits/networks", question(listed)),
        Route("/api/digits/network", question(network)),
        Route("/api/digits/floors", question(floors)),
        Route("/api/digits/answer", action(answer), methods=["POST"]),
        Route("/api/digits/reasons", action(why), methods=["POST"]),
        Route("/api/digits/nearest", action(nearest), methods=["POST"]),
        Route("/api/digits/own", question(lambda request: own.about())),
        Route("/api/digits/tell", action(tell), methods=["POST"]),
        Route("/api/digits/take-back", action(lambda request, body: own.take_back()), methods=["POST"]),
    ]


def _name(request: Request) -> str:
    from groundup.studio.digits import networks

    return request.query_params.get("name", networks.DEFAULT)
