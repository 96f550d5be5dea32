"""The page Digits: draw a digit, and see how a network reads it on every floor.

networks     the networks that can answer: the one that ships, and the runs of the studio's folder
answering    every stage's answer to a drawing, and the stages' preparation in the background
reasons      what led to the answer: the layers' outputs, the winner's weights, the pixels that mattered
nearest      the training images that are most like the drawing
own_set      the learner's own drawings as a data set for `groundup train`
pixels       a drawing as it comes from the page
embedded     what an exported page carries
routes       the addresses of the page
network.safetensors
             the network that ships, made by scripts/make_digits_network.py
"""
