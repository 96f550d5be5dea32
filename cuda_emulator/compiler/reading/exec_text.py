"""The text of functions that exec() or `python -c` defines, of which Python keeps nothing.

The caller of exec() may hold the text while cuda.jit asks for it. If it has returned, an audit hook has noted the text:
install() lets Python tell us every text that it compiles, and we keep the latest short ones that are no file's. A
function's own instructions show which text is its.
"""

from __future__ import annotations
import __future__

import functools
import operator
import sys
import warnings
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from types import CodeType, FrameType
from typing import Any

LONGEST = 1 << 14
_noted: deque[bytes] = deque(maxlen=1000)
_noting = _has_hook = False


def note_texts_of_exec(wanted: bool) -> None:
    """From now on, note the texts that are compiled from no file; or forget them. Python never takes a hook away."""
    global _noting, _has_hook
    _noting = wanted
    _noted.clear()
    if wanted and not _has_hook:
        _has_hook = True
        sys.addaudithook(_note)


def _note(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "compile" and _noting:
        text, filename = arguments
        if type(text) is bytes and str(filename).startswith("<") and len(text) <= LONGEST and b"def " in text:
            _noted.append(text)


def text_of_exec(code: CodeType) -> str | None:
    """The text of a function that exec() or `python -c` has defined or is just defining: a string that the caller of
    exec() holds, in a variable or as a constant, the code of the command line, or one that was noted, from which Python
    makes exactly these instructions. None if there is no such string.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename != code.co_filename:
        frame = frame.f_back
    text = _text_held(code, frame.f_code, frame.f_back) if frame is not None else None
    # A frame of this file's name may be another's: a process of pytest-xdist begins in a <string>, too.
    text = text or _text_held(code, code, _program())
    if text is None:
        plain = (name for name in (*code.co_varnames, *code.co_names) if name.isascii() and not name.startswith("__"))
        words = [each.encode() for each in (f"def {code.co_name}", *plain)]
        newest_first = dict.fromkeys(reversed(tuple(_noted)))
        candidates = (text.decode(errors="replace") for text in newest_first if all(word in text for word in words))
        text = next((each for each in candidates if _makes(each, code, code, code.co_flags & FUTURE)), None)
    return text


FUTURE = functools.reduce(
    operator.or_, (getattr(__future__, name).compiler_flag for name in __future__.all_feature_names)
)


def _text_held(code: CodeType, made: CodeType, caller: FrameType | None) -> str | None:
    """A string that the caller of exec(), or who called it, holds, and from which Python makes `made`."""
    for _ in range(3):  # exec() may stand in a helper that got the text from its caller
        held = (*caller.f_code.co_consts, *caller.f_locals.values()) if caller is not None else sys.orig_argv
        flags = caller.f_code.co_flags & FUTURE if caller is not None else 0
        for value in held:
            if isinstance(value, str) and code.co_name in value and _makes(value, code, made, flags):
                return value
        if caller is None:
            return None
        caller = caller.f_back
    return None


def _makes(text: str, code: CodeType, made: CodeType, flags: int) -> bool:
    """Whether Python makes `made` from a text: the whole, as code's file, or a function in it."""
    with suppress(SyntaxError, ValueError), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they were shown when the text was compiled
        return made in _codes_of(compile(text, code.co_filename, "exec", flags, dont_inherit=True))
    return False


def _codes_of(code: CodeType) -> Iterator[CodeType]:
    """The code of a text, and of each function in it."""
    yield code
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _codes_of(inner)


def _program() -> FrameType | None:
    """The frame that called the emulator."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and str(frame.f_globals.get("__name__")).startswith("cuda_emulator."):
        frame = frame.f_back
    return frame
