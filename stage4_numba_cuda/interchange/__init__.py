"""This stage's kernels inside PyTorch: layers that stand where those of torch.nn stood.

    linear          Dense(784, 128)              torch.nn.Linear(784, 128)
    activation      LeakyReLU(0.01)              torch.nn.LeakyReLU(0.01)
    convolution     Conv2d(6, 16, 5)             torch.nn.Conv2d(6, 16, 5)
    pooling         MaxPool2d(2)                 torch.nn.MaxPool2d(2)
    normalisation   BatchNorm2d(16)              torch.nn.BatchNorm2d(16)
    tensors         what all of them share: the memory of a tensor as an array of the device, and the checks

Each layer is a subclass of PyTorch's with another forward, so it has PyTorch's arguments, first weights and names in
the state_dict. Each file has the function beside the layer: dense, leaky_relu, conv2d, max_pool2d and batch_norm take
what the functions of torch.nn.functional take.

PyTorch does not know what a kernel of ours computes, so it cannot differentiate it. A torch.autograd.Function tells
it: a forward that computes, and a backward that turns the gradient of the output into the gradients of the inputs.
Everything else (the order of the backward passes, adding gradients up, optimizers, checkpoints) stays PyTorch's.

Nothing is copied between the two, on either device. A tensor on a GPU says where its numbers lie
(`__cuda_array_interface__`), and numba-cuda takes that address for an array. The emulator's device is memory of this
process, so there a tensor of the CPU is wrapped the same way. Results are tensors that PyTorch allocated. Only a tensor
with gaps, such as a transposed view or an image whose channels lie last, is copied into one without, since kernels walk
memory row after row.

Which device it is was chosen by backend.py. Tensors that lie on another are refused, and the error says what to do.
"""

try:
    import torch as _torch  # noqa: F401  (its absence is told here, in one place)
except ImportError as error:
    raise ImportError("stage4_numba_cuda.interchange needs PyTorch, which is optional: pip install torch") from error

from .activation import LeakyReLU, leaky_relu
from .convolution import Conv2d, conv2d
from .linear import Dense, dense
from .normalisation import BatchNorm2d, batch_norm
from .pooling import MaxPool2d, max_pool2d

__all__ = [
    "BatchNorm2d", "Conv2d", "Dense", "LeakyReLU", "MaxPool2d",
    "batch_norm", "conv2d", "dense", "leaky_relu", "max_pool2d",
]  # fmt: skip
