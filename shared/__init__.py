"""Everything that is not the network itself: the contract, the data, the training loop, the checks and the commands."""
