"""The addresses of the page Kernel.

POST /api/kernel/begin                        {"session": its name, "first": what is shown first, or null for the first
                                              choice}; starts the tab's process
GET  /api/kernel/choices                      what can be walked through
GET  /api/kernel/watch?session=…              a stream that says nothing: it ends with the tab, and the process with it
POST /api/kernel/open {session, target}       a kernel: what it is, and the walk of its first block and warp
POST /api/kernel/walk {session, block, warp}  the walk of another one
POST /api/kernel/race {session, block, warp, barriers}
                                              what goes wrong without some of its barriers
POST /api/kernel/verdicts {session}           what the lens says of each line
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from groundup.studio.answers import Refused, action, question
from groundup.studio.events import stream
from groundup.studio.kernel.workers import Tab

if TYPE_CHECKING:
    from groundup.studio.app import Studio

PAGE = "kernel"
FIRST = {"kind": "project", "name": "tiled_16", "size": [64, 64, 64]}
"""What is shown first. The page need not know what else there is before it asks for it."""


def routes(studio: Studio) -> list[Route]:
    """The page's routes."""
    ahead = Ahead(studio)
    studio.preparing[PAGE] = ahead.open
    actions: dict[str, Callable[..., dict[str, Any]]] = {
        "begin": partial(_begin, ahead),
        "open": _open,
        "walk": _walk,
        "race": _race,
        "verdicts": _verdicts,
    }
    return [
        Route("/api/kernel/choices", question(partial(_choices, studio))),
        Route("/api/kernel/watch", partial(_watch, studio)),
        *(
            Route(f"/api/kernel/{name}", action(partial(does, studio)), methods=["POST"])
            for name, does in actions.items()
        ),
    ]


class Ahead:
    """The session of the next tab. Python and Numba take a second to start, and so do a browser and its scripts: they
    do it at the same time."""

    def __init__(self, studio: Studio) -> None:
        self._sessions = studio.sessions
        self._lock = threading.Lock()
        self._waiting = ""

    def open(self) -> None:
        """Open a session for the next tab, unless one waits already."""
        with self._lock:
            self._waiting = self._held()

    def take(self) -> str:
        """The name of the session that waits, for a tab that was opened."""
        with self._lock:
            name, self._waiting = self._held(), ""
        return name

    def _held(self) -> str:
        return self._waiting if self._sessions.holds(self._waiting) else self._sessions.open(PAGE, Tab())


def _begin(ahead: Ahead, studio: Studio, request: Request, body: dict[str, Any]) -> dict[str, Any]:
    return {"session": ahead.take(), "first": None if _names_a_script(studio) else FIRST}


def _names_a_script(studio: Studio) -> bool:
    """Whether a script was named on the command line: then it is what the reader wants to see first."""
    return any(path.suffix == ".py" for path in studio.paths)


def _choices(studio: Studio, request: Request) -> dict[str, Any]:
    from groundup.studio.kernel import choices

    return {
        "project": [{"name": each.name, "title": each.title, "size": each.size} for each in choices.PROJECT],
        "scripts": choices.scripts(studio.folder, studio.paths),
        "tasks": choices.tasks(studio.folder),
        "named": _names_a_script(studio),
    }


async def _watch(studio: Studio, request: Request) -> Response:
    session = request.query_params.get("session", "")
    studio.sessions.get(PAGE, session)

    async def nothing() -> AsyncIterator[Any]:
        await asyncio.Event().wait()
        yield None

    return stream(request, nothing(), session)


def _open(studio: Studio, request: Request, body: dict[str, Any]) -> dict[str, Any]:
    target = body.get("target")
    if not isinstance(target, dict):
        raise Refused("target: expected an object that names a kernel")
    return dict(_tab(studio, body).open(_allowed(studio, target), _number(body, "block"), _number(body, "warp")))


def _allowed(studio: Studio, target: dict[str, Any]) -> dict[str, Any]:
    """The target with its path in full. Raises Refused for one outside the studio's folders."""
    if target.get("kind") == "script":
        path: Path = studio.allowed(str(target.get("path", "")))
        if path.suffix != ".py":
            raise Refused(f"{str(target.get('path'))!r} is no Python file")
        return {**target, "path": str(path)}
    if target.get("kind") == "task":
        from groundup.studio.kernel.choices import learners

        workspace = learners(studio.folder)
        if workspace is None:
            raise Refused("there is no course folder here; groundup learn start makes one")
        return {**target, "folder": str(workspace.folder)}
    return {**target, "kind": "project"}


def _walk(studio: Studio, request: Request, body: dict[str, Any]) -> dict[str, Any]:
    place = {name: _number(body, name) for name in ("block", "warp")}
    return dict(_tab(studio, body).ask({"do": "walk", **place}))


def _race(studio: Studio, request: Request, body: dict[str, Any]) -> dict[str, Any]:
    barriers = body.get("barriers")
    if not isinstance(barriers, list):
        raise Refused("barriers: expected a list of numbers")
    place = {name: _number(body, name) for name in ("block", "warp")}
    return dict(_tab(studio, body).ask({"do": "race", "barriers": barriers, **place}))


def _verdicts(studio: Studio, request: Request, body: dict[str, Any]) -> dict[str, Any]:
    return dict(_tab(studio, body).ask({"do": "verdicts"}))


def _tab(studio: Studio, body: dict[str, Any]) -> Tab:
    tab: Tab = studio.sessions.get(PAGE, body.get("session"))
    return tab


def _number(body: dict[str, Any], name: str) -> int:
    value = body.get(name, 0)
    if type(value) is not int or value < 0:
        raise Refused(f"{name}: expected a whole number from 0, got {value!r}")
    return value
