"""The addresses of the page Benchmarks.

GET  /api/benchmarks/files                    every file there is to choose, by group
GET  /api/benchmarks/shown?mine=…&other=…     what the page shows of two files
GET  /api/benchmarks/report?file=CODE         the HTML report of a file
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from groundup.studio.answers import question

if TYPE_CHECKING:
    from groundup.studio.app import Studio
    from groundup.studio.benchmarks.desk import Desk


def routes(studio: Studio) -> list[Route]:
    """The page's routes."""

    @cache
    def desk() -> Desk:
        from groundup.studio.benchmarks.desk import Desk  # reading results imports NumPy

        return Desk(studio.folder, studio.paths)

    def asked(request: Request, *names: str) -> list[str]:
        return [request.query_params.get(name, "") for name in names]

    async def report(request: Request) -> Response:
        return HTMLResponse(await run_in_threadpool(lambda: desk().report(*asked(request, "file"))))

    return [
        Route("/api/benchmarks/files", question(lambda request: desk().files())),
        Route("/api/benchmarks/shown", question(lambda request: desk().shown(*asked(request, "mine", "other")))),
        Route("/api/benchmarks/report", report),
    ]
