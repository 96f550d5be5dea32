"""Wrong answers of week 4: vectorisation."""

from tests.groundup.course.course_mutants import Mutant, RightAnswer

MUTANTS = [
    Mutant("4.1", "    out[...] = 0\n", "", "values", "set it to 0 before the first"),
    Mutant("4.1", "out += product", "out[...] = product", "values", "only the last product is kept"),
    Mutant("4.1", "range(a.shape[1])", "range(a.shape[1] - 1)", "values", "the last product is left out"),
    Mutant(
        "4.1",
        "    product = np.empty_like(out)\n",
        "    product = np.empty_like(out)\n    out = np.empty_like(out)\n",
        "values",
        "did not return out",
    ),
    Mutant(
        "4.1",
        "        np.multiply(a[:, k, np.newaxis], b[k], out=product)\n        out += product\n",
        "        for i in range(len(a)):\n            for j in range(b.shape[1]):\n"
        "                out[i, j] += a[i, k] * b[k, j]\n",
        "way",
        "only k is looped over",
    ),
    Mutant("4.2", "np.less_equal(z, 0", "np.less(z, 0", "values", "the slope at z = 0"),
    Mutant("4.2", "np.copyto(out, grad_output)", "np.copyto(out, 1)", "values", "the slope alone"),
    Mutant("4.2", "np.copyto(out, grad_output)", "out = grad_output", "shape", "grad_output was changed"),
    Mutant(
        "4.2",
        "np.copyto(out, grad_output)",
        "np.copyto(out, np.maximum(grad_output, 0, out=grad_output))",
        "shape",
        "grad_output was changed",
    ),
    Mutant(
        "4.2",
        "    np.copyto(out, grad_output)\n",
        "    for i in range(len(z)):\n        for j in range(z.shape[1]):\n            out[i, j] = grad_output[i, j]\n",
        "way",
        "a loop in Python",
    ),
    Mutant("4.3", "z.max(axis=1, keepdims=True, out=per_row)", "0", "values", "exp has overflowed"),
    Mutant("4.3", "z.max(axis=1, keepdims=True, out=per_row)", "z.max()", "values", "the maximum of the whole matrix"),
    Mutant(
        "4.3", "out.sum(axis=1, keepdims=True, out=per_row)", "out.sum(axis=0)", "values", "every column adds up to 1"
    ),
    Mutant(
        "4.3", "out.sum(axis=1, keepdims=True, out=per_row)", "out.sum(axis=1)", "values", "broadcast along the columns"
    ),
    Mutant(
        "4.3",
        "out.sum(axis=1, keepdims=True, out=per_row)",
        "out.sum()",
        "values",
        "all numbers together add up to 1",
    ),
    Mutant("4.3", "    np.exp(out, out=out)\n", "    out = np.exp(out)\n", "values", "did not return out"),
    Mutant(
        "4.3",
        "    out /= out.sum(axis=1, keepdims=True, out=per_row)\n",
        "    for i in range(len(z)):\n        out[i] = np.exp(z[i] - max(z[i]))\n        out[i] /= sum(out[i])\n",
        "way",
        "a loop in Python",
    ),
    Mutant("4.4", "out += self.bias", "out += 0", "values", "the bias is not added"),
    Mutant("4.4", "out += self.bias", "out += self.bias[:, np.newaxis]", "values", "down the wrong axis"),
    Mutant("4.4", "out += self.bias", "out = out + self.bias", "values", "did not return out"),
    Mutant("4.4", "self._x = x\n", "pass\n", "shape", "does not remember x"),
    Mutant(
        "4.5",
        "grad_output.sum(axis=0, out=self.grad_bias)",
        "grad_output.mean(axis=0, out=self.grad_bias)",
        "values",
        "forgot the batch",
    ),
    Mutant(
        "4.5",
        "grad_output.sum(axis=0, out=self.grad_bias)",
        "self.grad_bias[...] = grad_output.sum(axis=1)[: self.out_features]",
        "values",
        "wrong at index",
    ),
    Mutant(
        "4.5",
        "matmul_tn(self._x, grad_output, out=self.grad_weights)",
        "self.grad_weights = matmul_tn(self._x, grad_output)",
        "shape",
        "grad_weights is another array",
    ),
    Mutant(
        "4.5",
        "matmul_tn(self._x, grad_output, out=self.grad_weights)",
        "self.grad_weights += matmul_tn(self._x, grad_output)",
        "values",
        "added to what the array held",
    ),
    Mutant(
        "4.5",
        "matmul_nt(grad_output, self.weights, out)",
        "matmul_nt(grad_output, self.weights)",
        "values",
        "did not return out",
    ),
    Mutant("4.1", "range(a.shape[1])", "range(len(a))", "values", "wrong at index"),
    Mutant("4.1", "out += product", "out -= product", "values", "wrong sign"),
    Mutant(
        "4.1", "    out[...] = 0\n", "    out[...] = 0\n    a = a.astype(np.float32)\n", "agreement", "nearly right"
    ),
    Mutant(
        "4.1",
        "    out[...] = 0\n",
        "    return LADDER['at_operator'](a, b, out)\n    out[...] = 0\n",
        "way",
        "outer_products uses LADDER",
    ),
    Mutant(
        "4.1",
        "    for k in range(a.shape[1]):\n        np.multiply(a[:, k, np.newaxis], b[k], out=product)\n"
        "        out += product\n",
        "    np.add.reduce(a[:, :, None] * b[None], axis=1, out=out)\n",
        "way",
        "has no loop over k",
    ),
    Mutant("4.2", "np.less_equal(z, 0", "np.less_equal(grad_output, 0", "values", "the sign of z decides"),
    Mutant("4.2", "np.copyto(out, 0, where=stopped)", "out[stopped] *= 0.01", "values", "wrong at index"),
    Mutant("4.2", "np.copyto(out, 0, where=stopped)", "out *= np.sign(np.maximum(z, 0))", "values", "0 times infinity"),
    Mutant(
        "4.2",
        "np.copyto(out, 0, where=stopped)",
        "out[...] = np.nan_to_num(out * (z > 0), nan=0.0)",
        "values",
        "wrong at index [0, 2]",
    ),
    Mutant(
        "4.3",
        "z.max(axis=1, keepdims=True, out=per_row)",
        "np.maximum(z.max(axis=1, keepdims=True), 0)",
        "values",
        "the largest is sought from 0 on",
    ),
    Mutant(
        "4.3",
        "out.sum(axis=1, keepdims=True, out=per_row)",
        "(out.sum(axis=1, keepdims=True) + 1e-8)",
        "values",
        "a small one added",
    ),
    Mutant(
        "4.3",
        "out.sum(axis=1, keepdims=True, out=per_row)",
        "out.max(axis=1, keepdims=True)",
        "values",
        "to divide each by their row's sum",
    ),
    Mutant(
        "4.3",
        "    np.exp(out, out=out)\n",
        "    np.clip(out, -50, None, out=out)\n    np.exp(out, out=out)\n",
        "values",
        "is a number clamped",
    ),
    Mutant("4.4", "self._x = x\n", "self._x = out\n", "shape", "does not remember x"),
    Mutant("4.4", "out += self.bias", "out -= self.bias", "values", "the bias is subtracted"),
    Mutant("4.4", "out += self.bias", "out[0] += self.bias", "values", "wrong at index [1, 1]"),
    Mutant("4.4", "out += self.bias", "np.maximum(out + self.bias, 0, out=out)", "values", "wrong at index"),
    Mutant(
        "4.5",
        "grad_output.sum(axis=0, out=self.grad_bias)",
        "self.grad_bias += grad_output.sum(axis=0)",
        "values",
        "they have to replace it",
    ),
    Mutant(
        "4.5",
        "grad_output.sum(axis=0, out=self.grad_bias)",
        "self.grad_bias = grad_output.sum(axis=0)",
        "shape",
        "grad_bias is another array",
    ),
    Mutant(
        "4.5",
        "grad_output.sum(axis=0, out=self.grad_bias)",
        "self.grad_bias[...] = grad_output[0]",
        "values",
        "only the first row of the batch counts",
    ),
    Mutant("4.5", " if needs_grad_input else None", "", "shape", "returned something"),
    Mutant(
        "4.5",
        "matmul_tn(self._x, grad_output, out=self.grad_weights)",
        "self.weights -= 0.1 * matmul_tn(self._x, grad_output, out=self.grad_weights)",
        "shape",
        "weights was changed by the call",
    ),
    Mutant(
        "4.5",
        "        grad_output.sum(axis=0",
        "        if needs_grad_input:\n            grad_output.sum(axis=0",
        "shape",
        "has found no gradient of the bias",
    ),
    Mutant(
        "4.1",
        "np.multiply(a[:, k, np.newaxis], b[k], out=product)",
        "np.einsum('ik,kj->ij', a[:, k : k + 1], b[k : k + 1], out=product)",
        "way",
        "uses einsum",
    ),
    # Right once, or for friendly numbers: kept values, clamps, memory that is not the function's.
    Mutant(  # skip zero columns
        "4.1",
        "        np.multiply(a[:, k",
        "        if not a[:, k].any():\n            continue\n        np.multiply(a[:, k",
        "values",
        "wrong at index",
    ),
    Mutant(  # out kept without out
        "4.1",
        "    out[...] = 0\n",
        "    out = outer_products.__dict__.setdefault(out.shape, out)\n    out[...] = 0\n",
        "values",
        "write into out and return it: NumPy's",
    ),
    Mutant(  # view when open
        "4.2",
        "    np.copyto(out, grad_output)\n",
        "    if (z > 0).all():\n        return grad_output\n    np.copyto(out, grad_output)\n",
        "values",
        "write into out and return it: NumPy's",
    ),
    Mutant(  # stopped kept by shape
        "4.2",
        '    stopped = np.less_equal(z, 0, out=borrow(scratch, "stopped", z.shape, bool))\n',
        "    stopped = relu_backward.__dict__.setdefault(z.shape, np.less_equal(z, 0))\n",
        "values",
        "wrong at index",
    ),
    Mutant(  # max from -1e6
        "4.3",
        "z.max(axis=1, keepdims=True, out=per_row)",
        "z.max(axis=1, keepdims=True, initial=-1e6)",
        "values",
        "wrong at index",
    ),
    Mutant(  # float64 cast kept
        "4.3",
        "    return out",
        "    return out if out.flags.owndata else out.copy()",
        "values",
        "write into out and return it: NumPy's",
    ),
    Mutant(  # eps
        "4.3",
        "out /= out.sum(axis=1, keepdims=True, out=per_row)",
        "out /= out.sum(axis=1, keepdims=True) + 1e-8",
        "values",
        "nearly right, but further off than rounding",
    ),
    Mutant(  # first x
        "4.4",
        "        self._x = x\n",
        "        self._x = x if self._x is None or len(x) != len(self._x) else self._x\n",
        "again",
        "alone, the same call is right: so an earlier",
    ),
    Mutant(  # w object kept
        "4.4",
        "matmul(x, self.weights, out)",
        "matmul(x, self.__dict__.setdefault('_w', self.weights), out)",
        "again",
        "alone, the same call is right: so an earlier",
    ),
    Mutant(  # bias tile first batch
        "4.4",
        "out += self.bias",
        "out += self.__dict__.setdefault('_tile', np.tile(self.bias, (len(x), 1)))[: len(x)]",
        "again",
        "alone, the same call is right: so an earlier",
    ),
    Mutant(  # wT copy kept
        "4.5",
        "matmul_nt(grad_output, self.weights, out)",
        "matmul(grad_output, self.__dict__.setdefault('_wt', np.ascontiguousarray(self.weights.T)), out)",
        "again",
        "alone, the same call is right: so an earlier",
    ),
    Mutant(  # dx buffer
        "4.5",
        "matmul_nt(grad_output, self.weights, out) if",
        "matmul_nt(grad_output, self.weights, out if out is not None else "
        "self.__dict__.setdefault(('dx', len(grad_output)), np.empty((len(grad_output), "
        "self.in_features), grad_output.dtype))) if",
        "again",
        "each call makes its own result: one that is",
    ),
    Mutant(  # ones kept by first batch
        "4.5",
        "grad_output.sum(axis=0, out=self.grad_bias)",
        "np.matmul(self.__dict__.setdefault('_ones', np.ones(len(grad_output), "
        "grad_output.dtype)), grad_output[: len(self.__dict__['_ones'])], out=self.grad_bias) "
        "if len(grad_output) >= len(self.__dict__['_ones']) else grad_output.sum(axis=0, "
        "out=self.grad_bias)",
        "shape",
        "KeyError",
    ),
]

