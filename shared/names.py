"""The names that a network is described with: each list stands here once, and everything else imports it.

Keep the order: C and the kernels of stage 4 get a name as its index in its tuple. `stage3_c/csrc/groundup.h` and the
studio's JavaScript have lists of their own, because they cannot import this file; a test compares them with it.
This module uses only the standard library, so that every stage can import it.
"""

ACTIVATIONS = ("identity", "relu", "leaky_relu", "sigmoid", "tanh", "softmax")
"""softmax stays the last one."""
ELEMENTWISE = ACTIVATIONS[:-1]
"""Activations that are computed number by number: all but softmax."""

ACTIVATION_FLOPS = {
    "identity": (0, 0),
    "relu": (1, 1),  # a maximum; a comparison
    "leaky_relu": (2, 2),  # slope · z, a maximum; a comparison, slope · g
    "sigmoid": (4, 3),  # −z, exp, 1 +, 1 /; 1 − s, · s, · g
    "tanh": (1, 3),  # tanh; t · t, 1 −, · g
    "softmax": (5, 4),  # a maximum, z − m, exp, a sum, a quotient; g · s, a sum, g −, · s
}
"""Arithmetic operations for each number, forward and backward; exp, tanh, log, a root and a comparison count as one
each."""

LOSSES = ("mean_squared_error", "softmax_cross_entropy", "sigmoid_cross_entropy", "hinge")
LABEL_LOSSES = ("softmax_cross_entropy", "hinge")
"""Losses whose second argument is integer labels (batch,). The other losses take targets shaped like the outputs."""

OPTIMIZERS = ("SGD", "RMSProp", "Adam")
DTYPES = ("float32", "float64")


def check_name(problem: str, name: str, choices: tuple[str, ...]) -> None:
    """ValueError with the choices unless the name is one of them. problem: such as "unknown loss"."""
    if name not in choices:
        raise ValueError(f"{problem} {name!r}; choose one of {', '.join(choices)}")


def check_dtype(function: str, dtype: str) -> None:
    """ValueError unless dtype is one that every stage knows."""
    check_name(f"{function}: unknown dtype", dtype, DTYPES)
