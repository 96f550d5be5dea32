"""groundup.live_view: the view shows a training, does not change it, and takes little time."""

import os
import select
import sys
import time
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from rich.console import Console

from groundup.commands.train import train
from groundup.live import dead_shares
from groundup.live_view import SHARE, LiveView, clock, watching
from shared import contract
from shared.architectures import Architecture
from shared.layers import Activate, BatchNorm, Conv, Dense, Flatten, MaxPool
from shared.training import loop
from shared.training.settings import QUIET, Hooks, Saving, TrainingSettings
from tests import interrupts
from tests.shared.training import small_runs
from tests.shared.training import test_layered_runs as layered_runs
from tests.stages import STAGE_PARAMS
from tests.wide import widely


@pytest.mark.parametrize(("seconds", "text"), [(0.4, "0:00"), (59.6, "1:00"), (187, "3:07"), (3642, "1:00:42")])
def test_a_time_is_told_in_minutes_and_hours(seconds: float, text: str) -> None:
    assert clock(seconds) == text


# --- the view ---


SETTINGS = TrainingSettings(epochs=2, batch_size=8, validation=0.2)


class Terminal(StringIO):
    """A text file that passes for a terminal."""

    def isatty(self) -> bool:
        return True


class Ascii(Terminal):
    """One that has no blocks."""

    encoding = "ascii"


def console_on(file: StringIO) -> Console:
    return Console(file=file, width=110, force_terminal=True, force_interactive=True, _environ={"TERM": "xterm"})


def trained(
    stage: contract.Stage,
    console: Console | None,
    settings: TrainingSettings = SETTINGS,
    saving: Saving | None = None,
    learning_rate: float = 0.05,
) -> Any:
    """A network trained on small_runs.DATA; watched on the console, if there is one."""
    network = stage.network.Network([4, 6, 5, 3], activation="relu", seed=1, dtype="float64")
    optimizer = stage.optimizers.SGD(learning_rate, momentum=0.9)
    arguments = (stage, network, optimizer, small_runs.DATA, settings)
    if console is None:
        loop.train(*arguments, test_data=small_runs.TEST, saving=saving, hooks=QUIET)
        return network
    lines = Hooks(
        on_start=lambda: print("the heading"), on_epoch=lambda record: print(f"line {record.epoch}"), progress_bar=False
    )
    with watching(stage, network, small_runs.DATA, settings, lines, console) as hooks:
        loop.train(*arguments, test_data=small_runs.TEST, saving=saving, hooks=hooks)
    return network


