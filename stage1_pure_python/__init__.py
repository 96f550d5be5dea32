"""The ground floor: a neural network in lists and loops, with nothing but the standard library."""
