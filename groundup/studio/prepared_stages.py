"""The stages, prepared in the background for what a page is about to ask of them.

Before its first call stage 3 may have to compile its C, and stage 4 each kernel, which on the emulator takes seconds.
So a thread calls each stage once with what the page asked for last, and until then the page says that it is being
prepared.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from typing import Any

from shared.contract import STAGES, Stage, StageUnavailable, display_title, load_stage

SENTENCES = (StageUnavailable, ValueError, OSError)
"""Exceptions whose text is a sentence; a stage that is being changed may raise any other, too."""


class PreparedStages:
    """warm: called once with each stage and each key, such as a dtype, that is asked for. Any thread may use it."""

    def __init__(self, name: str, warm: Callable[[Stage, Any], object]) -> None:
        self._name, self._warm = name, warm
        self._prepared: dict[tuple[str, Hashable], Stage | str] = {}  # or the reason why it cannot be used here
        self._wanted: Hashable = None
        self._is_working = False
        self._lock = threading.Lock()
        self._turns = {stage: threading.Lock() for stage in STAGES}

    def prepare(self, key: Hashable) -> None:
        """Begin to prepare all stages for this key, before any other key that was asked for earlier."""
        with self._lock:
            self._wanted = key
            if self._is_working or self.is_prepared(key):
                return
            self._is_working = True
        threading.Thread(target=self._work, daemon=True, name=f"{self._name} {key}").start()

    def is_prepared(self, key: Hashable) -> bool:
        """Whether no stage is still being prepared for this key."""
        return all((stage, key) in self._prepared for stage in STAGES)

    def answer(self, name: str, key: Hashable, call: Callable[[Stage], dict[str, Any]]) -> dict[str, Any]:
        """What the call returns for a stage, and "title", "state": "warming", "ready" or "absent", "why" if absent.

        A stage whose call raises is absent, so that the others answer nevertheless.
        """
        stage = self._prepared.get((name, key))
        found = {"title": display_title(name), "state": "warming" if stage is None else "ready"}
        if isinstance(stage, str):
            return found | {"state": "absent", "why": stage}
        try:
            with self._turns[name]:
                return found | (call(stage) if stage else {})
        except Exception as reason:
            return found | {"state": "absent", "why": _why(reason)}

    def _work(self) -> None:
        try:
            while True:
                with self._lock:
                    key = self._wanted
                    if self.is_prepared(key):
                        self._is_working = False
                        return
                name = next(stage for stage in STAGES if (stage, key) not in self._prepared)
                self._prepared[name, key] = self._prepare(name, key)
        except BaseException:  # what ends a program, raised by a stage
            self._is_working = False
            raise

    def _prepare(self, name: str, key: Hashable) -> Stage | str:
        try:
            with self._turns[name]:
                stage = load_stage(name)
                self._warm(stage, key)
            return stage
        except Exception as reason:  # also C that does not compile
            return _why(reason)


def _why(reason: Exception) -> str:
    return str(reason) if isinstance(reason, SENTENCES) else f"{type(reason).__name__}: {reason}"
