"""`groundup serve` as a process: its address, other people's clients, its end, and why it does not start."""

from __future__ import annotations

import http.client
import json
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.groundup.serve.conftest import body_of, models, runs
from tests.groundup.studio.digits.made_runs import SMALL_CNN, a_run
from tests.program import ran
from tests.wide import wide

pytest.importorskip("uvicorn", reason="the extra web is not installed")

__all__ = ["models", "runs"]
PROGRAM = [sys.executable, "-c", "from groundup.entry import main; main()", "serve"]
PIXELS = np.random.default_rng(0).random((1, 784), np.float32)


@pytest.fixture
def started(runs: Path) -> Iterator[Callable[..., tuple[subprocess.Popen[str], int]]]:
    """started(*arguments): a service of the dense network as a process, once it has told its address; and its port."""
    processes = []

    def start(*arguments: str) -> tuple[subprocess.Popen[str], int]:
        words = [*PROGRAM, str(runs / "dense"), "--port", "0", *arguments]
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        processes.append(process)
        assert process.stdout is not None
        lines: list[str] = []
        while not lines or not lines[-1].startswith("http"):
            lines.append(process.stdout.readline())
            assert lines[-1], process.communicate()
        found = re.fullmatch(r"http://\S+:(\d+)/ answers; Ctrl-C ends it\.\n", lines[-1])
        assert found, lines
        apart = r"    stage \d: \w+ answers; its logits differ from stage 2's by \S+ of what rounding explains\n"
        assert re.fullmatch(apart, lines[1]), lines
        return process, int(found[1])

    yield start
    for process in processes:
        if process.poll() is None:
            process.kill()
        process.communicate()


def asked(port: int, method: str, path: str, body: bytes | None = None, **headers: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
    try:
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def infer(port: int) -> int:
    content, headers = body_of(PIXELS, True)
    return asked(port, "POST", "/v2/models/dense/infer", content, **headers)[0]


@wide
def test_sigterm_finishes_what_has_begun_and_readiness_goes_first(started: Callable[..., Any]) -> None:
    # A request waits two seconds for others: long enough to end the service meanwhile.
    process, port = started("--latency-budget-ms", "2000", "--drain-seconds", "0.8")
    statuses: list[int] = []
    thread = threading.Thread(target=lambda: statuses.append(infer(port)))
    thread.start()
    time.sleep(0.3)
    process.send_signal(signal.SIGTERM)
    time.sleep(0.2)
    assert asked(port, "GET", "/v2/health/ready")[0] == 503
    assert asked(port, "GET", "/v2/health/live")[0] == 200
    thread.join(300)
    out, err = process.communicate(timeout=300)
    assert (statuses, process.returncode, out, err) == ([200], -signal.SIGTERM, "", "")


def test_ctrl_c_ends_it_at_once(started: Callable[..., Any]) -> None:
    process, port = started()
    assert infer(port) == 200
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=300) == ("", "")
    assert process.returncode == 0


@wide
def test_a_restart_under_load_loses_no_request_of_a_client_that_asks_again(runs: Path, tmp_path: Path) -> None:
    words = [sys.executable, "scripts/measure_serving.py", str(runs / "dense"), "--restart"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, cwd=Path(__file__).parents[3])
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(done.stdout)["rows"]
    assert (row["right"], row["lost"], row["ends"]) == (row["requests"], 0, [-signal.SIGTERM] * 4)
    assert row["requests"] > 1000
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["dense", "dense"], "serve: dense and dense are both called dense; rename one of the folders"),
        (["dense", "--host", "0.0.0.0"], "serve: --host 0.0.0.0 lets other machines ask: set GROUNDUP_SERVE_KEY, or"),
        (["dense", "--key", "short"], "serve: the key: expected 16 to 4,096 characters of ASCII, none a space"),
        (["dense", "--key", "x" * 16, "--key-file", "key"], "serve: --key and --key-file are two keys; give one"),
        (["dense", "--key-file", "/dev/zero"], "serve: the key: expected 16 to 4,096 characters of ASCII"),
        (["diverged"], "diverged/last.safetensors: the network's numbers grow beyond all limits (infinity or NaN), so"),
        (["line\nbreak"], "serve: 'line\\nbreak': expected a folder whose name can be printed; rename it"),
        (["dense", "--host", "::2", "--key", "x" * 16], "serve: ::2:8000 cannot be used"),
    ],
)
def test_mistakes_are_one_sentence(
    arguments: list[str],
    sentence: str,
    runs: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(runs)
    Path("binary").write_bytes(b"\xff" * 20)
    for name, scale in (("diverged", 1e30), ("line\nbreak", 1.0)):
        a_run(Path(name), SMALL_CNN, {"dataset": "mnist-subset", "data_dir": None}, scale=scale)
    code, _, err = ran(capsys, "serve", *arguments)
    assert code == 2, err
    assert err.startswith(f"error: {sentence}")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("address", "names"),
    [
        (("127.0.0.2", 8000), {"127.0.0.1:8000", "localhost:8000", "[::1]:8000", "127.0.0.2:8000"}),
        (("::1", 80, 0, 0), {f"{host}{port}" for host in ("127.0.0.1", "localhost", "[::1]") for port in ("", ":80")}),
    ],
)
def test_it_answers_under_the_address_that_it_tells(address: tuple[Any, ...], names: set[str], models: Any) -> None:
    from groundup.serve.app import Service
    from groundup.serve.server import new_server

    listening: Any = SimpleNamespace(getsockname=lambda: address)
    guard: Any = new_server(Service(models), listening, "", 0.0, lambda: None).config.app
    assert guard.hosts == names


def test_a_stage_that_disagrees_with_stage_2_is_not_served(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from groundup.serve import models

    a_run(tmp_path / "one", [784, 10], {"dataset": "mnist-subset", "data_dir": None})
    right = models.computing
    monkeypatch.setattr(models, "computing", lambda *of: lambda pixels: right(*of)(pixels) * np.float32(1.001))
    code, _, err = ran(capsys, "serve", tmp_path / "one")
    assert (code, err.partition(" stage ")[0]) == (1, "error: one is not served, because")


def test_without_a_compiler_stage_2_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    from groundup.serve import models
    from shared.contract import StageUnavailable

    load = models.load_stage

    def none_for_c(name: str) -> Any:
        if name == "stage3_c":
            raise StageUnavailable("there is no C compiler")
        return load(name)

    monkeypatch.setattr(models, "load_stage", none_for_c)
    assert models.fastest_stage().name == "stage2_numpy"


@wide
def test_neither_side_waits_for_the_others_acknowledgement(started: Callable[..., Any]) -> None:
    """40 ms each: that the end of an answer waits for the client, and that a body in a packet of its own does."""
    _, port = started("--latency-budget-ms", "0")
    content, headers = body_of(PIXELS, True)
    named = "".join(f"{name}: {value}\r\n" for name, value in {**headers, "Content-Length": len(content)}.items())
    head = f"POST /v2/models/dense/infer HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n{named}\r\n".encode()
    times = []
    with socket.create_connection(("127.0.0.1", port), 300) as connection:
        for _ in range(300):
            began = time.monotonic()
            connection.sendall(head)
            connection.sendall(content)
            answer = b""
            while b"logits" not in answer:
                answer += connection.recv(2**16)
            times.append(time.monotonic() - began)
            if min(times[10:], default=1) < 0.035:
                break
    assert min(times[10:]) < 0.035  # the system waits only after the first packets
