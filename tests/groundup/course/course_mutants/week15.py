"""Wrong answers of week 15: optimizers and the whole step."""

from tests.groundup.course.course_mutants import Mutant, RightAnswer

BY_HAND = "update(MOMENTUM, parameters, velocity, velocity, i, gradients[i], numbers)"

MUTANTS = [
    Mutant("15.1", "update(MOMENTUM", "update(SGD", "values", "wrong"),
    Mutant("15.1", "update(MOMENTUM", "update(NESTEROV", "values", "looks ahead along the velocity"),
    Mutant(
        "15.1",
        BY_HAND,
        "parameters[i] -= numbers[RATE] * (numbers[KEEP_FIRST] * velocity[i] + gradients[i])",
        "values",
        "the velocity is not kept",
    ),
    Mutant(
        "15.1",
        BY_HAND,
        "velocity[i] = numbers[KEEP_FIRST] * velocity[i] + gradients[i]\n"
        "        parameters[i] += numbers[RATE] * velocity[i]",
        "values",
        "wrong",
    ),
    Mutant(
        "15.1",
        BY_HAND,
        "velocity[i] = numbers[KEEP_FIRST] * velocity[i] + gradients[i]\n"
        "        parameters[i] -= numbers[RATE] * velocity[i]",
        "values",
        "weight decay is left out",
    ),
    Mutant(
        "15.1",
        BY_HAND,
        "velocity[i] = numbers[KEEP_FIRST] * velocity[i] + gradients[i] + numbers[DECAY] * parameters[i]\n"
        "        parameters[i] -= numbers[RATE] * velocity[i]",
        "values",
        "0 * p is NaN",
    ),
    Mutant(
        "15.1",
        BY_HAND,
        "before = velocity[i]\n        update(MOMENTUM, parameters, velocity, velocity, i, gradients[i], numbers)\n"
        "        parameters[i] += numbers[RATE] * (velocity[i] - before)",
        "values",
        "along the velocity as it was before",
    ),
    Mutant("15.1", "i += cuda.gridsize(1)", "i += parameters.size", "sizes", "beyond the grid"),
    Mutant("15.2", "if decay != type(decay)(0):", "if True:", "values", "0 * p is NaN"),
    Mutant("15.2", "p - numbers[RATE]", "p + numbers[RATE]", "values", "plus instead of minus"),
    Mutant("15.2", "gradient += decay * p", "gradient -= decay * p", "values", "weight decay with the wrong sign"),
    Mutant(
        "15.2",
        "gradient += decay * p",
        "p -= numbers[RATE] * decay * p",
        "values",
        "wrong",
    ),
    Mutant("15.2", "        first[i] = change\n", "", "values", "wrong"),
    Mutant("15.2", "gradient + numbers[KEEP_FIRST] * velocity", "velocity", "values", "Nesterov's step is along"),
    Mutant(
        "15.2",
        "(math.sqrt(square) + numbers[EPSILON])",
        "math.sqrt(square + numbers[EPSILON])",
        "values",
        "wrong",
    ),
    Mutant(
        "15.2",
        "(math.sqrt(square) / numbers[ROOT_CORRECTION] + numbers[EPSILON])",
        "math.sqrt(square / (numbers[ROOT_CORRECTION] * numbers[ROOT_CORRECTION]) + numbers[EPSILON])",
        "values",
        "epsilon is inside the root",
    ),
    Mutant(
        "15.2",
        "(math.sqrt(square) / numbers[ROOT_CORRECTION] + numbers[EPSILON])",
        "(math.sqrt(square + numbers[EPSILON]) / numbers[ROOT_CORRECTION])",
        "values",
        "epsilon is inside the root",
    ),
    Mutant(
        "15.2",
        "(math.sqrt(square) / numbers[ROOT_CORRECTION] + numbers[EPSILON])",
        "((math.sqrt(square) + numbers[EPSILON]) / numbers[ROOT_CORRECTION])",
        "values",
        "epsilon is added before the root is divided",
    ),
    Mutant("15.2", " / numbers[ROOT_CORRECTION]", "", "values", "the root is not divided by numbers[ROOT_CORRECTION]"),
    Mutant("15.2", "        second[i] = square\n", "", "values", "the second_moment is not kept"),
    Mutant(
        "15.1",
        "update(MOMENTUM, parameters, velocity, velocity, i, gradients[i], numbers)",
        "update(MOMENTUM, parameters, velocity, velocity, i, gradients[i] * 1.0, numbers)",
        "types",
        "computes in float64",
    ),
    Mutant(
        "15.1",
        "update(MOMENTUM, parameters, velocity, velocity, i, gradients[i], numbers)",
        "gradients[i] += numbers[DECAY] * parameters[i]\n"
        "        velocity[i] = numbers[KEEP_FIRST] * velocity[i] + gradients[i]\n"
        "        parameters[i] -= numbers[RATE] * velocity[i]",
        "values",
        "was changed by the kernel",
    ),
    Mutant(
        "15.1",
        "update(MOMENTUM, parameters, velocity, velocity, i, gradients[i], numbers)",
        "g = gradients[i] + numbers[DECAY] * parameters[i]\n"
        "        parameters[i] -= numbers[RATE] * velocity[i]\n"
        "        velocity[i] = numbers[KEEP_FIRST] * velocity[i] + g",
        "values",
        "",
    ),
    Mutant("15.2", "numbers[RATE] * change", "1.0 * numbers[RATE] * change", "types", "computes in float64"),
    Mutant(
        "15.2",
        "math.sqrt(square) + numbers[EPSILON]",
        "math.sqrt(square) + 0.0 + numbers[EPSILON]",
        "types",
        "computes in float64",
    ),
    Mutant("15.2", "        first[i] = square\n", "", "values", "is not kept"),
    Mutant(
        "15.2",
        "numbers[KEEP_FIRST] * first[i] + numbers[ADD_FIRST] * gradient\n",
        "numbers[ADD_FIRST] * first[i] + numbers[KEEP_FIRST] * gradient\n",
        "agreement",
        "",
    ),
    Mutant(
        "15.3",
        "backward(self.layers, grad, this_pass, needs_grad_input=False)",
        "for layer in reversed(self.layers):\n            if not isinstance(layer, Activate):\n"
        "                grad = layer.backward(grad)",
        "values",
        "wrong",
    ),
    Mutant(
        "15.3",
        "backward(self.layers, grad, this_pass, needs_grad_input=False)",
        "for layer in reversed(self.layers):\n            if not isinstance(layer, Dropout):\n"
        "                grad = layer.backward(grad)",
        "sizes",
        "the dropout mask is forgotten on the way back",
    ),
    Mutant(
        "15.3",
        "backward(self.layers, grad, this_pass, needs_grad_input=False)",
        "pass",
        "values",
        "backward comes before",
    ),
    Mutant(
        "15.3",
        "losses.gradient_of(self.loss_name, outputs, y, empty(outputs.shape, outputs.dtype))",
        "empty(outputs.shape, outputs.dtype)",
        "values",
        "losses.gradient_of writes it",
    ),
    Mutant(
        "15.3",
        "optimizer.step(self.parameters, self.layer_gradients)",
        "pass",
        "shape",
        "optimizer.step was called 0 times",
    ),
    Mutant(
        "15.3",
        "        backward(self.layers, grad, this_pass, needs_grad_input=False)\n"
        "        if optimizer is not None:\n"
        "            optimizer.step(self.parameters, self.layer_gradients)\n",
        "        if optimizer is not None:\n"
        "            optimizer.step(self.parameters, self.layer_gradients)\n"
        "        backward(self.layers, grad, this_pass, needs_grad_input=False)\n",
        "values",
        "backward comes before the optimizer's step",
    ),
    Mutant(
        "15.3",
        "forward(self.layers, x, this_pass)",
        "forward(self.layers, x, Pass(True, None))",
        "sizes",
        "masks are not used on the way forward",
    ),
    Mutant("15.3", "losses.gradient_of(self.loss_name,", "losses.gradient_of('softmax_cross_entropy',", "sizes", ""),
    Mutant("15.3", "        return loss", "        pass", "shape", "no loss came back"),
    Mutant("15.3", "self.parameters, self", "[each for each in self.parameters[::-1]], self", "shape", "other arrays"),
    Mutant(
        "15.3",
        "        outputs = forward(self.layers, x, this_pass)[-1]\n",
        "        if self is not None:\n            return STEP_LADDER['fused'](self, x, y, optimizer, masks)\n"
        "        outputs = forward(self.layers, x, this_pass)[-1]\n",
        "way",
        "_step uses STEP_LADDER",
    ),
    Mutant(
        "15.1",
        "        update(MOMENTUM, parameters, velocity, velocity, i, gradients[i], numbers)",
        "        update(MOMENTUM, parameters, velocity, velocity, i, gradients[i], numbers)\n        velocity[i] += 0",
        "memory",
        "read a second time",
    ),
    Mutant(
        "15.2",
        "    change = gradient\n    if",
        "    change = gradient\n    if kind == SGD:\n        first[i] = p\n    if",
        "memory",
        "written a second time",
    ),
    Mutant(
        "15.2",
        "    elif kind == ADAM:\n",
        "    elif kind == ADAM:\n        if gradient == type(gradient)(0):\n            return\n",
        "values",
        "wrong",
    ),
    Mutant(
        "15.3",
        "return loss",
        "return losses.loss_of(self.loss_name, forward(self.layers, x, Pass(True, None, self._precision))[-1], y)",
        "values",
        "loss of _step, layers [1, 1, 2]",
    ),
    Mutant(
        "15.3",
        "own_masks = None if masks is None else",
        "own_masks = None if masks is None or optimizer is None else",
        "sizes",
        "the loss and all gradients without an optimizer of",
    ),
    Mutant("15.4", "(step + 1) / warmup_steps", "step / warmup_steps", "values", "would change nothing"),
    Mutant("15.4", "base * (step + 1) / warmup_steps", "base", "values", "the rate rises"),
    Mutant("15.4", "t = step - warmup_steps", "t = step", "values", "subtract the warm-up"),
    Mutant(
        "15.4",
        "epochs * steps_per_epoch - warmup_steps",
        "epochs * steps_per_epoch",
        "values",
        "without those of the warm-up",
    ),
    Mutant(
        "15.4",
        "math.floor(t / (schedule.step_epochs * steps_per_epoch))",
        "(t / (schedule.step_epochs * steps_per_epoch))",
        "values",
        "keeps its rate between two drops",
    ),
    Mutant("15.4", "math.floor(t / (schedule", "round(t / (schedule", "values", "half over"),
    Mutant("15.4", "schedule.step_epochs * steps", "int(schedule.step_epochs) * steps", "values", "may be a fraction"),
    Mutant(
        "15.4",
        "math.floor(t / (schedule.step_epochs * steps_per_epoch))",
        "math.floor(t // steps_per_epoch / schedule.step_epochs)",
        "values",
        "divide before you round",
    ),
    Mutant(
        "15.4",
        "    gamma =",
        "    if step >= epochs * steps_per_epoch:\n        return 0.0\n    gamma =",
        "values",
        "wrong",
    ),
    Mutant(
        "15.4", "gamma ** (t / steps_per_epoch)", "gamma ** (t // steps_per_epoch)", "values", "a little at every step"
    ),
    Mutant("15.4", "gamma ** (t / steps_per_epoch)", "gamma ** t", "values", "divide t by steps_per_epoch"),
    Mutant("15.4", " / 2.0", "", "values", "halve it"),
    Mutant("15.4", "min(t, total)", "t", "values", "rises again"),
    Mutant(
        "15.4",
        "DEFAULT_GAMMA[schedule.name] if schedule.gamma is None else schedule.gamma",
        "schedule.gamma or 1.0",
        "values",
        "differs from schedule to schedule",
    ),
    Mutant(
        "15.4",
        "DEFAULT_GAMMA[schedule.name] if schedule.gamma is None else schedule.gamma",
        "DEFAULT_GAMMA[schedule.name]",
        "values",
        "the schedule's own",
    ),
    Mutant("15.4", "max(1, epochs", "max(0, epochs", "values", "ZeroDivisionError"),
    Mutant(
        "15.4",
        "_warmup_steps(schedule, steps_per_epoch)",
        "int(schedule.warmup_epochs * steps_per_epoch)",
        "values",
        "wrong",
    ),
]

