"""Train the networks that the studio's pages Digits and Convolution ship with.

    python scripts/make_digits_network.py            # some minutes; writes both files
    python scripts/make_digits_network.py FOLDER     # writes them there

They are what these commands make, but for the last digits of their numbers, which depend on NumPy's matrix product:

    groundup train numpy --optimizer adam --schedule cosine --epochs 100 --augment-shift 1 --augment-rotation 12
    groundup train numpy --model lenet5 --epochs 30 --augment-shift 1 --augment-rotation 12

784-128-10 relu and LeNet-5 on the bundled MNIST subset; 97.5 % and 98.9 % of its 1,000 test images right. Drawings are
never as straight and as well centred as the training images, so these are shifted and rotated a little in every epoch.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from groundup.cli import main
from shared.training.runs import BEST

STUDIO = Path(__file__).resolve().parent.parent / "groundup" / "studio"
AUGMENT = "--augment-shift 1 --augment-rotation 12"

NETWORKS = {
    "digits/network.safetensors": f"--optimizer adam --schedule cosine --epochs 100 {AUGMENT}",
    "convolution/lenet5.safetensors": f"--model lenet5 --epochs 30 {AUGMENT}",
}
"""File below groundup/studio -> the settings of `groundup train`."""


def make(target: Path, settings: str) -> None:
    """Train, and copy the parameters of the best epoch, without the optimizer's state, to target."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            main(["train", "numpy", *settings.split(), "--run-dir", folder])
        except SystemExit as end:
            if end.code:
                raise
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(Path(folder) / BEST, target)


if __name__ == "__main__":
    for name, chosen in NETWORKS.items():
        written = (Path(sys.argv[1]) if len(sys.argv) > 1 else STUDIO) / name
        make(written, chosen)
        print(f"{written.stat().st_size:>10,}  {written}")
