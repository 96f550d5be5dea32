"""Networks in which every operation meets every other: what a step of joined operations is compared on.

Each is (shape of an input, layers).
"""

from shared.layers import Activate, AveragePool, BatchNorm, Conv, Dense, Dropout, Flatten, MaxPool, Residual

RELU = Activate("relu")
IMAGE = {
    "relu before and after pooling": (
        Conv(3, 3),
        RELU,
        MaxPool(2),
        Conv(4, 2),
        MaxPool(2, 1),
        RELU,
        Flatten(),
        Dense(3),
    ),
    "windows that overlap or leave a rest": (
        *(Conv(2, 2), MaxPool((1, 3), 1), MaxPool(3, 2), BatchNorm(), AveragePool((2, 1), 1), Flatten()),
    ),
    "every activation": (
        *(
            Conv(2, 3, padding=1),
            Activate("sigmoid"),
            BatchNorm(),
            Activate("tanh"),
            BatchNorm(),
            Activate("leaky_relu"),
        ),
        *(Activate("tanh"), Conv(2, 1), Activate("leaky_relu"), Flatten(), Dense(5), Activate("softmax"), Dense(3)),
    ),
    "nothing to learn before the end": (AveragePool(2), RELU, Residual((RELU, Dropout(0.5))), Flatten(), Dense(3)),
    "blocks in blocks": (
        Conv(2, 3, stride=2, padding=1),
        Residual((Residual((Conv(2, 3, padding=1), RELU)), BatchNorm(), Residual((Activate("tanh"),)))),
        RELU,
        MaxPool(2),
        Dropout(0.3),
        *(Flatten(), Residual((Dense(8), BatchNorm(), RELU)), Dropout(0.2), Dense(3)),
    ),
    "a block first": (
        *(Residual((Conv(2, 3, padding=1), RELU)), RELU, Conv(3, 2), RELU, Residual((Conv(3, 1),)), Flatten()),
        *(Dense(3), BatchNorm()),
    ),
    "nothing to learn": (MaxPool(4), Flatten()),
    "wide enough for Winograd": (Conv(17, 3), RELU, Conv(18, 3, padding=1), Flatten(), Dense(3)),
}
WIDE = {  # channels that may fill every lane, and what follows a convolution done to its sums
    "blocks": (
        Residual((Conv(16, 3, padding=1), BatchNorm(), RELU, Conv(16, 3, padding=1), BatchNorm())),
        *(RELU, MaxPool(2), Conv(32, 3, padding=2), BatchNorm(), Activate("tanh"), Flatten(), Dense(3)),
    ),
    "blocks without normalisation": (
        *(Conv(16, (3, 2), stride=(1, 2)), BatchNorm(), Activate("leaky_relu")),
        *(Residual((BatchNorm(), Conv(16, 3, padding=1))), Activate("sigmoid"), AveragePool(2), Dropout(0.5)),
        *(Flatten(), Dense(3)),
    ),
}
ROWS = {
    "rows with a block": (Residual((BatchNorm(), Activate("tanh"), Dense(7))), RELU, Dropout(0.5), Dense(3)),
    "rows": (Activate("sigmoid"), Dropout(0.1), Dense(4), BatchNorm(), RELU, Dense(3)),
}
FORMS = {name: ((2, 9, 8), made) for name, made in IMAGE.items()} | {name: ((7,), made) for name, made in ROWS.items()}
FORMS |= {name: ((16, 9, 8), made) for name, made in WIDE.items()}
