"""Measure `groundup serve`: 64 clients on this machine, and what computing requests together buys.

    python scripts/measure_serving.py RUN --out docs/benchmarks/serving.json
    python scripts/measure_serving.py RUN --requests 100000 --only batches    memory over many requests
    python scripts/measure_serving.py RUN --restart                           a restart under load, none lost

Each server is a process of its own, and so are the clients, which share the machine's cores with it. `batches` is the
command as it stands, `one by one` has --max-batch 1, and `ONNX Runtime` has that runtime behind the same addresses,
with the same batches. The clients keep their connections. Each asks for one image, as bytes, and again as soon as it
has its answer. They are of the plainest kind, since what they compute is taken from the server; --triton has
tritonclient in their place.
"""

from __future__ import annotations

import argparse
import asyncio
import datetime
import http.client
import itertools
import json
import multiprocessing
import os
import re
import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from groundup.predict import OpenRun
from groundup.serve import models, protocol, server
from groundup.serve.app import Service
from shared.data.datasets import load_dataset
from shared.machine import hardware
from shared.machine.results import as_json

KINDS = ("batches", "one by one", "ONNX Runtime")
CLIENTS = 64
ROUNDS = 5
RESIDENT, CPU = "process_resident_memory_bytes", "process_cpu_seconds_total"
IMAGES, BATCHES = "groundup_batch_images_sum", "groundup_batch_images_count"
RETRIES = 200
"""How often a client of --restart asks again, 20 ms apart: for four seconds."""


# ---- servers


def serving(run: Path, kind: str, port: int, budget: float, shared: bool, answers: Any) -> None:
    """A server, until SIGTERM. answers: an event that is set once it answers"""
    loaded = models.load_models([run])
    if kind == KINDS[2]:
        ((name, own),) = loaded.items()
        loaded = {name: models.Model(name, own.opened, onnx_runtime(own.opened), kind, own.worst)}
    service = Service(loaded, budget, 1 if kind == KINDS[1] else 64, 256)
    server.serve(service, server.listen("127.0.0.1", port, shared), "", 0.5, lambda address: answers.set())


def onnx_runtime(opened: OpenRun) -> Callable[[np.ndarray], np.ndarray]:
    """The function from pixels to logits by ONNX Runtime with all its threads."""
    import onnxruntime

    from shared.export.onnx_graph import model_of

    checkpoint = opened.checkpoint
    parts = checkpoint.architecture, checkpoint.parameters, checkpoint.running_statistics, opened.normalisation
    session = onnxruntime.InferenceSession(model_of(*parts).SerializeToString(), providers=["CPUExecutionProvider"])
    return lambda pixels: session.run([protocol.OUTPUT], {protocol.INPUT: pixels})[0]


class Running:
    """A server's process, once it answers."""

    def __init__(self, run: Path, kind: str, port: int, budget: float, shared: bool) -> None:
        context = multiprocessing.get_context("spawn")
        self.port, answers = port, context.Event()
        self.process = context.Process(target=serving, args=(run, kind, port, budget, shared, answers))
        self.process.start()
        if not answers.wait(120):
            sys.exit("the server has not started")

    def number(self, name: str) -> float:
        """A number of /metrics, of all labels together."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request("GET", "/metrics")
        rows = re.findall(rf"^{name}(?:\{{.*\}})? (\S+)$", connection.getresponse().read().decode(), re.MULTILINE)
        connection.close()
        return sum(map(float, rows))

    def end(self) -> int:
        os.kill(self.process.pid or 0, signal.SIGTERM)
        self.process.join(60)
        return self.process.exitcode or 0


# ---- clients


@dataclass
class Counted:
    """seconds: of each answer; right: answers that are the network's; retries: questions that were asked again"""

    seconds: list[float] = field(default_factory=list)
    right: int = 0
    retries: int = 0
    lost: int = 0


def question(name: str, image: np.ndarray) -> bytes:
    """A request of one image as bytes of HTTP."""
    raw, shape = image.astype("<f4").tobytes(), [1, *image.shape]
    tensor = {"name": protocol.INPUT, "datatype": "FP32", "shape": shape, "parameters": {"binary_data_size": len(raw)}}
    outputs = [{"name": protocol.OUTPUT, "parameters": {"binary_data": True}}]
    document = json.dumps({"inputs": [tensor], "outputs": outputs}).encode()
    head = (
        f"POST /v2/models/{name}/infer HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Length: {len(document) + len(raw)}\r\n"
    )
    return head.encode() + f"{protocol.HEADER}: {len(document)}\r\n\r\n".encode() + document + raw


