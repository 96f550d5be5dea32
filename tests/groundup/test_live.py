"""groundup.live: what the sparkline draws, what the view shows, that it changes nothing, and that it costs little."""

import math
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
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from groundup.commands.train import train
from groundup.live import BLOCKS, GAP, SHARE, LiveView, clock, gradient_ratios, sparkline, watching
from shared import contract
from shared.training import loop
from tests import interrupts
from tests.shared.training import small_runs

# --- the sparkline ---


def test_a_series_that_rises_by_equal_steps_shows_every_block() -> None:
    assert sparkline([10, 20, 30, 40, 50, 60, 70, 80], 8) == "▁▂▃▄▅▆▇█"
    assert sparkline([3.5, 0.0, 7.0], 8) == f"{BLOCKS[round(3.5)]}▁█"
    assert sparkline([-1.0, 0.0, -2.0], 8) == f"{BLOCKS[round(3.5)]}█▁"


def test_more_values_than_width_are_averaged_in_neighbouring_groups() -> None:
    assert sparkline([0, 0, 1, 1, 7, 7], 3) == "▁▂█"
    assert sparkline([0, 0, 0, 7, 7], 2) == "▁█"  # the groups are 3 and 2 long
    assert sparkline([0, 100, 50, 50], 2) == "▁▁"  # a mean, not a largest value


@pytest.mark.parametrize("values", [[2.5], [2.5, 2.5, 2.5], [0.0, 0.0], [-1e300, -1e300]])
def test_a_constant_series_is_a_flat_line(values: list[float]) -> None:
    assert sparkline(values, 10) == "▁" * len(values)


def test_what_is_no_number_leaves_a_gap_and_does_not_disturb_the_rest() -> None:
    assert sparkline([0, math.nan, 7], 8) == f"▁{GAP}█"
    assert sparkline([0, math.inf, -math.inf, 7], 8) == f"▁{GAP}{GAP}█"
    assert sparkline([math.nan, 0, math.nan, 7], 2) == "▁█"  # left out of its group's mean
    assert sparkline([math.inf, 0, 7, 7], 2) == "▁█"
    assert sparkline([math.nan, math.nan], 8) == GAP * 2


def test_nothing_is_an_empty_line_and_a_width_below_1_an_error() -> None:
    assert sparkline([], 8) == ""
    with pytest.raises(ValueError, match="sparkline: width: expected at least 1, got 0"):
        sparkline([1, 2], 0)


series = st.lists(st.floats(-1e100, 1e100), min_size=1, max_size=50)


@given(series, st.integers(1, 60))
def test_a_sparkline_is_as_long_as_its_values_or_its_width(values: list[float], width: int) -> None:
    line = sparkline(values, width)
    assert len(line) == min(width, len(values))
    assert set(line) <= set(BLOCKS)
    if len(values) <= width and max(values) > min(values):
        assert (line[values.index(min(values))], line[values.index(max(values))]) == (BLOCKS[0], BLOCKS[-1])


@given(series, st.integers(1, 60))
def test_a_sparkline_goes_up_where_its_values_do_whatever_their_unit(values: list[float], width: int) -> None:
    rising = sparkline(sorted(values), len(values))
    assert list(rising) == sorted(rising)
    assert sparkline([4 * value for value in values], width) == sparkline(values, width)


# --- the gradients' ratios ---


def test_a_ratio_is_one_norm_over_the_other_and_biases_are_left_out() -> None:
    parameters = [np.array([[3.0, 4.0]]), np.zeros(2), np.array([[2.0], [0.0]]), np.ones(1)]
    gradients = [np.array([[0.6, 0.8]]), np.full(2, 9.0), np.array([[0.0], [-1.0]]), np.full(1, 9.0)]
    assert gradient_ratios(parameters, gradients) == pytest.approx([0.2, 0.5])


def test_weights_of_0_give_an_infinite_ratio_or_0_where_nothing_pulls() -> None:
    zeros, ones, bias = np.zeros((2, 2)), np.ones((2, 2)), np.zeros(2)
    assert gradient_ratios([zeros, bias], [ones, bias]) == [math.inf]
    assert gradient_ratios([zeros, bias], [zeros, bias]) == [0.0]


