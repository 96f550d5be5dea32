"""The addresses of the service.

Nothing computes in the event loop: networks have one thread, in which requests that wait are computed together, and
pictures are decoded in another. So the service answers for its health also while it is busy.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route

from groundup import __version__, inside
from groundup.evidence_picture import evidence_picture
from groundup.predict import NO_ANSWER, evidence
from groundup.serve import protocol
from groundup.serve.batching import Batches
from groundup.serve.metrics import CONTENT_TYPE, Metrics
from groundup.serve.models import Model
from groundup.serve.uploads import body_of, file_of, picture_of
from groundup.studio.answers import HANDLERS, Refused, json_response
from groundup.studio.frame import HERE as STUDIO

HERE = Path(__file__).parent
FILES = {
    "/": HERE / "static" / "page.html",
    "/page.js": HERE / "static" / "page.js",
    "/studio.css": STUDIO / "static" / "common" / "studio.css",
    "/openapi.json": HERE / "openapi.json",
}

SECONDS = 30.0
"""What a request may take, from its beginning to its answer."""

LONG = 2**16
"""Bytes of JSON that are not read in the event loop."""


@dataclass
class Service:
    """What all addresses share.

    budget: seconds that a request may wait for others; most: images that are computed together; queue: requests that
    may have begun; ending: whether the service is about to end, and no longer ready
    """

    models: dict[str, Model]
    budget: float = 0.002
    most: int = 64
    queue: int = 128
    ending: bool = False
    metrics: Metrics = field(default_factory=Metrics)
    begun: int = 0

    def __post_init__(self) -> None:
        self.worker = ThreadPoolExecutor(1, "networks")
        self.decoder = ThreadPoolExecutor(1, "pictures")
        self.batches = {
            name: Batches(model.compute, self.worker, self.most, self.budget, self.metrics.batches.labels(name).observe)
            for name, model in self.models.items()
        }
        self.explainers: dict[str, Callable[[np.ndarray, int], np.ndarray]] = {}

    def model(self, name: str | None) -> Model:
        """The model of this name; without a name the only one. Raises Refused."""
        if name is None and len(self.models) == 1:
            return next(iter(self.models.values()))
        if name is None or name not in self.models:
            wanted = "name one with ?model=" if name is None else f"there is no model {name[:100]!r}"
            raise Refused(f"{wanted}; the models are {', '.join(self.models)}", 400 if name is None else 404)
        return self.models[name]

    async def logits(self, model: Model, pixels: np.ndarray) -> np.ndarray:
        """The logits of pixels, finite. Raises Refused for a network that makes infinity or NaN of them."""
        found = await self.batches[model.name].logits(pixels)
        if not np.isfinite(found).all():
            raise Refused(f"{model.name}: {NO_ANSWER}", 500)
        return found

    @asynccontextmanager
    async def admitted(self) -> AsyncIterator[None]:
        """A place in the queue, for SECONDS. Raises Refused where it is full, or the time is over."""
        if self.begun >= self.queue:
            self.metrics.refusals.labels("queue").inc()
            raise Refused(f"the queue is full: {self.queue} requests are being answered; come again", 503)
        self.begun += 1
        self.metrics.queue.inc()
        try:
            async with asyncio.timeout(SECONDS):
                yield
        except TimeoutError:
            self.metrics.refusals.labels("time").inc()
            raise Refused(f"the request took more than {SECONDS:g} s", 503) from None
        finally:
            self.begun -= 1
            self.metrics.queue.dec()


def application(service: Service) -> Starlette:
    """All addresses of a service; server.py puts the guard before it."""

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        yield
        for executor in (service.worker, service.decoder):
            executor.shutdown(wait=False, cancel_futures=True)

    async def about(request: Request) -> Response:
        return json_response({"name": "groundup", "version": __version__, "extensions": ["binary_tensor_data"]})

    async def live(request: Request) -> Response:
        return json_response({"live": True})

    async def ready(request: Request) -> Response:
        return json_response({"ready": not service.ending}, 503 if service.ending else 200)

    async def listed(request: Request) -> Response:
        return json_response([{"name": name, "state": "READY"} for name in service.models])

    async def model(request: Request) -> Response:
        return json_response(_described(service.model(request.path_params["name"])))

    async def model_ready(request: Request) -> Response:
        name = service.model(request.path_params["name"]).name
        return json_response({"name": name, "ready": not service.ending}, 503 if service.ending else 200)

    async def infer(request: Request) -> Response:
        model = service.model(request.path_params["name"])
        async with service.admitted():
            body = await body_of(request)
            arguments = body, request.headers.get(protocol.HEADER), model.input_shape, service.most
            if len(body) > LONG and arguments[1] is None:
                asked = await run_in_threadpool(protocol.asked, *arguments)
            else:
                asked = protocol.asked(*arguments)
            logits = await service.logits(model, asked.pixels)
        content, headers = protocol.answered(model.name, asked, logits)
        return Response(content, headers=headers)

    async def classify(request: Request) -> Response:
        _only(request, "model", "top", "invert")
        model = service.model(request.query_params.get("model"))
        top = _whole(request, "top", 3)
        async with service.admitted():
            _, done, row = await _looked_at(service, model, request)
        opened = model.opened
        answer = {"model": model.name, "top": opened.top(row, top), "done": done}
        return json_response(answer | {"are_probabilities": opened.are_probabilities})

    async def explain(request: Request) -> Response:
        _only(request, "model", "invert")
        model = service.model(request.query_params.get("model"))
        if not model.explains:
            raise Refused(f"Grad-CAM needs a convolution, and {model.words}, has none")
        async with service.admitted():
            image, _, row = await _looked_at(service, model, request)
            loop = asyncio.get_running_loop()
            png = await loop.run_in_executor(service.worker, _explained, service, model, image, int(row.argmax()))
        return Response(png, media_type="image/png")

    async def metrics(request: Request) -> Response:
        return Response(service.metrics.text(), media_type=CONTENT_TYPE)

    async def file(request: Request) -> Response:
        return FileResponse(FILES[request.url.path])

    routes = [
        Route("/v2/models/{name}/infer", infer, methods=["POST"]),  # first: they are tried in order
        *(Route(path, file) for path in FILES),
        *(Route(path, about) for path in ("/v2", "/v2/")),  # the protocol has both
        Route("/v2/health/live", live),
        Route("/v2/health/ready", ready),
        Route("/v2/repository/index", listed, methods=["POST"]),
        Route("/v2/models/{name}", model),
        Route("/v2/models/{name}/ready", model_ready),
        Route("/classify", classify, methods=["POST"]),
        Route("/explain", explain, methods=["POST"]),
        Route("/metrics", metrics),
    ]
    return Starlette(routes=routes, exception_handlers={**HANDLERS, HTTPException: _no_address}, lifespan=lifespan)


def _described(model: Model) -> dict[str, Any]:
    """The metadata of the protocol, the names of the classes in the order of the logits, and what computes."""
    opened, architecture = model.opened, model.opened.checkpoint.architecture
    inputs, outputs = ([-1, *shape] for shape in (architecture.input_shape, architecture.output_shape))
    return {
        "name": model.name,
        "versions": [],
        "platform": "groundup_safetensors",  # project_format, says the protocol
        "inputs": [{"name": protocol.INPUT, "datatype": protocol.FLOATS, "shape": inputs}],
        "outputs": [{"name": protocol.OUTPUT, "datatype": protocol.FLOATS, "shape": outputs}],
        "classes": list(opened.form.names),
        "stage": model.by,
    }


async def _looked_at(service: Service, model: Model, request: Request) -> tuple[np.ndarray, list[str], np.ndarray]:
    """The picture in a request as the network sees it, what was done to it, and the probabilities of all classes."""
    inverted = _choice(request, "invert")
    content = file_of(request.headers.get("content-type", ""), await body_of(request))
    loop = asyncio.get_running_loop()
    image, done = await loop.run_in_executor(service.decoder, picture_of, content, model.opened, inverted)
    logits = await service.logits(model, _pixels(image, model))
    return image, done, inside.probabilities(logits)[0]


def _pixels(image: np.ndarray, model: Model) -> np.ndarray:
    return (image.astype(np.float32) / 255).reshape(1, *model.input_shape)


def _explained(service: Service, model: Model, image: np.ndarray, label: int) -> bytes:
    """In the networks' thread: stage 2 finds the evidence, in memory of its own."""
    if model.name not in service.explainers:
        service.explainers[model.name] = evidence(model.opened)
    x = model.opened.as_learned(_pixels(image, model).reshape(1, -1))
    return evidence_picture(image, service.explainers[model.name](x, label), model.opened.form.names[label])


