"""The bodies of the Open Inference Protocol v2 (github.com/kserve/open-inference-protocol), one tensor in and one out.

    asked       a request: JSON, or JSON with the tensor's bytes behind it
    answered    its answer, in JSON or in bytes, as the request wants it

The tensor's bytes are the "binary tensor data extension" of the protocol: float32 numbers, little-endian, the last
dimension fastest, behind as many bytes of JSON as the header Inference-Header-Content-Length says.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from shared.layers import shortened
from shared.machine import strict_json

INPUT, OUTPUT = "pixels", "logits"
"""As in the exported file (shared/export/onnx_graph.py)."""

FLOATS = "FP32"
HEADER = "inference-header-content-length"
NUMBERS = 2**20
"""Values in the JSON of a request."""


@dataclass(frozen=True)
class Asked:
    """A request. pixels: (images, *input_shape); binary: whether the answer is wanted in bytes; id: the client's"""

    pixels: np.ndarray
    binary: bool
    id: str | None


def asked(body: bytes, header: str | None, input_shape: Sequence[int], most: int) -> Asked:
    """The request in a body. header: the value of HEADER; most: images that one request may have

    Raises ValueError with a sentence for everything that is not as the protocol and the model say.
    """
    if header is not None and not (
        header.isascii() and header.isdigit() and len(header) < 12 and int(header) <= len(body)
    ):
        raise ValueError(f"{HEADER}: expected the bytes of JSON, at most {len(body)}, got {shortened(header)}")
    length = len(body) if header is None else int(header)
    try:
        document = strict_json.loads(body[:length], NUMBERS)
    except ValueError as error:
        forgotten = header is None and b"binary_data_size" in body
        hint = f"; bytes behind the JSON need the header {HEADER}" if forgotten else ""
        raise ValueError(f"the body is no JSON: {error}{hint}") from None
    document = _object(document, "the body")
    name = document.get("id")
    if name is not None and not isinstance(name, str):
        raise ValueError(f"id: expected a text, got {shortened(name)}")
    inputs = document.get("inputs")
    if not isinstance(inputs, list) or len(inputs) != 1:
        came = f"a list of {len(inputs)}" if isinstance(inputs, list) else shortened(inputs)
        raise ValueError(f"inputs: expected a list of one tensor, {INPUT}, got {came}")
    binary = _wants_bytes(document)
    pixels = _tensor(_object(inputs[0], "inputs[0]"), body[length:], input_shape, most)
    if not np.isfinite(pixels).all() or pixels.min() < 0 or pixels.max() > 1:
        wrong = pixels[~((pixels >= 0) & (pixels <= 1))][0]
        raise ValueError(f"{INPUT}: expected numbers from 0 to 1, got {wrong:g}; divide values up to 255 by 255")
    return Asked(pixels, binary, name)


def _wants_bytes(document: Mapping[str, Any]) -> bool:
    outputs = document.get("outputs")
    everything = _parameters(document, "parameters").get("binary_data_output", False)
    if outputs is None or outputs == []:
        return _truth(everything, "binary_data_output")
    if not isinstance(outputs, list) or len(outputs) != 1:
        raise ValueError(f"outputs: expected a list of one tensor, {OUTPUT}, got {shortened(outputs)}")
    output = _object(outputs[0], "outputs[0]")
    if output.get("name") != OUTPUT:
        raise ValueError(f"outputs: expected {OUTPUT}, got {shortened(output.get('name'))}")
    settings = _parameters(output, "the parameters of the output")
    if settings.get("classification"):
        raise ValueError("outputs: classification is not supported; /classify names the classes of a picture")
    return _truth(settings.get("binary_data", everything), "binary_data")


def _tensor(tensor: Mapping[str, Any], raw: bytes, input_shape: Sequence[int], most: int) -> np.ndarray:
    if tensor.get("name") != INPUT:
        raise ValueError(f"inputs: expected {INPUT}, got {shortened(tensor.get('name'))}")
    if tensor.get("datatype") != FLOATS:
        raise ValueError(f"{INPUT}: expected the datatype {FLOATS}, got {shortened(tensor.get('datatype'))}")
    shape = tensor.get("shape")
    if not isinstance(shape, list) or not all(map(strict_json.is_count, shape)) or shape[1:] != list(input_shape):
        wanted = ", ".join(map(str, ("images", *input_shape)))
        raise ValueError(f"{INPUT}: expected the shape [{wanted}], got {shortened(shape)}")
    if not 1 <= shape[0] <= most:
        raise ValueError(f"{INPUT}: expected 1 to {most} images in a request, got {shape[0]}")
    size = _parameters(tensor, "the parameters of the input").get("binary_data_size")
    if size is not None:
        expected = 4 * math.prod(shape)
        if size != expected or isinstance(size, bool) or len(raw) != expected or "data" in tensor:
            raise ValueError(
                f"{INPUT}: expected {expected} bytes of {FLOATS} behind the JSON, and no data in it; "
                f"binary_data_size is {shortened(size)}, and {len(raw)} bytes came"
            )
        return np.frombuffer(raw, "<f4").reshape(shape).astype(np.float32)
    if raw:
        raise ValueError(f"{len(raw)} bytes stand behind the JSON, but no tensor has a binary_data_size")
    return _from_lists(tensor.get("data"), shape)


def _from_lists(data: object, shape: Sequence[int]) -> np.ndarray:
    """Numbers in one list or in lists of lists, row by row."""
    size = math.prod(shape)
    try:
        array = np.array(data) if isinstance(data, list) else None
    except ValueError:  # lists of different lengths
        array = None
    if array is None or array.dtype.kind not in "iuf" or array.size != size:
        came = shortened(data) if array is None or array.dtype.kind not in "iuf" else f"{array.size} numbers"
        raise ValueError(f"data: expected {size} numbers, in one list or in lists of equal length, got {came}")
    with np.errstate(over="ignore"):  # an infinity is refused with the others
        return array.astype(np.float32).reshape(shape)


def _object(value: object, name: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{name}: expected a JSON object, got {shortened(value)}")
    return value


def _parameters(document: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """An object; also for null, which some clients send for what is left out."""
    parameters = document.get("parameters")
    return {} if parameters is None else _object(parameters, name)


def _truth(value: object, name: str) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"{name}: expected true or false, got {shortened(value)}")
    return value


def answered(model: str, request: Asked, logits: np.ndarray) -> tuple[bytes, dict[str, str]]:
    """The body of an answer, and its headers."""
    output: dict[str, Any] = {"name": OUTPUT, "datatype": FLOATS, "shape": list(logits.shape)}
    document: dict[str, Any] = {"model_name": model, "outputs": [output]}
    if request.id is not None:
        document["id"] = request.id
    if not request.binary:
        output["data"] = logits.ravel().tolist()
        return _compact(document), {"content-type": "application/json"}
    raw = logits.astype("<f4").tobytes()
    output["parameters"] = {"binary_data_size": len(raw)}
    head = _compact(document)
    return head + raw, {"content-type": "application/octet-stream", HEADER: str(len(head))}


def _compact(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document, allow_nan=False, separators=(",", ":")).encode()
