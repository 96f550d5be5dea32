"""What is measured, one file for each kind.

machine      the peak of a core and the bandwidth of its memories: the two roofs
ladders      every rung of every matmul ladder over sizes
products     the products of a network's shapes, beside NumPy and PyTorch
integers     products of whole numbers of eight bits beside those in float32
convolutions every rung of every convolution ladder on the shapes of the known networks
operations   every activation, loss, layer and optimizer, forward and backward (from operation_table)
steps        a training step, and (step_parts) where its time goes
inference    predictions for batches of 1 to 1,024 images
training     an epoch, the time to an accuracy, the curves
memory       the most memory that training holds
phases       what surrounds computing: import, compile, copy in, compute, copy out
"""
