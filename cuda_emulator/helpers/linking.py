"""How Numba compiles the parts of a kernel: the functions inside are optimised once, together with `run` around them.

    inner    the decorator of a function that only compiled code calls: a device function, a helper, run_block
    outer    the decorator of `run`, which the host calls
    helper   the decorator of an inner function that is compiled once, whatever numbers are written out in its calls

By default Numba optimises each function together with all that it calls, and makes machine code of it. So `run_block`
would be optimised alone, become machine code that nobody calls, and be optimised again as a part of `run`. An inner
function is only tidied up instead; LLVM optimises it once, inside the function that the host calls.

The functions of a kernel that checks its indices are `quick`: LLVM computes no loop with vectors that an index outside
can end, so that less tidying up leaves the kernel as fast.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from numba import njit, types
from numba.core import compiler, typed_passes, untyped_passes
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler_machinery import PassManager

UNUSED = (
    untyped_passes.WithLifting,
    untyped_passes.InlineClosureLikes,
    untyped_passes.MakeFunctionToJitFunction,
    untyped_passes.InlineInlinables,
    untyped_passes.FindLiterallyCalls,
    untyped_passes.LiteralUnroll,
    typed_passes.InlineOverloads,
    typed_passes.NopythonRewrites,
)
"""Numba's passes that look for what generated code does not have: `with`, functions inside functions, functions that
are inlined before LLVM sees them, numba.literally and literal_unroll, and arithmetic with whole arrays."""


class Nowhere:
    """The place of code that has no machine code yet."""

    def set_env(self, name: str, environment: Any) -> None:
        """Nothing: OuterCompiler sets the environments of the functions inside."""


class Tidied(JITCodeLibrary):
    """The code of a function, whose short passes run over what is defined there.

    Numba's own run over each function that is only declared, too: for nothing, with tables that are built each time.

    level: what Numba gives to LLVM for these passes; empty for its own level, which is the highest
    """

    level: Mapping[str, int] = {}

    def _optimize_functions(self, ll_module: Any) -> None:
        ll_module.data_layout = self._codegen._data_layout
        for function in ll_module.functions:
            if not function.is_declaration:
                manager, builder = self._codegen._function_pass_manager(**self.level)
                manager.run(function, builder)


class Part(Tidied):
    """The code of an inner function: not made machine code before it is linked into another one.

    Numba's short passes over each function stay: what they tidy up is inlined tidy. Without them LLVM finds no loop
    over threads that it can compute with vectors, and a tiled product takes four times as long.
    """

    @property
    def codegen(self) -> Nowhere:
        """Where Numba would set the environment of the function."""
        return Nowhere()

    def _optimize_final_module(self) -> None:
        """Nothing: the library that this one is linked into is optimised as a whole."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """0: there is no machine code."""
        self._ensure_finalized()
        return 0


QUICKLY = {"opt": 1}
"""The level for a kernel that checks its indices."""


class QuickPart(Part):
    """The code of an inner function of a kernel that checks its indices."""

    level = QUICKLY


class QuickTidied(Tidied):
    """The code of `run` of a kernel that checks its indices."""

    level = QUICKLY


class Called(Part):
    """The code of an inner function that LLVM does not inline."""

    def add_ir_module(self, ir_module: Any) -> None:
        """Mark what the module defines, and take it."""
        for function in ir_module.functions:
            if not function.is_declaration:
                function.attributes.add("noinline")
        super().add_ir_module(ir_module)


class GeneratedCompiler(compiler.Compiler):
    """Numba's compiler without the passes that change nothing in generated code."""

    def define_pipelines(self) -> list[PassManager]:
        """Numba's own pipeline, without UNUSED."""
        (pipeline,) = super().define_pipelines()
        pipeline.passes = [each for each in pipeline.passes if each[0] not in UNUSED]
        pipeline.finalize()
        return [pipeline]


class InnerCompiler(GeneratedCompiler):
    """The compiler of an inner function."""

    library: type[Part] = Part

    def compile_extra(self, func: Any) -> Any:
        """Compile a function into a Part."""
        self.state.library = self.library(self.state.targetctx.codegen(), func.__qualname__)
        return super().compile_extra(func)


class OuterCompiler(GeneratedCompiler):
    """The compiler of the function that the host calls."""

    library: type[Tidied] = Tidied

    def compile_extra(self, func: Any) -> Any:
        """Compile a function, and give the functions inside their environments, which hold the constants of print().

        Numba does the same when it reads code from its cache.
        """
        self.state.library = self.library(self.state.targetctx.codegen(), func.__qualname__)
        self.state.library.enable_object_caching()
        result = super().compile_extra(func)
        for environment in result._find_referenced_environments():
            self.state.targetctx.codegen().set_env(environment.env_name, environment)
        return result


class QuickInnerCompiler(InnerCompiler):
    """The compiler of an inner function of a kernel that checks its indices."""

    library = QuickPart


class QuickOuterCompiler(OuterCompiler):
    """The compiler of `run` of a kernel that checks its indices."""

    library = QuickTidied


class CalledCompiler(InnerCompiler):
    """The compiler of an inner function that LLVM does not inline: a kernel calls it once for a block."""

    library = Called


def inner(compiler_class: type = InnerCompiler, quick: bool = False, **options: Any) -> Callable[[Any], Any]:
    """The decorator of a function that only compiled code calls.

    quick: whether it belongs to a kernel that checks its indices; options: those of numba.njit

    A function that may own memory says so, or it would be compiled as the first one that calls it.
    """
    options = {"_nrt": True, **options}
    if quick:
        compiler_class = QuickInnerCompiler
    return njit(**options, no_cpython_wrapper=True, no_cfunc_wrapper=True, pipeline_class=compiler_class)


def outer(quick: bool = False, **options: Any) -> Callable[[Any], Any]:
    """The decorator of the function that the host calls. quick, options: as those of `inner`."""
    compiler_class = QuickOuterCompiler if quick else OuterCompiler
    return njit(**options, no_cfunc_wrapper=True, pipeline_class=compiler_class)


def helper(inlined: bool) -> Callable[[Any], Any]:
    """The decorator of a helper, which is compiled once for each combination of types.

    Numba would compile it again for every number that is written out in a call, like a place's number or a mask.

    inlined: whether LLVM inlines it always, or never
    """
    compiler_class = InnerCompiler if inlined else CalledCompiler

    def decorate(function: Any) -> Any:
        dispatcher = inner(compiler_class, error_model="numpy", forceinline=inlined)(function)
        compiled_for = dispatcher.get_call_template
        dispatcher.get_call_template = lambda given, keywords: compiled_for(
            [types.unliteral(kind) for kind in given], keywords
        )
        return dispatcher

    return decorate


__all__ = ["inner", "outer"]
