"""Wrong answers of week 22."""

from tests.groundup.course.course_mutants import Mutant

MUTANTS: list[Mutant] = []
