"""`groundup train --mine` trains with the learner's functions that no stage has, and every stage calls."""

import sys
from pathlib import Path

from groundup.course.judging.judge import run_limited
from groundup.course.judging.surroundings import variables
from groundup.course.manifest import course
from tests.groundup.course.course_helpers import mark_passed, new_folder, write

OF_EVERY_TRAINING = {
    "3.8": "return _normal(rng, deviation)",
    "5.6": "indices = np.arange(rows * columns, dtype=np.uint64)",
    "5.7": "epoch = values.index(best) + 1",
    "15.4": "warmup_steps = _warmup_steps(schedule, steps_per_epoch)",
}
"""Tasks whose functions no stage has; a line of each."""


def test_training_runs_the_learners_functions_that_every_stage_trains_with(tmp_path: Path) -> None:
    learner = new_folder(tmp_path / "groundup-course")
    for name, line in OF_EVERY_TRAINING.items():
        ran = learner.folder.parent / f"ran-{name}"
        write(learner, course().task(name), line, f"open({str(ran)!r}, 'w').close()\n    {line}")
        mark_passed(learner, course().task(name))
    words = "train stage2_numpy --mine --hidden 4 --epochs 2 --batch-size 500 --dropout 0.25 --json"
    code = f"from groundup.cli import main; main({words.split()!r})"
    ended, printed = run_limited([sys.executable, "-c", code], learner.folder.parent, 120, variables())
    assert ended == 0, printed
    assert sorted(learner.folder.parent.glob("ran-*")) == sorted(
        learner.folder.parent / f"ran-{name}" for name in OF_EVERY_TRAINING
    )
    assert '"mine": [\n    "3.8",\n    "5.6",\n    "5.7",\n    "15.4"\n  ]' in printed
