"""The second floor: the same network on NumPy arrays, a whole batch in one call."""
