"""What the floors share: the contract, data, training, checks, the harness that times them, and charts."""