@pytest.mark.parametrize("stage", widely(STAGE_PARAMS, 3), indirect=True)
def test_watching_changes_no_number(stage: contract.Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("groundup.live_view.REFRESH", 0.0)
    monkeypatch.setattr("groundup.live_view.SHARE", 1e9)  # so that every step is measured
    measured = []
    real = LiveView.measure
    monkeypatch.setattr(LiveView, "measure", lambda self: (measured.append(1), real(self)))
    watched, alone = trained(stage, console_on(Terminal())), trained(stage, None)
    assert len(measured) == 10 + 1  # every step, and when all is over
    for one, other in zip(small_runs.host(stage, watched), small_runs.host(stage, alone), strict=True):
        np.testing.assert_array_equal(one, other)


def test_the_view_shows_progress_loss_accuracies_and_every_layer(capsys: pytest.CaptureFixture[str]) -> None:
    terminal = Terminal()
    trained(contract.load_stage("numpy"), console_on(terminal))
    shown = terminal.getvalue()
    for text in ("epoch 2/2", "step 10 of 10", "steps/s", "the last 10 steps"):
        assert text in shown
    assert all(f"{part} accuracy" in shown for part in ("train", "validation", "test"))
    assert "━" * 24 in shown[shown.rindex("epoch 2/2") :]
    last = shown[shown.rindex("gradient / weights") :]
    assert [size for size in ("4 x 6", "6 x 5", "5 x 3") if size in last] == ["4 x 6", "6 x 5", "5 x 3"]
    # The ordinary lines stand above it, each on a line of its own.
    assert {"line 1", "line 2"} <= {line.rstrip().rpartition("\x1b[2K")[2] for line in shown.splitlines()}
    assert capsys.readouterr().out == "the heading\n"


@pytest.mark.parametrize("console", [Console(file=StringIO()), console_on(StringIO()), console_on(Ascii())])
def test_where_there_is_no_terminal_for_it_the_ordinary_lines_are_all(
    console: Console, capsys: pytest.CaptureFixture[str]
) -> None:
    trained(contract.load_stage("numpy"), console)
    assert capsys.readouterr().out == "the heading\nline 1\nline 2\n"
    assert console.file.getvalue() == ""  # type: ignore[attr-defined]


def test_the_terminal_is_given_back_where_the_training_fails() -> None:
    terminal = Terminal()
    before = sys.stdout
    with pytest.raises(ValueError, match="diverged; lower the learning rate"):
        trained(contract.load_stage("numpy"), console_on(terminal), learning_rate=1e200)
    assert terminal.getvalue().rindex("\x1b[?25h") > terminal.getvalue().rindex("\x1b[?25l")
    assert sys.stdout is before


def test_a_run_that_is_finished_already_draws_and_measures_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = contract.load_stage("numpy")
    trained(stage, None, saving=Saving(tmp_path))
    terminal = Terminal()
    monkeypatch.delattr(LiveView, "measure")
    trained(stage, console_on(terminal), saving=Saving(tmp_path, resume=True))
    assert terminal.getvalue() == ""


@pytest.mark.parametrize("width", [46, 200])
def test_no_line_of_the_view_is_broken_on_a_terminal_of_any_width(width: int) -> None:
    terminal = Terminal()
    console = Console(
        file=terminal, width=width, force_terminal=True, force_interactive=True, _environ={"TERM": "xterm"}
    )
    trained(contract.load_stage("numpy"), console)
    last = terminal.getvalue()[terminal.getvalue().rindex("epoch 2/2") :]
    assert len(last.splitlines()) == 1 + 4 + 4 + 1  # progress; loss and accuracies; layers; the cursor


class Slow:
    """A view whose measurements take a second by a clock that only they and `sleep` move."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.time, self.measured = 0.0, 0
        stage = contract.load_stage("numpy")
        network = stage.network.Network([4, 3, 3])
        console = console_on(Terminal())
        settings = TrainingSettings(epochs=1000, batch_size=10)
        self.view = LiveView(stage, network, small_runs.DATA, settings, console, now=lambda: self.time)
        monkeypatch.setattr(self.view, "measure", self.measure)

    def measure(self) -> None:
        self.time += 1.0
        self.measured += 1


def test_measuring_takes_no_more_than_its_share_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = Slow(monkeypatch)
    slow.view.start()
    for step in range(500):
        slow.time += 0.3
        slow.view.step(step // 5 + 1, step % 5 + 1, 1.0)
    slow.view.stop()
    assert 2 <= slow.measured <= slow.time * SHARE + 1


def test_steps_per_second_and_time_left_follow_the_last_drawings(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = Slow(monkeypatch)
    monkeypatch.setattr(slow.view, "measure", lambda: None)
    slow.view.start()
    assert slow.view.steps_per_second() is None
    for step in range(100):
        slow.time += 0.5
        slow.view.step(step // 5 + 1, step % 5 + 1, 1.0)
    slow.view.stop()
    assert slow.view.steps_per_second() == pytest.approx(2.0)
    terminal = StringIO()
    Console(file=terminal, width=110).print(slow.view.view())
    assert f"epoch 21/1000  {'─' * 24}  step 100 of 5,000" in terminal.getvalue()
    assert "2.0 steps/s  40:50 left" in terminal.getvalue()


# --- the command ---


def command(*arguments: str) -> None:
    app = typer.Typer(rich_markup_mode=None)
    app.command()(train)
    app(args=list(arguments), standalone_mode=False)


@pytest.mark.parametrize("other", ["--json", "--quiet"])
def test_live_and_silent_exclude_each_other(other: str) -> None:
    with pytest.raises(ValueError, match=f"--live and {other} exclude each other: choose one of them"):
        command("numpy", "--live", other)


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal, which Windows has not")
def test_ctrl_c_in_a_live_view_saves_the_run_and_says_how_to_resume(tmp_path: Path) -> None:
    import pty

    child, terminal = pty.fork()
    if child == 0:
        os.chdir(tmp_path)
        interrupts.hear()
        os.environ |= {"TERM": "xterm", "PYTHONPATH": str(Path(__file__).resolve().parents[2]), "LC_ALL": "C.UTF-8"}
        options = ["numpy", "--live", "--epochs", "100000", "--hidden", "8", "--run-dir", "here"]
        code = "import typer; from groundup.commands.train import train; app = typer.Typer(); app.command()(train); "
        code += f"app({options})"
        os.execv(sys.executable, [sys.executable, "-c", code])
    shown = read_until(terminal, b"steps/s")
    os.write(terminal, b"\x03")
    shown += read_until(terminal, b"no such words: read to the end")
    os.close(terminal)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 2, shown
    assert "interrupted: saved epoch" in shown
    assert (tmp_path / "here" / "last.safetensors").is_file()


def read_until(terminal: int, wanted: bytes, seconds: float = 600.0) -> str:
    """What the program writes, until it has written `wanted`, has ended, or takes too long."""
    shown, end = b"", time.monotonic() + seconds
    while wanted not in shown and time.monotonic() < end:
        ready, _, _ = select.select([terminal], [], [], 0.1)
        if ready:
            try:
                shown += os.read(terminal, 65536)
            except OSError:  # how Linux says that nobody writes any more
                break
    return shown.decode(errors="replace")


# --- a network of any architecture ---


def test_a_network_of_other_layers_is_shown_by_its_layers_with_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("groundup.live_view.REFRESH", 0.0)
    stage = contract.load_stage("numpy")
    network = stage.network.Network(layered_runs.ARCHITECTURE, seed=1)
    terminal = Terminal()
    settings = TrainingSettings(epochs=1, batch_size=8)
    arguments = (stage, network, stage.optimizers.SGD(0.05), layered_runs.DATA, settings)
    with watching(stage, network, layered_runs.DATA, settings, QUIET, console_on(terminal)) as hooks:
        loop.train(*arguments, hooks=hooks)
    alone = stage.network.Network(layered_runs.ARCHITECTURE, seed=1)
    loop.train(stage, alone, stage.optimizers.SGD(0.05), layered_runs.DATA, settings, hooks=QUIET)
    pairs = zip(
        [*network.parameters, *network.running_statistics], [*alone.parameters, *alone.running_statistics], strict=True
    )
    for watched, expected in pairs:
        np.testing.assert_array_equal(watched, expected)
    shown = terminal.getvalue()
    rows = [[*line.split()[:1], " ".join(line.split()[1:8])] for line in shown.splitlines()]
    for number, weights in (("1", "3 x 1 x 3 x 3"), ("3.1", "3 x 3 x 1 x 1"), ("8", "27 x 3")):
        assert any(row[0] == number and row[1].startswith(weights) for row in rows if row[0]), number
    assert not any("batch" in line.lower() for line in shown.splitlines())


def test_a_channel_is_dead_if_it_is_0_for_every_image_at_every_place() -> None:
    architecture = Architecture((1, 2, 2), (Conv(3, 1), MaxPool(1), Activate("relu"), Flatten(), Dense(4)))
    images = np.zeros((5, 3, 2, 2))
    images[4, 1, 1, 0] = 0.5
    outputs = [images, images, images, images.reshape(5, 12), np.zeros((5, 4))]
    assert dead_shares(architecture, outputs) == {"1": pytest.approx(2 / 3)}
    hidden = Architecture((2,), (Dense(2), BatchNorm(), Activate("relu"), Dense(2), Activate("tanh"), Dense(1)))
    outputs = [np.ones((3, 2)), np.ones((3, 2)), np.array([[0, 1.0], [0, 0], [0, 2]]), *[np.zeros((3, 2))] * 2]
    assert dead_shares(hidden, [*outputs, np.zeros((3, 1))]) == {"1": 0.5}
