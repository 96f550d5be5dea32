"""Who is answered, and what a page may do.

Any website that is open in the same browser can send requests to 127.0.0.1, and any user of this machine can. So the
studio answers only requests
- that name it as their host: a foreign name that leads to 127.0.0.1 (DNS rebinding) is refused;
- that come from its own pages, where the browser says where they come from (Origin, Sec-Fetch-Site);
- that carry its key: the address that is printed at the start has it, and the browser keeps it in a cookie that
  scripts cannot read. The key is new at every start. A browser that the studio opens gets another key, which opens the
  door once: the command line of a browser can be read by every user of the machine, for as long as it runs;
- that are small: a body of more than MOST_BYTES is not read to its end.

The headers of every answer tell the browser to run no script but the studio's files, to load nothing from elsewhere,
and to show the studio in no frame.
"""

from __future__ import annotations

import hmac
from urllib.parse import parse_qsl, urlencode

from starlette.requests import cookie_parser
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from groundup.studio.answers import Refused

MOST_BYTES = 16 * 1024 * 1024
TOO_LARGE = f"what was sent has more than {MOST_BYTES >> 20} MiB"
METHODS = ("GET", "HEAD", "POST")

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self' 'unsafe-inline'",  # plotly.js sets its own styles
        "img-src 'self' data: blob:",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)

HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


class Guard:
    """Stands before the application and refuses what it need not see.

    port: of the studio, which its Host header names
    key: the secret of this start
    once: another one, in an address only, with which the first who comes gets the key; "" for none
    """

    def __init__(self, app: ASGIApp, port: int, key: str, once: str = "") -> None:
        self.app = app
        self.hosts = {f"127.0.0.1:{port}", f"localhost:{port}"}
        self.cookie = f"groundup-studio-{port}"  # cookies do not know ports: two studios need two names
        self.key, self.once = key, once

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer the request, or refuse it."""
        if scope["type"] != "http":  # the lifespan; there are no web sockets
            await self.app(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = {name for name, _ in message["headers"]}
                added = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
                message["headers"] = [*message["headers"], *(each for each in added if each[0] not in given)]
            await send(message)

        answer = self._refusal(scope) or self._welcome(scope)
        if answer is not None:
            await answer(scope, receive, with_headers)
            return
        await self.app(scope, _limited(receive), with_headers)

    def _refusal(self, scope: Scope) -> ASGIApp | None:
        """The answer to a request that is refused, or None."""
        hosts, origins = values(scope, b"host"), values(scope, b"origin")
        if len(hosts) != 1 or hosts[0].lower() not in self.hosts:
            return _no("the studio answers only under its own address, http://127.0.0.1 and its port", 403)
        if any(origin not in {f"http://{host}" for host in self.hosts} for origin in origins):
            return _no("the request comes from another website", 403)
        if any(site not in ("same-origin", "none") for site in values(scope, b"sec-fetch-site")):
            return _no("the request comes from another website", 403)
        if scope["method"] not in METHODS:
            return _no(f"the studio answers {', '.join(METHODS)}", 405)
        if scope["method"] == "POST" and values(scope, b"content-type") != ["application/json"]:
            return _no("the studio takes application/json", 415)  # a form of another website cannot send that
        length = values(scope, b"content-length")
        if length and not (length[0].isascii() and length[0].isdigit() and len(length[0]) < 12):
            return _no("Content-Length is no sensible number", 400)
        if length and int(length[0]) > MOST_BYTES:
            return _no(TOO_LARGE, 413)
        return None

    def _welcome(self, scope: Scope) -> ASGIApp | None:
        """None for who has the key; a redirection that leaves it in a cookie for who brings it in the address."""
        if any(self._is_key(value) for value in _cookies(scope, self.cookie)):
            return None
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        if scope["method"] == "GET" and any(name == "token" and self._opens(value) for name, value in query):
            rest = urlencode([(name, value) for name, value in query if name != "token"])
            path = "/" + scope["path"].lstrip("/")  # never //elsewhere, which would be another host
            answer = RedirectResponse(f"{path}?{rest}" if rest else path, 303)
            answer.set_cookie(self.cookie, self.key, httponly=True, samesite="strict", path="/")
            return answer
        return PlainTextResponse(
            "This studio wants the key that was made when it was started.\n"
            "Open the whole address that `groundup studio` printed in its terminal.\n",
            401,
        )

    def _opens(self, value: str) -> bool:
        if self.once and hmac.compare_digest(value.encode("utf-8", "replace"), self.once.encode()):
            self.once = ""
            return True
        return self._is_key(value)

    def _is_key(self, value: str) -> bool:
        return hmac.compare_digest(value.encode("utf-8", "replace"), self.key.encode())


def values(scope: Scope, name: bytes) -> list[str]:
    return [value.decode("latin-1") for each, value in scope["headers"] if each == name]


def _cookies(scope: Scope, name: str) -> list[str]:
    found = map(cookie_parser, values(scope, b"cookie"))
    return [cookies[name] for cookies in found if name in cookies]


def _limited(receive: Receive) -> Receive:
    """Pass messages on until their bodies are together larger than MOST_BYTES."""
    came = 0

    async def limited() -> Message:
        nonlocal came
        message = await receive()
        came += len(message.get("body", b""))
        if came > MOST_BYTES:
            raise Refused(f"refused: {TOO_LARGE}", 413)
        return message

    return limited


def _no(sentence: str, status: int) -> ASGIApp:
    return JSONResponse({"error": f"refused: {sentence}"}, status)
