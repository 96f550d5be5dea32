"""A PyTorch model with this project's CUDA kernels inside, beside the same model with PyTorch's own layers.

Both start from the same weights and see the same batches of handwritten digits, so that their losses go down together;
they part in the last digits, where sums were added up in another order.

Run it:  python examples/torch_layers.py           needs PyTorch: pip install torch
"""

import sys
from collections.abc import Callable

try:
    import torch
except ImportError:
    sys.exit("error: this example needs PyTorch: pip install torch")

from shared.data.datasets import Split, load_dataset
from stage4_numba_cuda.backend import BACKEND
from stage4_numba_cuda.interchange import Dense, LeakyReLU

IMAGES = 2000
EPOCHS = 4
BATCH_SIZE = 50
DEVICE = "cuda" if BACKEND.name == "gpu" else "cpu"
Linear = Callable[[int, int], torch.nn.Module]


def model(linear: Linear, activation: type[torch.nn.Module]) -> torch.nn.Module:
    """784-64-10. Nothing but the two classes tells whose layers they are."""
    return torch.nn.Sequential(linear(784, 64), activation(), linear(64, 10)).to(DEVICE)


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
        return float((model(x).argmax(dim=1) == y).float().mean())


def main() -> None:
    """Train both and print what became of them."""
    print(BACKEND.line())
    data = load_dataset()
    torch.manual_seed(0)
    theirs, ours = model(torch.nn.Linear, torch.nn.LeakyReLU), model(Dense, LeakyReLU)
    ours.load_state_dict(theirs.state_dict())
    courses = [train(each, *tensors(data.train)) for each in (theirs, ours)]
    print(f"{'loss of epoch':<24}{'torch.nn':>12}{'our kernels':>14}")
    for epoch, losses in enumerate(zip(*courses, strict=True), start=1):
        print(f"{epoch:<24}{losses[0]:>12.6f}{losses[1]:>14.6f}")
    right = [accuracy(each, *tensors(data.test)) for each in (theirs, ours)]
    print(f"{'test images right':<24}{right[0]:>12.1%}{right[1]:>14.1%}")


if __name__ == "__main__":
    main()
