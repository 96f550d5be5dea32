"""A playground that runs by itself: a thread takes steps and hands out a picture for each frame of the screen."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from groundup.studio.playground.model import Playground
from groundup.studio.playground.picture import picture, scene
from groundup.studio.playground.settings import Settings

FRAME = 1 / 66
"""Seconds between two pictures: a little less than a screen's 60th, so that each of its frames finds a new one."""

FASTEST = 1000
"""Steps of one picture at most."""

LONGEST_STEP = 5.0
"""Seconds for which the end of a training waits for the step that it is in: one of stage 1 can take longer."""

REMEMBERED = 400
"""Points of the curves; when there are more, every second one is dropped."""

Picture = dict[str, Any]


class Player:
    """One training for one tab. Every method may be called by any thread, and returns the picture after it.

    publish: called with each picture of a running training, by the thread that runs it
    """

    def __init__(self, settings: Settings, publish: Callable[[Picture], None]) -> None:
        self._playground = Playground(settings)
        self._publish = publish
        self._lock = threading.RLock()
        self._going = threading.Event()
        self._seen = threading.Event()
        self._seen.set()
        self._watchers, self._counting = 0, threading.Lock()
        self._closed = False
        self._speed = 1
        self._thread: threading.Thread | None = None
        self._training = 0
        self._curves: list[Picture] = []
        self._taken, self._every = 0, 1

    @property
    def running(self) -> bool:
        """Whether the training runs by itself."""
        return self._going.is_set()

    def scene(self) -> Picture:
        """What the page needs once: the scene, a picture and the curves so far."""
        with self._lock:
            return {**scene(self._playground), "picture": self._picture(), "curves": list(self._curves)}

    def step(self, count: int = 1) -> Picture:
        """Take this many steps and stay there; fewer if the training is closed meanwhile."""
        self.pause()
        with self._lock:
            for _ in range(min(max(1, count), FASTEST)):
                self._playground.step()
                if self._closed:
                    break
            return self._remembered()

    def run(self, speed: int = 1) -> Picture:
        """Take `speed` steps for every picture from now on."""
        with self._lock:
            self._speed = min(max(1, speed), FASTEST)
            self._going.set()
            if self._thread is None and not self._closed:
                self._thread = threading.Thread(target=self._play, name="playground", daemon=True)
                self._thread.start()
            return self._picture()

    def pause(self) -> Picture:
        """Stop after the running step."""
        self._going.clear()
        with self._lock:
            return self._picture()

    def begin(self) -> Picture:
        """Stop, and go back to the start with the same seed."""
        self._going.clear()
        with self._lock:
            self._playground.begin()
            self._forget()
            return self.scene()

    def change(self, settings: Settings) -> Picture:
        """Take other settings, and go on if they allow it: see Settings.goes_on_from. Returns the new scene."""
        with self._lock:
            if not self._playground.change(settings):
                self._forget()
            return self.scene()

    def watched(self, change: int) -> None:
        """Somebody begins (1) or ceases (-1) to look: a running training waits while its tab is hidden.

        They are counted, because the end of a stream may be noticed after the next one has begun.
        """
        with self._counting:
            self._watchers += change
            if self._watchers > 0:
                self._seen.set()
            else:
                self._seen.clear()

    def close(self) -> None:
        """End the thread, after the step that it is in."""
        self._closed = True
        self._going.set()
        self._seen.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(LONGEST_STEP)

    def _play(self) -> None:
        due = time.monotonic()
        while not self._closed:
            if not (self._going.wait(timeout=1.0) and self._seen.wait(timeout=1.0)) or self._closed:
                continue
            # A picture that came late is made up for by the next ones, but not a whole pause.
            due = max(due + FRAME, time.monotonic() - FRAME)
            try:
                with self._lock:
                    if not self._going.is_set():  # paused while this thread waited for the lock
                        continue
                    self._several_steps(time.monotonic() + FRAME / 2)
                    shown = self._remembered()
                self._publish(shown)
            except Exception as error:  # whatever a stage says is for the page, which would wait for ever otherwise
                self._going.clear()
                self._publish({"error": f"{type(error).__name__}: {error}"})
            # A little sleep even when there is no time left, so that a pause or a change gets the lock.
            time.sleep(max(0.0005, due - time.monotonic()))

    def _several_steps(self, end: float) -> None:
        """`speed` steps, but only as many as there is time for: a slow floor shows every step."""
        for _ in range(self._speed):
            self._playground.step()
            if time.monotonic() > end or self._closed:
                return

    def _picture(self) -> Picture:
        return {**picture(self._playground), "running": self.running, "training": self._training}

    def _remembered(self) -> Picture:
        """The picture, whose losses and gradients become the newest point of the curves."""
        shown = self._picture()
        self._taken += 1
        if self._taken % self._every == 0:
            self._curves.append({name: shown[name] for name in ("step", "loss", "gradients")})
        if len(self._curves) > REMEMBERED:
            self._curves = self._curves[::2]
            self._every *= 2
        return shown

    def _forget(self) -> None:
        """A new training begins; its number lets the page ignore a picture of an earlier one that comes late."""
        self._training += 1
        self._curves = []
        self._taken, self._every = 0, 1
