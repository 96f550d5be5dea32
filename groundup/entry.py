"""Where the program `groundup` begins: Ctrl-C is quiet at every moment, and none is lost.

while it is loaded    some tenths of a second. An interruption inside an import would show a traceback, or appear as a
                      package that is missing; so Ctrl-C ends the process at once.
in a command          Ctrl-C raises KeyboardInterrupt, unless the command has a handler of its own. Where that would do
                      damage (_must_wait), it waits a moment. A destructor swallows it, so it comes once more.
after the command     Python only cleans up, and Ctrl-C does nothing. Where Python waits for threads, it ends the wait.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
from collections.abc import Sequence
from types import FrameType
from typing import Any

from groundup import own_packages, ranks

UNSAFE = "llvmlite.binding"
"""The package inside which no KeyboardInterrupt is raised. Its destructors fail on an object whose constructor was
interrupted, and free memory a second time, which aborts the process, where freeing it was interrupted."""

ARCHIVE = os.path.dirname(os.path.dirname(__file__))
"""What the program was imported from, where that is no folder. Stages and data can be used from there, in Python."""

MOMENT = 0.01
"""Seconds until an interruption that has to wait comes again."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Load the program and run it; the process has to end afterwards.

    arguments: those after the program's name; sys.argv's where None
    """
    command_line = list(sys.argv[1:] if arguments is None else arguments)
    own_packages.leave_working_folder()
    if command_line[:1] == ["doctor"]:
        own_packages.put_first()
    elif wrong := own_packages.hidden():
        print(f"error: {wrong}. See: groundup doctor", file=sys.stderr)
        sys.exit(2)
    before = signal.getsignal(signal.SIGINT)
    heard = before not in (None, signal.SIG_IGN)  # a shell lets its background jobs ignore the signal
    if heard:
        signal.signal(signal.SIGINT, _end)
    if ranks.started() > 1:
        ranks.prepare()
    from groundup import cli
    from shared.machine import processes

    if not os.path.isfile(__file__):
        cli.fail(
            f"groundup's commands read files of its own, but it lies in an archive, {ARCHIVE}; unpack or install it"
        )
    cli.program(command_line)  # imports the command that is asked for
    with processes.ending_with_us():
        _run(command_line, heard, before)


def _run(given: list[str], heard: bool, before: Any) -> None:
    """Run the program. heard: whether Ctrl-C is for us; before: what handled it before"""
    from groundup import cli

    try:
        if heard:
            sys.unraisablehook = _not_lost
            signal.signal(signal.SIGINT, _interrupt if before is signal.default_int_handler else before)
        cli.main(given)
    except KeyboardInterrupt:  # a second one, before the first was told
        cli.fail("interrupted")
    except SystemExit as ended:
        ranks.end_all(ended.code)
        raise
    finally:
        if heard:
            _let_python_clean_up()


def _end(number: int, frame: FrameType | None) -> None:
    os.write(2, b"error: interrupted\n")
    os._exit(2)  # nothing has been begun that would have to be undone


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt, as Python's own handler does; or in a moment, where it must not be raised now."""
    while frame is not None:
        if _must_wait(frame):
            _once_more()
            return
        frame = frame.f_back
    raise KeyboardInterrupt


def _must_wait(frame: FrameType) -> bool:
    """Whether no KeyboardInterrupt may be raised in this call: inside llvmlite; in the hook below, which would lose it;
    in __set_name__ of a class that is being made, whose errors Python 3.11 turns into a RuntimeError."""
    name, code = str(frame.f_globals.get("__name__")), frame.f_code
    return name.startswith(UNSAFE) or code is _not_lost.__code__ or code.co_name == "__set_name__"


def _not_lost(ignored: sys.UnraisableHookArgs) -> None:
    """The hook for an exception that Python would print and forget, such as one in a destructor."""
    if not issubclass(ignored.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(ignored)
    elif threading.current_thread() is threading.main_thread():
        _once_more()


def _once_more() -> None:
    """Let Ctrl-C come again in a moment, also where the first one has made the program ignore a second one."""
    before = signal.getsignal(signal.SIGINT)
    coming = threading.Timer(MOMENT, _send, [threading.get_ident()])
    coming.daemon = True

    def again(number: int, frame: FrameType | None) -> None:
        coming.cancel()  # if this is a Ctrl-C of the user, who was faster
        signal.signal(signal.SIGINT, before)
        _interrupt(number, frame)

    signal.signal(signal.SIGINT, again)
    coming.start()


def _send(thread: int) -> None:
    """Send SIGINT to the main thread, so that it also ends what that thread waits for."""
    if sys.platform == "win32":
        signal.raise_signal(signal.SIGINT)
    else:
        signal.pthread_kill(thread, signal.SIGINT)


def _let_python_clean_up() -> None:
    """Ignore Ctrl-C from now on; where Python will wait for threads, only after that wait."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if any(not each.daemon for each in threading.enumerate() if each is not threading.main_thread()):
        atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)  # called before all that was registered earlier
        sys.unraisablehook = _without_ctrl_c
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _without_ctrl_c(ignored: sys.UnraisableHookArgs) -> None:
    """The hook while Python waits for threads: an interruption has ended the wait, which is all that it was to do."""
    if not issubclass(ignored.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(ignored)
