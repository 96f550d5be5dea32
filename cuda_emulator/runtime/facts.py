"""The properties of a compiled kernel, and the errors for those that only numba-cuda's compiler knows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba.core import types, typing

from . import limits
from .launch import Ready

ONLY_ON_A_DEVICE = {
    **dict.fromkeys(
        ("inspect_asm", "inspect_llvm", "inspect_lto_ptx", "inspect_sass", "inspect_sass_cfg", "inspect_types"),
        "there is no code for a GPU to show; emulated_source() shows the code that the emulator makes",
    ),
    **dict.fromkeys(
        ("get_regs_per_thread", "get_local_mem_per_thread"),
        "the compiler for a GPU decides it, and the emulator does not run that compiler",
    ),
    **dict.fromkeys(
        ("stats", "get_metadata", "get_compile_result"),
        "it describes the work of numba-cuda's compiler, which the emulator does not run",
    ),
}
"""Attributes that numba-cuda's kernels have and the emulator's do not, each with the reason."""


class Facts:
    """The properties of a kernel that its compiled variants have.

    signatures: the argument types from cuda.jit, or empty
    """

    signatures: list[tuple[Any, ...]]
    _ready: dict[Any, Ready]
    _most_threads: int | None

    @property
    def compiled(self) -> dict[tuple[Any, ...], Any]:
        """{argument types: compiled kernel}, as far as it is compiled."""
        return {key[0]: ready.compiled for key, ready in self._ready.items()}

    @property
    def specialized(self) -> bool:
        """Whether it accepts one combination of argument types only."""
        return len(self.signatures) == 1

    @property
    def nopython_signatures(self) -> list[Any]:
        """The Numba signatures that it was compiled for."""
        return [typing.signature(types.none, *arguments) for arguments in self.compiled]

    @property
    def extensions(self) -> list[Any]:
        """Always empty: the emulator has no extensions for other kinds of arguments."""
        return []

    def get_shared_mem_per_block(self, signature: Any = None) -> Any:
        """Bytes of static shared memory; {argument types: bytes} without a signature."""
        return self._by_signature(signature, lambda compiled: compiled.shared_bytes)

    def get_const_mem_size(self, signature: Any = None) -> Any:
        """Bytes of the global arrays that it reads; {argument types: bytes} without a signature."""
        return self._by_signature(signature, lambda compiled: sum(array.nbytes for array in compiled.constants))

    def get_max_threads_per_block(self, signature: Any = None) -> Any:
        """The most threads of a block; {argument types: threads} without a signature."""
        return self._by_signature(signature, lambda compiled: self._most_threads or limits.MAX_THREADS)

    def _by_signature(self, signature: Any, fact: Callable[[Any], int]) -> Any:
        facts = {arguments: fact(compiled) for arguments, compiled in self.compiled.items()}
        if signature is None and not self.specialized:
            return facts
        return facts[tuple(getattr(signature, "args", signature)) if signature is not None else self.signatures[0]]

    def __getattr__(self, name: str) -> Any:
        reason = ONLY_ON_A_DEVICE.get(name)
        raise AttributeError(
            f"a kernel has no {name!r}" + (f" in the emulator: {reason}" if reason else ""), name=name, obj=self
        )
