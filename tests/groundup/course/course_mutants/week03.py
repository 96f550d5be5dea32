"""Wrong answers of week 3: the dense layer and backpropagation on lists."""

from tests.groundup.course.course_mutants import Mutant, RightAnswer
from tests.groundup.course.course_mutants.week03_further import FURTHER

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
    Mutant("3.4", "    return outputs", "    return x", "shape", "the list is not as long"),
    Mutant(
        "3.4", "        outputs.append(x)\n", "    outputs.append(x)\n", "shape", "the output of every layer is wanted"
    ),
    Mutant(  # the inputs in place of the outputs
        "3.4",
        "        outputs.append(x)\n    return outputs",
        "        outputs.append(x)\n    return [layers[0]._x, *outputs[:-1]]",
        "shape",
        "what comes out of it is wanted",
    ),
    Mutant(
        "3.4",
        "                x = layer.forward(x)\n        outputs.append(x)\n",
        "                y = layer.forward(x)\n        outputs.append(y)\n",
        "values",
        "the output of the layer before",
    ),
    Mutant("3.4", "None if masks is None else next(masks)", "None", "values", "the dropout masks are not used"),
    Mutant(
        "3.4",
        "    for layer in layers:\n",
        "    for layer in layers:\n        mask = next(masks) if masks else None\n",
        "values",
        "next(masks) is for a Dropout layer, and for no other",
    ),
    Mutant("3.4", "layer.forward(x, training)", "layer.forward(x, False)", "way", "BatchNorm's forward takes training"),
    Mutant("3.4", "layer.forward(x, training, masks)", "layer.forward(x, training, None)", "way", "layers inside"),
    Mutant("3.5", "reversed(layers)", "layers", "values", "begin at the last layer"),
    Mutant("3.5", "grad = layer.backward(grad)", "out = layer.backward(grad)", "values", "begin at the last layer"),
    Mutant("3.5", "    return grad", "    pass", "shape", "no dL/dx came back"),
    Mutant("3.5", "reversed(layers)", "reversed(layers[1:])", "values", "wrong at index"),
    Mutant(
        "3.5",
        "        grad = layer.backward(grad)\n",
        "        if not isinstance(layer, Activate):\n            grad = layer.backward(grad)\n",
        "values",
        "the activation's derivative is left out",
    ),
    Mutant(
        "3.5",
        "        grad = layer.backward(grad)\n",
        "        if not isinstance(layer, Dropout):\n            grad = layer.backward(grad)\n",
        "values",
        "the dropout mask is ignored",
    ),
    Mutant("3.7", "self._forward(x, masks,", "self._forward(x, None,", "values", "hand them to _forward"),
    Mutant("3.7", "training=True", "training=False", "way", "this step is training"),
    Mutant("3.7", "        return loss", "        pass", "shape", "no loss came back"),
    Mutant(
        "3.7",
        "        return loss",
        "        return self._loss(self._forward(x, masks, True)[-1], y)",
        "values",
        "after the step",
    ),
    Mutant(
        "3.7",
        "        grad = backward(others, grad)",
        "        if optimizer is not None:\n            optimizer.step(self.parameters, self.layer_gradients)\n"
        "        grad = backward(others, grad)",
        "shape",
        "2 times, and not once",
    ),
    Mutant(  # the gradients of the step before
        "3.7",
        "        outputs = self._forward(x, masks, training=True)[-1]",
        "        if optimizer is not None:\n            optimizer.step(self.parameters, self.layer_gradients)\n"
        "            optimizer = None\n"
        "        outputs = self._forward(x, masks, training=True)[-1]",
        "values",
        "after the step",
    ),
    Mutant(
        "3.7",
        "        if optimizer is not None:\n",
        "        if True:\n",
        "shape",
        "'NoneType' object has no attribute",
    ),
    Mutant("3.7", "isinstance(first, Dense | Conv2d)", "True", "way", "needs_grad_input"),
    Mutant("3.7", "self._loss_backward(outputs, y)", "self._loss_backward(outputs, outputs)", "values", ""),
    Mutant("3.7", "optimizer.step(", "len(", "shape", ""),
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
        "wrong at index",
    ),
    Mutant("3.6", "if self.nesterov else v[i]", "if False else v[i]", "values", "nesterov is not used"),
    Mutant(  # stores the result
        "3.1",
        "        self._x = x\n"
        "        return [[y + b for y, b in zip(row, self.bias, strict=True)] for row in matmul(x, self."
        "weights)]",
        "        self._x = [[0.0] * len(x[0]) for _ in x]\n"
        "        return [[y + b for y, b in zip(row, self.bias, strict=True)] for row in matmul(x, self."
        "weights)]",
        "shape",
        "backward will ask what x was",
    ),
    *FURTHER,
    Mutant("3.8", "math.sqrt(2.0 / fan_in)", "2.0 / fan_in", "values", "_normal takes the deviation"),
    Mutant("3.8", "math.sqrt(2.0 / fan_in)", "math.sqrt(1.0 / fan_in)", "values", "ReLU makes half of it 0"),
    Mutant("3.8", "math.sqrt(2.0 / fan_in)", "math.sqrt(2.0 / fan_out)", "values", "this is fan_out"),
    Mutant("3.8", "math.sqrt(2.0 / fan_in)", "math.sqrt(2.0 / (fan_in + fan_out))", "values", "Glorot's variance"),
    Mutant("3.8", "math.sqrt(2.0 / fan_in)", "math.sqrt(6.0 / fan_in)", "values", "a uniform weight's limit"),
    Mutant("3.8", "math.sqrt(2.0 / fan_in)", "math.sqrt(2.0) / fan_in", "values", "not of 2 alone"),
    Mutant("3.8", "math.sqrt(2.0 / fan_in)", "math.sqrt(fan_in / 2.0)", "values", "upside down"),
    Mutant("3.8", "math.sqrt(2.0 / fan_in)", "1.0", "values", "depends on fan_in"),
    Mutant(
        "3.8",
        "return _normal(rng, deviation)",
        "return _uniform(rng, math.sqrt(6.0 / fan_in))",
        "shape",
        "makes a uniform weight",
    ),
    Mutant(
        "3.8",
        "return _normal(rng, deviation)",
        "return rng.gauss(0.0, math.sqrt(2.0 / fan_in))",
        "shape",
        "Python promises only of random()",
    ),
    Mutant(
        "3.8",
        "return _normal(rng, deviation)",
        "rng.random()\n    return _normal(rng, deviation)",
        "shape",
        "the same numbers in the same order",
    ),
    Mutant(
        "3.8",
        "return _normal(rng, deviation)",
        "_normal(rng, math.sqrt(2.0 / fan_in))",
        "shape",
        "nothing came back",
    ),
    Mutant(
        "3.8",
        "return _normal(rng, deviation)",
        "return max(-2.0, min(2.0, _normal(rng, math.sqrt(2.0 / fan_in))))",
        "values",
        "wrong",
    ),
]

