"""Wrong answers of week 7: memory and caches."""

from tests.groundup.course.course_mutants import Mutant, RightAnswer
from tests.groundup.course.course_mutants.week07_products import PRODUCTS, RIGHT_PRODUCTS

MUTANTS = [
    # 7.3 softmax_cross_entropy_fused
    Mutant("7.3", " / sum / (real)rows", " / sum", "values", "forgot the batch mean"),
    Mutant("7.3", "total / (double)rows", "total", "values", "forgot the mean over the batch"),
    Mutant("7.3", "-= sum;", "-= 1;", "values", "e / sum - 1 = (e - sum) / sum"),
    Mutant("7.3", "grad[j] = REAL", "grad[j] += REAL", "shape", "write it with ="),
    # 7.4 sgd
    Mutant("7.4", "p[i] -= rate", "p[i] += rate", "values", "against the gradient"),
    Mutant(
        "7.4",
        "slope_of(g[i], p[i], decay);\n        v",
        "g[i];\n        v",
        "agreement",
        "decay is not used",
    ),
    Mutant("7.4", "if (momentum == 0)", "if (momentum < 0)", "shape", "a read or write outside an array"),
    Mutant(
        "7.4", "keep * velocity[i] + slope", "keep * velocity[i] + (1 - keep) * slope", "values", "a sum, not a mean"
    ),
    Mutant(
        "7.4",
        "const real slope = slope_of(g[i], p[i], decay);",
        "((real *)(uintptr_t)g)[i] += decay * p[i];\n        const real slope = g[i];",
        "agreement",
        "which it may only read",
    ),
    Mutant("7.3", "grad[labels[i]] -= sum;", "grad[i] -= sum;", "values", "wrong at index"),
    Mutant("7.3", "logits += columns, grad += columns", "logits += columns", "values", "not every element is written"),
    Mutant("7.3", "(log)(sum)", "(log)(sum + (real)1e-7)", "values", "a small one added"),
    Mutant("7.3", "largest_of(columns, logits)", "logits[0]", "values", "loss of softmax_cross_entropy_fused"),
    Mutant(  # the exponentials twice
        "7.3",
        "            grad[j] = REAL_FUNCTION(exp)(logits[j] - largest);\n            sum += grad[j];\n        }",
        "            sum += REAL_FUNCTION(exp)(logits[j] - largest);\n        }\n"
        "        for (size_t j = 0; j < columns; j++) grad[j] = REAL_FUNCTION(exp)(logits[j] - largest);",
        "way",
        "computes 2 exponentials for each logit",
    ),
    Mutant(
        "7.3",
        "    double total = 0;\n",
        "    if (rows > 0) {\n        NAME(softmax_cross_entropy_backward)(rows, columns, logits, labels, grad);\n"
        "        return NAME(softmax_cross_entropy)(rows, columns, logits, labels);\n    }\n    double total = 0;\n",
        "way",
        "softmax_cross_entropy_fused calls softmax_cross_entropy",
    ),
    Mutant(
        "7.4",
        "slope_of(g[i], p[i], decay);\n        v",
        "slope_of(g[i], p[i], decay * rate);\n        v",
        "agreement",
        "wrong at index",
    ),
    Mutant(
        "7.4",
        "velocity[i] = keep * velocity[i] + slope;",
        "velocity[i] = keep * velocity[i] + slope;\n    }\n    for (size_t i = 0; i < size; i++) {\n"
        "        const real slope = slope_of(g[i], p[i], decay);",
        "way",
        "goes over its arrays 2 times",
    ),
    Mutant("7.4", "rate * slope_of(g[i], p[i], decay)", "rate * g[i]", "values", "decay is not used"),
    Mutant("7.4", "if (momentum == 0)", "if (velocity == NULL)", "agreement", "it is the momentum that decides"),
    Mutant(
        "7.4",
        "if (momentum == 0) {",
        "if (momentum == 0) {\n        if (velocity != NULL) velocity[0] = 0;",
        "agreement",
        "velocity is neither read nor written",
    ),
    Mutant("7.4", "(real)learning_rate", "(real)(float)learning_rate", "values", "written with few digits"),
    Mutant(
        "7.3",
        "REAL_FUNCTION(exp)(logits[j] - largest)",
        "REAL_FUNCTION(exp)(logits[j] - largest < -80 ? -80 : logits[j] - largest)",
        "values",
        "grad of softmax_cross_entropy_fused",
    ),
    # Right once, or for friendly numbers: kept values, clamps, memory that is not the function's.
    Mutant(  # float total
        "7.3",
        "    double total = 0;\n"
        "    for (size_t i = 0; i < rows; i++, logits += columns, grad += columns) {\n"
        "        const real largest = largest_of(columns, logits);\n"
        "        real sum = 0;\n"
        "        for (size_t j = 0; j < columns; j++) {\n"
        "            grad[j] = REAL_FUNCTION(exp)(logits[j] - largest);\n"
        "            sum += grad[j];\n"
        "        }\n"
        "        total += (double)(REAL_FUNCTION(log)(sum) - (logits[labels[i]] - largest));\n"
        "        grad[labels[i]] -= sum; /* e / sum - 1 = (e - sum) / sum */\n"
        "        for (size_t j = 0; j < columns; j++) grad[j] = grad[j] / sum / (real)rows;\n"
        "    }\n"
        "    return total / (double)rows;\n",
        "    real total = 0;\n"
        "    for (size_t i = 0; i < rows; i++, logits += columns, grad += columns) {\n"
        "        const real largest = largest_of(columns, logits);\n"
        "        real sum = 0;\n"
        "        for (size_t j = 0; j < columns; j++) {\n"
        "            grad[j] = REAL_FUNCTION(exp)(logits[j] - largest);\n"
        "            sum += grad[j];\n"
        "        }\n"
        "        total += REAL_FUNCTION(log)(sum) - (logits[labels[i]] - largest);\n"
        "        grad[labels[i]] -= sum; /* e / sum - 1 = (e - sum) / sum */\n"
        "        for (size_t j = 0; j < columns; j++) grad[j] = grad[j] / sum / (real)rows;\n"
        "    }\n"
        "    return (double)total / (double)rows;\n",
        "types",
        "the losses of the rows are added up in",
    ),
    Mutant(  # labels reads one past
        "7.3",
        "grad[labels[i]] -= sum;",
        "volatile int64_t next = labels[i + 1];\n        (void)next;\n        grad[labels[i]] -= sum;",
        "shape",
        "memory that may not be read",
    ),
    Mutant(  # nan loss 0
        "7.3",
        "return total / (double)rows;",
        "return total == total ? total / (double)rows : 0;",
        "sizes",
        "_fused of logits (4, 5): wrong",
    ),
    Mutant(  # double
        "7.4",
        "rate * (nesterov ? slope + keep * velocity[i] : velocity[i])",
        "(real)(learning_rate * (double)(nesterov ? slope + keep * velocity[i] : velocity[i]))",
        "way",
        "a double drags the whole line into double,",
    ),
    Mutant(  # skip zero g
        "7.4",
        "        const real slope = slope_of(g[i], p[i], decay);\n        velocity",
        "        if (g[i] == 0) continue;\n        const real slope = slope_of(g[i], p[i], decay);\n        velocity",
        "agreement",
        "wrong at index",
    ),
    Mutant(  # static keep
        "7.4",
        "    for (size_t i = 0; i < size; i++) {\n",
        "    static size_t steps;\n    steps++;\n    for (size_t i = 0; i < size; i++) {\n",
        "values",
        "static and global variables are shared by all",
    ),
    *PRODUCTS,
]

