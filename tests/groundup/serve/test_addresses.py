"""The addresses: what they answer, and one sentence for each kind of bad input."""

from __future__ import annotations

import io
import json
import re
import struct
import threading
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from groundup.predict import NO_ANSWER, OpenRun, predict
from groundup.trained import beliefs
from tests.groundup.serve.conftest import HOST, body_of, png

RNG = np.random.default_rng(4)
SHAPES = {"convolves": (1, 28, 28), "dense": (784,)}


def pixels_for(name: str, images: int = 2) -> np.ndarray:
    return RNG.random((images, *SHAPES[name]), np.float32)


def expected(runs: Path, name: str, pixels: np.ndarray) -> np.ndarray:
    """The probabilities by the formulas of stage 2."""
    opened = OpenRun.of(runs / name)
    return beliefs(opened.checkpoint, opened.as_learned(pixels).reshape(len(pixels), -1))


def softmax(logits: np.ndarray) -> np.ndarray:
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("name", SHAPES)
def test_json_and_bytes_get_the_networks_logits(name: str, client: Any, runs: Path) -> None:
    pixels = pixels_for(name)
    content, headers = body_of(pixels, False, id="one")
    answer = client.post(f"/v2/models/{name}/infer", content=content, headers=headers)
    assert answer.status_code == 200, answer.text
    (output,) = answer.json()["outputs"]
    assert (answer.json()["id"], answer.json()["model_name"], output["shape"]) == ("one", name, [2, 10])
    logits = np.array(output["data"], np.float32).reshape(2, 10)
    np.testing.assert_allclose(softmax(logits), expected(runs, name, pixels), rtol=1e-4, atol=1e-6)

    content, headers = body_of(pixels, True, outputs=[{"name": "logits", "parameters": {"binary_data": True}}])
    answer = client.post(f"/v2/models/{name}/infer", content=content, headers=headers)
    length = int(answer.headers["inference-header-content-length"])
    document = json.loads(answer.content[:length])
    assert document["outputs"][0]["parameters"]["binary_data_size"] == 80
    np.testing.assert_allclose(
        np.frombuffer(answer.content[length:], "<f4").reshape(2, 10), logits, rtol=1e-4, atol=1e-5
    )


def test_the_metadata_are_those_of_the_exported_file(client: Any) -> None:
    about = client.get("/v2/models/convolves").json()
    assert about["inputs"] == [{"name": "pixels", "datatype": "FP32", "shape": [-1, 1, 28, 28]}]
    assert about["outputs"] == [{"name": "logits", "datatype": "FP32", "shape": [-1, 10]}]
    assert about["classes"] == [str(digit) for digit in range(10)]
    assert re.fullmatch("[a-z]+_[a-z]+", about["platform"])
    for path in ("/v2", "/v2/"):
        assert client.get(path, follow_redirects=False).json()["extensions"] == ["binary_tensor_data"]
    assert client.post("/v2/repository/index").json()[1] == {"name": "dense", "state": "READY"}


def test_ready_says_503_before_the_end_while_requests_are_answered(client: Any) -> None:
    ready = ("/v2/health/ready", "/v2/models/dense/ready")
    assert [client.get(path).status_code for path in ready] == [200, 200]
    client.service.ending = True
    assert [client.get(path).status_code for path in ready] == [503, 503]
    assert client.get("/v2/health/live").status_code == 200
    content, headers = body_of(pixels_for("dense"), True)
    answer = client.post("/v2/models/dense/infer", content=content, headers=headers)
    assert (answer.status_code, answer.headers["connection"]) == (200, "close")


@pytest.mark.parametrize(("way", "kind"), [("body", "PNG"), ("form", "JPEG")])
def test_classify_answers_as_predict_does(way: str, kind: str, client: Any, runs: Path, tmp_path: Path) -> None:
    content = png(kind=kind)
    (tmp_path / f"digit.{kind.lower()}").write_bytes(content)
    (picture,) = predict(runs / "convolves", [tmp_path / f"digit.{kind.lower()}"], 2)["pictures"]
    sent = {"content": content} if way == "body" else {"files": {"image": ("digit", content)}}
    answer = client.post("/classify?model=convolves&top=2", **sent).json()
    assert answer["done"] == picture["done"]
    assert [each["label"] for each in answer["top"]] == [each["label"] for each in picture["top"]]
    assert answer["top"][0]["probability"] == pytest.approx(picture["top"][0]["probability"], rel=1e-3)


def test_explain_is_a_picture_and_needs_a_convolution(client: Any) -> None:
    answer = client.post("/explain?model=convolves", content=png())
    assert answer.headers["content-type"] == "image/png"
    assert Image.open(io.BytesIO(answer.content)).size == (2 * 224 + 36, 224 + 48)
    answer = client.post("/explain?model=dense", content=png())
    assert (answer.status_code, answer.json()["error"][:41]) == (400, "Grad-CAM needs a convolution, and 784-6-1")


