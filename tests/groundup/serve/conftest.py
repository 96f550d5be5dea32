"""A service of two networks, asked inside the test's process."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests.groundup.studio.digits.made_runs import SMALL_CNN, a_drawing, a_run

pytest.importorskip("prometheus_client", reason="the extra web is not installed")
testclient = pytest.importorskip("starlette.testclient", reason="httpx is not installed")

HOST = "127.0.0.1:8000"


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """convolves, normalised, and dense."""
    folder = tmp_path_factory.mktemp("serve")
    notes = {"dataset": "mnist-subset", "data_dir": None}
    a_run(folder / "convolves", SMALL_CNN, {**notes, "normalisation": {"mean": 0.1, "deviation": 0.3}})
    a_run(folder / "dense", [784, 6, 10], notes)
    return folder


@pytest.fixture(scope="session")
def models(runs: Path) -> dict[str, Any]:
    from groundup.serve.models import load_models

    return load_models([runs / "convolves", runs / "dense"])


@pytest.fixture
def asking(models: dict[str, Any]) -> Iterator[Callable[..., Any]]:
    """asking(key="", **settings): a client of a new service with these settings."""
    from groundup.serve.app import Service, application
    from groundup.serve.guard import Guard

    clients = []

    def ask(key: str = "", **settings: Any) -> Any:
        service = Service(**{"models": models, **settings})
        guarded = Guard(application(service), key, {HOST}, service.metrics, lambda: service.ending)
        client = testclient.TestClient(guarded, f"http://{HOST}", raise_server_exceptions=False)
        client.service = service
        client.__enter__()  # its event loop lasts until the end
        clients.append(client)
        return client

    yield ask
    for client in clients:
        client.__exit__()


@pytest.fixture
def client(asking: Callable[..., Any]) -> Any:
    return asking()


def png(pixels: np.ndarray | None = None, kind: str = "PNG") -> bytes:
    """A digit as MNIST has it, as a file."""
    file = io.BytesIO()
    Image.fromarray(a_drawing(3).reshape(28, 28) if pixels is None else pixels).save(file, kind)
    return file.getvalue()


def body_of(pixels: np.ndarray, binary: bool, **more: Any) -> tuple[bytes, dict[str, str]]:
    """A request of the protocol and its headers."""
    tensor: dict[str, Any] = {"name": "pixels", "datatype": "FP32", "shape": list(pixels.shape)}
    if not binary:
        return json.dumps({"inputs": [{**tensor, "data": pixels.tolist()}], **more}).encode(), {}
    raw = pixels.astype("<f4").tobytes()
    head = json.dumps({"inputs": [{**tensor, "parameters": {"binary_data_size": len(raw)}}], **more}).encode()
    return head + raw, {"Inference-Header-Content-Length": str(len(head))}
