"""Ask PyTorch for the right answers once, and keep them in tests/floors/oracle.npz.

Every definition in this project is PyTorch's, so PyTorch is the witness that owes us nothing: it shares no
line of code with the stages. This script feeds it seeded random inputs and writes down what it says, in
float64: values and autograd's gradients of every activation, loss and layer, ten steps of every optimizer,
and twenty training steps of small networks. tests/floors/test_oracle.py holds each stage to these numbers; the
tests themselves do not need PyTorch.

All inputs are rounded to float32 first, so that a float32 stage starts from exactly the same numbers and
its test measures its arithmetic, not the rounding of its inputs.

To make the file again, in an environment that has torch (CPU is enough) and numpy:

    python scripts/make_oracle.py            # writes tests/floors/oracle.npz
    python scripts/make_oracle.py other.npz

The array "about" holds JSON: the versions used, and the cases with their hyperparameters.
"""

from __future__ import annotations

import json
import platform
import sys
from collections.abc import Callable
from itertools import pairwise, product
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

from shared import names
from shared.bench.peers import pytorch_layers

SEED = 20240229
NETWORK_SIZES = [5, 7, 6, 4]
NETWORK_BATCH = 8
NETWORK_BATCHES = 3  # step s trains on batch s modulo this
NETWORK_STEPS = 20
OPTIMIZER_STEPS = 10

ACTIVATIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    **{name: pytorch_layers.activation(torch, name) for name in names.ACTIVATIONS},
    "identity": lambda z: z * 1.0,  # a tensor of its own, which has a gradient of its own
}
LOSSES: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "mean_squared_error": F.mse_loss,
    "softmax_cross_entropy": F.cross_entropy,
    "sigmoid_cross_entropy": F.binary_cross_entropy_with_logits,
    "hinge": F.multi_margin_loss,
}
TORCH_OPTIMIZERS = {"SGD": torch.optim.SGD, "RMSProp": torch.optim.RMSprop, "Adam": torch.optim.Adam}
TORCH_ARGUMENTS = {"learning_rate": "lr", "epsilon": "eps"}  # ours to torch's, where only the name differs

# Each case: our optimizer's name and the arguments it gets, ours by name.
OPTIMIZER_CASES: dict[str, tuple[str, dict]] = {
    "SGD plain": ("SGD", {"learning_rate": 0.1}),
    "SGD weight decay": ("SGD", {"learning_rate": 0.1, "weight_decay": 0.05}),
    "SGD momentum": ("SGD", {"learning_rate": 0.1, "momentum": 0.9}),
    "SGD momentum weight decay": ("SGD", {"learning_rate": 0.1, "momentum": 0.9, "weight_decay": 0.05}),
    "SGD nesterov": ("SGD", {"learning_rate": 0.1, "momentum": 0.8, "nesterov": True}),
    "SGD nesterov weight decay": (
        "SGD",
        {"learning_rate": 0.05, "momentum": 0.8, "nesterov": True, "weight_decay": 0.05},
    ),
    "RMSProp defaults": ("RMSProp", {}),
    "RMSProp": ("RMSProp", {"learning_rate": 0.02, "alpha": 0.9, "epsilon": 1e-4}),
    "RMSProp weight decay": ("RMSProp", {"learning_rate": 0.02, "alpha": 0.9, "weight_decay": 0.05}),
    "Adam defaults": ("Adam", {}),
    "Adam": ("Adam", {"learning_rate": 0.02, "beta1": 0.8, "beta2": 0.95, "epsilon": 1e-4}),
    "Adam weight decay": ("Adam", {"learning_rate": 0.02, "weight_decay": 0.05}),
}
NETWORK_OPTIMIZERS: dict[str, dict] = {
    "SGD": {"learning_rate": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.01},
    "RMSProp": {"learning_rate": 0.01, "alpha": 0.9},
    "Adam": {"learning_rate": 0.01},
}


