"""What is read of a request, and how much: every limit is held while the bytes come, not after.

body_of     the body, up to MOST_BYTES
file_of     the file in a body: the body itself (curl --data-binary), or the one file of a form (curl -F)
picture_of  a picture as the network sees it, up to MOST_PIXELS
"""

from __future__ import annotations

from email.message import Message

import numpy as np
from starlette.requests import ClientDisconnect, Request

from groundup.predict import OpenRun, as_seen
from groundup.studio.answers import Refused
from shared.data.pictures import read_bytes

MOST_BYTES = 8 * 2**20
MOST_PIXELS = 2**24
"""Of a picture, which is decoded as a whole: a photograph of 16 megapixels takes 48 MiB."""

TOO_LARGE = f"expected a body of at most {MOST_BYTES >> 20} MiB"


async def body_of(request: Request) -> bytes:
    """The body. Raises Refused for one that is too large, before more of it is taken."""
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise Refused("expected a body without Content-Encoding", 415)
    length = request.headers.get("content-length", "")
    if len(length) > 12 or (length.isdigit() and int(length) > MOST_BYTES):
        raise Refused(f"{TOO_LARGE}, got {length[:20]} bytes", 413)
    body = bytearray()
    try:
        async for part in request.stream():
            body += part
            if len(body) > MOST_BYTES:
                raise Refused(TOO_LARGE, 413)
    except ClientDisconnect:
        raise Refused("the request was broken off") from None  # nobody reads it
    return bytes(body)


def file_of(content_type: str, body: bytes) -> bytes:
    """The file in a body. Raises ValueError for a form that is damaged, or has none or several files."""
    if not content_type.lower().startswith("multipart/"):
        return body
    header = Message()
    header["content-type"] = content_type
    boundary = header.get_boundary()
    if not boundary:
        raise ValueError("the form's Content-Type names no boundary")
    _, *parts = (b"\r\n" + body).split(b"\r\n--" + boundary.encode("utf-8", "replace"))
    if not parts or not parts.pop().startswith(b"--"):
        raise ValueError("the form is damaged: it does not end as its boundary says")
    split = [part.partition(b"\r\n\r\n") for part in parts]
    files = [content for head, _, content in split if b"filename=" in head.lower()]
    if len(files) != 1:
        raise ValueError(f"expected a form with one file, got {len(files)}: curl -F image=@seven.png")
    return files[0]


def picture_of(content: bytes, opened: OpenRun, inverted: bool | None) -> tuple[np.ndarray, list[str]]:
    """uint8 (channels, height, width), and what was done to the picture. Raises ValueError for what is none."""
    if not content:
        raise ValueError("expected a picture, got an empty body")
    return as_seen(*read_bytes("the body", content, opened.wanted, MOST_PIXELS), opened, inverted)
