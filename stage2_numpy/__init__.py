"""The second floor: the same network on NumPy arrays, a whole batch in one call.

columns    where the windows of a convolution lie, and their copies as the columns of a matrix
"""
