"""The application: the routes of all pages, the files they load, and what they share."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, Response
from starlette.routing import BaseRoute, Route

from groundup.studio.answers import HANDLERS, Refused, action
from groundup.studio.frame import HERE, PAGES, Page, document, index
from groundup.studio.sessions import Sessions
from shared.machine.regular import real

SWEEP = 5.0
"""Seconds between two looks for sessions whose tab is gone."""


@dataclass
class Studio:
    """The state that all pages share.

    folder: where the studio was started; runs lie in its folder "runs"
    paths: files and folders that were named on the command line
    preparing: page -> what it begins as soon as somebody asks for it, before its own scripts do
    ending: set when the studio is about to end, so that streams stop
    """

    folder: Path
    paths: list[Path] = field(default_factory=list)
    preparing: dict[str, Callable[[], None]] = field(default_factory=dict)
    sessions: Sessions = field(default_factory=Sessions)
    ending: threading.Event = field(default_factory=threading.Event)

    def prepare(self, page: str) -> None:
        """Called when a page is asked for: the page may begin work that takes time."""
        if page in self.preparing:
            self.preparing[page]()

    def allowed(self, path: str | Path) -> Path:
        """A path that a page asks for, resolved.

        Raises Refused where it lies neither in the studio's folder nor in a place that was named on the command line.
        """
        asked = real(self.folder / path)
        if any(asked.is_relative_to(real(place)) for place in (self.folder, *self.paths)):
            return asked
        raise Refused(f"{str(path)!r} lies outside the folders that this studio was given", 403)


def application(studio: Studio) -> Starlette:
    """All pages of a studio."""

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        sweeping = asyncio.create_task(_sweep(studio))
        try:
            yield
        finally:
            sweeping.cancel()
            studio.ending.set()
            await asyncio.to_thread(studio.sessions.close_all)

    routes: list[BaseRoute] = [Route("/", lambda request: HTMLResponse(index())), Route("/static/{path:path}", _file)]
    routes += [Route(f"/api/{word}", action(_of_tab(word, studio)), methods=["POST"]) for word in ("hidden", "left")]
    for page in PAGES:
        routes.append(Route(f"/{page.name}", _document_of(page, studio)))
        routes.extend(import_module(f"groundup.studio.{page.name}.routes").routes(studio))
    app = Starlette(routes=routes, exception_handlers=HANDLERS, lifespan=lifespan)
    app.state.studio = studio
    return app


def static_files() -> dict[str, Path]:
    """Path below /static/ -> file, for every file of the pages: nothing else is served."""
    found = {"common": HERE / "static" / "common", **{page.name: page.static for page in PAGES}}
    files = {
        f"{name}/{path.relative_to(folder).as_posix()}": path
        for name, folder in found.items()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
    plotly = find_spec("plotly")
    if plotly is not None and plotly.origin is not None:
        files["common/plotly.min.js"] = Path(plotly.origin).parent / "package_data" / "plotly.min.js"
    return files


async def _file(request: Request) -> Response:
    path = static_files().get(request.path_params["path"])
    if path is None:
        raise Refused(f"there is no file {request.url.path}", 404)
    # A browser keeps it, and asks each time whether it has changed.
    return FileResponse(path, headers={"cache-control": "no-cache"})


def _of_tab(word: str, studio: Studio) -> Callable[[Request, dict[str, Any]], dict[str, Any]]:
    """What a tab tells of itself: that it is hidden, or that the reader has left it. See static/common/api.js."""

    def told(request: Request, body: dict[str, Any]) -> dict[str, Any]:
        session = body.get("session")
        if word == "hidden":
            studio.sessions.hide(session)
        elif isinstance(session, str):
            studio.sessions.close(session)
        return {}

    return told


def _document_of(page: Page, studio: Studio) -> Callable[[Request], Response]:
    def answer(request: Request) -> Response:
        studio.prepare(page.name)
        return HTMLResponse(document(page))

    return answer


async def _sweep(studio: Studio) -> None:
    while True:
        await asyncio.sleep(SWEEP)
        await asyncio.to_thread(studio.sessions.sweep)
