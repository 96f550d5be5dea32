"""The addresses of the page Runs.

GET /api/runs/list                                        every run, with what the list shows
GET /api/runs/curves?run=CODE                             its steps and epochs as columns
GET /api/runs/architecture?run=CODE                       the drawing of its network, an SVG with what it says
GET /api/runs/mistakes?run=CODE                           its confusion matrix, or how far that is
GET /api/runs/cell?run=CODE&label=3&prediction=5          the images behind one cell
GET /api/runs/surest?run=CODE&count=24                    the mistakes it is surest of
GET /api/runs/histograms?run=CODE                         how the weights of its last checkpoint are spread
GET /api/runs/gradients?run=CODE                          the same of their gradients, computed for a batch of images
POST /api/runs/label {"run", "title", "note"}             the reader's own name and note for it
GET /api/runs/watch                                       server-sent events: which runs have changed
"""

from __future__ import annotations

import threading
from functools import partial
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from groundup.studio.answers import Refused, action, question
from groundup.studio.events import stream
from groundup.studio.runs.folders import BEST, LAST, STEPS, Folders

if TYPE_CHECKING:  # NumPy and the checkpoints are imported when a run is first asked for
    from groundup.studio.app import Studio
    from groundup.studio.runs.curves import Steps
    from groundup.studio.runs.folders import RunFolder
    from groundup.studio.runs.mistakes import Answers, Mistakes

MOST_READ = 20
"""Runs whose steps are kept in memory, to be read on as their files grow."""


class Shelf:
    """The state that the requests of all tabs share."""

    def __init__(self, studio: Studio) -> None:
        self.folders = Folders(studio.folder, studio.paths)
        self._data = [studio.folder, *studio.paths]
        self._mistakes: Mistakes | None = None
        self._steps: dict[str, Steps] = {}
        self._shown: dict[str, tuple[Any, dict[str, Any]]] = {}
        self._lock = threading.Lock()

    def run(self, request: Request) -> RunFolder:
        """The run that a request names."""
        return self.folders.named(request.query_params.get("run", ""))

    def mistakes(self) -> Mistakes:
        from groundup.studio.runs.mistakes import Mistakes

        with self._lock:
            self._mistakes = self._mistakes or Mistakes(self._data)
            return self._mistakes

    def overview(self, run: RunFolder, anew: bool = False) -> dict[str, Any]:
        """What the list shows of a run, made anew only if the run has changed, or may have."""
        from groundup.studio.runs.overview import overview

        files = [(name, stat.st_mtime_ns, stat.st_size) for name, stat in run.stats()]
        known, shown = self._shown.get(run.code, (None, {}))
        if anew or known != files or shown["state"] not in ("done", "stopped"):
            shown = overview(run)
            self._shown[run.code] = (files, shown)
        return shown

    def details(self, run: RunFolder) -> dict[str, Any]:
        """The columns of a run. One request at a time reads, so that no line is read twice."""
        from groundup.studio.runs.curves import Steps
        from groundup.studio.runs.overview import details

        with self._lock:
            path = run.file(STEPS)
            steps = self._steps.pop(run.code, None)
            if path is not None:
                self._steps[run.code] = steps = steps or Steps(path)
                for old in list(self._steps)[:-MOST_READ]:
                    del self._steps[old]
            return details(run, steps if path is not None else None)


def routes(studio: Studio) -> list[BaseRoute]:
    """The page's routes."""
    shelf = Shelf(studio)
    asked = {"list": _list, "curves": _curves, "architecture": _architecture}
    asked |= {
        "histograms": _histograms,
        "gradients": partial(_histograms, of="gradients"),
        "mistakes": _mistakes,
        "cell": _cell,
        "surest": _surest,
    }
    found: list[BaseRoute] = [
        Route(f"/api/runs/{name}", question(partial(function, shelf))) for name, function in asked.items()
    ]
    found.append(Route("/api/runs/label", action(partial(_label, shelf)), methods=["POST"]))
    return [*found, Route("/api/runs/watch", partial(_watch, shelf))]


def _list(shelf: Shelf, request: Request) -> dict[str, Any]:
    return {
        "runs": [shelf.overview(run) for run in shelf.folders.all()],
        "folders": [str(root).encode(errors="replace").decode() for root in shelf.folders.roots],
    }


def _curves(shelf: Shelf, request: Request) -> dict[str, Any]:
    return shelf.details(shelf.run(request))


def _architecture(shelf: Shelf, request: Request) -> dict[str, Any]:
    from groundup.run_architecture import NetworkForm, as_svg
    from shared.training.checkpoints import load_checkpoint

    run = shelf.run(request)
    path = run.file(LAST) or run.file(BEST)
    if path is None:
        return {"svg": "", "alt": "", "note": "there is no checkpoint in this folder"}
    try:
        return as_svg(NetworkForm.of(load_checkpoint(path)))
    except (ValueError, OSError) as error:  # as with the rest of a damaged run, the page shows what it can
        return {"svg": "", "alt": "", "note": str(error)}


def _histograms(shelf: Shelf, request: Request, of: str = "weights") -> dict[str, Any]:
    """{"layers", "file": the checkpoint's name, or why there are no layers}; of gradients also "count": of images."""
    from groundup.studio.runs.histograms import gradients, histograms
    from shared.training.checkpoints import load_checkpoint

    run = shelf.run(request)
    path = run.file(LAST) or run.file(BEST)
    try:
        if path is None or of == "weights":
            return {"layers": histograms(load_checkpoint(path)) if path else [], "file": path and path.name}
        checkpoint = load_checkpoint(path)
        x, labels = shelf.mistakes().batch(checkpoint)
        counted = histograms(checkpoint, gradients(checkpoint, x, labels))
        return {"layers": counted, "file": path.name, "count": len(x)}
    except (ValueError, TypeError, OSError) as error:
        return {"layers": [], "file": str(error)}


def _label(shelf: Shelf, request: Request, body: dict[str, Any]) -> dict[str, Any]:
    from groundup.studio.runs.labels import write_label

    run = shelf.folders.named(str(body.get("run")))
    write_label(run, body.get("title"), body.get("note"))
    return shelf.overview(run, anew=True)


def _mistakes(shelf: Shelf, request: Request) -> dict[str, Any]:
    from groundup.studio.runs.mistakes import document

    asking = shelf.mistakes().ask(shelf.run(request))
    asking.finished.wait(0.3)  # small networks answer at once
    return document(asking)


def _cell(shelf: Shelf, request: Request) -> dict[str, Any]:
    label, prediction = _number(request, "label"), _number(request, "prediction")
    return _answers(shelf, request).cell(label, prediction)


def _surest(shelf: Shelf, request: Request) -> dict[str, Any]:
    count = _number(request, "count")
    return _answers(shelf, request).surest(count)


def _answers(shelf: Shelf, request: Request) -> Answers:
    return shelf.mistakes().ready(shelf.run(request), request.query_params.get("version", ""))


def _number(request: Request, name: str) -> int:
    text = request.query_params.get(name, "")
    if not (text.isascii() and text.isdigit() and len(text) < 6):
        raise Refused(f"{name}: expected a whole number, got {text[:30]!r}")
    return int(text)


async def _watch(shelf: Shelf, request: Request) -> Response:
    from groundup.studio.runs.watching import changes

    return stream(request, changes(shelf.folders))
