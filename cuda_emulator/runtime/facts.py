"""What a kernel knows about itself, and what it says where numba-cuda would show code for a GPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba.core import types, typing

from . import limits
from .launch import Ready

ONLY_ON_A_DEVICE = {
    **dict.fromkeys(
        ("inspect_asm", "inspect_llvm", "inspect_lto_ptx", "inspect_sass", "inspect_sass_cfg", "inspect_types"),
        "there is no code for a GPU to show; emulated_source() shows what the emulator makes of the kernel",
    ),
    **dict.fromkeys(
        ("get_regs_per_thread", "get_local_mem_per_thread"),
        "the compiler for a GPU decides it, and it did not run",
    ),
    **dict.fromkeys(
        ("stats", "get_metadata", "get_compile_result"), "it tells of numba-cuda's compiler, which did not run"
    ),
}
"""What a kernel of numba-cuda has and the emulator's has not, and why."""


class Facts:
    """What is known of a kernel from what it was compiled to.

    signatures: the argument types that cuda.jit was given, else empty
    """

    signatures: list[tuple[Any, ...]]
    _ready: dict[Any, Ready]
    _most_threads: int | None

    @property
    def overloads(self) -> dict[tuple[Any, ...], Any]:
        """What it was compiled to, by argument types."""
        return {key[0]: ready.compiled for key, ready in self._ready.items()}

    @property
    def specialized(self) -> bool:
        """Whether it takes one combination of argument types only."""
        return len(self.signatures) == 1

    @property
    def nopython_signatures(self) -> list[Any]:
        """The signatures that it was compiled for, as Numba's."""
        return [typing.signature(types.none, *arguments) for arguments in self.overloads]

    @property
    def extensions(self) -> list[Any]:
        """What prepares arguments that are no arrays or numbers: nothing here."""
        return []

    def get_shared_mem_per_block(self, signature: Any = None) -> Any:
        """Bytes of static shared memory; by argument types where no signature is given."""
        return self._by_signature(signature, lambda compiled: compiled.shared_bytes)

    def get_const_mem_size(self, signature: Any = None) -> Any:
        """Bytes of constant memory: of the global arrays that it reads; by argument types without a signature."""
        return self._by_signature(signature, lambda compiled: sum(array.nbytes for array in compiled.constants))

    def get_max_threads_per_block(self, signature: Any = None) -> Any:
        """Threads that a block may have; by argument types where no signature is given."""
        return self._by_signature(signature, lambda compiled: self._most_threads or limits.MAX_THREADS)

    def _by_signature(self, signature: Any, fact: Callable[[Any], int]) -> Any:
        facts = {arguments: fact(compiled) for arguments, compiled in self.overloads.items()}
        if signature is None and not self.specialized:
            return facts
        return facts[tuple(getattr(signature, "args", signature)) if signature is not None else self.signatures[0]]

    def __getattr__(self, name: str) -> Any:
        reason = ONLY_ON_A_DEVICE.get(name)
        raise AttributeError(
            f"a kernel has no {name!r}" + (f" in the emulator: {reason}" if reason else ""), name=name, obj=self
        )
