"""How stage 3's training scales over ranks: measured on this machine's cores, and carried on by a model.

    measured    strong scaling (one batch, shared by more and more ranks) and weak scaling (as many rows for each rank)
    Machine     the two constants of an all-reduce: its latency, and the time of a byte
    Network     the two constants of a step on one rank: its beginning, and the time of a row
                both from the fastest of many: what the machine can do when nothing else wants its cores
    step        seconds of a step on so many ranks, by these four numbers

`python -m groundup.scaling` is what each rank runs; `groundup bench --ranks` starts them.
"""

from __future__ import annotations

import json
import math
import os
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from groundup.ranks import OF_MPIEXEC, connected, library, mpiexec
from shared import contract
from shared.architectures import NAMED, mlp, named
from shared.communicator import Communicator
from shared.data.datasets import Dataset, load_dataset
from shared.machine import processes
from shared.machine.environment import environment
from shared.machine.hardware import usable_cores
from shared.training.epochs import EpochRunner
from shared.training.runs import Position
from shared.training.settings import TrainingSettings

DENSE = "784-128-10"
BATCH, SHARE = 256, 64
"""Rows of the batch that all ranks share, and of each rank where every one has as many."""
MODEL_BATCHES = (64, 256, 1024, 8192)
MOST = 1024
WORDS = tuple(4**i for i in range(1, 11))
"""Float32 numbers of the all-reduces that are timed: 4 to 1,048,576."""


@dataclass(frozen=True)
class Machine:
    """seconds of an exchange between two ranks: latency + byte * bytes."""

    latency: float
    byte: float

    def tree(self, ranks: int, size: float) -> float:
        """Seconds of an all-reduce of `size` bytes in rounds: in each one pairs exchange all of it."""
        return math.ceil(math.log2(ranks)) * (self.latency + size * self.byte)

    def ring(self, ranks: int, size: float) -> float:
        """The same around a ring: each rank sends 2 (ranks - 1) pieces of size / ranks to its neighbour."""
        return 2 * (ranks - 1) * (self.latency + size / ranks * self.byte)

    def all_reduce(self, ranks: int, size: float) -> float:
        """The faster one, as MPI chooses by the size."""
        return min(self.tree(ranks, size), self.ring(ranks, size))


@dataclass(frozen=True)
class Network:
    """Seconds of a step on one rank: start + row * rows. parameters: float32 numbers that an all-reduce adds."""

    name: str
    parameters: int
    start: float
    row: float


def step(machine: Machine, network: Network, batch: int, ranks: int) -> float:
    """Seconds of a step of this whole batch: the largest share of its rows, and the all-reduce."""
    return network.start + network.row * math.ceil(batch / ranks) + machine.all_reduce(ranks, 4 * network.parameters)


def best_ranks(machine: Machine, network: Network, batch: int) -> int:
    """The number of ranks, of 1, 2, 4, … MOST, beyond which a step of this batch becomes no shorter."""
    return min(powers(min(MOST, batch)), key=lambda ranks: step(machine, network, batch, ranks))


def efficiency(machine: Machine, network: Network, batch: int, ranks: int) -> float:
    """Time of one rank, divided by that of so many and by their number."""
    return step(machine, network, batch, 1) / (ranks * step(machine, network, batch, ranks))


@dataclass(frozen=True)
class Curve:
    """The model of one network and batch. points: (ranks, efficiency); best: ranks; gain: how much faster they are."""

    network: str
    batch: int
    points: tuple[tuple[int, float], ...]
    best: int
    gain: float

    def at(self, ranks: int) -> float:
        """The efficiency on so many ranks."""
        return dict(self.points)[ranks]


def curves(results: Mapping[str, Any]) -> list[Curve]:
    """The model on the networks of `measured`, for each of MODEL_BATCHES; none where there was a single rank."""
    if results["machine"] is None:
        return []
    machine, made = Machine(**results["machine"]), []
    for network in (Network(**each) for each in results["networks"]):
        for batch in MODEL_BATCHES:
            points = [(ranks, efficiency(machine, network, batch, ranks)) for ranks in powers(min(MOST, batch))]
            best = best_ranks(machine, network, batch)
            gain = best * dict(points)[best]
            made.append(Curve(network.name, batch, tuple(points), best, gain))
    return made


def measured_efficiency(rows: Sequence[Mapping[str, Any]], row: Mapping[str, Any]) -> float:
    """Rows a second of this measured row, divided by its ranks and by those of one rank: one that takes the same batch
    where the scaling is strong, the same share of it where it is weak."""
    kind = (row["network"], row["scaling"])
    (one,) = (each for each in rows if each["ranks"] == 1 and (each["network"], each["scaling"]) == kind)
    done, alone = (each["batch"] * each["steps_per_second"] for each in (row, one))
    return float(done / (row["ranks"] * alone))


def powers(most: int) -> list[int]:
    """1, 2, 4, … up to `most`."""
    return [2**i for i in range(most.bit_length())]


