"""A thousand damaged requests: each gets a 4xx with one sentence, and none a traceback."""

from __future__ import annotations

import json
import random
import re
from typing import Any

import numpy as np
import pytest

from groundup.serve.protocol import asked
from tests.groundup.serve.conftest import body_of, png
from tests.wide import WIDE

PIXELS = np.zeros((1, 784), np.float32)
TENSOR: dict[str, Any] = {"name": "pixels", "datatype": "FP32", "shape": [1, 784], "data": [0] * 784}


def changed(**changes: Any) -> bytes:
    return json.dumps({"inputs": [{**TENSOR, **changes}]}).encode()


@pytest.mark.parametrize(
    ("body", "header", "sentence"),
    [
        (b"", None, "the body is no JSON: "),
        (b"[" * 100_000, None, "the body is no JSON: lists or objects are nested too deep"),
        (b'{"inputs": NaN}', None, "the body is no JSON: NaN is not a number in JSON"),
        (
            b'{"binary_data_size": 4}\0\0\0\0',
            None,
            "the body is no JSON: Extra data: line 1 column 24 (char 23); bytes behind the JSON need the header infer",
        ),
        (b"{}", "x", "inference-header-content-length: expected the bytes of JSON, at most 2, got 'x'"),
        (b'{"inputs": [{}, {}]}', None, "inputs: expected a list of one tensor, pixels, got a list of 2"),
        (changed(shape=[784]), None, "pixels: expected the shape [images, 784], got [784]"),
        (changed(shape=[65, 784]), None, "pixels: expected 1 to 64 images in a request, got 65"),
        (changed(data=[0] * 783), None, "data: expected 784 numbers, in one list or in lists of equal length, got 783"),
        (
            changed(data=[255] * 784),
            None,
            "pixels: expected numbers from 0 to 1, got 255; divide values up to 255 by 255",
        ),
        (changed() + b"x", str(len(changed())), "1 bytes stand behind the JSON, but no tensor has a binary_data_size"),
        (changed()[:-1] + b', "outputs": [{"name": "x"}]}', None, "outputs: expected logits, got 'x'"),
        (
            changed()[:-1] + b', "outputs": [{"name": "logits", "parameters": {"classification": 3}}]}',
            None,
            "outputs: classification is not supported; /classify names the classes of a picture",
        ),
    ],
)
def test_each_kind_of_mistake_has_its_sentence(body: bytes, header: str | None, sentence: str) -> None:
    with pytest.raises(ValueError, match="^" + re.escape(sentence) + "[^\n]*$"):
        asked(body, header, (784,), 64)


def test_numbers_that_are_none_are_refused_in_bytes() -> None:
    body, headers = body_of(np.full((1, 784), np.nan, np.float32), True)
    with pytest.raises(ValueError, match="expected numbers from 0 to 1, got nan"):
        asked(body, *headers.values(), (784,), 64)


def damaged(rng: random.Random, body: bytes) -> bytes:
    """Bytes cut out, put in, turned over, or the whole replaced."""
    content = bytearray(body)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(content) + 1)
        if (way := rng.randrange(4)) == 0:
            del content[at : at + rng.randint(1, 2000)]
        elif way == 1:
            content[at:at] = rng.randbytes(rng.randint(1, 50))
        elif way == 2 and at < len(content):
            content[at] ^= 1 << rng.randrange(8)
        else:
            content[at:at] = rng.choice([b"{", b"]", b'"', b"null", b"-1", b"1e999", b"\\u0000", b"\xff"])
    return bytes(content)


@pytest.mark.parametrize("seed", range(1000 // 50 if WIDE else 2))
def test_damaged_requests_get_a_4xx_and_no_traceback(seed: int, client: Any, capfd: pytest.CaptureFixture[str]) -> None:
    rng, answered = random.Random(seed), 0
    models = list(client.service.models)
    while answered < 50:
        kind = rng.choice(["json", "bytes", "picture", "form"])
        headers: dict[str, str] = {}
        if kind in ("json", "bytes"):
            path = f"/v2/models/{rng.choice(models)}/infer"
            body, headers = body_of(PIXELS, kind == "bytes")
        else:
            path, body = f"/{rng.choice(['classify', 'explain'])}?model=convolves&top=3", png()
        if kind == "form":
            headers = {"content-type": "multipart/form-data; boundary=b"}
            body = b'--b\r\nContent-Disposition: form-data; name="i"; filename="i"\r\n\r\n' + body + b"\r\n--b--\r\n"
        answer = client.post(path, content=damaged(rng, body), headers=headers)
        if answer.status_code == 200:  # what was damaged did not matter
            continue
        answered += 1
        assert 400 <= answer.status_code < 500, (kind, answer.text)
        assert set(answer.json()) == {"error"}
    assert "Traceback" not in "".join(capfd.readouterr())
