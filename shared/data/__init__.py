"""Data sets: reading, fetching and making them, and the batches that a training takes from them."""
