"""Do the stages agree, are the gradients right, and how far apart may two correct answers be?

tolerance      how far apart two correct answers may be
equivalence    the four levels of agreement between two stages, one a file: ops, steps (layers and the step as a
               whole) and trajectory, with pair (two stages side by side), problems and scales
one_function   one function on a small input, as the studio's page Floors runs it
walk           a step of the reference through a network, and how far rounding moves its results
gradients      is the gradient the slope of the loss?
rungs          every rung of every ladder alone, for a device, with resident (runs whose data stay on the device)

The rooms of convolutional networks:

convolution_ops, pooling_ops, batch_norm_ops
               every operation alone, with image_scales
image_rungs    every rung of the convolution ladder alone, for a device
winograd       Winograd's transforms in fractions, proven exact, and what rounding they cost
"""
