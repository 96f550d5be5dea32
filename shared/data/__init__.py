"""Data sets: reading, fetching and making them, and the batches that a training takes from them.

accepted_data  what people have becomes samples and labels of one form; what a data set is
idx            the IDX files of MNIST
inflating      gzip files, read in pieces
idx_sets       folders with a set's four IDX files: found by their names, known by their content
pictures       pictures in folders
own_images     sets of the user's own: pictures, .npz and IDX files
datasets       MNIST, Fashion-MNIST and the bundled subset, by name; sets of the user's own, by their place
download       fetches and checks the full sets
synthetic      XOR, two clouds, circles, spirals
normalisation  mean 0 and deviation 1 for all numbers of a data set
augmentation   training images shifted and rotated a little, as a counter decides
batches        mini-batches in an order that a seed decides
mapped         a set that several processes of a machine train on, once in its memory
"""
