"""How every task and every checkpoint is graded: a file a week, in two where the week has two subjects.

GRADES, in a week's file, has the function that makes the checks of a task, by the task's id.

week01_matrices_as_lists, week02_activations_and_losses, week03_backpropagation, week03_gradient_descent,
week03_first_weights                                        phase 1, on lists
week04_vectorisation, week05_mnist, week05_overfitting      phase 2, on NumPy arrays
week06_pointers_and_loops, week07_memory_and_caches, week08_ctypes, week08_micro_kernel
                                                            phase 3, in C
week09_first_kernels, week10_coalescing, week11_tiled_product
                                                            phase 4, kernels
week12_activation_kernels, week13_softmax_and_reductions, week14_backward_kernels, week15_learning_rate,
week15_optimizers_and_step, week16_fusing
                                                            phase 5, training by kernels
week17_inside_the_network, week18_live_view, week18_gradient_checking
                                                            phase 6, tools that look inside
week19_windows, week19_gradients, week20_convolution_in_numpy, week20_pools_and_norms, week21_im2col, week21_in_c,
week22_fewer_multiplications, week23_convolution_kernels, week23_pooling_and_normalising, week24_images_from_bytes,
week24_sending_ahead, week24_seeing_inside
                                                            phase 7, images
own_work.py     what the function of a task calls: the learner's answer must not leave the work to another function
cases/          the detective exercises, a file a case
checkpoints/    what ends a phase
calling/        how the learner's functions are called: lists, arrays, C, kernels
problems/       arguments, right results and known mistakes that several weeks share
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType

from groundup.course.checks.check import Check, Tally, Wrong
from groundup.course.grading.own_work import with_own_work
from groundup.course.manifest import Task, course
from shared.contract import STAGES


def task_checks(task: str) -> list[Check]:
    """The checks of a task, such as "8.3", or a detective exercise, "8.d" or "23.e".

    Raises KeyError if no file of its week grades it.
    """
    week, is_case = int(task.partition(".")[0]), task[-1].isalpha()
    package = f"{__name__}.cases" if is_case else __name__
    for module in _modules(package, f"week{week:02}_"):
        if task in module.GRADES:
            made = list(module.GRADES[task]())
            return made if is_case else with_own_work(made, course().task(task))
    raise KeyError(f"no file of week {week} grades task {task}")


def checkpoint_checks(phase: int, own: Sequence[str] = ()) -> list[Check]:
    """The checks of the checkpoint that ends a phase. own: the tasks whose functions are the learner's.

    Those in Python and C are graded once more first, one by one, so that a failure names the one that is wrong.
    """
    files = _modules(f"{__name__}.checkpoints", f"phase{phase}_")  # a large checkpoint has its parts in files beside it
    (module,) = [file for file in files if hasattr(file, "checkpoint")]
    named = [task for task in map(course().task, own) if task.stage in STAGES[:3]]
    alone = [_by_itself(task) for task in named]
    return [*([Check("each function by itself", _in_turn(alone))] if alone else []), *module.checkpoint()]


def _by_itself(task: Task) -> Callable[[Tally], None]:
    """The results of a task's function, without the checks of its way and its time."""
    results = ("shape", "values", "agreement", "sizes", "again")
    checks = [check for check in task_checks(task.id) if check.name in results]

    def run(tally: Tally) -> None:
        try:
            _in_turn([check.run for check in checks])(tally)
        except Wrong as wrong:
            wrong.what = f"your {task.function} ({task.id}) is wrong: {wrong.what}"
            wrong.cause = wrong.cause or f"groundup learn check {task.id} grades it alone"
            raise
        except Exception as error:
            what = f"your {task.function} ({task.id}) raised {type(error).__name__}: {error}"
            raise Wrong(what, cause=f"groundup learn check {task.id} grades it alone") from error

    return run


def _in_turn(runs: Sequence[Callable[[Tally], None]]) -> Callable[[Tally], None]:
    def run(tally: Tally) -> None:
        for each in runs:
            each(tally)

    return run


def _modules(package: str, beginning: str) -> Iterator[ModuleType]:
    """The modules of a package whose names begin with this text, in the order of their names; each is imported when it
    is asked for, since those of kernels take seconds."""
    folder = Path(str(importlib.import_module(package).__file__)).parent
    for file in sorted(folder.glob(f"{beginning}*.py")):
        yield importlib.import_module(f"{package}.{file.stem}")