def test_a_picture_is_inverted_as_the_question_says(client: Any) -> None:
    asked = ("", "&invert=true", "&invert=false")
    done = [client.post(f"/classify?model=dense{each}", content=png()).json()["done"] for each in asked]
    assert done == [[], ["inverted"], []]


def bomb() -> bytes:
    """A PNG of some bytes that says it has 400 million pixels."""
    header = b"IHDR" + struct.pack(">IIBBBBB", 20_000, 20_000, 8, 0, 0, 0, 0)
    rows = b"IDAT" + zlib.compress(bytes(1000))
    chunks = [struct.pack(">I", len(each) - 4) + each + struct.pack(">I", zlib.crc32(each)) for each in (header, rows)]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


TWO = b"--b\r\nContent-Disposition: form-data; name=a; filename=a\r\n\r\nx\r\n" * 2 + b"--b--"


@pytest.mark.parametrize(
    ("query", "content", "kind", "status", "sentence"),
    [
        ("", b"", "", 400, "expected a picture, got an empty body"),
        ("", png()[:60], "", 400, "the body: the picture is damaged"),
        ("", bomb(), "", 400, "the body: expected a PNG or JPEG or BMP or WEBP picture (Image size (400000000 pixels)"),
        ("", TWO, "multipart/form-data; boundary=b", 400, "expected a form with one file, got 2"),
        ("&top=" + "9" * 5000, png(), "", 400, "top: expected a whole number of at least 1, got '999"),
        ("&tpo=1", png(), "", 400, "there is no setting 'tpo' at /classify; it takes model, top, invert"),
        ("&model=x", png(), "", 404, "there is no model 'x'; the models are convolves, dense"),
    ],
)
def test_what_is_no_picture_is_one_sentence(
    query: str, content: bytes, kind: str, status: int, sentence: str, client: Any
) -> None:
    answer = client.post(f"/classify?model=dense{query}", content=content, headers={"content-type": kind})
    assert answer.status_code == status, answer.text
    assert answer.json()["error"].startswith(sentence)


def test_a_model_has_to_be_named_if_there_are_several(client: Any, asking: Callable[..., Any], models: Any) -> None:
    answer = client.post("/classify", content=png())
    assert (answer.status_code, answer.json()["error"]) == (
        400,
        "name one with ?model=; the models are convolves, dense",
    )
    assert asking(models={"dense": models["dense"]}).post("/classify", content=png()).json()["model"] == "dense"


