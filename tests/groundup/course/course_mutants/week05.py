"""Wrong answers of week 5: the loss, backpropagation and optimizers on arrays."""

from tests.groundup.course.course_mutants import Mutant, RightAnswer
from tests.groundup.course.course_mutants.week05_optimizers import OPTIMIZERS, RIGHT_OPTIMIZERS
from tests.groundup.course.course_mutants.week05_overfitting import OVERFITTING

MUTANTS = [
    Mutant("5.1", "return _mean(per_row)", "return _mean(per_row) * rows", "values", "forgot the mean over the batch"),
    Mutant("5.1", "per_row -= of_label", "per_row += of_label", "values", "the label's logit is added"),
    Mutant("5.1", "_mean(per_row)", "float(np.mean(per_row))", "types", "a large loss swallows the small ones"),
    Mutant(  # neither the mean over the batch nor out
        "5.2",
        "    np.subtract(out, 1, out=out, where=_is_label(labels, classes, scratch))\n    out /= rows\n",
        "    out = out - _is_label(labels, classes, None)\n",
        "values",
        "forgot the batch mean",
    ),
    Mutant("5.2", "out /= rows", "out = out / rows", "values", "did not return out"),
    Mutant("5.1", "return _mean(per_row)", "return -_mean(per_row)", "values", "wrong sign"),
    Mutant(
        "5.1",
        "    np.exp(shifted, out=shifted).sum(axis=1, keepdims=True, out=per_row)\n    np.log(per_row, out=per_row)\n"
        "    per_row -= of_label\n    return _mean(per_row)\n",
        "    shares = softmax(logits)\n    return float(-np.log(shares[np.arange(rows), labels]).mean())\n",
        "values",
        "a share has rounded to 0",
    ),
    Mutant(
        "5.1",
        "    np.log(per_row, out=per_row)\n    per_row -= of_label\n",
        "    per_row = np.log(per_row) - shifted[np.arange(rows), labels][:, np.newaxis]\n",
        "values",
        "exp has been taken of the label's logit",
    ),
    Mutant("5.1", "logits.max(axis=1, keepdims=True, out=per_row)", "0", "values", "exp has overflowed"),
    Mutant("5.2", "out /= rows", "out /= 1", "values", "forgot the batch mean"),
    Mutant(
        "5.2",
        "np.subtract(out, 1, out=out, where=_is_label(labels, classes, scratch))",
        "out[:, labels] -= 1",
        "values",
        "takes these columns of every row",
    ),
    Mutant(
        "5.2",
        "np.subtract(out, 1, out=out, where=_is_label(labels, classes, scratch))",
        "pass",
        "values",
        "the 1 at the label is not subtracted",
    ),
    Mutant("5.2", "out /= rows", "out /= -rows", "values", "wrong sign"),
    Mutant(
        "5.2",
        "    softmax(logits, out, scratch)\n",
        "    for i in range(rows):\n        softmax(logits[i : i + 1])\n    softmax(logits, out, scratch)\n",
        "way",
        "a loop in Python",
    ),
    Mutant("5.3", "reversed(list(enumerate(layers)))", "enumerate(layers)", "values", "begin at the last layer"),
    Mutant(
        "5.3",
        "grad = layer.backward(grad, this_pass)",
        "grad = layer.backward(grad, this_pass) if isinstance(layer, Dropout) else grad",
        "values",
        "derivative is left out",
    ),
    Mutant(
        "5.3",
        "grad = layer.backward(grad, this_pass)",
        "grad = layer.backward(grad, this_pass) if isinstance(layer, Activate) else grad",
        "values",
        "the dropout mask is ignored",
    ),
    Mutant(
        "5.3",
        "grad = layer.backward(grad, this_pass)",
        "layer.backward(grad, this_pass)",
        "values",
        "wrong at index",
    ),
    Mutant(
        "5.3",
        "    for i, layer in reversed(list(enumerate(layers))):\n",
        "    of_loss = grad\n    for i, layer in reversed(list(enumerate(layers))):\n        grad = of_loss\n",
        "values",
        "begin at the last layer",
    ),
    Mutant("5.3", "return grad if needs_grad_input else None", "pass", "shape", "no dL/dx came back"),
    Mutant(
        "5.3",
        "grad = layer.backward(grad, needed, this_pass.grad_array(layer, grad) if needed else None)",
        "grad = layer.backward(grad, needed, np.empty(this_pass.shapes[id(layer)]) if needed else None)",
        "agreement",
        "out is float64 (4, 3), expected float32 (4, 3)",
    ),
    Mutant("5.3", "needs_grad_input or i > 0", "True", "way", "dL/dx of the first layer is computed"),
    Mutant("5.3", "list(enumerate(layers))", "list(enumerate(layers))[1:]", "values", "wrong at index"),
    Mutant(
        "5.3",
        "    return grad if",
        "    for layer in layers:\n        if isinstance(layer, Dense):\n"
        "            layer.grad_weights /= len(layer._x)\n    return grad if",
        "gradient",
        "wrong at index",
    ),
    Mutant(  # loop columns
        "5.1",
        "np.exp(shifted, out=shifted).sum",
        "[np.exp(shifted[:, j], out=shifted[:, j]) for j in range(classes)] and shifted.sum",
        "way",
        "a loop in Python over elements or rows",
    ),
    Mutant(  # log eps
        "5.1",
        "np.log(per_row, out=per_row)",
        "np.log(per_row + 1e-12, out=per_row)",
        "values",
        "nearly right, but further off than rounding",
    ),
    Mutant(  # returns array
        "5.1",
        "return _mean(per_row)",
        "return per_row.mean(axis=0)",
        "shape",
        "there are as many numbers as there should be, but",
    ),
    Mutant(  # own softmax max0
        "5.2",
        "softmax(logits, out, scratch)",
        "np.exp(logits - np.maximum(logits.max(axis=1, keepdims=True), 0), out=out)\n"
        "    out /= out.sum(axis=1, keepdims=True)",
        "values",
        "the largest is sought from 0 on",
    ),
    Mutant(  # own softmax whole
        "5.2",
        "softmax(logits, out, scratch)",
        "np.exp(logits - logits.max(), out=out)\n    out /= out.sum(axis=1, keepdims=True)",
        "values",
        "the maximum of the whole matrix, or of another",
    ),
    Mutant(  # own softmax first
        "5.2",
        "softmax(logits, out, scratch)",
        "np.exp(logits - logits[:, :1], out=out)\n    out /= out.sum(axis=1, keepdims=True)",
        "values",
        "wrong at index",
    ),
    Mutant(  # python loop labels
        "5.2",
        "    np.subtract(out, 1, out=out, where=_is_label(labels, classes, scratch))\n",
        "    for i, label in enumerate(labels):\n        out[i, label] -= 1\n",
        "way",
        "a loop in Python over elements or rows",
    ),
    Mutant(  # column loop
        "5.2",
        "out /= rows",
        "for j in range(classes):\n        out[:, j] /= rows",
        "way",
        "a loop in Python over elements or rows",
    ),
    Mutant(
        "5.2",
        "softmax(logits, out",
        "softmax(np.maximum(logits, logits.max(axis=1, keepdims=True) - 80), out",
        "values",
        "is a number clamped",
    ),
    # Right once, or for friendly numbers: kept values, clamps, memory that is not the function's.
    Mutant(  # max initial -1e8
        "5.1",
        "logits.max(axis=1, keepdims=True, out=per_row)",
        "logits.max(axis=1, keepdims=True, initial=-1e8)",
        "values",
        "(logits (2, 2), labels): wrong",
    ),
    Mutant(  # rows kept
        "5.1",
        "    return _mean(per_row)",
        "    return float(per_row.sum(dtype=np.float64) / softmax_cross_entropy.__dict__.setdefault('r', rows))",
        "values",
        "forgot the mean over the batch: this is the",
    ),
    Mutant(  # eps in log
        "5.1",
        "    np.log(per_row, out=per_row)\n",
        "    per_row += 1e-7\n    np.log(per_row, out=per_row)\n",
        "values",
        "nearly right, but further off than rounding",
    ),
    Mutant(  # scratch returned
        "5.2",
        "    return out",
        "    return out if scratch is not None else softmax_cross_entropy_backward.__dict__.setdefault(out.shape, out)",
        "values",
        "wrong at index",
    ),
    Mutant(  # one-hot kept by shape
        "5.2",
        "np.subtract(out, 1, out=out, where=_is_label(labels, classes, scratch))",
        "out -= softmax_cross_entropy_backward.__dict__.setdefault(out.shape, np.eye(classes)[labels])",
        "values",
        "wrong at index",
    ),
    Mutant(  # mask slope swapped
        "5.3",
        "    for i, layer in reversed(list(enumerate(layers))):\n",
        "    order = list(layers)\n"
        "    for k in range(len(order) - 1):\n"
        "        if isinstance(order[k], Activate) and isinstance(order[k + 1], Dropout):\n"
        "            order[k], order[k + 1] = order[k + 1], order[k]\n"
        "    for i, layer in reversed(list(enumerate(order))):\n",
        "sizes",
        "wrong at index",
    ),
    Mutant(  # skips needed
        "5.3",
        "needed = needs_grad_input or i > 0",
        "needed = needs_grad_input or i > 1",
        "way",
        "AttributeError",
    ),
    Mutant(  # grad kept
        "5.3",
        "    return grad if needs_grad_input else None",
        "    return backward.__dict__.setdefault(grad.shape, grad) if needs_grad_input else None",
        "values",
        "wrong at index",
    ),
    Mutant(
        "5.2",
        '    out = output_like("softmax_cross_entropy_backward", out,',
        "    if out is None and scratch is not None:\n"
        '        out = borrow(scratch, "own", logits.shape, logits.dtype)\n'
        '    out = output_like("softmax_cross_entropy_backward", out,',
        "again",
        "each call makes its own result",
    ),
    *OVERFITTING,
    *OPTIMIZERS,
]

