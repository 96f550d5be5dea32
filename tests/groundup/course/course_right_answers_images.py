"""Right answers of weeks 19 and 20 that are written in another way than the project's own."""

from __future__ import annotations

from tests.groundup.course.course_mutants.week19 import INPUT, WEIGHTS, input_in_loops, weights_in_loops
from tests.groundup.course.course_mutants.week20 import (
    BACK,
    EINSUM,
    NORM,
    NORM_BACK,
    POOL,
    VIEW,
    back_by_planes,
    by_argmax,
    norm,
    norm_back,
)
from tests.groundup.course.course_right_answers import RightAnswer

OF_IMAGES = [
    RightAnswer(  # the places are counted
        "19.1",
        "    rows = (int(image[-2]) + 2 * padding[0] - window[0]) // stride[0] + 1\n"
        "    columns = (int(image[-1]) + 2 * padding[1] - window[1]) // stride[1] + 1\n    return rows, columns\n",
        "    last = [int(image[a - 2]) + 2 * padding[a] - window[a] for a in (0, 1)]\n"
        "    return len(range(0, last[0] + 1, stride[0])), len(range(0, last[1] + 1, stride[1]))\n",
    ),
    RightAnswer(  # the border is made, and no pixel asked for
        "19.2",
        "row = r * g.stride[0] + i - g.padding[0]\n"
        "                                column = s * g.stride[1] + j - g.padding[1]\n"
        "                                if 0 <= row < rows and 0 <= column < columns:  "
        "# else it lies in the border of zeros\n"
        "                                    out[n][o][r][s] += weights[o][c][i][j] * x[n][c][row][column]\n",
        "row = r * g.stride[0] + i\n"
        "                                pixel = _pad(x[n], g)[c][row][s * g.stride[1] + j]\n"
        "                                out[n][o][r][s] += weights[o][c][i][j] * pixel\n",
    ),
    RightAnswer(
        "19.3",
        "    return [sum(_flat(of_images)) for of_images in zip(*grad_output, strict=True)]\n",
        "    out = [0.0] * len(grad_output[0])\n"
        "    for image in grad_output:\n        for o, rows in enumerate(image):\n"
        "            out[o] += sum(map(sum, rows))\n    return out\n",
    ),
    RightAnswer("19.4", WEIGHTS, weights_in_loops()),
    RightAnswer("19.5", INPUT, input_in_loops()),
    RightAnswer(  # each pixel looks for the outputs that it went into
        "19.5",
        INPUT,
        input_in_loops().replace(
            "        for r, s, i, j in product(*map(range, (*g.output, *g.window))):\n"
            "            row, column = r * g.stride[0] + i - g.padding[0], s * g.stride[1] + j - g.padding[1]\n"
            "            if 0 <= row < g.image[0] and 0 <= column < g.image[1]:\n",
            "        for row, column, i, j in product(*map(range, (*g.image, *g.window))):\n"
            "            r, down = divmod(row + g.padding[0] - i, g.stride[0])\n"
            "            s, right = divmod(column + g.padding[1] - j, g.stride[1])\n"
            "            if not (down or right) and 0 <= r < g.output[0] and 0 <= s < g.output[1]:\n",
        ),
    ),
    RightAnswer(
        "19.6",
        "sums = [total + weight * value for total, value in pairs]",
        "sums = [weight * value + total for total, value in pairs]",
    ),
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