def line_through(points: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """(a, b), at least 0 both, of the line a + b x that is nearest to the points by the ratio of their values."""
    x, y = np.array(points).T
    slope, start = np.polyfit(x, y, 1, w=1 / y)
    return (max(float(start), 0.0), float(slope)) if slope > 0 else (float(np.median(y)), 0.0)


# ---- measuring


def measured(seconds: float, tell: Callable[[str], object], names: Sequence[str] = (DENSE, *NAMED)) -> dict[str, Any]:
    """Time everything on 1, 2, 4, … ranks, as many as there are cores, and fit the model. seconds: of each timing;
    names: of the networks

    Raises ValueError if a rank fails.
    """
    contract.load_stage("c")  # compiled once, before the ranks; the record then says with what
    facts, answers = environment(), []
    for ranks in powers(usable_cores()):
        tell(f"{ranks} of {usable_cores()} ranks")
        variables = processes.finding_our_packages(os.environ) | {"GROUNDUP_THREADS": "1"}
        words = ("-m", "mpi4py", "-m", "groundup.scaling", str(seconds), *names)  # mpi4py: an error of one ends all
        command = [str(mpiexec()), "-n", str(ranks), *processes.python(*words)]
        ended = processes.run(command, None, variables=variables)
        if ended.code != 0:
            said = [line for line in ended.errors.splitlines() if line.strip() and not OF_MPIEXEC.match(line)]
            raise ValueError(f"bench --ranks: {ranks} ranks failed: {said[-1] if said else f'exit code {ended.code}'}")
        answers.append(json.loads(ended.output.splitlines()[-1]))
    exchanges = [(4 * words, taken) for answer in answers[1:2] for words, taken in answer["all_reduces"]]
    machine = Machine(*line_through(exchanges)) if exchanges else None
    networks = []
    for name, parameters in answers[0]["parameters"].items():
        points = [(row["batch"], row["fastest_step"]) for row in answers[0]["rows"] if row["network"] == name]
        networks.append(Network(name, parameters, *line_through(points)))
    return {
        "kind": "groundup ranks",
        "environment": facts,
        "mpi": answers[-1]["mpi"],
        "rows": [row for answer in answers for row in answer["rows"]],
        "all_reduces": {answer["ranks"]: answer["all_reduces"] for answer in answers[1:]},
        "machine": machine and asdict(machine),
        "networks": [asdict(network) for network in networks],
    }


def _rank(seconds: float, names: Sequence[str]) -> dict[str, Any]:
    ranks, stage, data = connected(None), contract.load_stage("c"), load_dataset()
    parameters, rows = {}, []
    for name in names:
        network = stage.network.Network(mlp([784, 128, 10]) if name == DENSE else named(name), seed=0)
        parameters[name] = network.architecture.parameter_count
        for scaling, batch in (("strong", BATCH), ("weak", SHARE * ranks.size)):
            rate, fastest, share = _steps(stage, network, data, batch, ranks, seconds)
            rows.append(
                {
                    "network": name,
                    "scaling": scaling,
                    "ranks": ranks.size,
                    "batch": batch,
                    "steps_per_second": rate,
                    "fastest_step": fastest,
                    "communication": share,
                }
            )
    return {
        "ranks": ranks.size,
        "mpi": library(),
        "parameters": parameters,
        "rows": rows,
        "all_reduces": [(words, _all_reduce(ranks, words, seconds / 3)) for words in WORDS] if ranks.size > 1 else [],
    }


def _steps(
    stage: contract.Stage, network: Any, data: Dataset, batch: int, ranks: Communicator, seconds: float
) -> tuple[float, float, float]:
    """(steps a second by the median of all steps, seconds of the fastest one, share of communication), after some steps
    that prepare."""
    settings = TrainingSettings(epochs=1, batch_size=batch, local_statistics=True)
    runner = EpochRunner(stage, network, stage.optimizers.SGD(0.001), data.train, settings, None, ranks)
    times: list[float] = []
    over, began = np.zeros(1), time.perf_counter()
    while not over[0]:
        for _ in runner.rest_of_epoch(Position()):
            times.append(runner.seconds)
            over[0] = len(times) > 5 and time.perf_counter() - began > seconds
            ranks.add(over)  # all stop after the same step
            if over[0]:
                break
    taken = np.diff(times[1:]).tolist()
    return 1 / statistics.median(taken), min(taken), runner.communication / runner.seconds


def _all_reduce(ranks: Communicator, words: int, seconds: float) -> float:
    """The fastest of as many as fit into that time. Where other programs take turns on the cores, most of them take as
    long as it takes until all ranks have one: milliseconds."""
    numbers, over = np.ones(words, np.float32), np.zeros(1)
    times: list[float] = []
    began = time.perf_counter()
    while not over[0]:
        for _ in range(30):
            before = ranks.seconds
            ranks.add(numbers)
            times.append(ranks.seconds - before)
            numbers.fill(1)
        over[0] = time.perf_counter() - began > seconds
        ranks.add(over)
    return min(times)


if __name__ == "__main__":
    answer = json.dumps(_rank(float(sys.argv[1]), sys.argv[2:]))
    if connected(None).rank == 0:
        print(answer)
