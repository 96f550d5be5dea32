"""Starts the studio, tells its address, opens the browser, and ends it with all that it began."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import signal
import socket
import sys
import threading
import time
import webbrowser
from collections.abc import Callable, Iterator
from pathlib import Path

import uvicorn

from groundup.studio.app import Studio, application
from groundup.studio.impatient import Impatient
from groundup.studio.security import Guard
from shared.machine import processes

PORT = 8484
TRIES = 20
"""Ports from PORT on that are tried, when no port is asked for."""

PATIENCE = 2.0
"""Seconds at the end for what still computes an answer, which nobody will get."""


class Server(uvicorn.Server):
    """A server that tells the studio when it is asked to end, and calls `ready` once it answers."""

    def __init__(self, config: uvicorn.Config, studio: Studio, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self.studio = studio
        self.ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to answer."""
        await super().startup(sockets)
        if self.started:
            self.ready()

    def handle_exit(self, sig: int, frame: object) -> None:
        """Ctrl-C, SIGTERM or SIGHUP: streams end by themselves, and so does what waits for a session's process, so that
        no connection has to be cut."""
        self.studio.ending.set()
        threading.Thread(target=self.studio.sessions.close_all, daemon=True).start()
        super().handle_exit(sig, frame)  # type: ignore[arg-type]


def new_server(studio: Studio, listening: socket.socket, key: str, ready: Callable[[], None], once: str = "") -> Server:
    """A server on this socket, which answers who has the key, or is the first to come with the key `once`."""
    guarded = Guard(application(studio), listening.getsockname()[1], key, once)
    config = uvicorn.Config(
        guarded,
        lifespan="on",
        log_config=None,  # which needs a standard output
        log_level="critical",  # its errors are answers that were cut off at the end; ours are printed by answers.py
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=3,
        timeout_keep_alive=30,
        ws="none",
        http=Impatient,
    )
    return Server(config, studio, ready)


def listen(port: int | None) -> socket.socket:
    """A socket on 127.0.0.1. port: which; None for the first free one from PORT on.

    Raises OSError, saying what to do, where the port is taken or not ours to take.
    """
    for each in [port] if port is not None else range(PORT, PORT + TRIES):
        # With the protocol by name asyncio knows it, and sends the end of an answer without waiting (TCP_NODELAY).
        listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        try:
            if os.name == "posix":  # on Windows this option would share a port that is in use
                listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(("127.0.0.1", each))
            listening.listen(128)
            return listening
        except OSError as error:
            listening.close()
            if port is not None or error.errno != errno.EADDRINUSE:
                raise OSError(
                    f"studio: port {each} cannot be used ({error.strerror}); choose another with --port"
                ) from None
    raise OSError(f"studio: the ports {PORT} to {PORT + TRIES - 1} are all in use; choose another with --port")


def serve(
    page: str, folder: Path, paths: list[Path], port: int | None, browser: bool, say: Callable[[str], None]
) -> None:
    """Answer until Ctrl-C.

    page: shown first, "" for the overview
    browser: whether a browser is opened there
    say: told the address
    """
    studio = Studio(folder, paths)
    key, once = secrets.token_urlsafe(24), secrets.token_urlsafe(24)
    listening = listen(port)
    address = f"http://127.0.0.1:{listening.getsockname()[1]}/{page}?token="

    def ready() -> None:
        say(f"The studio is at {address}{key}\nIt answers only this machine. Ctrl-C ends it.")
        if browser and has_browser():
            # A browser may take seconds to start, or stay in the foreground.
            threading.Thread(target=webbrowser.open, args=(address + once,), daemon=True).start()

    server = new_server(studio, listening, key, ready, once)
    studio.prepare(page)
    try:
        with _ended_with_the_terminal(server):
            server.run(sockets=[listening])
    except KeyboardInterrupt:  # uvicorn raises Ctrl-C once more, after it has ended everything
        pass
    finally:
        listening.close()
    with contextlib.suppress(OSError):  # the terminal may be gone
        say("The studio has ended.")
    _end_what_computes()


@contextlib.contextmanager
def _ended_with_the_terminal(server: Server) -> Iterator[None]:
    """A terminal that is closed ends the server as Ctrl-C does, unless `nohup` has asked for the contrary."""
    hangup = getattr(signal, "SIGHUP", None)
    heard = hangup is not None and threading.current_thread() is threading.main_thread()
    before = signal.getsignal(hangup) if hangup is not None and heard else signal.SIG_IGN
    if hangup is None or before in (signal.SIG_IGN, None):
        yield
        return
    signal.signal(hangup, server.handle_exit)
    try:
        yield
    finally:
        signal.signal(hangup, before)


def _end_what_computes() -> None:
    """End the programs that were started, such as compilers, wait a little for threads that still compute, and end the
    process without those that take longer: Python would wait for them, and stage 1 can take minutes for what was asked
    of it."""
    processes.kill_started()
    last = time.monotonic() + PATIENCE
    left = [each for each in threading.enumerate() if not each.daemon and each is not threading.current_thread()]
    with contextlib.suppress(KeyboardInterrupt):
        for each in left:
            each.join(max(0.0, last - time.monotonic()))
    if any(each.is_alive() for each in left):
        with contextlib.suppress(OSError):
            sys.stdout.flush()
        os._exit(0)


def has_browser() -> bool:
    """Whether a browser with windows can be opened: not on a machine without a screen, where webbrowser would start a
    text browser in this terminal."""
    if sys.platform in ("win32", "darwin"):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY") or os.environ.get("BROWSER"))
