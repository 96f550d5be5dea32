"""Answers to the pages: questions (GET) and actions (POST) are functions that take and return plain dictionaries.

    Route("/api/digits/answer", action(answer), methods=["POST"])

The function runs in a thread, so that it may compute. What it returns is sent as strict JSON: NaN and infinity, which
JSON does not have, become null. ValueError, TypeError, OSError and StageUnavailable are the user's mistakes here as
in the rest of the program: the page shows their sentence.
"""

from __future__ import annotations

import json
import math
import os
import traceback
from collections.abc import Callable, Mapping
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from shared.contract import StageUnavailable

LONGEST = 2000
"""Characters of an error's sentence, which may repeat what was sent."""


class Refused(Exception):
    """A request that cannot be answered; the message is for the reader of the page.

    status: 400 for a mistake in the request, 404 for what is not there, 409 for what is no longer possible.
    """

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


def question(function: Callable[[Request], Any]) -> Callable[[Request], Any]:
    """The endpoint of a GET: `function(request)` in a thread, its result as JSON."""

    async def endpoint(request: Request) -> Response:
        return json_response(await run_in_threadpool(function, request))

    return endpoint


def action(function: Callable[[Request, dict[str, Any]], Any]) -> Callable[[Request], Any]:
    """The endpoint of a POST: `function(request, body)` in a thread, its result as JSON. The body is a JSON object."""

    async def endpoint(request: Request) -> Response:
        try:
            body = json.loads(await request.body() or b"{}")
        except (ValueError, RecursionError) as error:
            raise Refused(f"the body of the request is no JSON: {error}") from None
        if not isinstance(body, dict):
            raise Refused(f"the body of the request should be a JSON object, and is {type(body).__name__}")
        return json_response(await run_in_threadpool(function, request, body))

    return endpoint


def json_response(value: object, status: int = 200) -> Response:
    """The value as strict JSON."""
    return Response(dumps(value), status, media_type="application/json")


def dumps(value: object) -> str:
    """Strict JSON in one line; NaN and infinity become null."""
    try:
        return json.dumps(value, allow_nan=False, separators=(",", ":"))
    except ValueError:
        return json.dumps(_finite(value), allow_nan=False, separators=(",", ":"))


def _finite(value: object) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return value


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


async def refused(request: Request, error: Exception) -> Response:
    """The answer to a user's mistake: its sentence and notes, as `{"error": …}`."""
    if os.environ.get("GROUNDUP_TRACEBACK"):
        traceback.print_exception(error)
    sentence = "\n".join([str(error), *getattr(error, "__notes__", ())])
    return json_response({"error": _cut(sentence)}, getattr(error, "status", 400))


async def failed(request: Request, error: Exception) -> Response:
    """The answer to a mistake of ours. The traceback goes to the terminal."""
    traceback.print_exception(error)
    sentence = (
        f"groundup made a mistake ({type(error).__name__}: {_cut(str(error))}); the terminal has the "
        "details. Please report it."
    )
    return json_response({"error": sentence}, 500)


HANDLERS: dict[Any, Any] = {
    **dict.fromkeys((Refused, ValueError, TypeError, OSError, StageUnavailable), refused),
    Exception: failed,
}
"""Class of an exception -> the function that answers it."""
