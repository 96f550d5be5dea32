"""Steps a second of stage 3 on ranks beside PyTorch's DistributedDataParallel with gloo, on the same CPU.

    python scripts/beside_ddp.py [ranks] [rounds]

784-128-10 and LeNet-5, batch 256, SGD, float32, one thread a rank. The two take turns; the medians are compared. Our
time contains gathering the rows of each batch; PyTorch's batches lie ready in its memory.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

BATCH, WARM, SECONDS = 256, 20, 2.0
NETWORKS = ("784-128-10", "lenet5")


def ours(name: str) -> float:
    import numpy as np

    from groundup.ranks import connected
    from shared import contract
    from shared.architectures import lenet5, mlp
    from shared.data.datasets import load_dataset
    from shared.training.epochs import EpochRunner
    from shared.training.runs import Position
    from shared.training.settings import TrainingSettings

    ranks, stage, data = connected(None), contract.load_stage("c"), load_dataset().train
    network = stage.network.Network(lenet5() if name == "lenet5" else mlp([784, 128, 10]), seed=0)
    runner = EpochRunner(
        stage, network, stage.optimizers.SGD(0.01), data, TrainingSettings(1000, BATCH), None, ranks
    )  # fmt: skip
    done, steps = 0, None
    for epoch in range(1000):
        for _ in runner.rest_of_epoch(Position(epoch=epoch)):
            done += 1
            if done == WARM:
                started = time.perf_counter()
            if done % 20 == 0 and done > WARM:
                over = np.array([float(ranks.rank == 0 and time.perf_counter() - started > SECONDS)])
                ranks.add(over)
                if over[0]:
                    steps = (done - WARM) / (time.perf_counter() - started)
                    break
        if steps:
            break
    assert steps is not None
    return steps if ranks.rank == 0 else 0.0


def theirs(name: str) -> float:
    import torch
    from torch import nn

    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo")
    torch.manual_seed(0)
    images = name == "lenet5"
    if images:
        layers = [
            *(nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU()),
            *(nn.MaxPool2d(2), nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU()),
            nn.Linear(84, 10),
        ]
    else:
        layers = [nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10)]
    model = nn.parallel.DistributedDataParallel(nn.Sequential(*layers))
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    rows = BATCH // size
    x = torch.rand(23, rows, *((1, 28, 28) if images else (784,)))
    y = torch.randint(0, 10, (23, rows))
    loss_of, done, started = nn.CrossEntropyLoss(), 0, 0.0
    while True:
        optimizer.zero_grad()
        loss_of(model(x[done % 23]), y[done % 23]).backward()
        optimizer.step()
        done += 1
        if done == WARM:
            started = time.perf_counter()
        if done % 20 == 0 and done > WARM:
            over = torch.tensor([float(rank == 0 and time.perf_counter() - started > SECONDS)])
            torch.distributed.all_reduce(over)
            if over[0]:
                return (done - WARM) / (time.perf_counter() - started) if rank == 0 else 0.0


def main() -> None:
    from groundup.ranks import mpiexec
    from shared.machine import processes

    count, rounds = (int(word) for word in (sys.argv[1:] + ["2", "5"][len(sys.argv) - 1 :]))
    threads = {"OMP_NUM_THREADS": "1", "GROUNDUP_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    variables = processes.finding_our_packages(os.environ) | threads
    script = processes.python(__file__)
    for name in NETWORKS:
        rates: dict[str, list[float]] = {"ours": [], "theirs": []}
        for i in range(rounds):
            ended = processes.run(
                [str(mpiexec()), "-n", str(count), *script, "--ours", name], 300, variables=variables
            )  # fmt: skip
            rates["ours"].append(_rate(ended))
            where = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(29500 + i), "WORLD_SIZE": str(count)}
            others = [
                processes.start([*script, "--theirs", name], variables=variables | where | {"RANK": str(rank)})
                for rank in range(1, count)
            ]
            try:
                first = [*script, "--theirs", name]
                rates["theirs"].append(_rate(processes.run(first, 300, variables=variables | where | {"RANK": "0"})))
            finally:
                for other in others:
                    processes.end(other, patience=5)
        mine, his = (statistics.median(rates[who]) for who in ("ours", "theirs"))
        print(f"{name}, batch {BATCH}, {count} ranks: ours {mine:.0f}, DDP {his:.0f} steps/s: {mine / his:.2f} times")
        print({who: [round(rate) for rate in each] for who, each in rates.items()}, flush=True)


def _rate(ended: object) -> float:
    rates = [line for line in ended.output.splitlines() if line.startswith("rate ")]  # type: ignore[attr-defined]
    if not rates:
        sys.exit(f"a rank failed: {ended}")
    return float(rates[0].split()[1])


if __name__ == "__main__":
    if sys.argv[1:2] in (["--ours"], ["--theirs"]):
        rate = (ours if sys.argv[1] == "--ours" else theirs)(sys.argv[2])
        if rate:
            print(f"rate {rate}", flush=True)
        os._exit(0) if sys.argv[1] == "--theirs" else None
    else:
        main()
