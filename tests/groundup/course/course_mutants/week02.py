"""Wrong answers of week 2: activations and losses on lists."""

from tests.groundup.course.course_mutants import Mutant

MUTANTS = [
    Mutant("2.1", "v <= 0.0", "v < 0.0", "values", "the slope at z = 0"),
    Mutant("2.1", "else g for", "else 1.0 for", "values", "the slope alone"),
    Mutant("2.1", "else g for", "else v for", "values", "relu(z) once more"),
    Mutant("2.1", "0.0 if v <= 0.0", "0.0 if g <= 0.0", "values", "the sign of grad_output does not matter"),
    Mutant(
        "2.2", "    if v >= 0.0:\n        return", "    if True:\n        return", "values", "larger than any float"
    ),
    Mutant("2.2", "math.exp(-v)", "math.exp(v)", "values", "the exponent's sign"),
    Mutant("2.2", "1.0 / (1.0 + math.exp(-v))", "math.tanh(v)", "values", "this is tanh"),
    Mutant("2.2", "    if v >= 0.0", "    v = max(-30.0, min(30.0, v))\n    if v >= 0.0", "values", "by 9.3e-14 where"),
    Mutant(
        "2.2",
        "    if v >= 0.0",
        "    if v < -700:\n        return math.inf - math.inf\n    if v >= 0.0",
        "values",
        "NaN was",
    ),
    Mutant("2.3", "math.exp(v - largest)", "math.exp(v)", "values", "subtract the row's maximum"),
    Mutant("2.3", "largest = max(row)", "largest = max(max(each) for each in z)", "values", "not of the whole matrix"),
    Mutant("2.3", "[e / total for e in exps]", "exps", "values", "divide each by their row's sum"),
    Mutant(
        "2.3",
        "return output",
        "whole = sum(map(sum, output))\n    return [[v / whole for v in row] for row in output]",
        "values",
        "all numbers together add up to 1",
    ),
    Mutant(
        "2.3",
        "return output",
        "return [[v / sum(c) for v, c in zip(r, zip(*output))] for r in output]",
        "values",
        "every column adds up to 1",
    ),
    Mutant("2.4", "2.0 / (rows * columns)", "1.0 / (rows * columns)", "values", "a factor of 2"),
    Mutant("2.4", "2.0 / (rows * columns)", "2.0 / rows", "values", "divided by the batch alone"),
    Mutant("2.4", "scale * (o - t)", "scale * (t - o)", "values", "wrong sign"),
    Mutant("2.4", "2.0 / (rows * columns)", "2.0", "values", "forgot the mean"),
    Mutant("2.5", "return total / rows", "return total", "values", "forgot the mean over the batch"),
    Mutant("2.5", "return total / rows", "return -total / rows", "values", "wrong sign"),
    Mutant("2.5", "(row[label] - largest)", "row[label]", "values", "does not cancel"),
    Mutant("2.5", "largest = max(row)", "largest = 0.0", "values", "subtract the row's maximum"),
    Mutant(
        "2.5",
        "total += math.log(sum(math.exp(v - largest) for v in row)) - (row[label] - largest)",
        "total -= math.log(softmax([row])[0][label])",
        "values",
        "a share has rounded to 0",
    ),
    Mutant("2.6", "[g / rows for g in row]", "[g for g in row]", "values", "forgot the batch mean"),
    Mutant("2.6", "row[label] -= 1.0", "row[label] += 0.0", "values", "the 1 at the label is not subtracted"),
    Mutant("2.6", "g / rows for", "-g / rows for", "values", "wrong sign"),
    Mutant("2.6", "grad = softmax(logits)", "grad = logits", "shape", "logits was changed"),
    Mutant(
        "2.6",
        "grad = softmax(logits)",
        "grad = [[s / rows for s in row] for row in softmax(logits)]\n    rows = 1",
        "values",
        "subtract first, then divide",
    ),
]