RIGHT_ANSWERS = [
    RightAnswer(
        "15.2",
        "        velocity = numbers[KEEP_FIRST] * first[i] + gradient\n        first[i] = velocity\n"
        "        change = gradient + numbers[KEEP_FIRST] * velocity",
        "        momentum = numbers[KEEP_FIRST]\n        moved = momentum * first[i] + gradient\n"
        "        first[i] = moved\n        change = gradient + momentum * moved",
    ),
    RightAnswer(
        "15.4",
        "base * (1.0 + math.cos(math.pi * min(t, total) / total)) / 2.0",
        "base * math.cos(math.pi * min(t / total, 1.0) / 2) ** 2",
    ),
    RightAnswer(
        "15.4",
        "gamma ** math.floor(t / (schedule.step_epochs * steps_per_epoch))",
        "gamma ** int(t / steps_per_epoch // schedule.step_epochs)",
    ),
    RightAnswer(  # after the end of a training that is all warm-up, too
        "15.4",
        "        total = max(1, epochs * steps_per_epoch - warmup_steps)\n"
        "        return base * (1.0 + math.cos(math.pi * min(t, total) / total)) / 2.0\n",
        "        total = epochs * steps_per_epoch - warmup_steps\n        if t >= total:\n            return 0.0\n"
        "        return base * (1 + math.cos(math.pi * t / total)) / 2\n",
    ),
]
