"""PTX as data: the kernels of a text with their parameters, registers, shared memory and statements.

    kernels = parse(text)
    kernels[0].name, kernels[0].statements

It reads what NVVM and nvJitLink write for numba-cuda's kernels, inline assembly included. What it does not know raises
PtxError: a directive that is skipped could change what a kernel does.

Source: NVIDIA, Parallel Thread Execution ISA, sections 4 (syntax) and 5 (state spaces, types).
"""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass, field

BITS = {"pred": 1, **{f"{kind}{n}": n for kind in "bus" for n in (8, 16, 32, 64)}, "f16": 16, "f32": 32, "f64": 64}
"""The size of each type of PTX, in bits."""

IGNORED = re.compile(r"\.(version|target|address_size|pragma|loc|file|maxntid|minnctapersm|maxnreg)\b")
"""Directives that change the speed or describe the text."""

NAME = re.compile(r"[%$_A-Za-z][\w$]*")
LABEL = re.compile(r"([$_A-Za-z][\w$]*):")
REGISTERS = re.compile(r"\.reg\s+\.(\w+)\s+(.+)", re.S)
VARIABLE = re.compile(
    r"(?:\.extern\s+)?\.(shared|local|param)\s+(?:\.align\s+(\d+)\s+)?\.(\w+)\s+([\w$]+)(?:\[(\d*)\])?"
)
PARAMETER = re.compile(
    r"\.param\s+(?:\.align\s+(\d+)\s+)?\.(\w+)\s+(?:\.ptr\s+(?:\.\w+\s+)?\.align\s+\d+\s+)?([\w$]+)(?:\[(\d+)\])?"
)
ENTRY = re.compile(r"(?:\.visible\s+|\.weak\s+)?\.entry\s+([\w$]+)")
FUNCTION = re.compile(r"(?:\.(?:visible|weak|extern)\s+)?\.func\s*(?:\(([^)]*)\)\s*)?([\w$]+)")


class PtxError(ValueError):
    """A text that is no PTX, or has what the machine does not know; the message quotes the statement."""


@dataclass(frozen=True)
class Place:
    """A variable in shared or local memory, or a parameter, at this offset of its space. size: 0 if a launch says it"""

    offset: int
    size: int


@dataclass(frozen=True)
class Statement:
    """One statement. operation: 'ld.global.v4.f32', or 'label'; guard: '@%p1', '@!%p1' or ''

    operands: registers, numbers, '[%rd1+16]' and '{%f1,%f2}', without blanks
    line: the number of its line in the text
    """

    operation: str
    operands: tuple[str, ...]
    guard: str
    line: int


@dataclass
class Kernel:
    """A kernel, or a function that it calls.

    registers: {name: bits}; parameters, shared and local: {name: Place}; statements: in order
    results: the names of what a function returns; what a call passes and gets back lies in local memory
    functions: all functions of the text, by name
    """

    name: str
    parameters: dict[str, Place] = field(default_factory=dict)
    registers: dict[str, int] = field(default_factory=dict)
    shared: dict[str, Place] = field(default_factory=dict)
    local: dict[str, Place] = field(default_factory=dict)
    statements: list[Statement] = field(default_factory=list)
    results: tuple[str, ...] = ()
    functions: dict[str, Kernel] = field(default_factory=dict)


