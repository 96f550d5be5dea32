"""Steps a second of stage 3 on ranks beside PyTorch's DistributedDataParallel with gloo, on the same CPU.

    python scripts/beside_ddp.py [ranks] [rounds]

784-128-10 and LeNet-5, batch 256, SGD, float32, one thread a rank. The two take turns; the medians are compared.

What is equal: the weights at the start, the batches and their order, each rank's rows, the mean over all of them as the
gradient. So both must come to the same parameters: they take 20 steps in float64 first, and the largest difference is
printed. (In float32 they part after a few steps of LeNet-5: where rounding decides which of two equal numbers max
pooling takes, another pixel gets the gradient.)

What is not equal: our time contains gathering the rows of each batch and reading the loss. PyTorch's batches lie ready
in its memory, and nobody asks for its loss. DDP's `gradient_as_bucket_view` saves it a copy of the gradients.

Run it on an idle machine. A rank of MPI waits without leaving its core, one of gloo sleeps: where other programs want
the cores, DDP can be the faster one.
"""

from __future__ import annotations

import itertools
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from shared.architectures import NAMED  # noqa: E402

BATCH, BATCHES, SAME, SECONDS = 256, 23, 20, 2.0
"""Rows of a batch, batches of an epoch, steps until the parameters are compared, and seconds of a timing after that."""

RATE, TOLERANCE = 0.01, 1e-12
NETWORKS = ("784-128-10", "lenet5")


def start(name: str, dtype: str) -> tuple[Any, Any, Any]:
    """(stage 3, a network, rows for whole batches): the same for both."""
    from shared import contract
    from shared.architectures import mlp, named
    from shared.data.accepted_data import Split
    from shared.data.datasets import load_dataset

    stage, data = contract.load_stage("c"), load_dataset().train
    network = stage.network.Network(named(name) if name in NAMED else mlp([784, 128, 10]), seed=0, dtype=dtype)
    count = BATCH * BATCHES
    return stage, network, Split(data.x[:count].astype(dtype), data.y[:count])


def ours(name: str, kept: str) -> float:
    """Steps a second on this rank; the first one keeps its parameters after SAME steps in float64."""
    from groundup.ranks import connected
    from shared.training.epochs import EpochRunner
    from shared.training.runs import Position
    from shared.training.settings import TrainingSettings

    ranks = connected(None)

    def begun(dtype: str) -> tuple[Any, Iterator[object]]:
        stage, network, data = start(name, dtype)
        optimizer, settings = stage.optimizers.SGD(RATE), TrainingSettings(1, BATCH)
        runner = EpochRunner(stage, network, optimizer, data, settings, None, ranks)
        epochs = itertools.repeat(None)  # the same batches in the same order, as PyTorch's
        return network, itertools.chain.from_iterable(runner.rest_of_epoch(Position()) for _ in epochs)

    def over(seconds: float) -> bool:
        said = np.array([float(ranks.rank == 0 and seconds > SECONDS)])
        ranks.add(said)
        return bool(said[0])

    network, steps = begun("float64")
    take(steps)
    if ranks.rank == 0:
        np.savez(kept, *network.parameters)
    return timed(begun("float32")[1], over)


