"""Parts of week 20's solutions that its wrong and right answers replace, and other ways to write them."""

VIEW = "sliding_window_view(padded, self.window, axis=(2, 3))[:, :, :: self.stride[0], :: self.stride[1]]"

EINSUM = """    np.einsum("nchwij,ocij->nohw", g.windows(pad(x, g)), weights, out=out)
    out += bias[:, np.newaxis, np.newaxis]
"""

SCATTER = "    np.add.at(target.reshape(-1), flat.reshape(-1), grad_output.reshape(-1))\n"

TRACKED_MEAN = "    running_mean[...] = (1 - momentum) * running_mean + momentum * (mean + rest)\n"
TRACKED_VAR = "    running_var[...] = (1 - momentum) * running_var + momentum * (var * (count / (count - 1)))\n"


def body_of(function: str, first: str) -> str:
    """The project's own body of a function, from a line on to its end."""
    from groundup.course.learner.project_files import solution
    from groundup.course.manifest import course

    text = solution(course().task(function))
    return text[text.index(first) :]


POOL = body_of("20.3", "    # A row that no window touches")
BACK = body_of("20.4", "    target = out if")
NORM = body_of("20.5", "    lines = x.reshape")
NORM_BACK = body_of("20.6", "    lines = grad_output.reshape")


def by_argmax(
    flat: str = "views.reshape(*out.shape, -1)",
    at: str = "flat.argmax(axis=-1)",
    largest: str = "flat.max(axis=-1)",
    index: str = "(rows * step[0] + at // window[1]) * x.shape[3] + columns * step[1] + at % window[1]",
    steps: str = ":: step[0], :: step[1]",
    fill: str = "out[...], out_indices[...] = largest, index",
) -> str:
    """max_pool2d as the hints lead to it, with one part of it changed."""
    return f"""    from numpy.lib.stride_tricks import sliding_window_view

    views = sliding_window_view(x, window, axis=(2, 3))[:, :, {steps}]
    views = views[:, :, : places[0], : places[1]]
    flat = {flat}
    at = {at}
    largest = {largest}
    rows, columns = np.indices(places)
    index = {index}
    {fill}
    return out, out_indices
"""


def back_by_planes(
    add: str = "np.add.at(flat, (np.arange(planes)[:, None], at), grad_output.reshape(planes, -1))",
    clear: str = "out[...] = 0",
) -> str:
    """max_pool2d_backward as the hints lead to it, with one part of it changed."""
    return f"""    {clear}
    planes = shape[0] * shape[1]
    flat, at = out.reshape(planes, -1), indices.reshape(planes, -1)
    {add}
    return out
"""


def norm(
    axes: str = "(0, 2)",
    var: str = "(centred * centred).mean(axis=axes)",
    keep_mean: str = "running_mean[...] = (1 - momentum) * running_mean + momentum * mean",
    keep_var: str = "running_var[...] = (1 - momentum) * running_var + momentum * var * count / (count - 1)",
    inverse: str = "1 / np.sqrt(var + epsilon)",
    output: str = "centred.reshape(x.shape) * _spread(gamma * inverse, x) + _spread(beta, x)",
    saved: str = "Saved(centred, np.zeros(len(gamma)), inverse, gamma.copy(), x.shape, training)",
    batch: str = "training",
    fill: str = "out[...] = output",
) -> str:
    """batch_norm as the hints lead to it, with one part of it changed."""
    return f"""    lines, axes = x.reshape(*x.shape[:2], -1), {axes}
    if {batch}:
        mean = lines.mean(axis=axes)
    centred = lines - mean[:, np.newaxis]
    if {batch}:
        var = {var}
        {keep_mean}
        {keep_var}
    inverse = {inverse}
    output = {output}
    {fill}
    return out, {saved}
"""


def norm_back(
    gamma: str = "(lines * normalised).sum(axis=(0, 2))",
    beta: str = "lines.sum(axis=(0, 2))",
    inner: str = "lines - (grad_beta[:, np.newaxis] + normalised * grad_gamma[:, np.newaxis]) / count",
    slope: str = "saved.gamma * inverse",
    when: str = "saved.training",
    fill: str = "out[...] = result.reshape(out.shape)",
) -> str:
    """batch_norm_backward as the hints lead to it, with one part of it changed."""
    return f"""    lines, count = grad_output.reshape(centred.shape), centred.size // centred.shape[1]
    normalised = (centred - saved.rest[:, np.newaxis]) * inverse[:, np.newaxis]
    grad_beta, grad_gamma = {beta}, {gamma}
    inner = {inner} if {when} else lines
    result = ({slope})[:, np.newaxis] * inner
    {fill}
    return out, grad_gamma.astype(dtype), grad_beta.astype(dtype)
"""
