"""The addresses of the page Benchmarks.

GET  /api/benchmarks/files                    every file there is to choose, by group
GET  /api/benchmarks/results?file=CODE        what the page shows of one
GET  /api/benchmarks/compare?old=…&new=…      what it shows of two
POST /api/benchmarks/open {name, text}        a file from the reader's own disk, kept until the studio ends
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.routing import Route

from groundup.studio.answers import Refused, action, question

if TYPE_CHECKING:  # reading results imports NumPy, which a page that opens does not wait for
    from groundup.studio.app import Studio
    from groundup.studio.benchmarks.recorded_results import Shelf
    from shared.bench.records.document import Results


def routes(studio: Studio) -> list[Route]:
    """The page's routes."""
    kept: dict[str, Shelf] = {}

    def shelf() -> Shelf:
        from groundup.studio.benchmarks.recorded_results import Shelf

        return kept.setdefault("shelf", Shelf(studio.folder, studio.paths))

    return [
        Route("/api/benchmarks/files", question(partial(_files, shelf))),
        Route("/api/benchmarks/results", question(partial(_results, shelf))),
        Route("/api/benchmarks/compare", question(partial(_compare, shelf))),
        Route("/api/benchmarks/open", action(partial(_open, shelf)), methods=["POST"]),
    ]


def _files(shelf: Any, request: Request) -> dict[str, Any]:
    from groundup.studio.benchmarks.recorded_results import GROUPS

    return {"groups": GROUPS, "files": [each.document() for each in shelf().entries()]}


def _results(shelf: Any, request: Request) -> dict[str, Any]:
    from groundup.studio.benchmarks import page_document

    name, results = _read(shelf(), request, "file")
    return page_document.document(results, name)


def _compare(shelf: Any, request: Request) -> dict[str, Any]:
    from groundup.studio.benchmarks import comparing

    (old_name, old), (new_name, new) = (_read(shelf(), request, each) for each in ("old", "new"))
    return comparing.document(old, new, (old_name, new_name))


def _open(shelf: Any, request: Request, body: dict[str, Any]) -> dict[str, Any]:
    from groundup.studio.benchmarks.reading import read

    name, text = body.get("name"), body.get("text")
    if not isinstance(name, str) or not isinstance(text, str):
        raise Refused("to open a file, send its name and its text")
    read(text.encode(errors="replace"), name)  # a file that cannot be shown is not kept
    return shelf().add(name, text).document()


def _read(shelf: Shelf, request: Request, which: str) -> tuple[str, Results]:
    from groundup.studio.benchmarks.reading import read

    name, text = shelf.text(request.query_params.get(which, ""))
    return name, read(text, name)
