"""Listens, tells the address, and ends in order.

SIGTERM         the service is no longer ready, for `drain` seconds, while it answers as before: who spreads requests
                over several services sees it and sends the next one elsewhere
after that      it takes no new connection, finishes what has begun, and ends
Ctrl-C          the same without the wait
"""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Callable

import h11
import uvicorn

from groundup.serve.app import SECONDS, Service, application
from groundup.serve.guard import Guard
from groundup.studio.impatient import Impatient

HTTP_PORT = 80
"""The port that clients leave out of the header Host."""


class Prompt(Impatient):
    """A connection that tells a client at once that the head of its request has come.

    Some clients, tritonclient among them, send the body of a request in a packet of its own, and wait for that (Nagle's
    algorithm), while the system here waits 40 ms for something to tell it with (delayed acknowledgement).
    """

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.conn.their_state is h11.SEND_BODY and hasattr(socket, "TCP_QUICKACK"):
            self.transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)


class Server(uvicorn.Server):
    """A server that calls `ready` once it answers, and is not ready any more before it ends."""

    def __init__(self, config: uvicorn.Config, service: Service, drain: float, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self.service, self.drain, self.ready = service, drain, ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self.ready()

    def handle_exit(self, sig: int, frame: object) -> None:
        """SIGTERM waits; a second signal, and Ctrl-C, do not."""
        end = super().handle_exit
        waits = sig == signal.SIGTERM and not self.service.ending and self.drain > 0
        self.service.ending = True
        if waits:
            later = threading.Timer(self.drain, end, (sig, frame))
            later.daemon = True
            later.start()
        else:
            end(sig, frame)  # type: ignore[arg-type]


def new_server(service: Service, listening: socket.socket, key: str, drain: float, ready: Callable[[], None]) -> Server:
    """A server on this socket. key: "" for none, and then it answers only under the names of this machine"""
    own, port = _named(listening)
    hosts = {f"{host}:{port}" for host in ("127.0.0.1", "localhost", "[::1]", own)}
    if port == HTTP_PORT:
        hosts |= {host.rpartition(":")[0] for host in hosts}
    app = Guard(application(service), key, hosts, service.metrics, lambda: service.ending)
    config = uvicorn.Config(
        app,
        lifespan="on",
        log_config=None,
        log_level="critical",  # requests that are no HTTP are answered, and not told; mistakes of ours are printed
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=int(SECONDS),
        timeout_keep_alive=30,
        backlog=2048,
        ws="none",
        http=Prompt,
    )
    return Server(config, service, drain, ready)


def listen(host: str, port: int, shared: bool = False) -> socket.socket:
    """A socket. shared: whether another server of this user may listen there, too (SO_REUSEPORT)

    Raises OSError, saying what to do, where it cannot be had.
    """
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except (OSError, UnicodeError) as error:  # the second: a name longer than names may be
        why = getattr(error, "strerror", error)
        raise OSError(f"serve: --host: {host} is no address of this machine ({why})") from None
    # With the protocol by name asyncio knows it, and sends the end of an answer without waiting (TCP_NODELAY).
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        if os.name == "posix":
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shared:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listening.bind(address)
        listening.listen(2048)
    except OSError as error:
        listening.close()
        raise OSError(f"serve: {host}:{port} cannot be used ({error.strerror}); choose another with --port") from None
    return listening


def _named(listening: socket.socket) -> tuple[str, int]:
    """The host as an address has it, and the port."""
    host, port = listening.getsockname()[:2]
    return f"[{host}]" if ":" in host else host, port


def serve(service: Service, listening: socket.socket, key: str, drain: float, say: Callable[[str], None]) -> None:
    """Answer until SIGTERM or Ctrl-C. say: told the address"""
    host, port = _named(listening)

    def ready() -> None:
        say(f"http://{host}:{port}/ answers; Ctrl-C ends it.")

    try:
        new_server(service, listening, key, drain, ready).run(sockets=[listening])
    except KeyboardInterrupt:  # uvicorn raises it once more, after everything has ended
        pass
    finally:
        listening.close()
