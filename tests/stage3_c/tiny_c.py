"""A small csrc and compilers that are not what they seem, for the tests of stage 3's build."""

import os
import shlex
from pathlib import Path

import pytest

from shared import contract
from stage3_c import compiler

POSIX = pytest.mark.skipif(os.name == "nt", reason="the fake compilers are shell scripts")

TINY = {
    "groundup.h": "#if GROUNDUP_BITS == 32\ntypedef float real;\n#define NAME(f) f##_f32\n#else\ntypedef double real;\n"
    '#define NAME(f) f##_f64\n#endif\n#define EXPORT __attribute__((visibility("default")))\n',
    "machine.c": '#include "groundup.h"\nEXPORT int answer(void);\nEXPORT int answer(void) { return 42; }\n',
    "twice.c": '#include "groundup.h"\nEXPORT real NAME(twice)(real x);\n'
    "EXPORT real NAME(twice)(real x)\n{\n    return x + x;\n}\n",
}


def write_sources(folder: Path) -> Path:
    """Two sources and their header in a new folder."""
    folder.mkdir()
    for name, text in TINY.items():
        (folder / name).write_text(text)
    return folder


def compiler_or_skip() -> compiler.Compiler:
    """The machine's own compiler."""
    try:
        return compiler.find_compiler()
    except contract.StageUnavailable as reason:
        pytest.skip(str(reason))


def fake_compiler(path: Path, body: str, real: compiler.Compiler | None = None) -> str:
    """A program of this name for $CC: what body, which is shell, says, and then what the real compiler does."""
    if real is not None:
        body += f'\nexec {shlex.join([real.path, *real.command[1:]])} "$@"'
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return str(path)
