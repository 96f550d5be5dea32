"""Wrong answers of week 17: tools that look inside the network."""

from tests.groundup.course.course_mutants import Mutant, RightAnswer

MUTANTS = [
    Mutant(
        "17.1", "np.add.at(counts, (labels, predictions), 1)", "counts[labels, predictions] += 1", "values", "only once"
    ),
    Mutant("17.1", "(labels, predictions), 1)", "(predictions, labels), 1)", "values", "transposed"),
    Mutant("17.1", "np.int64)", "np.float64)", "shape", "whole numbers"),
    Mutant(
        "17.2", "activate(signal @ weights + bias)", "signal @ weights + bias", "values", "the activation comes after"
    ),
    Mutant("17.2", "signal @ weights + bias", "signal @ weights", "values", "the biases are not added"),
    Mutant(
        "17.2", "(parameters[:-2:2], parameters[1:-2:2]", "(parameters[::2], parameters[1::2]", "shape", "no hidden one"
    ),
    Mutant(
        "17.2",
        "        signal = activate",
        "        signal = x\n        signal = activate",
        "values",
        "every layer gets x",
    ),
    Mutant("17.3", "axis=0", "axis=1", "shape", "each unit has one"),
    Mutant("17.3", "activations != 0", "activations > 0", "values", "a negative output"),
    Mutant("17.3", "activations != 0", "activations == 0", "values", "how often a unit is 0"),
    Mutant(
        "17.4",
        "activate_backward(gradient, z, output) @ weights.T",
        "gradient @ weights.T",
        "values",
        "derivative is left out",
    ),
    Mutant("17.4", "return gradient", "return gradient * (0.0 / (x - x))", "values", "NaN was computed"),
    Mutant("17.4", "return gradient", "return np.abs(gradient)", "values", "the sign is lost"),
    Mutant(
        "17.4",
        "parameters[-2].T[labels]",
        "np.tile(parameters[-2].sum(axis=1), (len(x), 1))",
        "values",
        "only the label's is asked for",
    ),
    Mutant("17.4", "parameters[-2].T[labels]", "parameters[-2][labels]", "values", "a row of the last weights"),
    Mutant(  # int8
        "17.1",
        "np.int64)",
        "np.int8)",
        "shape",
        "whole numbers",
    ),
    Mutant(  # uint8
        "17.1",
        "np.int64)",
        "np.uint8)",
        "shape",
        "whole numbers",
    ),
    Mutant(  # int16
        "17.1",
        "np.int64)",
        "np.int16)",
        "shape",
        "whole numbers",
    ),
    Mutant(  # size by max label
        "17.1",
        "np.zeros((classes, classes), np.int64)",
        "np.zeros((labels.max() + 1, classes), np.int64)",
        "values",
        "the shape is not right",
    ),
    Mutant(  # tanh always
        "17.2",
        "activate(signal @ weights + bias)",
        "np.tanh(signal @ weights + bias)",
        "values",
        "wrong",
    ),
    Mutant(  # relu always
        "17.2",
        "activate(signal @ weights + bias)",
        "np.maximum(signal @ weights + bias, 0)",
        "agreement",
        "wrong",
    ),
    Mutant(  # same array
        "17.2",
        "        signal = activate(signal @ weights + bias)\n        outputs.append(signal)",
        "        signal = activate(signal @ weights + bias)\n        outputs = [signal] * (len(outputs) + 1)",
        "values",
        "wrong",
    ),
    Mutant(  # threshold
        "17.3",
        "activations != 0",
        "np.abs(activations) > 1e-3",
        "values",
        "wrong",
    ),
    Mutant(  # threshold small
        "17.3",
        "activations != 0",
        "np.abs(activations) > 1e-8",
        "values",
        "wrong",
    ),
    Mutant(  # isclose
        "17.3",
        "activations != 0",
        "~np.isclose(activations, 0)",
        "values",
        "wrong",
    ),
    Mutant(  # relu always
        "17.4",
        "activate_backward(gradient, z, output)",
        "np.where(z > 0, gradient, 0)",
        "gradient",
        "wrong",
    ),
    Mutant(  # mean over batch
        "17.4",
        "return gradient",
        "return gradient / len(x)",
        "values",
        "everything is 3 times too small",
    ),
    Mutant(  # softmaxed
        "17.4",
        "return gradient",
        "return gradient - gradient.mean(axis=1, keepdims=True)",
        "values",
        "wrong",
    ),
    Mutant("17.3", "activations != 0", "np.nan_to_num(activations) != 0", "values", "NaN is no zero"),
    Mutant(
        "17.2",
        "signal = activate(signal @ weights + bias)",
        "signal = activate(signal @ weights + bias) if activation != 'leaky_relu' else "
        "np.maximum(signal @ weights + bias, 0)",
        "sizes",
        "(leaky_relu,",
    ),
]

RIGHT_ANSWERS = [
    RightAnswer(
        "17.1",
        "    np.add.at(counts, (labels, predictions), 1)",
        "    for i, j in zip(labels, predictions):\n        counts[i, j] += 1\n    #",
    ),
]
