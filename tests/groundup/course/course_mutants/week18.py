"""Wrong answers of week 18: a live view, and gradient checking."""

from tests.groundup.course.course_mutants import Mutant

MUTANTS = [
    Mutant("18.1", "BLOCKS[round(7 * height)]", "BLOCKS[int(7 * height)]", "values", "rounded down"),
    Mutant("18.1", "BLOCKS[round(7 * height)]", "BLOCKS[7 - round(7 * height)]", "values", "upside down"),
    Mutant("18.1", "float(np.mean(group))", "float(group[0])", "values", "the group's mean"),
    Mutant("18.1", "(mean - low) / (high - low)", "mean / high", "values", "not 0"),
    Mutant("18.1", "group[np.isfinite(group)]", "group", "values", "takes its whole group with it"),
    Mutant("18.2", "size / beside", "beside / size", "values", "upside down"),
    Mutant(
        "18.2",
        "float(np.linalg.norm(gradient)), float(np.linalg.norm(weights))",
        "float(np.abs(gradient).sum()), float(np.abs(weights).sum())",
        "values",
        "sums of absolute values",
    ),
    Mutant("18.2", "if beside else math.inf if size else 0.0", "", "values", "where the weights are all 0"),
    Mutant("18.2", "(parameters[::2], gradients[::2]", "(parameters, gradients", "shape", "only the weights have"),
    Mutant(
        "18.3",
        "abs(analytic), abs(numeric), abs(loss)",
        "abs(analytic), abs(numeric)",
        "values",
        "the loss counts, too",
    ),
    Mutant("18.3", "abs(analytic), abs(numeric), abs(loss)", "analytic, numeric, loss", "values", "with their signs"),
    Mutant("18.3", "    if scale == 0:\n        return 0.0\n", "", "values", "before dividing"),
    Mutant("18.3", "abs(analytic - numeric) / scale", "(analytic - numeric) / scale", "values", "never negative"),
    Mutant("18.4", "return central[0]", "return (wide[0] - here) / h", "values", "the slope to the right"),
    Mutant("18.4", "/ (2 * step)", "/ step", "values", "2h apart"),
    Mutant("18.4", " or abs(bend[0] - 2 * bend[1]) > noise", "", "values", "right slope minus left slope"),
    Mutant(
        "18.4", "abs(central[0] - central[1]) > noise or ", "", "values", "the slopes measured with h and with h / 2"
    ),
    Mutant("18.4", "bend[0] - 2 * bend[1]", "bend[0] - bend[1]", "shape", "taken for a kink"),
]
