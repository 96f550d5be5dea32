"""Train the network that the studio's page Digits ships with: groundup/studio/digits/network.safetensors.

    python scripts/make_digits_network.py            # half a minute; writes the file
    python scripts/make_digits_network.py other.safetensors

It is what this command makes, but for the last digits of its numbers, which depend on NumPy's matrix product:

    groundup train numpy --optimizer adam --schedule cosine --epochs 100 --augment-shift 1 --augment-rotation 12

784-128-10 relu on the bundled MNIST subset; 97.5 % of its 1,000 test images right. Drawings are never as straight and
as well centred as the training images, so these are shifted and rotated a little in every epoch.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from groundup.cli import main
from shared.training.runs import BEST

TARGET = Path(__file__).resolve().parent.parent / "groundup" / "studio" / "digits" / "network.safetensors"

SETTINGS = "--optimizer adam --schedule cosine --epochs 100 --augment-shift 1 --augment-rotation 12"


def make(target: Path) -> None:
    """Train, and copy the parameters of the best epoch, without the optimizer's state, to target."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            main(["train", "numpy", *SETTINGS.split(), "--run-dir", folder])
        except SystemExit as end:
            if end.code:
                raise
        shutil.copyfile(Path(folder) / BEST, target)


if __name__ == "__main__":
    written = Path(sys.argv[1]) if len(sys.argv) > 1 else TARGET
    make(written)
    print(f"{written.stat().st_size:>10,}  {written}")