def parse(text: str) -> list[Kernel]:
    """The kernels of a PTX text. Raises PtxError for what is not known."""
    return _Parser(text).kernels()


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = re.sub(r"//[^\n]*", "", text)
        self.at = 0
        self.lines = [match.start() for match in re.finditer("\n", self.text)]
        self.shared: dict[str, Place] = {}  # variables outside a kernel, which all kernels of the text may use
        self.functions: dict[str, Kernel] = {}
        self.scopes: list[dict[str, str]] = []
        self.made = 0

    def kernels(self) -> list[Kernel]:
        found = []
        while self._skip_blanks():
            entry = ENTRY.match(self.text, self.at)
            if entry:
                self.at = entry.end()
                found.append(self._kernel(entry.group(1)))
            elif function := FUNCTION.match(self.text, self.at):
                self.at = function.end()
                self._function(*function.groups())
            elif not self._ignored():
                statement = self._until(";")
                if not self._variable(statement, self.shared, {}):
                    raise PtxError(f"line {self._line()}: unknown declaration {statement!r}")
        return found

    def _function(self, results: str | None, name: str) -> None:
        """A function, or its declaration, which ends at once. What is declared only cannot be called."""
        kernel = self._head(name)
        if self.text[self.at] == ";":
            return
        returned = Kernel(name)
        self._parameters(results or "", returned)
        kernel.results = tuple(returned.parameters)
        self.functions[name] = self._body(kernel)

    def _kernel(self, name: str) -> Kernel:
        return self._body(self._head(name))

    def _head(self, name: str) -> Kernel:
        kernel = Kernel(name, shared=dict(self.shared), functions=self.functions)
        self._skip_blanks()
        if self.text[self.at] == "(":
            self.at += 1
            self._parameters(self._until(")"), kernel)
        while self.text[self.at].isspace():
            self.at += 1
        return kernel

    def _body(self, kernel: Kernel) -> Kernel:
        while self._skip_blanks() and self.text[self.at] != "{":
            if not self._ignored():
                raise PtxError(f"line {self._line()}: unknown directive of {kernel.name}")
        depth = 0
        while self._skip_blanks():
            if self.text[self.at] == "{":
                depth += 1
                self.scopes.append({})
                self.at += 1
            elif self.text[self.at] == "}":
                depth -= 1
                self.scopes.pop()
                self.at += 1
                if depth == 0:
                    return kernel
            elif label := LABEL.match(self.text, self.at):
                kernel.statements.append(Statement("label", (label.group(1),), "", self._line()))
                self.at = label.end()
            else:
                line = self._line()
                self._statement(self._until(";"), line, kernel)
        raise PtxError(f"{kernel.name} does not end")

    def _parameters(self, text: str, kernel: Kernel) -> None:
        end = 0
        for parameter in filter(None, (part.strip() for part in text.split(","))):
            match = PARAMETER.fullmatch(parameter)
            if match is None:
                raise PtxError(f"unknown parameter {parameter!r}")
            align, element, name, count = match.groups()
            size = BITS[element] // 8 * int(count or 1)
            step = int(align or BITS[element] // 8)
            kernel.parameters[name] = Place(-(-end // step) * step, size)
            end = kernel.parameters[name].offset + size

    def _statement(self, text: str, line: int, kernel: Kernel) -> None:
        if IGNORED.match(text):
            return
        if registers := REGISTERS.fullmatch(text):
            self._registers(*registers.groups(), kernel)
        elif not self._variable(text, kernel.shared, kernel.local):
            guard, _, rest = text.partition(" ") if text.startswith("@") else ("", "", text)
            operation, *operands = re.split(r"\s+", rest.strip(), maxsplit=1)
            if operation.startswith("."):
                raise PtxError(f"line {line}: unknown directive {text!r}")
            parts = _split(re.sub(r"\s+", "", operands[0])) if operands else ()
            kernel.statements.append(Statement(operation, tuple(map(self._names, parts)), self._names(guard), line))

    def _registers(self, kind: str, names: str, kernel: Kernel) -> None:
        """A name may stand for many, %r<7> for %r0 to %r6. In a scope of its own it hides the one outside."""
        for name in (part.strip() for part in names.split(",")):
            many = re.fullmatch(r"([%\w$]+)<(\d+)>", name)
            each = [f"{many.group(1)}{i}" for i in range(int(many.group(2)))] if many else [name]
            for register in each:
                kernel.registers[self._own(register)] = BITS[kind]

    def _own(self, name: str) -> str:
        """What the kernel calls a name of the innermost scope."""
        own = name
        if len(self.scopes) > 1:
            self.made += 1
            own = f"{name}.{self.made}"
        self.scopes[-1][name] = own
        return own

    def _variable(self, text: str, shared: dict[str, Place], local: dict[str, Place]) -> bool:
        match = VARIABLE.fullmatch(text)
        if match is None:
            return False
        space, align, element, name, count = match.groups()
        places = shared if space == "shared" else local
        step = int(align or BITS[element] // 8)
        end = max((place.offset + place.size for place in places.values()), default=0)
        size = 0 if count == "" else BITS[element] // 8 * int(count or 1)
        if space == "param":
            name = self._own(name)
        places[name] = Place(-(-end // step) * step, size)
        return True

    def _names(self, operand: str) -> str:
        """The operand with each register's own name, that of the innermost scope that has it."""

        def own(match: re.Match[str]) -> str:
            name = match.group()
            return next((scope[name] for scope in reversed(self.scopes) if name in scope), name)

        return NAME.sub(own, operand)

    def _ignored(self) -> bool:
        if not IGNORED.match(self.text, self.at):
            return False
        self.at = (self.text + "\n").index("\n", self.at)
        return True

    def _until(self, end: str) -> str:
        stop = self.text.find(end, self.at)
        if stop < 0:
            raise PtxError(f"line {self._line()}: a statement does not end")
        text, self.at = self.text[self.at : stop].strip(), stop + 1
        return text

    def _skip_blanks(self) -> bool:
        while self.at < len(self.text) and (self.text[self.at].isspace() or self.text[self.at] == ";"):
            self.at += 1
        return self.at < len(self.text)

    def _line(self) -> int:
        return bisect_left(self.lines, self.at) + 1


def _split(text: str) -> tuple[str, ...]:
    """The operands between commas; those in braces, brackets or parentheses are one."""
    return tuple(re.findall(r"(?:\{[^}]*\}|\[[^\]]*\]|\([^)]*\)|[^,])+", text))
