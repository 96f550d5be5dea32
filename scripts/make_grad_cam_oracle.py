"""Write tests/groundup/grad_cam_oracle.npz: what the package grad-cam says of small networks in PyTorch, in float64.

    pip install grad-cam==1.5.7 torch==2.13.0
    python scripts/make_grad_cam_oracle.py

tests/groundup/test_grad_cam.py reads the file and needs neither. Its CASES are the networks, which are built here from
the same architectures. For each: the parameters, the images and the labels; `sums`, the weighted sums of the maps, as
the package has them before anything is cut; `scaled`, what its own scaling makes of those that are not below 0.
"""

from pathlib import Path

import numpy as np
import torch
from pytorch_grad_cam import GradCAM
from pytorch_grad_cam.utils.image import scale_cam_image
from pytorch_grad_cam.utils.model_targets import ClassifierOutputTarget

from shared.architectures import Architecture
from shared.bench.peers.pytorch_layers import network as in_pytorch
from shared.layers import Activate, BatchNorm, Conv, Dense, Flatten, MaxPool, Residual

CASES = {
    "two convolutions": (
        Architecture(
            (1, 12, 10),
            (
                Conv(4, 3, padding=1),
                Activate("relu"),
                MaxPool(2),
                Conv(6, (3, 2)),
                Activate("relu"),
                MaxPool(2),
                Flatten(),
                Dense(5),
            ),
        ),
        4,
    ),
    "a residual block": (
        Architecture(
            (3, 9, 7),
            (
                Conv(5, 3),
                BatchNorm(),
                Activate("tanh"),
                Residual((Conv(5, 3, padding=1), BatchNorm(), Activate("relu"), Conv(5, 1))),
                BatchNorm(),
                Activate("relu"),
                Flatten(),
                Dense(6),
                Activate("sigmoid"),
                Dense(4),
            ),
        ),
        5,
    ),
    "maps without an activation": (Architecture((2, 6, 6), (Conv(3, 3), MaxPool(2), Flatten(), Dense(3))), 0),
}
"""Name -> (the network, the number of its layer whose output are the maps, from 0)."""

IMAGES = 6


def main() -> None:
    rng = np.random.default_rng(20261127)
    arrays = {}
    for name, (architecture, layer) in CASES.items():
        parameters = [rng.standard_normal(each.shape) * 0.5 + 0.1 for each in architecture.parameters()]
        images = rng.standard_normal((IMAGES, *architecture.input_shape))
        labels = rng.integers(0, architecture.output_shape[0], IMAGES)
        model = in_pytorch(torch, architecture, parameters).eval()
        target = model[2 + layer]  # two modules before the first layer make images of rows
        with GradCAM(model=model, target_layers=[target]) as cam:
            targets = [ClassifierOutputTarget(int(label)) for label in labels]
            given = torch.tensor(images)
            cam(input_tensor=given, targets=targets)
            maps = cam.activations_and_grads.activations[0].cpu().numpy()
            slopes = cam.activations_and_grads.gradients[0].cpu().numpy()
            sums = cam.get_cam_image(given, target, targets, maps, slopes, False)
        arrays |= {f"{name}/parameters.{i}": each for i, each in enumerate(parameters)}
        scaled = scale_cam_image(np.maximum(sums, 0))
        arrays |= {f"{name}/images": images, f"{name}/labels": labels, f"{name}/sums": sums, f"{name}/scaled": scaled}
    path = Path(__file__).parent.parent / "tests" / "groundup" / "grad_cam_oracle.npz"
    np.savez_compressed(path, **arrays)
    print(f"{path}: {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
