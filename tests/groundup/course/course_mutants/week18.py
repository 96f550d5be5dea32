"""Wrong answers of week 18: a live view, and gradient checking."""

from tests.groundup.course.course_mutants import Mutant, RightAnswer

MUTANTS = [
    Mutant("18.1", "BLOCKS[round(7 * height)]", "BLOCKS[int(7 * height)]", "values", "rounded down"),
    Mutant("18.1", "BLOCKS[round(7 * height)]", "BLOCKS[7 - round(7 * height)]", "values", "upside down"),
    Mutant("18.1", "float(np.mean(group))", "float(group[0])", "values", "the group's mean"),
    Mutant("18.1", "(mean - low) / (high - low)", "mean / high", "values", "not 0"),
    Mutant("18.1", "group[np.isfinite(group)]", "group", "values", "takes its whole group with it"),
    Mutant("18.2", "size / beside", "beside / size", "values", "wrong"),
    Mutant(
        "18.2",
        "float(np.linalg.norm(gradient)), float(np.linalg.norm(weights))",
        "float(np.abs(gradient).sum()), float(np.abs(weights).sum())",
        "values",
        "wrong",
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
    Mutant("18.3", "abs(analytic - numeric) / scale", "(analytic - numeric) / scale", "values", "wrong"),
    Mutant("18.4", "return central[0]", "return (wide[0] - here) / h", "values", "the slope to the right"),
    Mutant("18.4", "/ (2 * step)", "/ step", "values", "2h apart"),
    Mutant("18.4", " or abs(bend[0] - 2 * bend[1]) > noise", "", "values", "right slope minus left slope"),
    Mutant(
        "18.4", "abs(central[0] - central[1]) > noise or ", "", "values", "the slopes measured with h and with h / 2"
    ),
    Mutant("18.4", "bend[0] - 2 * bend[1]", "bend[0] - bend[1]", "shape", "taken for a kink"),
    Mutant(  # ceil
        "18.1",
        "round(7 * height)",
        "math.ceil(7 * height)",
        "agreement",
        "another line",
    ),
    Mutant(  # eight levels
        "18.1",
        "round(7 * height)",
        "min(7, int(8 * height))",
        "agreement",
        "another line",
    ),
    Mutant(  # median
        "18.1",
        "float(np.mean(group))",
        "float(np.median(group))",
        "agreement",
        "another line",
    ),
    Mutant(  # squared sums mean
        "18.2",
        "float(np.linalg.norm(gradient))",
        "float(np.sqrt(np.mean(gradient**2)))",
        "values",
        "wrong",
    ),
    Mutant(  # eps
        "18.2",
        "size / beside if beside else math.inf if size else 0.0",
        "size / (beside + 1e-8)",
        "values",
        "nearly right, but further off than rounding",
    ),
    Mutant(  # with biases
        "18.2",
        "for weights, gradient in zip(parameters[::2], gradients[::2], strict=True):",
        "for weights, gradient in zip([np.concatenate([w.ravel(), b]) for w, b in zip(parameters[::2], p"
        "arameters[1::2])], [np.concatenate([w.ravel(), b]) for w, b in zip(gradients[::2], gradients[1:"
        ":2])], strict=True):",
        "values",
        "wrong",
    ),
    Mutant(  # sum
        "18.3",
        "max(abs(analytic), abs(numeric), abs(loss))",
        "abs(analytic) + abs(numeric)",
        "values",
        "wrong",
    ),
    Mutant(  # eps
        "18.3",
        "return abs(analytic - numeric) / scale",
        "return abs(analytic - numeric) / (scale + 1e-8)",
        "values",
        "nearly right, but further off than rounding",
    ),
    Mutant(  # mean
        "18.3",
        "max(abs(analytic), abs(numeric), abs(loss))",
        "(abs(analytic) + abs(numeric) + abs(loss)) / 3",
        "values",
        "wrong",
    ),
    Mutant(  # backward difference
        "18.4",
        "return central[0]",
        "return (here - wide[1]) / h",
        "values",
        "this is the slope to the left, (L(p) - L(p - h))",
    ),
    Mutant(  # h too large
        "18.4",
        "h = STEP * max(1.0, abs(p))",
        "h = 1e-2 * max(1.0, abs(p))",
        "values",
        "a larger step misses how the curve bends",
    ),
    Mutant(  # h too small
        "18.4",
        "h = STEP * max(1.0, abs(p))",
        "h = 1e-10 * max(1.0, abs(p))",
        "values",
        "p was moved by 3e-10, and STEP times the larger of 1 and |p| is 1.8e-05",
    ),
    Mutant("18.4", "h = STEP * max(1.0, abs(p))", "h = STEP", "sizes", "STEP times the larger of 1 and |p|"),
    Mutant("18.4", "max(1.0, abs(p))", "max(1.0, p)", "sizes", "lost in the rounding of p"),
    Mutant(
        "18.4", "max(1.0, abs(here), abs(central[0]))", "max(1.0, abs(central[0]))", "sizes", "noise grows with |here|"
    ),
    Mutant(
        "18.4", "max(1.0, abs(here), abs(central[0]))", "max(1.0, abs(here))", "sizes", "noise grows with |central|"
    ),
    Mutant("18.4", "max(1.0, abs(here), abs(central[0]))", "max(1.0, here, central[0])", "sizes", "there is no kink"),
    Mutant("18.4", "max(1.0, abs(here), abs(central[0]))", "max(abs(here), abs(central[0]))", "sizes", "at least 1"),
    Mutant("18.4", "noise = LIMIT *", "noise = 1e-6 *", "sizes", "this kink is small"),
    Mutant("18.1", "round(7 * height)", "int(7 * height + 0.5)", "sizes", "half a block goes to the even one"),
    Mutant("18.1", "known = [mean for", "known = [round(mean, 2) for", "sizes", "another line"),
    Mutant("18.2", "if beside else", "if beside > 1e-12 else", "values", "weights that are small are not 0"),
    Mutant(
        "18.3",
        "abs(analytic - numeric) / scale",
        "abs(analytic - numeric) / max(scale, 1e-12)",
        "values",
        "the scale has a smallest value",
    ),
    Mutant(
        "18.4",
        "if abs(central[0] - central[1]) > noise or abs(bend[0] - 2 * bend[1]) > noise:",
        "if not (abs(central[0] - central[1]) <= noise and abs(bend[0] - 2 * bend[1]) <= noise):",
        "sizes",
        "NaN is no kink",
    ),
]

RIGHT_ANSWERS = [
    RightAnswer("18.4", "return central[0]", "return (4 * central[1] - central[0]) / 3"),
    RightAnswer("18.4", "max(1.0, abs(here), abs(central[0]))", "(1 + abs(here) + abs(central[0]))"),
    RightAnswer("18.4", "STEP * max(1.0, abs(p))", "STEP * (1.0 + p * p) ** 0.5"),
]
