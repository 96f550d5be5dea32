"""Right answers of another form to the tasks whose functions every stage trains with."""

from __future__ import annotations

from tests.groundup.course.course_right_answers import RightAnswer

SHARED_RIGHT_ANSWERS = [
    RightAnswer(
        "3.8",
        "return _normal(rng, deviation)",
        "variance = 2 / fan_in\n    return variance**0.5 * _normal(rng, 1.0)",
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
]
