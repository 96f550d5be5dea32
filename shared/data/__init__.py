"""Data sets: reading, fetching and making them, and the batches that a training takes from them.

idx            the IDX files of MNIST
inflating      gzip files, read in pieces
datasets       MNIST, Fashion-MNIST and the bundled subset, by name
download       fetches and checks the full sets
synthetic      XOR, two clouds, circles, spirals
normalisation  mean 0 and deviation 1 for all numbers of a data set
augmentation   training images shifted and rotated a little, as a counter decides
batches        mini-batches in an order that a seed decides
"""