def _only(request: Request, *names: str) -> None:
    """Refuses settings that do not exist: a misspelt one would be ignored without a word."""
    if unknown := [name for name in request.query_params if name not in names]:
        raise Refused(f"there is no setting {unknown[0][:40]!r} at {request.url.path}; it takes {', '.join(names)}")


def _whole(request: Request, name: str, default: int) -> int:
    text = request.query_params.get(name, str(default))
    if not re.fullmatch("[1-9][0-9]{0,8}", text):
        raise Refused(f"{name}: expected a whole number of at least 1, got {text[:40]!r}")
    return int(text)


def _choice(request: Request, name: str) -> bool | None:
    text = request.query_params.get(name)
    if text not in (None, "true", "false"):
        raise Refused(f"{name}: expected true or false, got {text[:40]!r}")
    return None if text is None else text == "true"


async def _no_address(request: Request, error: Exception) -> Response:
    """An address that is not there, or not with this method."""
    assert isinstance(error, HTTPException)
    if error.status_code == 405:
        sentence = f"{request.url.path[:200]} is not asked with {request.method[:20]}"
    else:
        sentence = f"there is nothing at {request.url.path[:200]}; /openapi.json lists the addresses"
    response = json_response({"error": sentence}, error.status_code)
    response.headers.update(error.headers or {})
    return response