def rounded(values: torch.Tensor) -> torch.Tensor:
    """The nearest float32 numbers, stored as float64."""
    return values.to(torch.float32).to(torch.float64)


def normal(generator: torch.Generator, *shape: int, scale: float = 1.0) -> torch.Tensor:
    return rounded(torch.randn(*shape, generator=generator, dtype=torch.float64) * scale)


def torch_optimizer(name: str, arguments: dict, parameters: list[torch.Tensor]) -> torch.optim.Optimizer:
    """The torch optimizer that our name and arguments stand for."""
    renamed = {TORCH_ARGUMENTS.get(key, key): value for key, value in arguments.items()}
    if name == "Adam":
        renamed["betas"] = (renamed.pop("beta1", 0.9), renamed.pop("beta2", 0.999))
    return TORCH_OPTIMIZERS[name](parameters, **renamed)


def activation_inputs(generator: torch.Generator) -> dict[str, torch.Tensor]:
    """Ordinary numbers, the places where definitions matter, numbers that overflow a careless exp, and NaN and inf."""
    return {
        "random": normal(generator, 5, 7, scale=2.0),
        "kinks": torch.tensor([[0.0, -0.0, 0.5, -0.5], [0.0, 0.0, 0.0, 0.0]], dtype=torch.float64),
        "large": torch.tensor([[1e4, -1e4, 3.0, 1e4], [-1e4, -1e4, -1e4, -1e4], [40, -40, 800, -800]]).double(),
        "nonfinite": torch.tensor(
            [[float("nan"), 1.0, -1.0], [float("inf"), 0.0, 1.0], [float("-inf"), 0.0, 1.0]], dtype=torch.float64
        ),
        "column": normal(generator, 3, 1),
    }


def activations(generator: torch.Generator) -> dict[str, torch.Tensor]:
    found: dict[str, torch.Tensor] = {}
    for case, values in activation_inputs(generator).items():
        grad_output = normal(generator, *values.shape)
        found[f"activations/{case}/z"] = values
        found[f"activations/{case}/grad_output"] = grad_output
        for name, function in ACTIVATIONS.items():
            z = values.clone().requires_grad_()
            output = function(z)
            output.backward(grad_output)
            found[f"activations/{case}/{name}"] = output.detach()
            found[f"activations/{case}/{name}_backward"] = z.grad
    return found


def loss_inputs(generator: torch.Generator, name: str) -> dict[str, tuple[torch.Tensor, torch.Tensor]]:
    """Case -> (outputs, targets or labels) for one loss: random, logits of ±1e4, exactly on a kink, one by one."""
    large = torch.tensor([[1e4, -1e4, 0.0], [1e4, -1e4, 0.0], [-1e4, 1e4, 1e4], [0.0, 0.0, 0.0]], dtype=torch.float64)
    kink = torch.tensor([[1.0, 0.0, 0.0], [0.0, 1.0, 2.0]], dtype=torch.float64)
    outputs = {
        "random": normal(generator, 6, 5, scale=2.0),
        "large": large,
        "kink": kink,
        "one": normal(generator, 1, 1),
    }
    if name in ("softmax_cross_entropy", "hinge"):
        answers = {
            "random": torch.randint(0, 5, (6,), generator=generator),
            "large": torch.tensor([0, 1, 2, 1]),
            "kink": torch.tensor([0, 1]),
            "one": torch.tensor([0]),
        }
    elif name == "sigmoid_cross_entropy":
        answers = {
            "random": rounded(torch.rand(6, 5, generator=generator, dtype=torch.float64)),
            "large": torch.tensor([[1, 0, 1], [0, 1, 0], [1, 1, 0], [0.5, 0, 1]], dtype=torch.float64),
            "kink": torch.tensor([[1, 0, 1], [0, 1, 0]], dtype=torch.float64),
            "one": torch.tensor([[1.0]], dtype=torch.float64),
        }
    else:
        answers = {case: normal(generator, *values.shape) for case, values in outputs.items()}
    return {case: (outputs[case], answers[case]) for case in outputs}


