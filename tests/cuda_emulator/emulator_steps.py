"""The compiler's steps one at a time: kernels from text, and their trees as text again."""

from __future__ import annotations

import ast
import linecache
import textwrap
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numba import float32, int32

from cuda_emulator import cuda
from cuda_emulator.compiler.functions import DeviceFunction
from cuda_emulator.compiler.reading.normalise import normalise
from cuda_emulator.compiler.reading.source import FunctionSource
from cuda_emulator.compiler.trees import Collective, copied
from cuda_emulator.compiler.unit import Unit
from cuda_emulator.errors import KernelError

HERE = "# here"
"""At the end of the line that an error has to point to."""


def function(body: str, parameters: str = "A, out, n", **names: Any) -> Any:
    """A Python function of this body. names: its globals, besides cuda, np, float32 and int32."""
    text = f"def kernel({parameters}):\n{textwrap.indent(textwrap.dedent(body).strip(), '    ')}\n"
    filename = f"<kernel {zlib.crc32(text.encode()):08x}>"  # the same in every run, as the key of the cache
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    scope = {"cuda": cuda, "np": np, "float32": float32, "int32": int32, **names}
    exec(compile(text, filename, "exec"), scope)
    return scope["kernel"]


def device(body: str, parameters: str = "x", name: str = "helper", **names: Any) -> DeviceFunction:
    """A device function of this body."""
    found = function(body, parameters, **names)
    found.__name__ = name
    return DeviceFunction(found)


def normal_form(body: str, parameters: str = "A, out, n", **names: Any) -> Unit:
    """The kernel of this body after step 2."""
    return normalise(FunctionSource(function(body, parameters, **names)))


def refused(body: str, parameters: str = "A, out, n", **names: Any) -> str:
    """What is said about a kernel of this body; it must point to the line marked `# here`, or to the first."""
    lines = textwrap.dedent(body).strip().splitlines()
    marked = next((number for number, line in enumerate(lines) if line.endswith(HERE)), 0)
    with pytest.raises(KernelError) as raised:
        normal_form(body, parameters, **names)
    assert raised.value.line == marked + 2
    first = str(raised.value).splitlines()[0]
    assert first.startswith(f"{raised.value.filename}:{marked + 2}: ")
    return raised.value.sentence


class _Spelled(ast.NodeTransformer):
    def visit_Collective(self, node: Collective) -> ast.stmt:
        called = ast.Call(func=ast.Name(id=node.path, ctx=ast.Load()), args=node.operands, keywords=[])
        if not node.results:
            return ast.Expr(value=called)
        results = ast.Tuple(elts=list(node.results), ctx=ast.Store())
        target = node.results[0] if len(node.results) == 1 else results
        return ast.Assign(targets=[target], value=called)


def text(statements: Sequence[ast.stmt]) -> str:
    """Statements as text; a collective as `result = shfl_down_sync(mask, value, lane)`."""
    new = [ast.fix_missing_locations(_Spelled().visit(copied(statement))) for statement in statements]
    return "\n".join(ast.unparse(statement) for statement in new)


def expected(lines: str) -> str:
    """An indented block of lines, as text() writes it."""
    return textwrap.dedent(lines).strip()
