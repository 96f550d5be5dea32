"""Wrong answers of this phase."""

from course_mutants import Mutant

MUTANTS: list[Mutant] = []