def losses(generator: torch.Generator) -> dict[str, torch.Tensor]:
    found: dict[str, torch.Tensor] = {}
    for name, function in LOSSES.items():
        for case, (values, answers) in loss_inputs(generator, name).items():
            outputs = values.clone().requires_grad_()
            value = function(outputs, answers)
            value.backward()
            prefix = f"losses/{name}/{case}"
            found[f"{prefix}/outputs"] = values
            found[f"{prefix}/answers"] = answers
            found[f"{prefix}/value"] = value.detach()
            found[f"{prefix}/backward"] = outputs.grad
    return found


def linear(generator: torch.Generator) -> dict[str, torch.Tensor]:
    """torch.nn.functional.linear keeps weights as (out, in); ours are (in, out), hence the .T."""
    found: dict[str, torch.Tensor] = {}
    for batch, in_features, out_features in [(1, 1, 1), (6, 5, 4), (3, 13, 2), (17, 2, 7)]:
        x = normal(generator, batch, in_features).requires_grad_()
        weights = normal(generator, in_features, out_features).requires_grad_()
        bias = normal(generator, out_features).requires_grad_()
        grad_output = normal(generator, batch, out_features)
        output = F.linear(x, weights.T, bias)
        output.backward(grad_output)
        prefix = f"linear/{batch}x{in_features}x{out_features}"
        arrays = {"x": x, "weights": weights, "bias": bias, "grad_output": grad_output, "output": output}
        arrays |= {"grad_x": x.grad, "grad_weights": weights.grad, "grad_bias": bias.grad}
        found |= {f"{prefix}/{name}": array.detach() for name, array in arrays.items()}
    return found


def optimizers(generator: torch.Generator) -> dict[str, torch.Tensor]:
    """Parameters after each of ten steps on given gradients, some of which are exactly zero."""
    starts = [normal(generator, 3, 4), normal(generator, 4)]
    gradients = [normal(generator, OPTIMIZER_STEPS, *start.shape) for start in starts]
    gradients[0][:, 0, 0] = 0.0
    gradients[1][3] = 0.0
    found = {f"optimizers/start_{i}": start for i, start in enumerate(starts)}
    found |= {f"optimizers/gradients_{i}": gradient for i, gradient in enumerate(gradients)}
    for case, (name, arguments) in OPTIMIZER_CASES.items():
        parameters = [start.clone().requires_grad_() for start in starts]
        optimizer = torch_optimizer(name, arguments, parameters)
        after: list[list[torch.Tensor]] = [[] for _ in starts]
        for step in range(OPTIMIZER_STEPS):
            for parameter, gradient in zip(parameters, gradients, strict=True):
                parameter.grad = gradient[step].clone()
            optimizer.step()
            for history, parameter in zip(after, parameters, strict=True):
                history.append(parameter.detach().clone())
        found |= {f"optimizers/{case}/after_{i}": torch.stack(history) for i, history in enumerate(after)}
    return found


def flat(tensors: list[torch.Tensor]) -> torch.Tensor:
    return torch.cat([tensor.detach().reshape(-1) for tensor in tensors])