def test_gradients_of_other_shapes_are_refused() -> None:
    with pytest.raises(
        ValueError, match=r"a gradient shaped like each parameter, got \[\(2, 2\)\] for \[\(2, 2\), \(2"
    ):
        gradient_ratios([np.zeros((2, 2)), np.zeros(2)], [np.zeros((2, 2))])


@pytest.mark.parametrize(("seconds", "text"), [(0.4, "0:00"), (59.6, "1:00"), (187, "3:07"), (3642, "1:00:42")])
def test_a_time_is_told_in_minutes_and_hours(seconds: float, text: str) -> None:
    assert clock(seconds) == text


# --- the view ---


class Terminal(StringIO):
    """A text file that passes for a terminal."""

    def isatty(self) -> bool:
        return True


class Ascii(Terminal):
    """One that has no blocks."""

    encoding = "ascii"


def console_on(file: StringIO) -> Console:
    return Console(file=file, width=110, force_terminal=True, force_interactive=True, _environ={"TERM": "xterm"})


def trained(stage: contract.Stage, console: Console | None, **options: Any) -> Any:
    """The network that small_runs.make gives, trained for two epochs; watched on the console, if there is one."""
    network = stage.network.Network([4, 6, 5, 3], activation="relu", seed=1, dtype="float64")
    rest: dict[str, Any] = {"epochs": 2, "batch_size": 8, "validation": 0.2, **options}
    optimizer = stage.optimizers.SGD(rest.pop("learning_rate", 0.05), momentum=0.9)
    hooks: dict[str, Any] = {"progress_bar": False}
    if console is None:
        loop.train(stage, network, optimizer, small_runs.DATA, test_data=small_runs.TEST, **hooks, **rest)
        return network
    lines = {"on_start": lambda: print("the heading"), "on_epoch": lambda record: print(f"line {record.epoch}")}
    watched = {name: rest[name] for name in ("epochs", "batch_size", "validation")}
    with watching(stage, network, small_runs.DATA, console=console, **watched, **lines) as found:
        loop.train(stage, network, optimizer, small_runs.DATA, test_data=small_runs.TEST, **hooks | found, **rest)
    return network


def test_watching_changes_no_number(stage: contract.Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("groundup.live.REFRESH", 0.0)
    monkeypatch.setattr("groundup.live.SHARE", 1e9)  # so that every step is measured
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


def test_arguments_that_training_refuses_are_its_errors_and_draw_nothing() -> None:
    terminal = Terminal()
    with pytest.raises(ValueError, match="batch_size: expected at least 1, got 0"):
        trained(contract.load_stage("numpy"), console_on(terminal), batch_size=0)
    assert terminal.getvalue() == ""


def test_a_run_that_is_finished_already_draws_and_measures_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = contract.load_stage("numpy")
    trained(stage, None, run_dir=tmp_path)
    terminal = Terminal()
    monkeypatch.delattr(LiveView, "measure")
    trained(stage, console_on(terminal), run_dir=tmp_path, resume=True)
    assert terminal.getvalue() == ""


@pytest.mark.parametrize("width", [46, 80, 200])
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
        self.view = LiveView(stage, network, small_runs.DATA, 1000, 10, 0.0, console, now=lambda: self.time)
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
    with pytest.raises(ValueError, match=f"--live shows what {other} leaves out: choose one of them"):
        command("numpy", "--live", other)


def test_live_without_a_terminal_prints_what_training_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    command("numpy", "--epochs", "1", "--hidden", "4", "--live")
    heading, columns, epoch, last = capsys.readouterr().out.splitlines()
    assert heading.startswith("stage 2: NumPy, 784-4-10 relu")
    assert (columns.split()[0], epoch.split()[0]) == ("epoch", "1")
    assert last.startswith("1 epochs done. Test accuracy ")


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


def read_until(terminal: int, wanted: bytes, seconds: float = 60.0) -> str:
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
