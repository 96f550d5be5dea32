"""The listings of docs/emulator.md, made from the kernels they are about.

    python -m tests.docs.emulator_docs          writes them into the page anew

In the page a line `<!-- listing: NAME -->` stands before each. test_emulator_page.py compares.
"""

from __future__ import annotations

import ast
import functools
import importlib.util
import inspect
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from numba import types

from cuda_emulator import KernelWarning, install, options, uninstall
from cuda_emulator.inspection import (
    Collective,
    CollectiveCall,
    DeviceFunctions,
    Region,
    Regions,
    Sites,
    Uniformity,
    Unit,
    Variant,
    copied,
    generate,
    normalise,
    split_webs,
    variable_types,
)
from tests.docs import emulator_docs_kernels as small

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "emulator.md"
MATRICES = (types.Array(types.float32, 2, "C"),) * 3
VECTORS = (types.Array(types.float32, 1, "C"),) * 2
LISTING = re.compile(r"(<!-- listing: (\S+) -->\n)(.*?)(?=<!-- end -->)", re.DOTALL)


@functools.cache
def example() -> ModuleType:
    """examples/tiled_matmul.py, on the emulator."""
    spec = importlib.util.spec_from_file_location("tiled_matmul_of_the_docs", ROOT / "examples" / "tiled_matmul.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    install()
    try:
        spec.loader.exec_module(module)
    finally:
        uninstall()
    return module


# ---- the steps, as text


class AsWritten(ast.NodeTransformer):
    """Puts calls in the place of collectives, which Python's own trees do not have."""

    def visit_Collective(self, node: Collective) -> ast.stmt:
        """results = cuda.path(operands)."""
        results = ", ".join(result.id for result in node.results)
        operands = ", ".join(map(ast.unparse, node.operands))
        return ast.parse(f"{results + ' = ' if results else ''}cuda.{node.path}({operands})").body[0]


def in_words(body: Sequence[ast.stmt]) -> str:
    """Statements in normal form."""
    return "\n".join(ast.unparse(AsWritten().visit(copied(statement))) for statement in body)


def normal_form(kernel: Any, webs: bool = False) -> Unit:
    """The kernel after step 2, or after step 3."""
    unit = normalise(kernel.source)
    if webs:
        split_webs(unit)
    return unit


def analysed(kernel: Any, arguments: Any) -> tuple[Unit, Uniformity, dict[str, Any], Regions]:
    """What steps 2 to 6 find."""
    unit = normal_form(kernel, webs=True)
    devices = DeviceFunctions(Variant(), Sites([kernel.source.filename]))
    devices.add(unit)
    uniformity = Uniformity(unit)
    found = variable_types(unit, arguments, devices.for_inference(), devices.contexts)
    return unit, uniformity, found, Regions(unit, uniformity, found)


def own_variables(unit: Unit) -> list[str]:
    """The learner's variables, in order."""
    names = [part.id for node in unit.body for part in ast.walk(node) if isinstance(part, ast.Name)]
    return [name for name in dict.fromkeys(names) if name in unit.source.stored and name not in unit.parameters]


def uniformity_text(kernel: Any, arguments: Any) -> str:
    """Which variables are the block's, which a thread's."""
    unit, uniformity, _, _ = analysed(kernel, arguments)
    names = [name for name in own_variables(unit) if name not in unit.arrays]
    one = [name for name in names if name not in uniformity.varying]
    each = [name for name in names if name in uniformity.varying]
    return f"one value for the block     {', '.join(one)}\none value for each thread   {', '.join(each)}"


def lines_of(statements: Sequence[ast.stmt]) -> str:
    """line 22, lines 25 to 26."""
    first, last = statements[0].lineno, max(node.end_lineno or node.lineno for node in statements)
    return f"line {first}" if first == last else f"lines {first} to {last}"


def regions_text(kernel: Any, arguments: Any) -> str:
    """The tree of regions, and what becomes of the variables."""
    *_, parts = analysed(kernel, arguments)
    again = ", ".join(f"{name} = {ast.unparse(value)}" for name, value in parts.recomputed.items())
    return "\n".join([*outline(parts.tree), "", f"carried     {', '.join(parts.carried)}", f"recomputed  {again}"])


def outline(tree: Sequence[Any], depth: int = 0) -> Iterator[str]:
    """One line for each part."""
    for part in tree:
        indent = "    " * depth
        if isinstance(part, Region):
            yield f"{indent}each thread: {lines_of(part.statements)}"
        elif isinstance(part, CollectiveCall):
            yield f"{indent}all together: line {part.collective.lineno}, cuda.{part.collective.path}()"
        else:
            head = in_words([part.statement]).strip().splitlines()[0]
            yield f"{indent}the block: line {part.statement.lineno}, {head}"
            yield from outline(part.body, depth + 1)


def types_text(kernel: Any, arguments: Any) -> str:
    """The types of the learner's variables."""
    unit, _, found, _ = analysed(kernel, arguments)
    return "\n".join(f"{name:<8} {found[name]}" for name in own_variables(unit))


def source_text(kernel: Any) -> str:
    """A kernel or device function as it stands in its file."""
    return inspect.getsource(kernel.py_func).rstrip()


def emitted(kernel: Any, arguments: Any, **variant: Any) -> str:
    """The generated source without its imports and without what the emulator notes at its end."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", KernelWarning)
        text, _, _ = generate(kernel.source, arguments, Variant(**variant))
    return text[text.index("\n@_") + 1 : text.index("# Data for the emulator.")].rstrip()


def function(text: str, name: str) -> str:
    """One function of a generated source, without its decorator."""
    found = re.search(rf"^def {name}\(.*?(?=^@_|\Z)", text, re.DOTALL | re.MULTILINE)
    assert found is not None, f"there is no {name} in\n{text}"
    return found[0].rstrip()


def between(text: str, first: str, last: str) -> str:
    """The lines from the one that contains `first` to the next that contains `last`, moved to the left."""
    lines = text.splitlines()
    start = next(number for number, line in enumerate(lines) if first in line)
    end = next(number for number in range(start, len(lines)) if last in lines[number])
    return inspect.cleandoc("\n".join(["", *lines[start : end + 1]]))


# ---- what is said about mistakes


def message(fault: small.Fault) -> str:
    """What the emulator says, without file and line."""
    with warnings.catch_warnings(), options(check=fault.check, threads=1, bounds=True, step=False):
        warnings.simplefilter("error", KernelWarning)
        try:
            fault.launch()
        except (ValueError, TypeError) as error:
            return str(getattr(error, "sentence", error))
        except KernelWarning as warning:  # it has the place in its text
            return re.sub(r"^.*?:\d+: (.*?)(\n.*)?$", r"\1", str(warning), flags=re.DOTALL)
    raise AssertionError(f"nothing was said about {fault.what}")


def faults_table(kind: str) -> str:
    """A table in Markdown."""
    rows = [f"| {fault.what} | {escaped(message(fault))} |" for fault in small.FAULTS if fault.kind == kind]
    return "\n".join(["| mistake | what is said |", "|---|---|", *rows])


def escaped(text: str) -> str:
    """Text for a cell of a table: kernel[1, 32](x) is no link."""
    return re.sub(r"([|\[\]*])", r"\\\1", text)


def fenced(text: str, language: str = "python") -> str:
    """A block of code in Markdown."""
    return f"```{language}\n{text}\n```"


def listings() -> dict[str, Callable[[], str]]:
    """Name -> what makes the text that stands in the page."""
    matmul = example().tiled_matmul
    unchecked = functools.cache(lambda: emitted(matmul, MATRICES, bounds=False))
    checked = functools.cache(lambda: emitted(matmul, MATRICES))
    return {
        "source": lambda: fenced(source_text(matmul)),
        "normal-form": lambda: fenced(in_words(normal_form(matmul).body)),
        "two-uses": lambda: fenced(source_text(small.two_uses)),
        "two-uses-webs": lambda: fenced(in_words(normal_form(small.two_uses, webs=True).body)),
        "uniformity": lambda: fenced(uniformity_text(matmul, MATRICES), "text"),
        "types": lambda: fenced(types_text(matmul, MATRICES), "text"),
        "regions": lambda: fenced(regions_text(matmul, MATRICES), "text"),
        "emitted-block": lambda: fenced(function(unchecked(), "run_block")),
        "emitted-run": lambda: fenced(function(unchecked(), "run")),
        "checked": lambda: fenced(between(checked(), "for k in range", "total = total +")),
        "check-mode": lambda: fenced(
            between(emitted(matmul, MATRICES, bounds=False, check=True), "# line 31", "total = _all_total")
        ),
        "half-assigns": lambda: fenced(source_text(small.half_assigns)),
        "half-assigns-emitted": lambda: fenced(
            function(emitted(small.half_assigns, VECTORS, bounds=False), "run_block")
        ),
        "first-warp": lambda: fenced(source_text(small.first_warp)),
        "first-warp-emitted": lambda: fenced(function(emitted(small.first_warp, VECTORS, bounds=False), "run_block")),
        "pairs": lambda: fenced("\n\n\n".join(map(source_text, (small.squared, small.pair_sum, small.pairs)))),
        "pairs-emitted": lambda: fenced(
            "\n\n".join(
                function(emitted(small.pairs, VECTORS, bounds=False), name) for name in ("_device_squared", "run_block")
            )
        ),
        "rotated": lambda: fenced(source_text(small.rotated)),
        "rotated-emitted": lambda: fenced(
            function(emitted(small.rotated, (*VECTORS, types.int64), bounds=False), "run_block")
        ),
        "by-luck": lambda: fenced(source_text(small.reversed_by_luck)),
        "faults-running": lambda: faults_table(small.RUNNING),
        "faults-compiling": lambda: faults_table(small.COMPILING),
        "faults-launching": lambda: faults_table(small.LAUNCHING),
    }


def refresh(page: Path, makers: Mapping[str, Callable[[], str]]) -> None:
    """Make every listing of a page anew."""
    text = page.read_text(encoding="utf-8")
    page.write_text(LISTING.sub(lambda found: f"{found[1]}\n{makers[found[2]]()}\n\n", text), encoding="utf-8")


if __name__ == "__main__":
    refresh(PAGE, listings())
