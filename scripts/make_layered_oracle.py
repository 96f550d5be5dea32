"""Write tests/floors/layered_oracle.npz: a small network of every kind of layer, trained by PyTorch in float64.

    pip install torch==2.13.0
    python scripts/make_layered_oracle.py

tests/floors/test_layered.py reads the file and needs no PyTorch. It writes the same network as an architecture.
"""

from pathlib import Path

import numpy as np
import torch
from torch import nn

BATCHES, BATCH, CLASSES = 5, 6, 3


class Residual(nn.Module):
    def __init__(self, *modules):
        super().__init__()
        self.inner = nn.Sequential(*modules)

    def forward(self, x):
        return self.inner(x) + x


class Masked(nn.Module):
    """Dropout with a mask from outside."""

    mask = None

    def forward(self, x):
        return x if self.mask is None else x * self.mask


def make_network():
    torch.manual_seed(1)
    return nn.Sequential(
        nn.Conv2d(2, 4, (3, 2), stride=(1, 2), padding=(1, 0)),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        Residual(nn.Conv2d(4, 4, 3, padding=1), nn.BatchNorm2d(4), nn.Tanh(), nn.Conv2d(4, 4, 1)),
        nn.MaxPool2d(2),
        nn.AvgPool2d((2, 1), stride=1),
        nn.Flatten(),
        Masked(),
        nn.Linear(4 * 3 * 2, 7),
        nn.BatchNorm1d(7),
        nn.LeakyReLU(0.01),
        nn.Linear(7, CLASSES),
    ).double()


def main():
    """Train five steps and write what went in and what came out."""
    network = make_network()
    with torch.no_grad():  # away from 1 and 0, which would hide a gamma or beta that is not used
        for module in network.modules():
            if isinstance(module, nn.BatchNorm1d | nn.BatchNorm2d):
                module.weight += 0.3 * torch.randn_like(module.weight)
                module.bias += 0.3 * torch.randn_like(module.bias)
    rng = np.random.default_rng(2)
    arrays = {}

    def parameters(module):
        copies = []
        for parameter in module.parameters():
            values = parameter.detach().numpy()
            copies.append(values.T.copy() if values.ndim == 2 else values.copy())  # our dense weights are transposed
        return copies

    def running(module):
        normal = [m for m in module.modules() if isinstance(m, nn.BatchNorm1d | nn.BatchNorm2d)]
        return [values.numpy().copy() for m in normal for values in (m.running_mean, m.running_var)]

    def keep(name, values):
        for i, value in enumerate(values):
            arrays[f"{name}.{i}"] = value

    keep("before", parameters(network))
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.9, weight_decay=0.01)
    losses = []
    for step in range(BATCHES):
        x = torch.tensor(rng.standard_normal((BATCH, 2, 8, 9)) + 0.5)
        y = torch.tensor(rng.integers(0, CLASSES, BATCH))
        mask = torch.tensor((rng.random((BATCH, 24)) < 0.75) / 0.75)
        network[7].mask = mask
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(network(x), y)
        loss.backward()
        if step == 0:
            grads = [p.grad.numpy().T.copy() if p.ndim == 2 else p.grad.numpy().copy() for p in network.parameters()]
            keep("gradients", grads)
        optimizer.step()
        losses.append(loss.item())
        arrays |= {f"x.{step}": x.numpy(), f"y.{step}": y.numpy(), f"mask.{step}": mask.numpy()}
    keep("after", parameters(network))
    keep("running", running(network))
    arrays["losses"] = np.array(losses)
    network.eval()
    network[7].mask = None
    arrays["evaluated"] = network(torch.tensor(arrays["x.0"])).detach().numpy()
    path = Path(__file__).parent.parent / "tests" / "floors" / "layered_oracle.npz"
    np.savez_compressed(path, **arrays)
    print(f"{path}: {path.stat().st_size:,} bytes, losses {losses}")


if __name__ == "__main__":
    main()