async def ask(port: int, connection: Any, request: bytes) -> tuple[Any, int, bytes]:
    """One question and its answer: (the connection, or None if it was closed; status; body)."""
    reader, writer = connection or await asyncio.open_connection("127.0.0.1", port)
    writer.write(request.replace(b"%d", str(port).encode(), 1))
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(re.search(rb"\r\ncontent-length: (\d+)", head)[1])  # type: ignore[index]
    body = await reader.readexactly(length)
    if b"connection: close" in head:
        writer.close()
        return None, int(head[9:12]), body
    return (reader, writer), int(head[9:12]), body


async def client(
    port: int, requests: list[bytes], expected: np.ndarray, more: Callable[[], int | None], counted: Counted
) -> None:
    connection: Any = None
    while (number := more()) is not None:
        began, row = time.perf_counter(), number % len(requests)
        for _ in range(RETRIES):
            try:
                connection, status, body = await ask(port, connection, requests[row])
            except (OSError, asyncio.IncompleteReadError):  # refused, or closed before an answer
                connection, status, body = None, 0, b""
            if status == 200:
                break
            counted.retries += 1
            await asyncio.sleep(0.02)
        if status != 200:
            counted.lost += 1
            continue
        counted.seconds.append(time.perf_counter() - began)
        logits = np.frombuffer(body[-4 * expected.shape[1] :], "<f4")
        counted.right += bool(np.allclose(logits, expected[row], rtol=1e-4, atol=1e-4))


def asking(
    port: int, name: str, images: np.ndarray, expected: np.ndarray, requests: int, stop: Any, queue: Any
) -> None:
    """CLIENTS clients in one process, for so many requests, or until `stop` is set."""
    counted, numbers = Counted(), iter(range(requests)) if stop is None else itertools.count()

    def more() -> int | None:
        return None if stop is not None and stop.is_set() else next(numbers, None)

    async def all_of_them() -> None:
        questions = [question(name, image) for image in images]
        await asyncio.gather(*(client(port, questions, expected, more, counted) for _ in range(CLIENTS)))

    began = time.perf_counter()
    asyncio.run(all_of_them())
    queue.put((counted, time.perf_counter() - began))


def asking_with_triton(
    port: int, name: str, images: np.ndarray, expected: np.ndarray, requests: int, stop: None, queue: Any
) -> None:
    """The same by tritonclient, whose clients take turns by gevent."""
    import gevent
    import tritonclient.http as triton

    counted, numbers = Counted(), iter(range(requests))
    asked = triton.InferenceServerClient(f"127.0.0.1:{port}", concurrency=CLIENTS)
    wanted = [triton.InferRequestedOutput(protocol.OUTPUT, binary_data=True)]

    def one() -> None:
        for number in numbers:
            began, row = time.perf_counter(), number % len(images)
            tensor = triton.InferInput(protocol.INPUT, [1, *images[row].shape], "FP32")
            tensor.set_data_from_numpy(images[row][np.newaxis])
            logits = asked.infer(name, [tensor], outputs=wanted).as_numpy(protocol.OUTPUT)[0]
            counted.seconds.append(time.perf_counter() - began)
            counted.right += bool(np.allclose(logits, expected[row], rtol=1e-4, atol=1e-4))

    began = time.perf_counter()
    gevent.joinall([gevent.spawn(one) for _ in range(CLIENTS)], raise_error=True)
    queue.put((counted, time.perf_counter() - began))


def load(target: Any, *arguments: Any) -> tuple[Any, Any]:
    """Start the clients' process: (process, the queue with its result)."""
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    process = context.Process(target=target, args=(*arguments, queue))
    process.start()
    return process, queue


# ---- what is measured