RIGHT_ANSWERS = [
    RightAnswer(  # loops
        "3.1",
        "        return [[y + b for y, b in zip(row, self.bias, strict=True)] for row in matmul(x, self.weights)]",
        "        y = matmul(x, self.weights)\n"
        "        for row in y:\n"
        "            for j in range(len(row)):\n"
        "                row[j] += self.bias[j]\n"
        "        return y",
    ),
    RightAnswer(  # x copied
        "3.1",
        "self._x = x",
        "self._x = [list(row) for row in x]",
    ),
    RightAnswer(  # in place grads
        "3.2",
        "self.grad_weights = matmul_tn(self._x, grad_output)",
        "self.grad_weights[:] = matmul_tn(self._x, grad_output)",
    ),
    RightAnswer("3.3", "s * (g - weighted) for", "s * g - s * weighted for"),
    RightAnswer(  # double loop
        "3.3",
        "        grad_z.append([s * (g - weighted) for g, s in zip(g_row, s_row, strict=True)])",
        "        row = []\n"
        "        for i in range(len(s_row)):\n"
        "            row.append(sum(g_row[j] * s_row[j] * ((i == j) - s_row[i]) for j in "
        "range(len(s_row))))\n"
        "        grad_z.append(row)",
    ),
    RightAnswer("3.5", "for layer in reversed(layers):", "for layer in layers[::-1]:"),
    RightAnswer(  # recursion
        "3.5",
        "    for layer in reversed(layers):\n        grad = layer.backward(grad)\n    return grad",
        "    if not layers:\n        return grad\n    return backward(layers[:-1], layers[-1].backward(grad))",
    ),
    RightAnswer(  # always momentum
        "3.6",
        "                if self.momentum:\n"
        "                    (v,) = buffers\n"
        "                    v[i] = self.momentum * v[i] + slope\n"
        "                    slope = slope + self.momentum * v[i] if self.nesterov else v[i]\n"
        "                p[i] -= self.learning_rate * slope",
        "                if self.momentum == 0:\n"
        "                    p[i] = p[i] - slope * self.learning_rate\n"
        "                    continue\n"
        "                buffers[0][i] *= self.momentum\n"
        "                buffers[0][i] += slope\n"
        "                step = buffers[0][i] * self.momentum + slope if self.nesterov else "
        "buffers[0][i]\n"
        "                p[i] = p[i] - step * self.learning_rate",
    ),
    RightAnswer("3.7", "first.backward(grad, needs_grad_input=False)", "first.backward(grad)"),
    RightAnswer(
        "3.8",
        "return _normal(rng, deviation)",
        "variance = 2 / fan_in\n    return variance**0.5 * _normal(rng, 1.0)",
    ),
]