def theirs(name: str, kept: str) -> float:
    """The same of PyTorch."""
    import torch

    from shared.bench.peers import pytorch
    from shared.data.batches import batch_order

    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", init_method=f"file://{kept}.store", rank=rank, world_size=size)

    def begun(dtype: str) -> tuple[Any, Iterator[object]]:
        _, network, data = start(name, dtype)
        own = pytorch.network(torch, network.parameters, name if name in NAMED else "")
        own, shape = (own[2:], (1, 28, 28)) if name in NAMED else (own, (784,))
        model = torch.nn.parallel.DistributedDataParallel(own, gradient_as_bucket_view=True)
        step = pytorch.descent(pytorch.loss_of(torch, model), torch.optim.SGD(model.parameters(), RATE))
        order = batch_order(len(data), 0, 0).reshape(BATCHES, size, BATCH // size)[:, rank]
        batches = [(torch.from_numpy(data.x[i].reshape(-1, *shape)), torch.from_numpy(data.y[i])) for i in order]
        return own, (step(*batch) for batch in itertools.cycle(batches))

    def over(seconds: float) -> bool:
        said = torch.tensor([float(rank == 0 and seconds > SECONDS)])
        torch.distributed.all_reduce(said)
        return bool(said[0])

    model, steps = begun("float64")
    take(steps)
    if rank == 0:
        values = [each.detach().numpy() for each in model.parameters()]
        np.savez(kept, *(each.T if each.ndim == 2 else each for each in values))
    return timed(begun("float32")[1], over)


def timed(steps: Iterator[object], over: Callable[[float], bool]) -> float:
    """Steps a second, after SAME that warm up. over: all ranks ask it every SAME steps, with the seconds so far."""
    take(steps)
    over(0.0)  # all begin together
    started = time.perf_counter()
    done, seconds = 0, 0.0
    while not over(seconds):
        take(steps)
        done, seconds = done + SAME, time.perf_counter() - started
    return done / seconds


def take(steps: Iterator[object]) -> None:
    """The next SAME steps."""
    for _ in itertools.islice(steps, SAME):
        pass


def apart(files: Sequence[str]) -> float:
    """The largest difference of two networks' parameters."""
    both = [np.load(f"{file}.npz") for file in files]
    return max(float(np.abs(both[0][each] - both[1][each]).max()) for each in both[0].files)


def main() -> None:
    from groundup.ranks import mpiexec
    from shared.machine import processes

    count, rounds = (int(word) for word in (sys.argv[1:] + ["2", "5"][len(sys.argv) - 1 :]))
    if BATCH % count:
        sys.exit(f"expected a number of ranks that divides {BATCH}, got {count}: DDP's mean is that of equal shares")
    threads = {"OMP_NUM_THREADS": "1", "GROUNDUP_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    variables = processes.finding_our_packages(os.environ) | threads
    script = processes.python(__file__)
    for name in NETWORKS:
        rates: dict[str, list[float]] = {"ours": [], "theirs": []}
        for _ in range(rounds):
            with tempfile.TemporaryDirectory() as folder:
                files = [os.path.join(folder, who) for who in rates]
                words = [[*script, f"--{who}", name, file] for who, file in zip(rates, files, strict=True)]
                rates["ours"].append(
                    _rate(processes.run([str(mpiexec()), "-n", str(count), *words[0]], 300, variables=variables))
                )
                first, *rest = (variables | {"WORLD_SIZE": str(count), "RANK": str(rank)} for rank in range(count))
                others = [processes.start(words[1], variables=each) for each in rest]
                try:
                    rates["theirs"].append(_rate(processes.run(words[1], 300, variables=first)))
                finally:
                    for other in others:
                        processes.end(other, patience=5)
                difference = apart(files)
            if not difference < TOLERANCE:
                sys.exit(
                    f"{name}: after {SAME} steps the parameters differ by {difference:.1e}, more than {TOLERANCE:g}"
                )
        mine, his = (statistics.median(rates[who]) for who in ("ours", "theirs"))
        print(f"{name}, batch {BATCH}, {count} ranks: ours {mine:.0f}, DDP {his:.0f} steps/s: {mine / his:.2f} times")
        print(f"after {SAME} steps in float64 from the same weights the parameters differ by {difference:.1e} at most")
        print({who: [round(rate) for rate in each] for who, each in rates.items()}, flush=True)


def _rate(ended: object) -> float:
    rates = [line for line in ended.output.splitlines() if line.startswith("rate ")]  # type: ignore[attr-defined]
    if not rates:
        sys.exit(f"a rank failed: {ended}")
    return float(rates[0].split()[1])


if __name__ == "__main__":
    if sys.argv[1:2] in (["--ours"], ["--theirs"]):
        rate = (ours if sys.argv[1] == "--ours" else theirs)(*sys.argv[2:])
        if os.environ.get("RANK", os.environ.get("PMI_RANK", "0")) == "0":
            print(f"rate {rate}", flush=True)
        os._exit(0) if sys.argv[1] == "--theirs" else None
    else:
        main()
