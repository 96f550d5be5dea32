"""The network of a run as `groundup look --architecture` and the studio draw it, with the times of its profile.

NetworkForm    an architecture with its name and, by layer, the seconds of a training step
of_run         that of a run's folder, or of one of its checkpoints
as_svg         its figure, light and dark in one file
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from groundup.trained import open_checkpoint
from shared.architectures import Architecture
from shared.bench.records.document import read_json
from shared.charts.drawing.svg import of, with_palettes
from shared.charts.figures.architecture import TITLES, drawing
from shared.contract import STAGE_TITLES
from shared.layers import AveragePool, Conv, Dense, MaxPool, shortened
from shared.numbers import duration, plural
from shared.profile.document import results_of
from shared.profile.step_profile import Profile
from shared.training.checkpoints import Checkpoint

PROFILE = "profile.json"
"""The file of a run's folder with its profile: `groundup profile --out RUN_DIR` writes it."""

MOST_ROWS = 200
"""Layers of a network that is drawn; of a larger one only the table can be had."""


@dataclass(frozen=True)
class NetworkForm:
    """title: what the figure calls the network; seconds: of a training step, by the number of the layer

    measured: what the times are of, "" without any; note: why a profile of the run is not shown, else ""
    """

    architecture: Architecture
    title: str
    seconds: Mapping[str, float] = field(default_factory=dict)
    measured: str = ""
    note: str = ""

    @classmethod
    def of(cls, checkpoint: Checkpoint) -> NetworkForm:
        """The network of a checkpoint, with the profile that lies beside it."""
        architecture, notes = checkpoint.architecture, checkpoint.about_run.get("notes")
        model = notes.get("model") if isinstance(notes, Mapping) else None
        stack = architecture.as_mlp()
        title = stack.title if stack else TITLES.get(str(model)) or plural(len(architecture.layers), "layer")
        path = checkpoint.path.parent / PROFILE
        if not (checkpoint.path.is_file() and path.is_file()):
            return cls(architecture, title)
        try:
            profiles = results_of(read_json(path), str(path)).profiles
            chosen = next((each for each in profiles if each.stage == checkpoint.stage), profiles[0])
            seconds = seconds_of_layers(chosen, architecture)
        except (ValueError, OSError, IndexError) as error:  # the network is drawn without times, and the reason said
            return cls(architecture, title, note=f"without times: {error or f'{path} holds no profile'}")
        stage = STAGE_TITLES.get(chosen.stage, shortened(chosen.stage))
        measured = f"a training step of {plural(chosen.batch, 'image')} by {stage}"
        return cls(architecture, title, seconds, measured + (", emulated on the CPU" if chosen.emulated else ""))

    def as_text(self) -> str:
        """The table, with what it was measured on below it."""
        table = self.architecture.drawing({number: duration(each) for number, each in self.seconds.items()})
        return "\n".join(filter(None, (table, self.measured and f"time: {self.measured}", self.note)))


def of_run(run: Path) -> NetworkForm:
    """The network of a run's folder or checkpoint. Raises CheckpointError, a ValueError, where there is none."""
    return NetworkForm.of(open_checkpoint(run))


def seconds_of_layers(profile: Profile, architecture: Architecture) -> dict[str, float]:
    """Seconds of a step by the number of the layer: forward, backward and update together.

    An operation that does several layers at once counts for the first of them that has weights or moves a window.
    Raises ValueError if the profile is that of another network.
    """
    placed, seconds = {each.number: each for each in architecture.placed()}, dict[str, float]()
    for timed in profile.operations:
        numbers = timed.operation.layer.split(", ")
        if numbers == [""]:  # the loss, and what is done to the whole batch
            continue
        ends = (timed.operation.input_shape[1:], timed.operation.output_shape[1:])
        own = [placed.get(number) for number in (numbers[0], numbers[-1])]
        fits = own[0] and own[1] and (own[0].input_shape, own[1].output_shape) == ends
        if not (fits or timed.operation.direction == "update") or not placed.keys() >= set(numbers):
            raise ValueError(f"the profile is of another network, {shortened(profile.network)}")
        heads = [each for each in numbers if isinstance(placed[each].layer, Conv | Dense | MaxPool | AveragePool)]
        head = (heads or numbers)[0]
        seconds[head] = seconds.get(head, 0.0) + timed.seconds
    return seconds


def as_svg(form: NetworkForm) -> dict[str, str]:
    """What a page of the studio shows: {"svg", "alt", "note"}.

    Raises ValueError for a network with more layers than a figure has room for.
    """
    count = len(form.architecture.placed())
    if count > MOST_ROWS:
        raise ValueError(f"the network has {count:,} layers; at most {MOST_ROWS} are drawn")
    chart = drawing(form.architecture, form.title, form.seconds, form.measured)
    return {"svg": with_palettes(of(chart.figure)), "alt": chart.alt, "note": form.note}
