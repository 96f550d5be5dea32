"""The results of a race: the document for results.json, and the charts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import accumulate
from pathlib import Path
from typing import Any

from groundup.race import Agreement, Lap, Settings
from shared.bench.measuring.rows import BenchRow, Curve
from shared.bench.measuring.timing import summarise
from shared.bench.records.document import Results
from shared.contract import is_emulated
from shared.terminal import attempt

SCHEMA = 1


def results(
    settings: Settings,
    laps: Sequence[Lap],
    agreements: Mapping[str, Agreement],
    unavailable: Mapping[str, str],
    rows: Sequence[BenchRow],
    facts: Mapping[str, Any],
) -> dict[str, Any]:
    """The results as values for JSON; times are in seconds.

    unavailable: reasons for the stages that cannot run; rows: of the matmul ladders; facts: of the machine
    """
    first = laps[0].seconds_per_epoch
    return {
        "schema": SCHEMA,
        "kind": "groundup race",
        "environment": dict(facts),
        "settings": asdict(settings),
        "network": list(laps[0].network.layer_sizes),
        "agree": all(agreement.ok for agreement in agreements.values()),
        "reference": laps[0].stage.name,
        "stages": [
            {
                "stage": lap.stage.name,
                "title": lap.stage.title,
                "emulated": is_emulated(lap.stage.name),
                "test_accuracy": lap.test_accuracy,
                "test_loss": lap.test_loss,
                "seconds_per_epoch": lap.seconds_per_epoch,
                "samples_per_second": lap.samples_per_second,
                "warm_up_seconds": lap.warm_up,
                "speed": first / lap.seconds_per_epoch,
                "other_predictions": agreements[lap.stage.name].other_predictions,
                "worst": asdict(agreements[lap.stage.name].worst) | {"text": str(agreements[lap.stage.name].worst)},
                "epochs": [asdict(record) for record in lap.epochs],
            }
            for lap in laps
        ],
        "unavailable": dict(unavailable),
        "ladders": [row.as_dict() for row in rows],
    }


def draw(
    folder: Path,
    settings: Settings,
    laps: Sequence[Lap],
    agree: bool,
    rows: Sequence[BenchRow],
    facts: Mapping[str, Any],
) -> list[Path]:
    """Write the charts into the folder, each as PNG and SVG. Returns their paths.

    rows: of the ladders; without any (an emulated stage alone) there is no chart of them. A single stage has no chart
    of times.
    """
    results = Results(
        rows=[*rows, *(_epoch_row(lap, settings) for lap in laps)],
        curves=[_curve(lap, settings) for lap in laps],
        environment=facts,
    )
    from shared.charts.drawing.save import saved
    from shared.charts.figures.curves import training_curves  # here, as groundup/cli.py says
    from shared.charts.figures.ladder_share import ladder_share
    from shared.charts.figures.staircase import staircase

    charts = [
        attempt("the figure training_curves was not drawn", lambda: training_curves(results, agree=agree)),
        attempt("the figure staircase was not drawn", lambda: staircase(results, emulated=True)),
        attempt("the figure ladder_share was not drawn", lambda: ladder_share(results)),
    ]
    return [path for chart in charts if chart is not None for path in saved(chart, folder / chart.name)]


def _epoch_row(lap: Lap, settings: Settings) -> BenchRow:
    sizes = tuple(lap.network.layer_sizes)
    images = settings.dataset + (f", {settings.limit} images" if settings.limit else "")
    return BenchRow(
        "epoch",
        lap.stage.name,
        f"{lap.network_name}, batch {settings.batch_size}, {images}",
        settings.dtype,
        sizes,
        measurement=summarise([record.seconds for record in lap.epochs]),
        accuracy=lap.test_accuracy,
        emulated=is_emulated(lap.stage.name),
    )


def _curve(lap: Lap, settings: Settings) -> Curve:
    return Curve(
        lap.stage.name,
        lap.network_name,
        settings.dataset,
        [record.epoch for record in lap.epochs],
        [record.train_loss for record in lap.epochs],
        [record.test_accuracy or 0.0 for record in lap.epochs],
        list(accumulate(record.seconds for record in lap.epochs)),
        emulated=is_emulated(lap.stage.name),
    )