def measured(
    run: Path, kinds: Sequence[str], arguments: argparse.Namespace, images: np.ndarray, expected: np.ndarray, name: str
) -> list[dict[str, Any]]:
    """A row for each kind. The kinds take turns, since other programs may use the machine's cores, too."""
    ports = {kind: arguments.port + number for number, kind in enumerate(kinds)}
    servers = {kind: Running(run, kind, port, arguments.budget / 1000, False) for kind, port in ports.items()}
    rounds: dict[str, list[dict[str, float]]] = {kind: [] for kind in kinds}
    resident: dict[str, list[float]] = {kind: [] for kind in kinds}
    target = asking_with_triton if arguments.triton else asking
    for number in range(ROUNDS + 1):
        requests = arguments.requests // ROUNDS if number else 1000  # the first is to warm up
        for kind, running in servers.items():
            before, batches_before, cpu = (running.number(each) for each in (IMAGES, BATCHES, CPU))
            process, queue = load(target, running.port, name, images, expected, requests, None)
            counted, seconds = queue.get()
            process.join()
            if counted.right < requests:
                sys.exit(f"{kind}: {requests - counted.right} of {requests} answers are wrong or missing")
            resident[kind].append(running.number(RESIDENT) / 2**20)
            milliseconds = 1000 * np.array(counted.seconds)
            rounds[kind].append(
                {
                    "images_per_second": requests / seconds,
                    "p50_ms": float(np.percentile(milliseconds, 50)),
                    "p99_ms": float(np.percentile(milliseconds, 99)),
                    "cpu_ms_per_image": 1000 * (running.number(CPU) - cpu) / requests,
                    "images_per_batch": (running.number(IMAGES) - before) / (running.number(BATCHES) - batches_before),
                }
            )
    for running in servers.values():
        running.end()
    return [
        {
            "kind": kind,
            "requests": ROUNDS * (arguments.requests // ROUNDS),
            **{each: float(np.median([row[each] for row in rounds[kind][1:]])) for each in rounds[kind][0]},
            "rounds": rounds[kind][1:],
            "resident_mib": resident[kind],
        }
        for kind in kinds
    ]


def restarted(
    run: Path, arguments: argparse.Namespace, images: np.ndarray, expected: np.ndarray, name: str
) -> dict[str, Any]:
    """A second server on the port, then SIGTERM to the first, three times, while the clients ask."""
    first = Running(run, KINDS[0], arguments.port, arguments.budget / 1000, True)
    stop = multiprocessing.get_context("spawn").Event()
    process, queue = load(asking, arguments.port, name, images, expected, 0, stop)
    ends = []
    for _ in range(3):
        time.sleep(1)
        second = Running(run, KINDS[0], arguments.port, arguments.budget / 1000, True)
        time.sleep(0.5)  # both answer: the system spreads the connections
        ends.append(first.end())
        first = second
    stop.set()
    counted, _ = queue.get()
    process.join()
    ends.append(first.end())
    return {
        "requests": len(counted.seconds) + counted.lost,
        "right": counted.right,
        "lost": counted.lost,
        "retries": counted.retries,
        "ends": ends,
    }


def _asked(arguments: argparse.Namespace) -> list[str]:
    """The arguments that decide about the numbers."""
    flags = [f"--{name}" for name in ("restart", "triton") if getattr(arguments, name)]
    if not arguments.restart:
        flags += ["--requests", str(arguments.requests), "--budget", f"{arguments.budget:g}"]
        flags += ["--only", repr(arguments.only)] if arguments.only else []
    return [str(arguments.run), *flags]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--requests", type=int, default=20_000)
    parser.add_argument("--budget", type=float, default=2.0, help="milliseconds")
    parser.add_argument("--port", type=int, default=8310)
    parser.add_argument("--only", choices=KINDS)
    parser.add_argument("--triton", action="store_true")
    parser.add_argument("--restart", action="store_true")
    arguments = parser.parse_args()
    loaded_before = hardware.load_average()
    opened = OpenRun.of(arguments.run)
    shape = opened.checkpoint.architecture.input_shape
    images = load_dataset("mnist-subset").test.x[:500].reshape(-1, *shape)
    expected = models.computing(opened, models.fastest_stage())(images)
    (name,) = models.load_models([arguments.run])
    if arguments.restart:
        rows = [restarted(arguments.run, arguments, images, expected, name)]
    else:
        rows = measured(arguments.run, [arguments.only] if arguments.only else KINDS, arguments, images, expected, name)
    document = {
        "command": " ".join(["python", "scripts/measure_serving.py", *_asked(arguments)]),
        "date": datetime.date.today().isoformat(),
        "machine": hardware.cpu_name(),
        "cores": hardware.usable_cores(),
        "clients": CLIENTS,
        "client": "tritonclient" if arguments.triton else "sockets",
        "budget_ms": arguments.budget,
        "load_average": loaded_before,
        "rows": rows,
    }
    text = as_json(document)
    if arguments.out:
        arguments.out.write_text(text, encoding="utf-8")
    print(text, end="")


if __name__ == "__main__":
    main()
