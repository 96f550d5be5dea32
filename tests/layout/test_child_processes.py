"""Another Python is started in one way: `processes.python`, which leaves out the current folder."""

from __future__ import annotations

import ast

from tests.layout.source_tree import PACKAGES, sources

ALLOWED = {
    "shared.machine.processes": "python",
    "groundup.doctor.survey": "_basics",
    "scripts.emulator_compatibility": "run_tests",
    "scripts.numba_cuda_tests": "run_in_subprocess",
}
"""Who may name sys.executable outside a sentence: the one starter, the doctor, who tells which Python this is, and the
trial of other people's tests and the stand-in for a helper of theirs, which need the emulator alone."""


def test_only_one_function_makes_the_command_of_another_python() -> None:
    found = {}
    for module, text in sources(*PACKAGES, "scripts").items():
        if "sys.executable" not in text:
            continue
        tree = ast.parse(text)
        in_sentences = {
            id(node) for joined in ast.walk(tree) if isinstance(joined, ast.JoinedStr) for node in ast.walk(joined)
        }
        for function in ast.walk(tree):
            if isinstance(function, ast.Module | ast.FunctionDef) and any(
                isinstance(node, ast.Attribute)
                and id(node) not in in_sentences
                and ast.unparse(node) == "sys.executable"
                for node in ast.walk(function)
            ):
                found[module] = getattr(function, "name", "at its top")  # the innermost comes last
    assert found == ALLOWED
