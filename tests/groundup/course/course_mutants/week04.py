"""Wrong answers of week 4: vectorisation."""

from tests.groundup.course.course_mutants import Mutant

MUTANTS = [
    Mutant("4.1", "    out[...] = 0\n", "", "values", "set it to 0 before the first"),
    Mutant("4.1", "out += product", "out[...] = product", "values", "only the last product is kept"),
    Mutant("4.1", "range(a.shape[1])", "range(a.shape[1] - 1)", "values", "the last product is left out"),
    Mutant(
        "4.1",
        "    product = np.empty_like(out)\n",
        "    out = product = np.empty_like(out)\n",
        "shape",
        "did not return out",
    ),
    Mutant(
        "4.1",
        "        np.multiply(a[:, k, np.newaxis], b[k], out=product)\n        out += product\n",
        "        for i in range(len(a)):\n            for j in range(b.shape[1]):\n"
        "                out[i, j] += a[i, k] * b[k, j]\n",
        "speed",
        "only k is looped over",
    ),
    Mutant("4.2", "np.less_equal(z, 0", "np.less(z, 0", "values", "the slope at z = 0"),
    Mutant("4.2", "np.copyto(out, grad_output)", "np.copyto(out, 1)", "values", "the slope alone"),
    Mutant("4.2", "np.copyto(out, grad_output)", "out = grad_output", "shape", "did not return out"),
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
        "speed",
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
    Mutant("4.3", "    np.exp(out, out=out)\n", "    out = np.exp(out)\n", "shape", "did not return out"),
    Mutant(
        "4.3",
        "    out /= out.sum(axis=1, keepdims=True, out=per_row)\n",
        "    for i in range(len(z)):\n        out[i] = np.exp(z[i] - max(z[i]))\n        out[i] /= sum(out[i])\n",
        "speed",
        "a loop in Python",
    ),
    Mutant("4.4", "out += self.bias", "out += 0", "values", "the bias is not added"),
    Mutant("4.4", "out += self.bias", "out += self.bias[:, np.newaxis]", "values", "down the wrong axis"),
    Mutant("4.4", "out += self.bias", "out = out + self.bias", "shape", "did not return out"),
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
        "summed along the rows",
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
        "shape",
        "did not return out",
    ),
]
