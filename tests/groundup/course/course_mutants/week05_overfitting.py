"""Wrong answers of week 5: dropout's mask, and early stopping."""

from tests.groundup.course.course_mutants import Mutant

OVERFITTING = [
    Mutant(
        "5.6",
        "np.asarray(1.0 / (1.0 - rate), dtype)",
        "np.asarray(1.0, dtype)",
        "values",
        "has to be multiplied by 1 / (1 - rate)",
    ),
    Mutant("5.6", "np.asarray(1.0 / (1.0 - rate), dtype)", "np.asarray(1.0 - rate, dtype)", "values", "have to grow"),
    Mutant(
        "5.6",
        "np.asarray(1.0 / (1.0 - rate), dtype)",
        "np.asarray(1.0 / rate if rate else 1.0, dtype)",
        "values",
        "1 - rate of the neurons are kept",
    ),
    Mutant(
        "5.6",
        "np.asarray(1.0 / (1.0 - rate), dtype)",
        "1.0 / (1.0 - rate)",
        "types",
        "one of float64 would make them float64",
    ),
    Mutant("5.6", ">= rate", "< rate", "values", "the wrong ones are dropped"),
    Mutant("5.6", ">= rate", "< 1.0 - rate", "values", "those from the rate on"),
    Mutant("5.6", ">= rate", ">= 0.0", "values", "nothing is dropped"),
    Mutant(
        "5.6",
        "np.arange(rows * columns, dtype=np.uint64)",
        "np.tile(np.arange(columns, dtype=np.uint64), rows)",
        "values",
        "every row is the same",
    ),
    Mutant(
        "5.6",
        "np.arange(rows * columns, dtype=np.uint64)",
        "np.arange(1, rows * columns + 1, dtype=np.uint64)",
        "values",
        "the indices begin with 0",
    ),
    Mutant("5.6", ".reshape(rows, columns)", ".reshape(columns, rows).T", "values", "numbered down the columns"),
    Mutant("5.6", ".reshape(rows, columns)", "", "shape", "in another shape"),
    Mutant("5.6", "mask_key(seed, step, layer)", "mask_key(seed, 0, layer)", "values", "each step drops other neurons"),
    Mutant(
        "5.6", "mask_key(seed, step, layer)", "mask_key(seed, step, 0)", "values", "each layer has a mask of its own"
    ),
    Mutant("5.6", "mask_key(seed, step, layer)", "mask_key(0, step, layer)", "values", "the seed is left out"),
    Mutant("5.6", "mask_key(seed, step, layer)", "mask_key(step, seed, layer)", "values", "wrong"),
    Mutant(
        "5.6",
        "    survives = uniform_numbers(mask_key(seed, step, layer), indices) >= rate\n",
        "    survives = np.random.default_rng(seed).random(rows * columns) >= rate\n",
        "values",
        "wrong",
    ),
    Mutant(
        "5.6",
        "    indices = np.arange(rows * columns, dtype=np.uint64)\n"
        "    survives = uniform_numbers(mask_key(seed, step, layer), indices) >= rate\n",
        "    survives = np.array([mask_value(i, rate, seed, step, layer) > 0 for i in range(rows * columns)])\n",
        "way",
        "uniform_numbers takes a whole array",
    ),
    Mutant(
        "5.7",
        "max(values) if higher_is_better else min(values)",
        "min(values)",
        "values",
        "an accuracy is better if it is higher",
    ),
    Mutant(
        "5.7",
        "max(values) if higher_is_better else min(values)",
        "max(values)",
        "values",
        "a loss is better if it is lower",
    ),
    Mutant("5.7", "values.index(best) + 1", "values.index(best)", "values", "counted from 1"),
    Mutant(
        "5.7",
        "epoch = values.index(best) + 1",
        "epoch = values.index(best) + 1 if higher_is_better or best < 1e9 else 1",
        "values",
        "begin with the first epoch's",
    ),
    Mutant("5.7", "values.index(best) + 1", "len(values) - values[::-1].index(best)", "values", "has improved nothing"),
    Mutant(
        "5.7",
        "return epoch, len(values) - epoch",
        "return epoch, len(values) - epoch + 1",
        "values",
        "is not one that came after it",
    ),
    Mutant(
        "5.7",
        "return epoch, len(values) - epoch",
        "return epoch, max(0, len(values) - epoch - 1)",
        "values",
        "one too few",
    ),
    Mutant(
        "5.7", "return epoch, len(values) - epoch", "return len(values) - epoch, epoch", "values", "have changed places"
    ),
    Mutant("5.7", "return epoch, len(values) - epoch", "return epoch, epoch", "values", "in place of the wait"),
    Mutant("5.7", "return epoch, len(values) - epoch", "return len(values), 0", "values", "not the best one"),
    Mutant(
        "5.7",
        "return epoch, len(values) - epoch",
        "return epoch, float(len(values) - epoch)",
        "shape",
        "expected two ints",
    ),
    Mutant("5.7", "return epoch, len(values) - epoch", "return epoch", "shape", "expected two numbers"),
    Mutant(
        "5.7",
        "epoch = values.index(best) + 1",
        "values.sort()\n    epoch = values.index(best) + 1",
        "shape",
        "was changed by the call",
    ),
    Mutant(
        "5.7",
        "return epoch, len(values) - epoch",
        "idle = sum(min(values[: i + 1]) in values[:i] for i in range(len(values)))\n"
        "    return epoch, len(values) - epoch if higher_is_better else idle",
        "values",
        "back to 0",
    ),
    Mutant(
        "5.7",
        "epoch = values.index(best) + 1",
        "sign = 1 if higher_is_better else -1\n"
        "    better = [i + 1 for i in range(1, len(values)) if sign * values[i] > sign * values[i - 1]]\n"
        "    epoch = max(better, default=1)",
        "values",
        "compared with the epoch before",
    ),
    Mutant("5.6", ">= rate", "> rate", "values", "wrong"),
    Mutant(
        "5.7", "best = max(values)", "values = [round(v, 3) for v in values]\n    best = max(values)", "values", "wrong"
    ),
]
