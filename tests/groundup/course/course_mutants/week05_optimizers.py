"""Wrong and right answers of week 5's optimizers on arrays."""

from tests.groundup.course.course_mutants import Mutant, RightAnswer

OPTIMIZERS = [
    Mutant("5.4", "p -= np.multiply", "p += np.multiply", "values", "uphill"),
    Mutant(
        "5.4",
        "p -= np.multiply(slope, self.learning_rate, out=update)",
        "p = p - self.learning_rate * slope",
        "values",
        "makes a new array",
    ),
    Mutant("5.4", "out=update)\n                    update += slope", "out=update)", "values", "here g is missing"),
    Mutant(
        "5.4",
        "p -= np.multiply(slope, self.learning_rate, out=update)",
        "slope *= self.learning_rate\n            p -= slope",
        "shape",
        "gradient was changed",
    ),
    Mutant("5.4", "v += slope\n", "v += (1 - self.momentum) * slope\n", "values", "a sum, not a mean"),
    Mutant(
        "5.5",
        "self.learning_rate / (1.0 - self.beta1**t)",
        "self.learning_rate",
        "values",
        "the first moment is not corrected",
    ),
    Mutant("5.5", "math.sqrt(1.0 - self.beta2**t)", "1.0", "values", "the second moment is not corrected"),
    Mutant(
        "5.5",
        "np.sqrt(v, out=denominator)\n            denominator /= root_correction",
        "np.divide(v, root_correction**2, out=denominator)",
        "values",
        "the root is missing",
    ),
    Mutant(
        "5.5",
        "t = self._state.begin_step(parameters, gradients)",
        "t = 1 + self._state.begin_step(parameters, gradients)",
        "values",
        "the number of another step",
    ),
    Mutant("5.5", "p -= update", "p += update", "values", "uphill"),
    Mutant("5.5", "            update *= slope\n", "", "values", "it collects their squares"),
    Mutant("5.5", "p -= update", "p = p - update", "values", "makes a new array"),
    Mutant(
        "5.5",
        'self._state.buffers["first_moment"][i], self._state.buffers["second_moment"][i]',
        "np.zeros_like(p), np.zeros_like(p)",
        "values",
        "the moments begin at 0 in every step",
    ),
    Mutant(  # copy assigned
        "5.4",
        "p -= np.multiply(slope, self.learning_rate, out=update)",
        "parameters[i] = p - slope * self.learning_rate",
        "values",
        "nothing has changed",
    ),
    Mutant(  # loop rows
        "5.4",
        "p -= np.multiply(slope, self.learning_rate, out=update)",
        "for row, s in zip(p.reshape(-1, 1), np.asarray(slope).reshape(-1)):\n"
        "                row -= self.learning_rate * s",
        "way",
        "a loop in Python over elements or rows",
    ),
    Mutant(  # decay on bias skipped
        "5.4",
        "self.weight_decay)",
        "self.weight_decay if p.ndim > 1 else 0.0)",
        "values",
        "the weight decay is not used",
    ),
    Mutant(  # eps inside
        "5.5",
        "            np.sqrt(v, out=denominator)\n"
        "            denominator /= root_correction\n"
        "            denominator += self.epsilon\n",
        "            denominator = np.sqrt(v / root_correction**2 + self.epsilon)\n",
        "values",
        "epsilon stands under the root",
    ),
    Mutant(  # eps before correction
        "5.5",
        "            denominator /= root_correction\n            denominator += self.epsilon\n",
        "            denominator += self.epsilon\n            denominator /= root_correction\n",
        "values",
        "wrong",
    ),
    Mutant(  # swapped betas
        "5.5",
        "1.0 - self.beta1**t",
        "1.0 - self.beta2**t",
        "values",
        "wrong",
    ),
    Mutant(  # buffer is the gradient
        "5.4",
        "                v *= self.momentum\n                v += slope\n",
        "                if not v.any():\n"
        '                    v = self._state.buffers["velocity"][i] = slope\n'
        "                else:\n"
        "                    v *= self.momentum\n"
        "                    v += slope\n",
        "values",
        "wrong at index",
    ),
    Mutant(  # skip zero
        "5.4",
        "            update =",
        "            if not gradients[i].any():\n                continue\n            update =",
        "agreement",
        "wrong at index",
    ),
    Mutant(  # class velocity
        "5.4",
        "                v *= self.momentum\n",
        '                v = SGD.__dict__.get("vs", {}).get(p.shape, v)\n'
        '                SGD.vs = {**SGD.__dict__.get("vs", {}), p.shape: v}\n'
        "                v *= self.momentum\n",
        "values",
        "wrong at index",
    ),
    Mutant(  # masked zero
        "5.5",
        "            p -= update\n",
        "            p -= np.where(gradients[i] == 0, 0, update)\n",
        "agreement",
        "wrong at index",
    ),
    Mutant(  # corrected kept
        "5.5",
        "            np.sqrt(v, out=denominator)\n            denominator /= root_correction\n",
        "            v /= 1.0 - self.beta2**t\n            np.sqrt(v, out=denominator)\n",
        "values",
        "wrong at index",
    ),
    Mutant(  # t of class
        "5.5",
        "        step_size =",
        "        Adam.t = Adam.__dict__.get('t', 0) + 1\n        t = Adam.t\n        step_size =",
        "values",
        "wrong at index",
    ),
    Mutant("5.5", "self.beta1**t", "self.beta1**min(t, 10)", "sizes", "(40 steps"),
]

RIGHT_OPTIMIZERS = [
    RightAnswer(
        "5.4", "p -= np.multiply(slope, self.learning_rate, out=update)", "p[...] = p - self.learning_rate * slope"
    ),
    RightAnswer(  # velocity replaced
        "5.4",
        "                v *= self.momentum\n                v += slope\n",
        '                v = self._state.buffers["velocity"][i] = self.momentum * v + slope\n',
    ),
    RightAnswer(  # a generator over the two buffers
        "5.5",
        'm, v = self._state.buffers["first_moment"][i], self._state.buffers["second_moment"][i]',
        'm, v = (self._state.buffers[name][i] for name in ("first_moment", "second_moment"))',
    ),
    RightAnswer(  # textbook
        "5.5",
        "            np.sqrt(v, out=denominator)\n"
        "            denominator /= root_correction\n"
        "            denominator += self.epsilon\n"
        "            np.divide(m, denominator, out=update)\n"
        "            update *= step_size\n"
        "            p -= update\n",
        "            p -= self.learning_rate * (m / (1 - self.beta1**t)) / (np.sqrt(v / (1 - "
        "self.beta2**t)) + self.epsilon)\n",
    ),
]