def network_forward(
    x: torch.Tensor, parameters: list[torch.Tensor], activation: str, masks: list[torch.Tensor] | None = None
) -> torch.Tensor:
    """The activation, then the dropout mask where there is one, follow every layer but the last."""
    for i in range(0, len(parameters), 2):
        x = F.linear(x, parameters[i].T, parameters[i + 1])
        if i + 2 < len(parameters):
            x = ACTIVATIONS[activation](x)
            if masks is not None:
                x = x * masks[i // 2]
    return x


def networks(generator: torch.Generator) -> dict[str, torch.Tensor]:
    """For every activation x loss: outputs, loss and gradients, first plain, then with dropout masks (2, ...);
    and a training trajectory with each of NETWORK_OPTIMIZERS, in that order (3, ...)."""
    start = []
    for fan_in, fan_out in pairwise(NETWORK_SIZES):
        start += [normal(generator, fan_in, fan_out, scale=fan_in**-0.5), normal(generator, fan_out, scale=0.1)]
    count, classes = (NETWORK_BATCHES, NETWORK_BATCH), NETWORK_SIZES[-1]
    x = normal(generator, *count, NETWORK_SIZES[0])
    answers = {
        "labels": torch.randint(0, classes, count, generator=generator),
        "numbers": normal(generator, *count, classes),
        "probabilities": rounded(torch.rand(*count, classes, generator=generator, dtype=torch.float64)),
    }
    kept = [torch.rand(NETWORK_BATCH, size, generator=generator) < 0.5 for size in NETWORK_SIZES[1:-1]]
    masks = [2.0 * mask.double() for mask in kept]  # rate 0.5: 0 or 1 / (1 - 0.5)
    answers_for = {"mean_squared_error": "numbers", "sigmoid_cross_entropy": "probabilities"}

    tensors = {"networks/start": flat(start), "networks/x": x}
    tensors |= {f"networks/{name}": values for name, values in answers.items()}
    tensors |= {f"networks/mask_{i}": mask for i, mask in enumerate(masks)}
    for activation, loss in product(ACTIVATIONS, LOSSES):
        y = answers[answers_for.get(loss, "labels")]
        prefix = f"networks/{activation}/{loss}"
        outputs, values, gradients = [], [], []
        for case_masks in (None, masks):
            parameters = [tensor.clone().requires_grad_() for tensor in start]
            output = network_forward(x[0], parameters, activation, case_masks)
            value = LOSSES[loss](output, y[0])
            value.backward()
            outputs.append(output.detach())
            values.append(value.detach())
            gradients.append(flat([parameter.grad for parameter in parameters]))
        tensors[f"{prefix}/outputs"] = torch.stack(outputs)
        tensors[f"{prefix}/values"] = torch.stack(values)
        tensors[f"{prefix}/gradients"] = torch.stack(gradients)
        runs = [train(start, activation, loss, x, y, optimizer) for optimizer in NETWORK_OPTIMIZERS]
        tensors[f"{prefix}/trajectory_losses"] = torch.stack([run_losses for run_losses, _ in runs])
        tensors[f"{prefix}/trajectory_ends"] = torch.stack([end for _, end in runs])
    return tensors


def train(
    start: list[torch.Tensor], activation: str, loss: str, x: torch.Tensor, y: torch.Tensor, optimizer_name: str
) -> tuple[torch.Tensor, torch.Tensor]:
    """NETWORK_STEPS steps from `start`: the loss before each step (NETWORK_STEPS,) and the last parameters, flat."""
    parameters = [tensor.clone().requires_grad_() for tensor in start]
    optimizer = torch_optimizer(optimizer_name, NETWORK_OPTIMIZERS[optimizer_name], parameters)
    values = []
    for step in range(NETWORK_STEPS):
        batch = step % NETWORK_BATCHES
        optimizer.zero_grad()
        value = LOSSES[loss](network_forward(x[batch], parameters, activation), y[batch])
        value.backward()
        optimizer.step()
        values.append(value.detach())
    return torch.stack(values), flat(parameters)


def main(path: Path) -> None:
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(SEED)
    found: dict[str, torch.Tensor] = {}
    for part in (activations, losses, linear, optimizers, networks):
        found |= part(generator)
    about = {
        "torch": torch.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
        "seed": SEED,
        "network_sizes": NETWORK_SIZES,
        "optimizer_cases": OPTIMIZER_CASES,
        "network_optimizers": NETWORK_OPTIMIZERS,
    }
    arrays = {name: tensor.numpy() for name, tensor in found.items()}
    np.savez_compressed(path, about=np.array(json.dumps(about)), **arrays)
    print(f"wrote {path}: {len(arrays)} arrays, {path.stat().st_size / 1000:.0f} kB, torch {torch.__version__}")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent.parent / "tests" / "floors" / "oracle.npz")
