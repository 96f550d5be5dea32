"""Grad-CAM as a picture: the image that the network got, beside it the same with the evidence over it, and a sentence.

Pillow draws it: who asks for one picture, on the command line or a service, does not wait for matplotlib.
"""

from __future__ import annotations

import io

import numpy as np
from PIL import Image, ImageDraw, ImageFont

SIDE = 224
"""Pixels that the longer side of an image has at least; small images are enlarged by whole numbers."""

GAP = 12
HEAT = np.array([255, 96, 0], np.float32)
STRONGEST = 0.75
"""How much of the image the strongest evidence covers: what lies below stays visible."""


def evidence_words(evidence: np.ndarray, name: str) -> str:
    """What the picture shows: 'what speaks for 7'; 'nothing in the last maps speaks for 7' if all evidence is 0."""
    return f"what speaks for {name}" if evidence.any() else f"nothing in the last maps speaks for {name}"


def evidence_picture(image: np.ndarray, evidence: np.ndarray, name: str) -> bytes:
    """A PNG. image: uint8 (1 or 3, height, width); evidence: (rows, columns) from 0 to 1; name: of the class"""
    channels, height, width = image.shape
    scale = max(1, -(-SIDE // max(height, width)))
    size = width * scale, height * scale
    shown = Image.fromarray(image[0] if channels == 1 else np.ascontiguousarray(image.transpose(1, 2, 0)))
    plain = shown.convert("RGB").resize(size, Image.Resampling.NEAREST)
    smooth = Image.fromarray(evidence.astype(np.float32)).resize(size, Image.Resampling.BILINEAR)
    share = STRONGEST * np.clip(np.asarray(smooth), 0, 1)[:, :, np.newaxis]
    covered = (1 - share) * np.asarray(plain, np.float32) + share * HEAT
    words, font = evidence_words(evidence, name), ImageFont.load_default(16)
    page = Image.new("RGB", (2 * size[0] + 3 * GAP, size[1] + 4 * GAP), "white")
    page.paste(plain, (GAP, GAP))
    page.paste(Image.fromarray(np.rint(covered).astype(np.uint8)), (size[0] + 2 * GAP, GAP))
    printable = words.encode("latin-1", "replace").decode("latin-1")  # the font of an old Pillow has no more
    ImageDraw.Draw(page).text((GAP, size[1] + 2 * GAP), f"Grad-CAM: {printable}", "black", font)
    file = io.BytesIO()
    page.save(file, "PNG")
    return file.getvalue()