RIGHT_ANSWERS = [
    RightAnswer(
        "5.1",
        "    np.exp(shifted, out=shifted).sum(axis=1, keepdims=True, out=per_row)\n    np.log(per_row, out=per_row)\n"
        "    per_row -= of_label\n    return _mean(per_row)\n",
        "    terms = np.log(np.exp(shifted).sum(axis=1)) - shifted[np.arange(rows), labels]\n"
        "    return float(np.mean(terms, dtype=np.float64))\n",
    ),
    RightAnswer(  # take
        "5.1",
        "    of_label = _select_label(shifted, labels, scratch)\n",
        "    of_label = np.take_along_axis(shifted, labels[:, None], axis=1)\n",
    ),
    RightAnswer(
        "5.1",
        "    return _mean(per_row)",
        "    own = (logits - logits[np.arange(rows), labels][:, None]).astype(np.float64)\n"
        "    return float(np.logaddexp.reduce(own, axis=1).mean())",
    ),
    RightAnswer(
        "5.2",
        "np.subtract(out, 1, out=out, where=_is_label(labels, classes, scratch))",
        "out[np.arange(rows), labels] -= 1",
    ),
    RightAnswer(
        "5.6",
        "(survives * scale).reshape(rows, columns)",
        "np.where(survives, scale, np.zeros((), dtype)).reshape((rows, -1))",
    ),
    RightAnswer(
        "5.6",
        "    indices = np.arange(rows * columns, dtype=np.uint64)\n",
        "    i, j = np.indices((rows, columns), dtype=np.uint64)\n    indices = (i * np.uint64(columns) + j).ravel()\n",
    ),
    RightAnswer(
        "5.7",
        "    best = max(values) if higher_is_better else min(values)\n    epoch = values.index(best) + 1\n",
        "    sign = -1 if higher_is_better else 1\n    epoch, best = 1, sign * values[0]\n"
        "    for number, value in enumerate(values, 1):\n        if sign * value < best:\n"
        "            epoch, best = number, sign * value\n",
    ),
    *RIGHT_OPTIMIZERS,
]