def test_a_body_is_not_read_beyond_its_limit(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("groundup.serve.uploads.MOST_BYTES", 1000)
    sent = []

    def stream() -> Any:
        for _ in range(100):
            sent.append(100)
            yield bytes(100)

    for content in (bytes(1001), stream()):
        answer = client.post("/classify?model=dense", content=content)
        assert (answer.status_code, answer.json()["error"][:23]) == (413, "expected a body of at m")
    answer = client.post("/classify?model=dense", content=b"x", headers={"content-encoding": "gzip"})
    assert (answer.status_code, answer.json()["error"]) == (415, "expected a body without Content-Encoding")
    assert answer.headers["accept-encoding"] == "identity"


def test_a_full_queue_is_503_and_a_long_request_too(
    asking: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("groundup.serve.app.SECONDS", 0.3)
    client = asking(queue=1)
    go_on, begun = threading.Event(), threading.Event()

    def stuck(pixels: np.ndarray) -> np.ndarray:
        begun.set()
        assert go_on.wait(200)
        return np.zeros((len(pixels), 10), np.float32)

    client.service.batches["dense"].compute = stuck
    content, headers = body_of(pixels_for("dense"), True)
    answers: list[Any] = []

    def ask() -> None:
        answers.append(client.post("/v2/models/dense/infer", content=content, headers=headers))

    first = threading.Thread(target=ask)
    first.start()
    assert begun.wait(100)
    ask()
    first.join()
    go_on.set()
    said = {answer.json()["error"]: (answer.status_code, answer.headers["retry-after"]) for answer in answers}
    full, late = "the queue is full: 1 requests are being answered; come again", "the request took more than 0.3 s"
    assert said == {full: (503, "1"), late: (503, "1")}
    counted = client.get("/metrics").text
    assert 'groundup_refusals_total{reason="queue"} 1.0' in counted
    assert 'groundup_refusals_total{reason="time"} 1.0' in counted


def test_the_metrics_count_requests_and_batches(client: Any) -> None:
    content, headers = body_of(pixels_for("dense", 5), True)
    client.post("/v2/models/dense/infer", content=content, headers=headers)
    text = client.get("/metrics").text
    assert 'groundup_batch_images_sum{model="dense"} 5.0' in text
    assert 'groundup_request_seconds_count{address="infer",status="200"} 1.0' in text
    assert "groundup_queue_requests 0.0" in text


def test_the_document_lists_the_addresses(client: Any) -> None:
    document = client.get("/openapi.json").json()
    described = {(path, method.upper()) for path, methods in document["paths"].items() for method in methods}
    routes = {(each.path, (each.methods - {"HEAD"}).copy().pop()) for each in client.app.app.routes}
    assert described == routes - {("/page.js", "GET"), ("/studio.css", "GET")}
    answer = client.get("/nothing")
    assert (answer.status_code, answer.json()["error"]) == (
        404,
        "there is nothing at /nothing; /openapi.json lists the addresses",
    )
    answer = client.get("/classify")
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")


def test_the_page_loads_nothing_from_elsewhere(client: Any) -> None:
    page = client.get("/")
    assert page.headers["content-security-policy"].startswith("default-src 'none'; script-src 'self'")
    for path in ("/page.js", "/studio.css"):
        assert f'"{path}"' in page.text
        assert client.get(path).status_code == 200


def test_without_a_key_only_this_machines_own_pages_are_answered(client: Any) -> None:
    for headers in ({"host": "evil.example"}, {"origin": "http://evil.example"}, {"sec-fetch-site": "cross-site"}):
        answer = client.post("/classify?model=dense", content=png(), headers=headers)
        assert answer.status_code == 403, headers
        assert "answers only under" in answer.json()["error"] or "another website" in answer.json()["error"]
    assert client.get("/v2", headers={"origin": f"http://{HOST}"}).status_code == 200


def test_with_a_key_every_request_carries_it_but_for_the_page_and_the_health(asking: Callable[..., Any]) -> None:
    client = asking(key="a-key-of-the-tests")
    for value in ("", "Bearer", "Bearer another", "Basic a-key-of-the-tests", "Bearer a-key-of-the-tests x"):
        answer = client.get("/v2/models/dense", headers={"authorization": value})
        assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
        assert answer.json()["error"] == "expected the header Authorization: Bearer and the key of this service"
    assert client.get("/metrics").status_code == 401
    right = {"authorization": "Bearer a-key-of-the-tests", "host": "somewhere.example"}
    assert client.get("/v2/models/dense", headers=right).status_code == 200
    assert [client.get(path).status_code for path in ("/", "/v2/health/live", "/v2/health/ready")] == [200] * 3


def test_logits_that_are_no_numbers_are_told_and_harm_no_other_request(
    asking: Callable[..., Any], capsys: pytest.CaptureFixture[str]
) -> None:
    client = asking(budget=0.5)
    right = client.service.models["dense"].compute

    def poisoned(pixels: np.ndarray) -> np.ndarray:
        logits = right(pixels)
        logits[pixels.reshape(len(pixels), -1)[:, 0] == 1] = np.nan
        return logits

    client.service.batches["dense"].compute = poisoned
    pixels = pixels_for("dense", 2)
    pixels[:, 0] = [1, 0]
    answers: dict[int, Any] = {}

    def ask(row: int) -> None:
        content, headers = body_of(pixels[row : row + 1], row == 0, outputs=[{"name": "logits"}])
        answers[row] = client.post("/v2/models/dense/infer", content=content, headers=headers)

    threads = [threading.Thread(target=ask, args=(row,)) for row in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert 'groundup_batch_images_sum{model="dense"} 2.0' in client.get("/metrics").text
    assert (answers[0].status_code, answers[0].json()["error"]) == (500, f"dense: {NO_ANSWER}")
    np.testing.assert_allclose(answers[1].json()["outputs"][0]["data"], right(pixels[1:])[0], rtol=1e-4, atol=1e-6)
    client.service.batches["dense"].compute = lambda pixels: np.full((1, 10), np.nan, np.float32)
    assert client.post("/classify?model=dense", content=png()).json()["error"] == f"dense: {NO_ANSWER}"
    assert capsys.readouterr().err == ""


def test_a_mistake_of_ours_is_a_500_in_json(client: Any, capsys: pytest.CaptureFixture[str]) -> None:
    client.service.batches["dense"].compute = lambda pixels: 1 / 0
    content, headers = body_of(pixels_for("dense"), True)
    answer = client.post("/v2/models/dense/infer", content=content, headers=headers)
    assert answer.status_code == 500
    assert "the batch could not be computed" in answer.json()["error"]
    assert "RuntimeError" in capsys.readouterr().err
