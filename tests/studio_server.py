"""A running studio for tests, and how to ask it."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

KEY, ONCE = "the-key-of-the-tests", "the-key-of-the-browser"


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class RunningStudio:
    """studio: what its pages share; port: on 127.0.0.1."""

    studio: Any
    port: int

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def opening(self, page: str = "") -> str:
        """The address with the key, as the terminal prints it."""
        return f"{self.address}/{page}?token={KEY}"

    def ask(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: dict[str, str] | None = None,
        key: str | None = KEY,
    ) -> Answer:
        """One request with the key in its cookie, and with these headers in place of the usual ones."""
        usual = {"Host": f"127.0.0.1:{self.port}", "Cookie": f"groundup-studio-{self.port}={key}"}
        if key is None:
            del usual["Cookie"]
        if body is not None:
            usual["Content-Type"] = "application/json"
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)
        try:
            connection.request(method, path, body, {**usual, **(headers or {})})
            answer = connection.getresponse()
            return Answer(answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read())
        finally:
            connection.close()

    def get(self, path: str) -> Any:
        """The JSON of a question that is answered."""
        return self._answered(self.ask("GET", path))

    def post(self, path: str, body: Any = None) -> Any:
        """The JSON of an action that is done."""
        return self._answered(self.ask("POST", path, json.dumps({} if body is None else body).encode()))

    def refused(self, path: str, body: Any = None) -> str:
        """The sentence of a question (or, with a body, of an action) that is refused."""
        answer = self.ask("GET", path) if body is None else self.ask("POST", path, json.dumps(body).encode())
        assert answer.status >= 400, answer.body[:500]
        return answer.json["error"]

    def events(self, path: str, count: int) -> list[Any]:
        """The first values of a stream of events, fewer where it ends before."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)
        try:
            connection.request(
                "GET", path, headers={"Host": f"127.0.0.1:{self.port}", "Cookie": f"groundup-studio-{self.port}={KEY}"}
            )
            answer, found = connection.getresponse(), []
            assert answer.status == 200, answer.read()[:500]
            for line in answer:
                if line.startswith(b"event: end"):
                    break
                if line.startswith(b"data: "):
                    found.append(json.loads(line[6:]))
                if len(found) == count:
                    break
            return found
        finally:
            connection.close()

    @staticmethod
    def _answered(answer: Answer) -> Any:
        assert answer.status == 200, (answer.status, answer.body[:2000])
        return answer.json


@contextmanager
def running(folder: Path, paths: list[Path] | None = None) -> Iterator[RunningStudio]:
    """A studio of this folder in a thread of the test's process, on a free port."""
    from groundup.studio.app import Studio
    from groundup.studio.server import listen, new_server

    studio, listening, ready = Studio(folder, paths or []), listen(0), threading.Event()
    server = new_server(studio, listening, KEY, ready.set, ONCE)
    thread = threading.Thread(target=lambda: server.run(sockets=[listening]), daemon=True)
    thread.start()
    assert ready.wait(300), "the studio did not start"
    try:
        yield RunningStudio(studio, listening.getsockname()[1])
    finally:
        studio.ending.set()
        server.should_exit = True
        thread.join(300)
        assert not thread.is_alive(), "the studio did not end"
        listening.close()
