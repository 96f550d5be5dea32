"""Everything that is not the network itself: the contract, the data, the training loop, the checks and the commands."""

__version__ = "0.1.0"
