"""The page Convolution: a pixel of a map, the window that it was made of, and all of the drawing that it has seen.

networks     the convolutional networks that can be looked into: known ones, and the runs of the studio's folder
passes       a drawing's way through all layers of a network, and the gradient's way back
pixel        one number of a map: the numbers that it was computed from, and where its gradient goes
field        the pixels of the drawing that a number of a map depends on
same_sum     the same number once more, by each stage's own function
embedded     what the page is given about a network, and what an exported page carries
desk         the answers to the page, with the networks and drawings that were asked for last
routes       the addresses of the page
lenet5.safetensors, small_residual_cnn.safetensors
             the trained networks that ship, made by scripts/make_digits_network.py
"""
