"""The ground floor: a neural network in lists and loops, with nothing but the standard library.

Besides the rooms (the files that every floor has):
layered    a network of any architecture: convolutions, pooling, batch normalisation, residual blocks
parts      its layers without weights
"""