RIGHT_ANSWERS = [
    RightAnswer(
        "7.3",
        "        grad[labels[i]] -= sum; /* e / sum - 1 = (e - sum) / sum */\n"
        "        for (size_t j = 0; j < columns; j++) grad[j] = grad[j] / sum / (real)rows;",
        "        for (size_t j = 0; j < columns; j++) grad[j] = grad[j] / (sum * (real)rows);\n"
        "        grad[labels[i]] -= 1 / (real)rows;",
    ),
    RightAnswer(  # a cast or two more
        "7.3",
        "grad[j] = grad[j] / sum / (real)rows;",
        "grad[j] = (real)((double)grad[j] / (double)sum / (double)rows);",
    ),
    RightAnswer(
        "7.4",
        "        velocity[i] = keep * velocity[i] + slope;",
        "        velocity[i] *= keep;\n        velocity[i] += slope;",
    ),
    RightAnswer(  # local v
        "7.4",
        "        velocity[i] = keep * velocity[i] + slope;\n"
        "        p[i] -= rate * (nesterov ? slope + keep * velocity[i] : velocity[i]);",
        "        const real v = keep * velocity[i] + slope;\n"
        "        velocity[i] = v;\n"
        "        p[i] = p[i] - rate * (nesterov ? slope + keep * v : v);",
    ),
    *RIGHT_PRODUCTS,
]
