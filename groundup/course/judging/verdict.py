"""The result of a grading, made from the events that the child process reported."""

from __future__ import annotations

import signal
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from groundup.course.judging.compiler_hints import compile_hint
from groundup.course.judging.raised_hints import raised_hint

MOST_SAID = 500
"""Characters of an exception's text."""

MOST_SHOWN_NOTES = 40
"""Lines of a compiler's own words."""


@dataclass(frozen=True)
class Verdict:
    """The result of a grading.

    passed: whether every check has passed
    failed_check: the name of the one that failed, "" if all have passed or the task is still a stub
    passed_checks: (name, number of comparisons) of those before it
    what: one sentence; expected, got, cause: as Wrong has them
    file, line: the place in the learner's file, "" and 0 if there is none; source: the text of that line
    more: the compiler's own words, or a traceback without a line of the learner's
    by_hand, picture: as Wrong has them
    notes: such as a measured time; printed: the end of what the learner's code printed
    """

    passed: bool
    failed_check: str = ""
    passed_checks: tuple[tuple[str, int], ...] = ()
    what: str = ""
    expected: str = ""
    got: str = ""
    cause: str = ""
    file: str = ""
    line: int = 0
    source: str = ""
    more: str = ""
    by_hand: str = ""
    notes: tuple[str, ...] = ()
    printed: str = ""
    seconds: float = 0.0
    stub: bool = False
    picture: Mapping[str, Any] | None = None

    def document(self) -> dict[str, Any]:
        """The verdict as `groundup learn check --json` prints it. Programs read these keys, so they do not change."""
        keys = {"failed_check": "rung", "passed_checks": "rungs", "cause": "likely"}
        return {keys.get(name, name): value for name, value in asdict(self).items() if name != "picture"}


def verdict_of(events: list[dict[str, Any]], code: int | None, printed: str, limit: float, took: float) -> Verdict:
    """What the child process says of itself. Its pass counts only when the examiner confirms it."""
    passed = tuple((event["name"], event["comparisons"]) for event in events if event["event"] == "passed")
    check = next((event["name"] for event in reversed(events) if event["event"] == "check"), "import")
    trying = next((event["text"] for event in reversed(events) if event["event"] == "trying"), "")
    notes = tuple(event["text"] for event in events if event["event"] == "note")
    common: dict[str, Any] = {"passed_checks": passed, "notes": notes, "printed": printed.strip(), "seconds": took}
    by_name = {event["event"]: event for event in events}
    if "done" in by_name:
        return Verdict(True, **common)
    failed: dict[str, Any] = {"passed": False, "failed_check": check, **common}
    if "wrong" in by_name:
        event = by_name["wrong"]
        return Verdict(**failed, **{name: value for name, value in event.items() if name != "event"})
    if "raised" in by_name:
        return Verdict(**{**failed, **_raised(by_name["raised"], trying)})
    at = f" while trying {trying}" if trying else ""
    if "memory" in by_name:
        sentence = f"it took more memory than a right answer needs{at}, and was stopped"
        return Verdict(**failed, what=sentence, cause="something grows with every round of a loop")
    if "memory together" in by_name:
        sentence = f"its processes took more memory together than a right answer needs{at}, and were stopped"
        return Verdict(**failed, what=sentence, cause="a function needs no processes of its own")
    if "processes" in by_name:
        sentence = f"it started more processes than it may{at}, and all were stopped"
        return Verdict(**failed, what=sentence, cause="a function needs no processes of its own")
    if code is None or "time" in by_name:
        sentence = f"it did not end within {limit:g} seconds{at}, and was stopped"
        return Verdict(**failed, what=sentence, cause=_too_late(by_name.get("time"), limit))
    if code == -getattr(signal, "SIGPROF", 0):  # calling/fenced_arrays.py has asked for it
        sentence = f"a call in C took seconds of processor time where it should take less than one{at}, and was stopped"
        return Verdict(**failed, what=sentence, cause=f"{ENDLESS}. A counter of 16 bits never gets to 65,536")
    if code < 0:
        name = signal.Signals(-code).name
        return Verdict(**failed, what=f"the process crashed with {name}{at}", cause=CRASHES.get(name, ""))
    return Verdict(**failed, what=f"the process ended by itself, with exit code {code}{at}", cause=_ended(code))


ENDLESS = "a loop that never ends: does its condition ever become false?"

BUSY = (
    "is the machine busy? Of {limit:g} seconds it computed for {computed:.0f}. Check again with more time, "
    "GROUNDUP_LEARN_SECONDS={more:.0f} groundup learn check. If that does not help: {endless}"
)


def _too_late(told: dict[str, Any] | None, limit: float) -> str:
    """The cause of a time limit that was reached. told: the warden's event; None where there is no warden"""
    if told is None or told["computed"] > limit / 2:
        return ENDLESS
    return BUSY.format(limit=limit, computed=told["computed"], more=5 * limit, endless=ENDLESS)


CRASHES = {
    "SIGSEGV": "a read or write outside an array: is every index below its size, every row as long as you think?",
    "SIGBUS": "a read or write outside an array: is every index below its size?",
    "SIGFPE": "a whole number was divided by zero",
    "SIGABRT": "memory was damaged by a write outside an array, or the C called abort",
    "SIGILL": "the C reached a place that the compiler takes for impossible: does every path return?",
    "SIGKILL": "the system ended it, most likely for lack of memory",
}


def _ended(code: int) -> str:
    # Windows has no signals: an access violation is this exit code.
    return (
        CRASHES["SIGSEGV"]
        if code & 0xFFFFFFFF == 0xC0000005
        else "something in it ends the process: os._exit, or exit in C"
    )


def _raised(event: dict[str, Any], trying: str) -> dict[str, Any]:
    kind, text = event["type"], event["text"][:MOST_SAID]
    at = f" while trying {trying}" if trying else ""
    place = {"file": event["file"], "line": event["line"], "source": event["source"]}
    said = "\n".join(event["notes"]).splitlines()[:MOST_SHOWN_NOTES]
    more = "\n".join([*said, event["traceback"]]).strip()
    if kind == "SystemExit":
        return {**place, "what": f"it called sys.exit({text}){at}", "cause": "a function returns; it does not exit"}
    if kind == "MemoryError":
        cause = "is a size computed from the wrong numbers, or does something grow with every round of a loop?"
        return {**place, "what": f"it asked for more memory than it may have{at}", "cause": cause}
    if kind == "CompileError":
        fault = told_once(text, said)
        return {**place, "failed_check": "compile", "what": fault, "more": "\n".join(said), "cause": compile_hint(text)}
    if kind == "ModuleNotFoundError":
        name = text.partition("'")[2].rpartition("'")[0] or "that module"
        cause = (
            f"there is no {name} here: put helpers into this file; only the files that came with the course are used"
        )
        return {**place, "what": f"{kind}: {text}{at}", "cause": cause}
    said_so = f"{kind}: {text}" if text else kind
    cause = raised_hint(text, event["source"])
    return {**place, "what": f"{said_so}{at}", "more": more if not event["file"] else "", "cause": cause}


def told_once(message: str, notes: Sequence[str]) -> str:
    """A compile error's message without the compiler's first error, if the notes below it have that line, too."""
    head, end, first = message.partition("): ")
    return f"{head})" if end and first and any(first in note for note in notes) else message
