"""What an exported page carries: the speeds of a recorded race, and the network as it was along the way.

All stages have the same weights after the same images, so one series of networks, trained here by stage 2 in three
seconds, answers for all four.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from groundup import race_file
from groundup.studio.race.racing import SETTINGS, Lane, samples, titled
from shared.bench.records.document import object_of
from shared.contract import STAGES
from shared.data.datasets import load_dataset
from shared.machine import regular, strict_json

RECORDED = Path(__file__).with_name("recorded.json")
"""`record` of docs/benchmarks/race-2-cores/results.json."""
SAME = ("dataset", "hidden", "batch_size", "seed", "dtype", "limit", "model")
"""The settings without which a race is another one than the page's."""
STEPS = (0, 2, 4, 7, 10, 15, 20, 30, 45, 60, 80, 100, 120, 150, 188, 376, 564, 940, 1504, 2820, 5640)
"""The steps after which the network is kept: often at first, when it learns most; the last one is after 30 laps."""


def data(options: Mapping[str, Any]) -> dict[str, Any]:
    """{"lap", "samples", "record", "networks": [{"seen", "loss", "accuracy", "parameters": [{"scale", "base64"}]}]}.

    options: "run", the folder of a race or its results.json; without it the race that ships
    Raises ValueError for a file that is none, or of another network than the page's; OSError where there is none.
    """
    recorded = record(Path(options["run"])) if options.get("run") else json.loads(RECORDED.read_bytes())
    lane, kept = Lane(STAGES[1], load_dataset()), []
    lane.prepare()
    for step in range(STEPS[-1] + 1):
        if step:
            lane.turn(0)
        if step in STEPS:
            lane.look(0)
            about = {"seen": lane.seen, "loss": lane.loss if step else None, "accuracy": lane.accuracy}
            kept.append({**about, "parameters": [_packed(array) for array in lane.parameters()]})
    return {"lap": len(lane.data.train), "samples": samples(lane.data), "record": recorded, "networks": kept}


def record(path: Path) -> dict[str, Any]:
    """What the page needs of a results file of `groundup race`: {"machine", "lanes", "laps", "apart": the difference
    of the weight that was furthest from the first lane's after these laps, measured by what rounding explains}.

    Raises as `data` does; also for a race whose lanes the page could not compare.
    """
    path = path / "results.json" if path.is_dir() else path
    document = object_of(regular.read(path, strict_json.MOST_BYTES), str(path))
    race_file.results_of(document, str(path))
    settings = document["settings"]
    if wrong := {name: settings[name] for name in SAME if settings.get(name) != getattr(SETTINGS, name)}:
        raise ValueError(f"{path}: expected a race with the settings that `groundup race` has by itself, got {wrong}")
    try:
        return {**_raced(document), "laps": settings["epochs"]}
    except (KeyError, TypeError, ValueError) as wrong:  # what the charts do without, the format does not ask for
        said = wrong if type(wrong) is ValueError else f"{type(wrong).__name__}: {wrong}"
        raise ValueError(f"{path}: the page cannot show this race: {said}") from None


def _raced(document: Mapping[str, Any]) -> dict[str, Any]:
    facts, stages = document["environment"], document["stages"]
    if not document["agree"]:
        raise ValueError("its stages did not agree, and here one network answers for all of them")
    if sum(not each["emulated"] for each in stages) < 2:
        names = ", ".join(each["stage"] for each in stages) or "none"
        raise ValueError(f"expected two stages or more that are not emulated, got {names}")
    if slow := [each["stage"] for each in stages if each["samples_per_second"] <= 0]:
        raise ValueError(f"{slow[0]}: expected more than 0 images a second")
    lanes = [
        {**titled(each["stage"]), "emulated": each["emulated"], "speed": each["samples_per_second"]} for each in stages
    ]
    apart = max(abs(each["worst"]["got"] - each["worst"]["expected"]) for each in stages)
    stage4 = facts.get("stage4_numba_cuda", {})
    gpu = [stage4["device"]] if stage4.get("backend") == "gpu" else []
    machine = ", ".join([facts["cpu"] or facts["architecture"], f"{facts['cores']} cores", *gpu, facts["date"][:10]])
    return {"machine": machine, "lanes": lanes, "apart": apart}


def _packed(array: np.ndarray) -> dict[str, Any]:
    """Sixteen bits a number: each is a whole number times the scale."""
    scale = float(np.abs(array).max()) / 32767 or 1.0
    return {"scale": scale, "base64": base64.b64encode(np.rint(array / scale).astype("<i2").tobytes()).decode()}
