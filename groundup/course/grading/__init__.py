"""How every task and every checkpoint is graded: a file a week, in two where the week has two subjects.

GRADES, in a week's file, has the function that makes the checks of a task, by the task's id.

week01_matrices_as_lists, week02_activations_and_losses, week03_backpropagation
                                                            phase 1, on lists
week04_vectorisation, week05_mnist                          phase 2, on NumPy arrays
week06_pointers_and_loops, week07_memory_and_caches, week08_ctypes, week08_micro_kernel
                                                            phase 3, in C
week09_first_kernels, week10_coalescing, week11_tiled_product
                                                            phase 4, kernels
week12_activation_kernels, week13_softmax_and_reductions, week14_backward_kernels, week15_optimizers_and_step,
week16_fusing
                                                            phase 5, training by kernels
week17_inside_the_network, week18_live_view, week18_gradient_checking
                                                            phase 6, tools that look inside
own_work.py     what the function of a task calls: the learner's answer must not leave the work to another function
cases/          the detective exercises, a file a case
checkpoints/    what ends a phase
calling/        how the learner's functions are called: lists, arrays, C, kernels
problems/       arguments, right results and known mistakes that several weeks share
"""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType

from groundup.course.checks.check import Check
from groundup.course.grading.own_work import with_own_work
from groundup.course.manifest import course


def task_checks(task: str) -> list[Check]:
    """The checks of a task, such as "8.3", or a detective exercise, "8.d".

    Raises KeyError if no file of its week grades it.
    """
    week = int(task.partition(".")[0])
    package = f"{__name__}.cases" if task.endswith(".d") else __name__
    for module in _modules(package, f"week{week:02}_"):
        if task in module.GRADES:
            made = list(module.GRADES[task]())
            return made if task.endswith(".d") else with_own_work(made, course().task(task))
    raise KeyError(f"no file of week {week} grades task {task}")


def checkpoint_checks(phase: int) -> list[Check]:
    """The checks of the checkpoint that ends a phase."""
    (module,) = _modules(f"{__name__}.checkpoints", f"phase{phase}_")
    return list(module.checkpoint())


def _modules(package: str, beginning: str) -> list[ModuleType]:
    """The modules of a package whose names begin with this text, imported, in the order of their names."""
    folder = Path(str(importlib.import_module(package).__file__)).parent
    return [importlib.import_module(f"{package}.{file.stem}") for file in sorted(folder.glob(f"{beginning}*.py"))]
