"""Wrong answers of week 20: pooling, batch normalisation, residual blocks and windows in NumPy."""

from tests.groundup.course.course_mutants import Mutant, RightAnswer
from tests.groundup.course.course_mutants.week20_ways import (
    BACK,
    EINSUM,
    NORM,
    NORM_BACK,
    POOL,
    SCATTER,
    VIEW,
    back_by_planes,
    by_argmax,
    norm,
    norm_back,
)

MUTANTS = [
    Mutant("20.1", "[:, :, :: self.stride[0], :: self.stride[1]]", "", "values", "every place of the window is there"),
    Mutant(
        "20.1", ":: self.stride[0], :: self.stride[1]", ":: self.stride[1], :: self.stride[0]", "values", "exchanged"
    ),
    Mutant("20.1", VIEW, f"{VIEW}.copy()", "way", "the windows are a copy"),
    Mutant("20.1", VIEW, f"{VIEW}.swapaxes(4, 5)", "shape", "rows and columns of each window are exchanged"),
    Mutant("20.1", VIEW, f"{VIEW}.transpose(0, 1, 4, 5, 2, 3)", "shape", "the window's axes stand before the places"),
    Mutant("20.1", VIEW, f"{VIEW}.swapaxes(2, 3)", "values", "rows and columns of the places are exchanged"),
    Mutant("20.1", VIEW, VIEW.replace("padded", "self.interior(padded)"), "values", "the border is cut off"),
    Mutant(
        "20.1",
        VIEW,
        VIEW.replace("padded", "np.pad(padded, [(0, 0), (0, 0), *((n, n) for n in self.padding)])"),
        "values",
        "once more",
    ),
    Mutant(
        "20.1", VIEW, VIEW.replace("padded", "np.ascontiguousarray(padded)"), "way", "with gaps in memory are a copy"
    ),
    Mutant(
        "20.1",
        f"return {VIEW}",
        "from numpy.lib.stride_tricks import as_strided\n"
        "        shape = (*padded.shape[:2], *self.output, *self.window)\n"
        "        return as_strided(padded, shape, (*padded.strides, *padded.strides[2:]))",
        "values",
        "side by side",
    ),
    Mutant("20.2", "    out += bias[:, np.newaxis, np.newaxis]\n", "", "values", "the bias is not added"),
    Mutant("20.2", "weights, out=out)", "weights[:, :, ::-1, ::-1], out=out)", "values", "the kernel is turned"),
    Mutant("20.2", "nchwij,ocij->nohw", "nchwij,ocij->ohw", "shape", "ValueError"),
    Mutant("20.2", "pad(x, g)", "x", "values", "the border is left out"),
    Mutant("20.2", "g.windows(pad(x, g))", "g.windows(pad(x, g)).copy()", "way", "copies all windows"),
    Mutant(
        "20.2",
        '"nchwij,ocij->nohw", g.windows(pad(x, g)), weights',
        '"nhwij,oij->nohw", g.windows(pad(x, g))[:, -1], weights[:, -1]',
        "values",
        "only the last input channel counts",
    ),
    Mutant(
        "20.2",
        EINSUM,
        "    return np.einsum('nchwij,ocij->nohw', g.windows(pad(x, g)), weights) + bias[:, None, None]\n",
        "values",
        "did not return out",
    ),
    Mutant("20.2", EINSUM, "    return im2col(x, weights, bias, stride, padding, out)\n", "way", "uses im2col"),
    Mutant(
        "20.2",
        EINSUM,
        "    sums = np.tensordot(weights, g.windows(pad(x, g)), ((1, 2, 3), (1, 4, 5))).swapaxes(0, 1)\n"
        "    out[...] = sums + bias[:, None, None]\n",
        "way",
        "copies all windows",
    ),
    Mutant(
        "20.2", "bias[:, np.newaxis, np.newaxis]", "x.shape[1] * bias[:, None, None]", "values", "every input channel"
    ),
    Mutant(
        "20.3",
        POOL,
        by_argmax(at="flat.shape[-1] - 1 - flat[..., ::-1].argmax(axis=-1)"),
        "values",
        "the first one wins",
    ),
    Mutant("20.3", POOL, by_argmax(index="at"), "values", "count within the window"),
    Mutant("20.3", POOL, by_argmax().replace("x.shape[3] +", "x.shape[2] +"), "values", "row times the rows of"),
    Mutant("20.3", POOL, by_argmax().replace("* step", "* window"), "values", "the window's corner is not at"),
    Mutant(
        "20.3",
        POOL,
        by_argmax(fill="out[...], out_indices[...] = largest, np.where(largest == -np.inf, 0, index)"),
        "values",
        "a window of -inf alone has index 0",
    ),
    Mutant("20.3", POOL, by_argmax(largest="np.maximum(flat.max(axis=-1), 0)"), "values", "sought from 0 on"),
    Mutant("20.3", POOL, by_argmax(largest="flat.mean(axis=-1)"), "values", "the mean of each window"),
    Mutant("20.3", POOL, by_argmax(largest="flat.min(axis=-1)"), "values", "the smallest number"),
    Mutant("20.3", POOL, by_argmax(steps=":, :"), "values", "the windows move by one place"),
    Mutant("20.3", POOL, by_argmax().replace("x.shape[3] +", "places[1] +"), "values", "as long as the image is wide"),
    Mutant(
        "20.3",
        POOL,
        by_argmax().replace("rows * step[0]", "rows").replace("columns * step[1]", "columns"),
        "values",
        "the window's corner is not at the place's number",
    ),
    Mutant("20.3", POOL, by_argmax(fill="return largest, index"), "values", "another array than what was given"),
    Mutant(
        "20.3",
        POOL,
        by_argmax(at="np.array([[[[np.argmax(w) for w in r] for r in c] for c in n] for n in flat])"),
        "way",
        "a loop in Python",
    ),
    Mutant(
        "20.4", SCATTER, "    target.reshape(-1)[flat.reshape(-1)] += grad_output.reshape(-1)\n", "values", "np.add.at"
    ),
    Mutant(
        "20.4",
        BACK,
        back_by_planes(add="flat[np.arange(planes)[:, None], at] = grad_output.reshape(planes, -1)"),
        "values",
        "np.add.at",
    ),
    Mutant("20.4", "    target.fill(0)\n", "", "values", "set it to 0 first"),
    Mutant(
        "20.4",
        BACK,
        back_by_planes(add="np.add.at(out.reshape(-1), at.reshape(-1), grad_output.reshape(-1))"),
        "values",
        "everything goes to the first channel of the first image",
    ),
    Mutant(
        "20.4",
        BACK,
        back_by_planes(add="np.add.at(flat, (np.arange(planes)[:, None], at), 1)"),
        "values",
        "a 1 goes back",
    ),
    Mutant(
        "20.4",
        BACK,
        back_by_planes(
            add="np.add.at(flat, (np.arange(planes)[:, None] % shape[1], at), grad_output.reshape(planes, -1))"
        ),
        "values",
        "everything goes to the first image",
    ),
    Mutant(
        "20.5",
        NORM,
        norm(
            var="(centred * centred).sum(axis=axes) / (count - 1)",
            keep_var="running_var[...] = (1 - momentum) * running_var + momentum * var",
        ),
        "values",
        "only the one that is kept divides by n - 1",
    ),
    Mutant("20.5", NORM, norm(inverse="1 / (var + epsilon)"), "values", "and not by its root"),
    Mutant("20.5", NORM, norm(inverse="1 / (np.sqrt(var) + epsilon)"), "values", "epsilon stands behind the root"),
    Mutant(
        "20.5",
        NORM,
        norm(keep_var="running_var[...] = (1 - momentum) * running_var + momentum * var"),
        "values",
        "the variance that is kept divides by n - 1",
    ),
    Mutant(
        "20.5",
        NORM,
        norm(keep_mean="running_mean = (1 - momentum) * running_mean + momentum * mean"),
        "values",
        "the running statistics have not changed",
    ),
    Mutant(
        "20.5",
        NORM,
        norm(keep_mean="running_mean[...] = momentum * running_mean + (1 - momentum) * mean"),
        "values",
        "momentum is the share of the new",
    ),
    Mutant("20.5", NORM, norm(batch="True"), "values", "though not training"),
    Mutant("20.5", NORM, norm(batch="False"), "values", "though training"),
    Mutant(
        "20.5",
        NORM,
        norm(output="centred.reshape(x.shape) * _spread(beta * inverse, x) + _spread(gamma, x)"),
        "values",
        "gamma and beta are exchanged",
    ),
    Mutant(
        "20.5",
        NORM,
        norm(output="centred.reshape(x.shape) * _spread(gamma * inverse, x)"),
        "values",
        "beta is left out",
    ),
    Mutant("20.5", NORM, norm(var="(lines * lines).mean(axis=axes) - mean * mean"), "sizes", "wrong at index"),
    Mutant(
        "20.5",
        NORM,
        norm(saved="Saved(centred * 2, np.zeros(len(gamma)), inverse, gamma.copy(), x.shape, training)"),
        "agreement",
        "by what is saved",
    ),
    Mutant("20.5", NORM, norm(saved="None"), "shape", "not what the way back needs"),
    Mutant("20.5", NORM, norm().replace("gamma.copy()", "gamma"), "agreement", "so save a copy of it"),
    Mutant("20.5", NORM, norm().replace("Saved(centred", "Saved(centred.reshape(x.shape)"), "shape", "(N, C, L)"),
    Mutant("20.5", NORM, norm().replace("gamma * inverse", "inverse"), "values", "gamma is left out"),
    Mutant("20.5", NORM, norm(fill="out = output"), "values", "another array than what was given"),
    Mutant("20.6", NORM_BACK, norm_back(inner="lines"), "values", "taken for constants"),
    Mutant(
        "20.6",
        NORM_BACK,
        norm_back(inner="lines - normalised * grad_gamma[:, np.newaxis] / count"),
        "values",
        "the term of the mean is missing",
    ),
    Mutant(
        "20.6",
        NORM_BACK,
        norm_back(inner="lines - grad_beta[:, np.newaxis] / count"),
        "values",
        "the term of the variance is missing",
    ),
    Mutant("20.6", NORM_BACK, norm_back(slope="inverse"), "values", "gamma is left out"),
    Mutant(
        "20.6", NORM_BACK, norm_back().replace("centred - saved.rest[:, np.newaxis]", "centred"), "values", "rest is"
    ),
    Mutant("20.6", NORM_BACK, norm_back(slope="saved.gamma"), "values", "is not divided by the deviation"),
    Mutant("20.6", NORM_BACK, norm_back(slope="saved.gamma * inverse**2"), "values", "by the deviation twice"),
    Mutant("20.6", NORM_BACK, norm_back(when="True"), "values", "training or not makes no difference here"),
    Mutant(
        "20.6", NORM_BACK, norm_back(gamma="lines.sum(axis=(0, 2))"), "values", "the sum runs over the gradient alone"
    ),
    Mutant("20.6", NORM_BACK, norm_back(beta="lines.mean(axis=(0, 2))"), "values", "the mean, and not the sum"),
    Mutant("20.6", NORM_BACK, norm_back(fill="out = result.reshape(out.shape)"), "values", "another array"),
    Mutant("20.7", "np.add(grad, grad_output, out", "np.add(grad, 0, out", "values", "the shortcut is left out"),
    Mutant(
        "20.7", "np.add(grad, grad_output, out", "np.add(0, grad_output, out", "values", "only the shortcut is there"
    ),
    Mutant("20.7", "np.add(grad, grad_output, out", "np.subtract(grad, grad_output, out", "values", "is subtracted"),
    Mutant("20.7", "np.add(grad, grad_output, out", "np.multiply(grad, grad_output, out", "values", "multiplied"),
    Mutant("20.7", "np.add(grad, grad_output, out", "np.add(grad, 2 * grad_output, out", "values", "counts twice"),
    Mutant(
        "20.7", "out=this_pass.grad_array(self, grad_output)", "out=grad_output", "shape", "grad_output was changed"
    ),
    Mutant("20.7", "out=this_pass.grad_array(self, grad_output)", "out=grad", "way", "a layer may return grad_output"),
    Mutant("20.7", ", out=this_pass.grad_array(self, grad_output)", "", "way", "each call makes a new array"),
    Mutant(
        "20.7",
        "this_pass.grad_array(self, grad_output)",
        'this_pass.array(self, "output", grad.shape, grad)',
        "way",
        "what the forward pass has returned",
    ),
]

