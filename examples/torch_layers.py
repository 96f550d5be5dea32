"""PyTorch models with this project's CUDA kernels inside, beside the same models with PyTorch's own layers.

There are two models, one of dense layers and one with a convolution. Both twins of a model start from the same weights
and see the same batches of handwritten digits, so that their losses go down together; they part in the last digits,
where sums were added up in another order.

Run it:  python examples/torch_layers.py           needs PyTorch: pip install torch
"""

import sys
from types import SimpleNamespace
from typing import Any

try:
    import torch
except ImportError:
    sys.exit("error: this example needs PyTorch: pip install torch")

from shared.data.datasets import Split, load_dataset
from stage4_numba_cuda.backend import BACKEND
from stage4_numba_cuda.interchange import BatchNorm2d, Conv2d, Dense, LeakyReLU, MaxPool2d

OURS = SimpleNamespace(BatchNorm2d=BatchNorm2d, Conv2d=Conv2d, LeakyReLU=LeakyReLU, Linear=Dense, MaxPool2d=MaxPool2d)
"""Our layers by the names of torch.nn: it can stand where torch.nn stands."""

IMAGES = 2000
EPOCHS = 4
BATCH_SIZE = 50
DEVICE = "cuda" if BACKEND.name == "gpu" else "cpu"


def dense(layers: Any) -> torch.nn.Module:
    """784-64-10, of the layers of torch.nn or of ours."""
    return torch.nn.Sequential(layers.Linear(784, 64), layers.LeakyReLU(), layers.Linear(64, 10)).to(DEVICE)


def convolutional(layers: Any) -> torch.nn.Module:
    """8 kernels of 5 x 5, batch normalisation, a pool and a dense layer: 28 x 28 numbers become 14 x 14, then 7 x 7."""
    return torch.nn.Sequential(
        torch.nn.Unflatten(1, (1, 28, 28)),
        layers.Conv2d(1, 8, 5, stride=2, padding=2),
        layers.BatchNorm2d(8),
        layers.LeakyReLU(),
        layers.MaxPool2d(2),
        torch.nn.Flatten(),
        layers.Linear(8 * 7 * 7, 10),
    ).to(DEVICE)


def tensors(split: Split) -> tuple[torch.Tensor, torch.Tensor]:
    """The first IMAGES images, (n, 784), and what they show, (n,)."""
    return torch.from_numpy(split.x[:IMAGES]).to(DEVICE), torch.from_numpy(split.y[:IMAGES]).to(DEVICE)


def train(model: torch.nn.Module, x: torch.Tensor, y: torch.Tensor) -> list[float]:
    """The mean loss of each epoch."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    losses = []
    for epoch in range(EPOCHS):
        order = torch.randperm(len(x), generator=torch.Generator().manual_seed(epoch)).to(DEVICE)
        total = 0.0
        for batch in order.split(BATCH_SIZE):
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(x[batch]), y[batch])
            loss.backward()
            optimizer.step()
            total += loss.item() * len(batch)
        losses.append(total / len(x))
    return losses


def accuracy(model: torch.nn.Module, x: torch.Tensor, y: torch.Tensor) -> float:
    with torch.inference_mode():
        return float((model.eval()(x).argmax(dim=1) == y).float().mean())


def main() -> None:
    """Train both twins of each model and print what became of them."""
    print(BACKEND.line())
    data = load_dataset()
    for model in (dense, convolutional):
        torch.manual_seed(0)
        theirs, ours = model(torch.nn), model(OURS)
        ours.load_state_dict(theirs.state_dict())
        courses = [train(each, *tensors(data.train)) for each in (theirs, ours)]
        print(f"\n{model.__name__ + ', loss of epoch':<30}{'torch.nn':>12}{'our kernels':>14}")
        for epoch, losses in enumerate(zip(*courses, strict=True), start=1):
            print(f"{epoch:<30}{losses[0]:>12.6f}{losses[1]:>14.6f}")
        right = [accuracy(each, *tensors(data.test)) for each in (theirs, ours)]
        print(f"{'test images right':<30}{right[0]:>12.1%}{right[1]:>14.1%}")


if __name__ == "__main__":
    main()