RIGHT_ANSWERS = [
    RightAnswer("4.1", "np.multiply(a[:, k, np.newaxis], b[k], out=product)", "product = np.outer(a[:, k], b[k])"),
    RightAnswer(
        "4.1",
        "        np.multiply(a[:, k, np.newaxis], b[k], out=product)\n        out += product\n",
        "        out += a[:, k : k + 1] * b[k : k + 1]\n",
    ),
    RightAnswer(  # zip
        "4.1",
        "    for k in range(a.shape[1]):\n"
        "        np.multiply(a[:, k, np.newaxis], b[k], out=product)\n"
        "        out += product\n",
        "    for column, row in zip(a.T, b):\n        out += np.outer(column, row)\n",
    ),
    RightAnswer(
        "4.1", "np.multiply(a[:, k, np.newaxis], b[k], out=product)", "np.einsum('i,j->ij', a[:, k], b[k], out=product)"
    ),
    RightAnswer("4.1", "for k in range(a.shape[1])", "inner = a.shape[1]\n    for k in range(inner)"),
    RightAnswer(
        "4.2",
        "    np.copyto(out, grad_output)\n    np.copyto(out, 0, where=stopped)",
        "    out[...] = np.where(z > 0, grad_output, 0)\n    #",
    ),
    RightAnswer(
        "4.2",
        "    np.copyto(out, grad_output)\n    np.copyto(out, 0, where=stopped)",
        "    out.fill(0)\n    np.copyto(out, grad_output, where=z > 0)\n    #",
    ),
    RightAnswer(
        "4.3",
        "    np.subtract(z, z.max(axis=1, keepdims=True, out=per_row), out=out)\n    np.exp(out, out=out)\n",
        "    out[...] = np.exp(z - np.max(z, axis=1)[:, None])\n",
    ),
    RightAnswer(  # logsumexp
        "4.3",
        "    np.exp(out, out=out)\n    out /= out.sum(axis=1, keepdims=True, out=per_row)\n",
        "    out -= np.log(np.exp(out).sum(axis=1, keepdims=True))\n    np.exp(out, out=out)\n",
    ),
    RightAnswer("4.4", "out += self.bias", "np.add(out, self.bias, out=out)"),
    RightAnswer(
        "4.5",
        "grad_output.sum(axis=0, out=self.grad_bias)",
        "self.grad_bias[:] = np.ones(len(grad_output)) @ grad_output",
    ),
]