RIGHT_ANSWERS = [
    RightAnswer(
        "20.1",
        f"return {VIEW}",
        "from numpy.lib.stride_tricks import as_strided\n"
        "        n, c, down, right = padded.strides\n"
        "        shape = (*padded.shape[:2], *self.output, *self.window)\n"
        "        strides = (n, c, down * self.stride[0], right * self.stride[1], down, right)\n"
        "        return as_strided(padded, shape, strides, writeable=False)",
    ),
    RightAnswer(
        "20.2",
        EINSUM,
        "    (top, left), (down, right) = g.padding, g.stride\n"
        "    padded = np.pad(x, ((0, 0), (0, 0), (top, top), (left, left)))\n"
        "    views = np.lib.stride_tricks.sliding_window_view(padded, g.window, (2, 3))[:, :, ::down, ::right]\n"
        "    out[...] = np.einsum('ocij,nchwij->nohw', weights, views, optimize=True)\n"
        "    out += bias.reshape(-1, 1, 1)\n",
    ),
    RightAnswer("20.3", POOL, by_argmax()),
    RightAnswer(  # the places of the window in turn
        "20.3",
        POOL,
        "    out[...] = -np.inf\n    out_indices[...] = -1\n"
        "    rows, columns = np.indices(places)\n"
        "    for i, j in product(range(window[0]), range(window[1])):\n"
        "        r, s = rows * step[0] + i, columns * step[1] + j\n"
        "        values = x[:, :, r, s]\n"
        "        wins = (values > out) | np.isnan(values) | (out_indices < 0)\n"
        "        out_indices[...] = np.where(wins, r * x.shape[3] + s, out_indices)\n"
        "        out[...] = np.where(wins, values, out)\n"
        "    return out, out_indices\n",
    ),
    RightAnswer("20.4", BACK, back_by_planes()),
    RightAnswer(
        "20.4",
        BACK,
        "    size = shape[2] * shape[3]\n"
        "    first = size * np.arange(shape[0] * shape[1]).reshape(*shape[:2], 1, 1)\n"
        "    sums = np.bincount((indices + first).ravel(), grad_output.ravel(), minlength=out.size)\n"
        "    out[...] = sums.reshape(shape)\n    return out\n",
    ),
    RightAnswer("20.5", NORM, norm()),
    RightAnswer("20.5", NORM, norm(var="lines.var(axis=axes)", inverse="(var + epsilon) ** -0.5")),
    RightAnswer("20.6", NORM_BACK, norm_back()),
    RightAnswer(
        "20.7",
        "        return np.add(grad, grad_output, out=this_pass.grad_array(self, grad_output))\n",
        "        out = this_pass.grad_array(self, grad_output)\n"
        "        out[...] = grad + grad_output\n        return out\n",
    ),
    RightAnswer(  # the windows' own axes are laid behind the view of their corners
        "20.1",
        VIEW,
        "np.lib.stride_tricks.as_strided(corners := self.shifted(padded, 0, 0), (*corners.shape, *self.window), "
        "(*corners.strides, *padded.strides[2:]))",
    ),
    RightAnswer(  # one axis after the other
        "20.1",
        f"return {VIEW}",
        "rows = sliding_window_view(padded, self.window[0], axis=2)[:, :, :: self.stride[0]]\n"
        "        return sliding_window_view(rows, self.window[1], axis=3)[:, :, :, :: self.stride[1]]",
    ),
    RightAnswer(  # numbers in place of letters
        "20.2",
        '"nchwij,ocij->nohw", g.windows(pad(x, g)), weights',
        "g.windows(pad(x, g)), [0, 1, 2, 3, 4, 5], weights, [6, 1, 4, 5], [0, 6, 2, 3]",
    ),
    RightAnswer(  # the three paths to x one by one
        "20.6",
        NORM_BACK,
        "    g, n = grad_output.reshape(centred.shape), centred.shape[0] * centred.shape[2]\n"
        "    c = centred - saved.rest[:, None]\n"
        "    grad_gamma, grad_beta = np.einsum('ncl,ncl,c->c', g, c, inverse), np.einsum('ncl->c', g)\n"
        "    scaled = g * saved.gamma[:, None]\n"
        "    grad = scaled * inverse[:, None]\n"
        "    if saved.training:\n"
        "        of_variance = (scaled * c).sum((0, 2)) * -0.5 * inverse**3\n"
        "        grad += (2 * of_variance[:, None] * c - grad.sum((0, 2))[:, None]) / n\n"
        "    np.copyto(out, grad.reshape(out.shape))\n"
        "    return out, grad_gamma.astype(dtype), grad_beta.astype(dtype)\n",
    ),
    RightAnswer(  # the shortcut first
        "20.7",
        "        grad: Any = backward(self.layers, grad_output, this_pass)\n"
        "        return np.add(grad, grad_output, out=this_pass.grad_array(self, grad_output))\n",
        "        own = this_pass.grad_array(self, grad_output)\n"
        "        own[...] = grad_output\n"
        "        for layer in reversed(self.layers):\n"
        "            grad_output = backward([layer], grad_output, this_pass)\n"
        "        own += grad_output\n"
        "        return own\n",
    ),
]
