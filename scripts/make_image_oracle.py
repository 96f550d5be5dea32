"""Ask PyTorch for the right answers of the rooms of convolution, and keep them in tests/floors/image_oracle.npz.

As make_oracle.py does for the other rooms: seeded random inputs, rounded to float32, and what PyTorch answers in
float64, with autograd's gradients. tests/floors/test_image_oracle.py holds each stage to these numbers.

    python scripts/make_image_oracle.py            # writes tests/floors/image_oracle.npz
    python scripts/make_image_oracle.py other.npz

The array "about" holds JSON: the version of PyTorch, and the arguments of each case.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from make_oracle import normal, rounded

SEED = 20261123

CONVOLUTIONS: dict[str, dict[str, Any]] = {
    "one number": {"x": [1, 1, 1, 1], "weights": [1, 1, 1, 1], "stride": 1, "padding": 0},
    "window not square": {"x": [2, 3, 7, 5], "weights": [4, 3, 3, 2], "stride": 1, "padding": 0},
    "same size": {"x": [2, 2, 6, 9], "weights": [3, 2, 3, 3], "stride": 1, "padding": 1},
    "all different": {"x": [1, 2, 9, 8], "weights": [3, 2, 5, 3], "stride": [2, 3], "padding": [2, 1]},
    "windows that do not fit": {"x": [3, 1, 8, 9], "weights": [2, 1, 2, 3], "stride": 3, "padding": 0},
    "window as large as the image": {"x": [2, 5, 4, 3], "weights": [7, 5, 4, 3], "stride": 1, "padding": 0},
    "window as large as the padded image": {"x": [1, 3, 3, 3], "weights": [2, 3, 5, 5], "stride": 1, "padding": 1},
    "gaps between the windows": {"x": [2, 2, 7, 5], "weights": [2, 2, 1, 1], "stride": 2, "padding": 0},
    "padding wider than needed": {"x": [1, 2, 4, 7], "weights": [3, 2, 1, 5], "stride": [1, 2], "padding": [2, 3]},
    "3 x 3 of odd size": {"x": [2, 3, 11, 7], "weights": [5, 3, 3, 3], "stride": 1, "padding": 1},
    "5 x 5": {"x": [2, 2, 12, 12], "weights": [3, 2, 5, 5], "stride": 1, "padding": 2},
}
POOLS: dict[str, dict[str, Any]] = {
    "side by side": {"x": [2, 3, 6, 6], "size": 2, "stride": None},
    "windows that do not fit": {"x": [1, 2, 7, 5], "size": [3, 2], "stride": None},
    "overlapping": {"x": [2, 2, 7, 8], "size": 3, "stride": 2},
    "overlapping in columns, gaps in rows": {"x": [1, 2, 5, 5], "size": [1, 3], "stride": [2, 1]},
    "window as large as the image": {"x": [2, 1, 4, 5], "size": [4, 5], "stride": None},
    "gaps": {"x": [1, 1, 7, 7], "size": 2, "stride": 3},
    "one number": {"x": [1, 1, 1, 1], "size": 1, "stride": None},
}
BATCH_NORMS: dict[str, dict[str, Any]] = {
    "images": {"x": [4, 3, 5, 2], "centre": 0.5, "momentum": 0.1, "epsilon": 1e-5},
    "rows": {"x": [7, 4], "centre": -1.0, "momentum": 0.3, "epsilon": 1e-3},
    "two values a channel": {"x": [2, 3, 1, 1], "centre": 0.0, "momentum": 0.1, "epsilon": 1e-5},
    "far from zero": {"x": [6, 2, 5, 5], "centre": 1e4, "momentum": 0.5, "epsilon": 1e-5},
}
UPDATES = 4
"""Training steps of each batch norm, after which it is evaluated."""


def convolutions(generator: torch.Generator) -> dict[str, torch.Tensor]:
    found: dict[str, torch.Tensor] = {}
    for case, about in CONVOLUTIONS.items():
        x, weights = normal(generator, *about["x"]), normal(generator, *about["weights"])
        inputs = {"x": x, "weights": weights, "bias": normal(generator, about["weights"][0])}
        leaves = {name: values.clone().requires_grad_() for name, values in inputs.items()}
        output = F.conv2d(leaves["x"], leaves["weights"], leaves["bias"], about["stride"], about["padding"])
        inputs["grad_output"] = normal(generator, *output.shape)
        output.backward(inputs["grad_output"])
        arrays = inputs | {"output": output.detach()} | {f"grad_{name}": leaf.grad for name, leaf in leaves.items()}
        found |= {f"convolution/{case}/{name}": array for name, array in arrays.items()}
    return found


def pools(generator: torch.Generator) -> dict[str, torch.Tensor]:
    """Of small whole numbers, so that windows have ties; and of the same with NaN in every sixth place or so."""
    found: dict[str, torch.Tensor] = {}
    for case, about in POOLS.items():
        x = torch.randint(-2, 3, about["x"], generator=generator).double()
        with_nan = x.clone()
        with_nan[torch.rand(about["x"], generator=generator) < 0.15] = float("nan")
        for kind, values in (("ties", x), ("nan", with_nan)):
            leaf = values.clone().requires_grad_()
            output, indices = F.max_pool2d(leaf, about["size"], about["stride"], return_indices=True)
            grad_output = normal(generator, *output.shape)
            output.backward(grad_output)
            average_leaf = values.clone().requires_grad_()
            average = F.avg_pool2d(average_leaf, about["size"], about["stride"])
            average.backward(grad_output)
            arrays = {"x": values, "grad_output": grad_output, "max": output.detach(), "indices": indices}
            arrays |= {"grad_of_max": leaf.grad, "average": average.detach(), "grad_of_average": average_leaf.grad}
            found |= {f"pool/{case}/{kind}/{name}": array for name, array in arrays.items()}
    return found


def batch_norms(generator: torch.Generator) -> dict[str, torch.Tensor]:
    """UPDATES training steps, each with its batch, output, running statistics and gradients; then an evaluation."""
    tensors: dict[str, torch.Tensor] = {}
    for case, about in BATCH_NORMS.items():
        channels = about["x"][1]
        gamma, beta = normal(generator, channels), normal(generator, channels)
        x = rounded(normal(generator, UPDATES + 1, *about["x"]) + about["centre"])
        grad_output = normal(generator, UPDATES + 1, *about["x"])
        mean, var = torch.zeros(channels).double(), torch.ones(channels).double()
        steps: dict[str, list[torch.Tensor]] = {}
        for step in range(UPDATES + 1):
            leaves = {"x": x[step], "gamma": gamma, "beta": beta}
            leaves = {name: values.clone().requires_grad_() for name, values in leaves.items()}
            output = F.batch_norm(
                leaves["x"], mean, var, leaves["gamma"], leaves["beta"],
                training=step < UPDATES, momentum=about["momentum"], eps=about["epsilon"],
            )  # fmt: skip
            output.backward(grad_output[step])
            arrays = {"output": output.detach(), "running_mean": mean.clone(), "running_var": var.clone()}
            arrays |= {f"grad_{name}": leaf.grad for name, leaf in leaves.items()}
            for name, array in arrays.items():
                steps.setdefault(name, []).append(array)
        arrays = {"x": x, "gamma": gamma, "beta": beta, "grad_output": grad_output}
        arrays |= {name: torch.stack(of_steps) for name, of_steps in steps.items()}
        tensors |= {f"batch_norm/{case}/{name}": array for name, array in arrays.items()}
    return tensors


def main(path: Path) -> None:
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(SEED)
    found: dict[str, torch.Tensor] = {}
    for part in (convolutions, pools, batch_norms):
        found |= part(generator)
    cases = {"convolutions": CONVOLUTIONS, "pools": POOLS, "batch_norms": BATCH_NORMS}
    about = {"torch": torch.__version__, "numpy": np.__version__, "seed": SEED, "updates": UPDATES, **cases}
    arrays = {name: tensor.numpy() for name, tensor in found.items()}
    np.savez_compressed(path, about=np.array(json.dumps(about)), **arrays)
    print(f"wrote {path}: {len(arrays)} arrays, {path.stat().st_size / 1000:.0f} kB, torch {torch.__version__}")


if __name__ == "__main__":
    floors = Path(__file__).parent.parent / "tests" / "floors"
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else floors / "image_oracle.npz")
