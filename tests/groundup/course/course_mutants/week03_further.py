"""Further wrong answers to the tasks of week 3: right once, or for some numbers."""

from tests.groundup.course.course_mutants import Mutant

FURTHER = [
    Mutant(  # bias of first row only
        "3.1",
        "        return [[y + b for y, b in zip(row, self.bias, strict=True)] for row in matmul(x, self.weights)]",
        "        y = matmul(x, self.weights)\n"
        "        y[0] = [v + b for v, b in zip(y[0], self.bias)]\n"
        "        return y",
        "values",
        "wrong",
    ),
    Mutant(  # remembers output
        "3.1",
        "        self._x = x\n"
        "        return [[y + b for y, b in zip(row, self.bias, strict=True)] for row in matmul(x, self."
        "weights)]",
        "        self._x = [[y + b for y, b in zip(row, self.bias, strict=True)] for row in matmul(x, se"
        "lf.weights)]\n"
        "        return self._x",
        "shape",
        "backward will ask what x was",
    ),
    Mutant(  # computes input anyway
        "3.2",
        "return matmul_nt(grad_output, self.weights) if needs_grad_input else None",
        "found = matmul_nt(grad_output, self.weights)\n        return found if needs_grad_input else None",
        "way",
        "no layer needs dL/dx of the first one",
    ),
    Mutant(  # moves weights
        "3.2",
        "self.grad_weights = matmul_tn(self._x, grad_output)",
        "self.grad_weights = matmul_tn(self._x, grad_output)\n"
        "        self.weights = [[w - 0.0 * 1 for w in row] for row in self.weights]",
        "way",
        "no layer needs dL/dx of the first one",
    ),
    Mutant(  # grads only if needed
        "3.2",
        "        self.grad_weights = matmul_tn(self._x, grad_output)\n"
        "        self.grad_bias = [sum(column) for column in zip(*grad_output, strict=True)]\n"
        "        return matmul_nt(grad_output, self.weights) if needs_grad_input else None",
        "        if not needs_grad_input:\n"
        "            return None\n"
        "        self.grad_weights = matmul_tn(self._x, grad_output)\n"
        "        self.grad_bias = [sum(column) for column in zip(*grad_output, strict=True)]\n"
        "        return matmul_nt(grad_output, self.weights)",
        "shape",
        "grad_weights and grad_bias are wanted in any",
    ),
    Mutant(  # softmax recomputed from z naive
        "3.3",
        "    for g_row, s_row in zip(grad_output, output, strict=True):",
        "    for g_row, z_row in zip(grad_output, z, strict=True):\n"
        "        s_row = [math.exp(v) / sum(map(math.exp, z_row)) for v in z_row]",
        "values",
        "math range error",
    ),
    Mutant(  # divide by row length
        "3.3",
        "weighted = sum(g * s for g, s in zip(g_row, s_row, strict=True))",
        "weighted = sum(g * s for g, s in zip(g_row, s_row, strict=True)) / len(g_row)",
        "values",
        "wrong",
    ),
    Mutant(  # max g
        "3.3",
        "weighted = sum(g * s for g, s in zip(g_row, s_row, strict=True))",
        "weighted = max(g_row)",
        "values",
        "wrong at index",
    ),
    Mutant(  # changes g
        "3.6",
        "                slope = g[i] + self.weight_decay * p[i] if self.weight_decay else g[i]\n",
        "                g[i] += self.weight_decay * p[i]\n                slope = g[i]\n",
        "values",
        "make a new list, and leave the gradient as it is",
    ),
    Mutant(  # nesterov old v
        "3.6",
        "                    slope = slope + self.momentum * v[i] if self.nesterov else v[i]",
        "                    slope = slope + self.momentum * (self.momentum * v[i] + slope) if self.nesterov else v[i]",
        "values",
        "wrong",
    ),
    Mutant(  # only first parameter
        "3.6",
        "for_each_row(update, parameters, gradients)",
        "for_each_row(update, parameters[:1], gradients[:1])",
        "values",
        "nothing has changed",
    ),
    Mutant(
        "3.2",
        "        self.grad_bias =",
        "        if needs_grad_input:\n            self.grad_bias =",
        "shape",
        "has found no gradient of the bias",
    ),
    # Right once, or for friendly numbers: kept values, clamps, memory that is not the function's.
    Mutant(  # first x kept
        "3.1",
        "        self._x = x\n",
        "        self._x = x if self._x is None else self._x\n",
        "again",
        "alone, the same call is right: so an earlier",
    ),
    Mutant(  # columns kept by id of weights
        "3.1",
        "        return [[y + b for y, b in zip(row, self.bias, strict=True)] for row in matmul(x, self.weights)]\n",
        "        if getattr(self, 'of', None) is not self.weights:\n"
        "            self.columns, self.of = list(zip(*self.weights)), self.weights\n"
        "        return [[y + b for y, b in zip(row, self.bias, strict=True)] for row in "
        "[[sum(a * b for a, b in zip(r, c)) for c in self.columns] for r in x]]\n",
        "again",
        "alone, the same call is right: so an earlier",
    ),
    Mutant(  # result buffer
        "3.1",
        "        return [[y + b for y, b in zip(row, self.bias, strict=True)] for row in matmul(x, self.weights)]",
        "        if not hasattr(self, 'y'):\n"
        "            self.y = []\n"
        "        self.y[:] = [[y + b for y, b in zip(row, self.bias, strict=True)] for row in "
        "matmul(x, self.weights)]\n"
        "        return self.y",
        "again",
        "each call makes its own result: one that is",
    ),
    Mutant(  # transposed weights kept
        "3.2",
        "        self.grad_bias = [sum(column) for column in zip(*grad_output, strict=True)]\n"
        "        return matmul_nt(grad_output, self.weights) if needs_grad_input else None\n",
        "        if not hasattr(self, 'wt'):\n"
        "            self.wt = [list(c) for c in zip(*self.weights)]\n"
        "        self.grad_bias = [sum(column) for column in zip(*grad_output, strict=True)]\n"
        "        return matmul(grad_output, self.wt) if needs_grad_input else None\n",
        "again",
        "alone, the same call is right: so an earlier",
    ),
    Mutant(  # grad at class
        "3.2",
        "self.grad_weights = matmul_tn(self._x, grad_output)",
        "Dense.gw = matmul_tn(self._x, grad_output)\n"
        "        Dense.gw = getattr(Dense, 'gw')\n"
        "        self.grad_weights = Dense.store = getattr(Dense, 'store', [[0.0] * "
        "self.out_features for _ in range(self.in_features)])\n"
        "        self.grad_weights[:] = Dense.gw",
        "values",
        "wrong at index",
    ),
    Mutant(  # bias by batch size
        "3.2",
        "        self.grad_bias = [sum(column) for column in zip(*grad_output, strict=True)]\n",
        "        if not hasattr(self, 'first'):\n"
        "            self.first = len(grad_output)\n"
        "        self.grad_bias = [sum(column[: self.first]) for column in zip(*grad_output, "
        "strict=True)]\n",
        "again",
        "alone, the same call is right: so an earlier",
    ),
    Mutant(  # clip
        "3.3",
        "s * (g - weighted) for",
        "s * max(-1e3, min(1e3, g - weighted)) for",
        "sizes",
        "wrong at index",
    ),
    Mutant(  # whole sum by batch
        "3.3",
        "    grad_z = []\n",
        "    grad_z = softmax_backward.__dict__.setdefault('z', [])\n    grad_z.clear()\n",
        "again",
        "each call makes its own result: one that is",
    ),
    Mutant(  # outputs kept
        "3.4",
        "    outputs = []\n",
        "    outputs = forward.__dict__.setdefault('o', [])\n    outputs.clear()\n",
        "again",
        "each call makes its own result: one that is",
    ),
    Mutant(  # batch of first
        "3.4",
        "        outputs.append(x)\n",
        "        outputs.append(x[: forward.__dict__.setdefault('b', len(x))])\n",
        "agreement",
        "ropout: the shape is not right",
    ),
    Mutant(  # mask and slope swapped
        "3.5",
        "    for layer in reversed(layers):\n",
        "    layers = list(layers)\n"
        "    for i in range(len(layers) - 1):\n"
        "        if isinstance(layers[i], Activate) and isinstance(layers[i + 1], Dropout):\n"
        "            layers[i], layers[i + 1] = layers[i + 1], layers[i]\n"
        "    for layer in reversed(layers):\n",
        "sizes",
        "wrong at index",
    ),
    Mutant(  # clip grad
        "3.5",
        "        grad = layer.backward(grad)\n",
        "        grad = [[max(-1e2, min(1e2, v)) for v in row] for row in "
        "layer.backward(grad)] if not isinstance(layer, (Residual, Conv2d)) else "
        "layer.backward(grad)\n",
        "sizes",
        "wrong at index",
    ),
    Mutant(  # keeps first grad
        "3.5",
        "    for layer in reversed(layers):\n        grad = layer.backward(grad)\n    return grad",
        "    for layer in reversed(layers):\n"
        "        grad = layer.backward(grad)\n"
        "    return backward.__dict__.setdefault(len(layers), grad)",
        "values",
        "wrong at index",
    ),
    Mutant(  # skip zero grads
        "3.6",
        "                slope = g[i]",
        "                if not g[i]:\n                    continue\n                slope = g[i]",
        "agreement",
        "wrong at index",
    ),
    Mutant(  # clip 1000
        "3.6",
        "                p[i] -=",
        "                slope = max(-1000.0, min(1000.0, slope))\n                p[i] -=",
        "sizes",
        "wrong at index",
    ),
    Mutant(  # tiny ignored
        "3.6",
        "                p[i] -=",
        "                slope = slope if abs(slope) > 1e-6 else 0.0\n                p[i] -=",
        "sizes",
        "nearly right, but further off than rounding",
    ),
    Mutant(  # gradients first batch
        "3.7",
        "optimizer.step(self.parameters, self.layer_gradients)",
        "optimizer.step(self.parameters, self.__dict__.setdefault('_g', self.layer_gradients))",
        "again",
        "alone, the same call is right: so an earlier",
    ),
    Mutant(  # parameters kept
        "3.7",
        "optimizer.step(self.parameters, self.layer_gradients)",
        "optimizer.step(Network.__dict__.get('_p') or setattr(Network, '_p', self.parameters) "
        "or self.parameters, self.layer_gradients)",
        "values",
        "optimizer.step(self.parameters, …): in every",
    ),
]
