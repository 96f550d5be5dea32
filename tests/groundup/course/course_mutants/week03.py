"""Wrong answers of week 3: the dense layer and backpropagation on lists."""

from tests.groundup.course.course_mutants import Mutant

MUTANTS = [
    Mutant("3.1", "y + b for y, b in", "y for y, b in", "values", "the bias is not added"),
    Mutant("3.1", "    self._x = x\n", "    pass\n", "shape", "does not remember x"),
    Mutant(
        "3.1",
        "[[y + b for y, b in zip(row, self.bias, strict=True)] for row in matmul(x, self.weights)]",
        "[[y + b for y in row] for row, b in zip(matmul(x, self.weights), self.bias)]",
        "values",
        "down the wrong axis",
    ),
    Mutant("3.2", "[sum(column) for", "[sum(column) / len(column) for", "values", "forgot the batch"),
    Mutant("3.2", "matmul_tn(self._x, grad_output)", "matmul_tn(grad_output, self._x)", "shape", "transposed"),
    Mutant("3.2", "zip(*grad_output, strict=True)", "grad_output", "values", "summed along the rows"),
    Mutant("3.2", "if needs_grad_input else None", "", "shape", "needs_grad_input=False"),
    Mutant(
        "3.2",
        "self.grad_weights = matmul_tn(self._x, grad_output)",
        "self.grad_weights = [[u + v for u, v in zip(*rows)]"
        " for rows in zip(self.grad_weights, matmul_tn(self._x, grad_output))]",
        "values",
        "the gradient of the call before",
    ),
    Mutant(
        "3.2", "matmul_nt(grad_output, self.weights)", "matmul_tn(self.weights, grad_output)", "shape", "ValueError"
    ),
    Mutant("3.3", "s * (g - weighted)", "g * s * (1.0 - s)", "values", "the sigmoid's rule"),
    Mutant("3.3", "s * (g - weighted)", "g - weighted", "values", "the factor s_i"),
    Mutant("3.3", "s * (g - weighted)", "s * (weighted - g)", "values", "the wrong order"),
    Mutant("3.3", "sum(g * s for", "sum(g for", "values", "each g_j counts with its share"),
    Mutant(
        "3.2",
        "[sum(column) for",
        "[str(sum(column)) for",
        "shape",
        "grad_bias of",
    ),
    Mutant("3.4", "if i < len(self.layers) - 1:", "if True:", "shape", "the trace is not as long"),
    Mutant("3.4", "signal = self._activate(z)", "signal = z", "values", "the activation is left out"),
    Mutant("3.4", "if masks:", "if False:", "values", "the dropout masks are not used"),
    Mutant(
        "3.4",
        "                trace.append(signal)\n                if masks:\n"
        "                    signal = _multiply(signal, masks[i])\n",
        "                if masks:\n                    signal = _multiply(signal, masks[i])\n"
        "                trace.append(signal)\n",
        "values",
        "the output after dropout",
    ),
    Mutant("3.5", "grad = self._activate_backward(grad, z, output)", "pass", "values", "derivative is left out"),
    Mutant("3.5", "reversed(range(1, len(self.layers)))", "range(1, len(self.layers))", "gradient", "walked forwards"),
    Mutant("3.5", "if masks:", "if False:", "values", "the dropout mask is ignored"),
    Mutant(
        "3.5",
        "hidden[2 * i - 2], hidden[2 * i - 1]",
        "hidden[2 * i - 2], hidden[2 * i - 2]",
        "gradient",
        "where the output belongs",
    ),
    Mutant("3.5", "return loss", "return None", "shape", "no loss came back"),
    Mutant("3.6", "p[i] -=", "p[i] +=", "values", "uphill"),
    Mutant("3.6", "g[i] + self.weight_decay", "g[i] - self.weight_decay", "values", "weights grow"),
    Mutant(
        "3.6",
        "p[i] -= self.learning_rate * slope",
        "p = [x - self.learning_rate * y for x, y in zip(p, g)]",
        "values",
        "inside the lists",
    ),
    Mutant(
        "3.6",
        "self.momentum * v[i] + slope\n",
        "self.momentum * v[i] + (1 - self.momentum) * slope\n",
        "values",
        "a sum, not a mean",
    ),
    Mutant(
        "3.6",
        "self.momentum * v[i] + slope\n"
        "                    slope = slope + self.momentum * v[i] if self.nesterov else v[i]\n"
        "                p[i] -= self.learning_rate * slope\n",
        "self.momentum * v[i] + self.learning_rate * slope\n"
        "                    slope = self.learning_rate * slope + self.momentum * v[i] if self.nesterov else v[i]\n"
        "                p[i] -= slope if self.momentum else self.learning_rate * slope\n",
        "values",
        "collects steps",
    ),
    Mutant("3.6", "if self.nesterov else v[i]", "if False else v[i]", "values", "nesterov is not used"),
]
