"""Atomics: read, change and write one array element without interruption by another core.

Each is an LLVM instruction, as on a device: `atomicrmw` for an operation of the hardware, else a loop that computes the
new value and writes it with compare-and-exchange, until no other core has changed the element in between.
All are relaxed ("monotonic"): they order accesses to this element only. To order others, a kernel needs
cuda.threadfence().

    atomic_NAME(array, index, value)   add sub max min nanmax nanmin inc dec and_ or_ xor exch
    atomic_cas(array, index, old, value)
    atomic_compare_and_swap(array, old, value)

array: any layout, 1-D to n-D; index: an int (1-D) or a tuple of n ints; a negative index counts from the end, and the
caller has checked that it is inside. value is cast to the array's dtype. All return the element's old value.
Types and NaN rules are those of numba-cuda (its docs, "Supported Atomic Operations"). Types that a device does not
support raise a numba TypingError.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.errors import TypingError
from numba.extending import intrinsic

UNSIGNED = (types.uint32, types.uint64)
INTEGERS = (types.int32, types.int64, *UNSIGNED)
NUMBERS = (*INTEGERS, types.float32, types.float64)
ORDER = "monotonic"
#: Numba's fastmath lets LLVM assume that no comparison has a NaN, unless the comparison has its own flags. This flag
#: allows LLVM to ignore the sign of zero, which a comparison ignores anyway; it replaces fastmath, so NaN is respected.
NAN_COUNTS = ("nsz",)

#: (builder, dtype, pointer to the cell, value) -> the old value
Emit = Callable[[Any, Any, Any, Any], Any]


def _listed(names: list[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}"


def _check_array(name: str, array: Any, dtypes: tuple[Any, ...], values: tuple[Any, ...]) -> None:
    """Raise a TypingError for an array or value that cuda.atomic.NAME does not support."""
    if not isinstance(array, types.Array):
        raise TypingError(f"cuda.atomic.{name} changes an element of an array; its first argument is {array}")
    if array.dtype not in dtypes:
        works = _listed([str(dtype) for dtype in dtypes])
        raise TypingError(f"cuda.atomic.{name} works on arrays of {works}; this one holds {array.dtype}")
    if not array.mutable:
        raise TypingError(f"cuda.atomic.{name} has to write, and this array is read-only")
    for value in values:
        if not isinstance(value, types.Integer | types.Float | types.Boolean):
            raise TypingError(
                f"cuda.atomic.{name} on an array of {array.dtype} takes a number as its value, not {value}"
            )


def _check_index(name: str, array: Any, index: Any) -> None:
    """Raise a TypingError if `index` is not the index of one element of `array`."""
    parts = tuple(index) if isinstance(index, types.BaseTuple) else (index,)
    if len(parts) != array.ndim or not all(isinstance(part, types.Integer) for part in parts):
        wanted = "an integer" if array.ndim == 1 else f"a tuple of {array.ndim} integers"
        raise TypingError(f"cuda.atomic.{name} on a {array.ndim}-D array needs {wanted} as its index, not {index}")


def _cell(context: Any, builder: Any, array_type: Any, array: Any, index_type: Any, index: Any) -> Any:
    """A pointer to the element; negative indices count from the end."""
    if isinstance(index_type, types.BaseTuple):
        parts = list(zip(index_type, cgutils.unpack_tuple(builder, index, len(index_type)), strict=True))
    else:
        parts = [(index_type, index)]
    indices = [context.cast(builder, part, part_type, types.intp) for part_type, part in parts]
    view = context.make_array(array_type)(context, builder, value=array)
    return cgutils.get_item_pointer(context, builder, array_type, view, indices, wraparound=True)


def _operation(name: str, dtypes: tuple[Any, ...], emit: Emit) -> Any:
    """The function atomic_NAME(array, index, value) for compiled code."""

    def typed(typingctx, array, index, value):  # type: ignore[no-untyped-def]
        _check_array(name, array, dtypes, (value,))
        _check_index(name, array, index)

        def build(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
            array_type, index_type, _ = signature.args
            cell = _cell(context, builder, array_type, arguments[0], index_type, arguments[1])
            return emit(builder, array_type.dtype, cell, arguments[2])

        return array.dtype(array, index, array.dtype), build

    typed.__name__ = typed.__qualname__ = f"atomic_{name}"
    return intrinsic(typed)


# ---- operations with an instruction of their own


def _instruction(integer: str, floating: str | None = None) -> Emit:
    """An `atomicrmw` with LLVM's operation for integers, or with that for floats."""

    def emit(builder, dtype, cell, value):  # type: ignore[no-untyped-def]
        return builder.atomic_rmw(integer if dtype in INTEGERS else floating, cell, value, ORDER)

    return emit


# ---- operations that need a loop


def _exchange_loop(builder: Any, dtype: Any, cell: Any, replacement: Callable[[Any], tuple[Any, Any]]) -> Any:
    """Write a loop around compare-and-exchange; return the old value.

    replacement(old) -> (whether to write: i1, the new value). It is evaluated again after each change by another core.
    """
    bits = ir.IntType(dtype.bitwidth)
    value_type = bits if dtype in INTEGERS else ir.FloatType() if dtype == types.float32 else ir.DoubleType()
    words = builder.bitcast(cell, bits.as_pointer())
    first = builder.load_atomic(words, ordering=ORDER, align=dtype.bitwidth // 8)
    before = builder.block
    attempt, write, done = (builder.append_basic_block(f"atomic.{part}") for part in ("attempt", "write", "done"))
    builder.branch(attempt)

    builder.position_at_end(attempt)
    old = builder.phi(bits)
    old.add_incoming(first, before)
    old_value = builder.bitcast(old, value_type)
    wanted, new_value = replacement(old_value)
    builder.cbranch(wanted, write, done)

    builder.position_at_end(write)
    seen = builder.cmpxchg(words, old, builder.bitcast(new_value, bits), ORDER, ORDER)
    old.add_incoming(builder.extract_value(seen, 0), write)
    builder.cbranch(builder.extract_value(seen, 1), done, attempt)

    builder.position_at_end(done)
    return old_value


def _extreme(integer: str, comparison: str, ignore_nan: bool) -> Emit:
    """max and min. Integers: one instruction. Floats: a loop that writes if `old comparison value` is true.

    The rules for NaN are numba-cuda's: max and min do not write if the element or the value is NaN (an ordered
    comparison is false then); for nanmax and nanmin NaN means "missing": a number replaces it, and it replaces no
    number.
    """

    def emit(builder, dtype, cell, value):  # type: ignore[no-untyped-def]
        if dtype in INTEGERS:
            return builder.atomic_rmw(integer if dtype.signed else f"u{integer}", cell, value, ORDER)

        def replacement(old: Any) -> tuple[Any, Any]:
            better = builder.fcmp_ordered(comparison, old, value, flags=NAN_COUNTS)
            if ignore_nan:
                missing = builder.fcmp_unordered("uno", old, old, flags=NAN_COUNTS)
                present = builder.fcmp_ordered("ord", value, value, flags=NAN_COUNTS)
                better = builder.or_(better, builder.and_(missing, present))
            return better, value

        return _exchange_loop(builder, dtype, cell, replacement)

    return emit


def _increment(builder: Any, dtype: Any, cell: Any, value: Any) -> Any:
    """The new value old + 1, or 0 if old >= value."""

    def replacement(old: Any) -> tuple[Any, Any]:
        one, zero = old.type(1), old.type(0)
        new = builder.select(builder.icmp_unsigned("<", old, value), builder.add(old, one), zero)
        return ir.Constant(ir.IntType(1), 1), new

    return _exchange_loop(builder, dtype, cell, replacement)


def _decrement(builder: Any, dtype: Any, cell: Any, value: Any) -> Any:
    """The new value old - 1, or `value` if old is 0 or greater than `value`."""

    def replacement(old: Any) -> tuple[Any, Any]:
        one, zero = old.type(1), old.type(0)
        wraps = builder.or_(builder.icmp_unsigned("==", old, zero), builder.icmp_unsigned(">", old, value))
        return ir.Constant(ir.IntType(1), 1), builder.select(wraps, value, builder.sub(old, one))

    return _exchange_loop(builder, dtype, cell, replacement)


atomic_add = _operation("add", NUMBERS, _instruction("add", floating="fadd"))
atomic_sub = _operation("sub", NUMBERS, _instruction("sub", floating="fsub"))
atomic_max = _operation("max", NUMBERS, _extreme("max", "<", ignore_nan=False))
atomic_min = _operation("min", NUMBERS, _extreme("min", ">", ignore_nan=False))
atomic_nanmax = _operation("nanmax", NUMBERS, _extreme("max", "<", ignore_nan=True))
atomic_nanmin = _operation("nanmin", NUMBERS, _extreme("min", ">", ignore_nan=True))
atomic_inc = _operation("inc", UNSIGNED, _increment)
atomic_dec = _operation("dec", UNSIGNED, _decrement)
atomic_and_ = _operation("and_", INTEGERS, _instruction("and"))
atomic_or_ = _operation("or_", INTEGERS, _instruction("or"))
atomic_xor = _operation("xor", INTEGERS, _instruction("xor"))
atomic_exch = _operation("exch", INTEGERS, _instruction("xchg"))


@intrinsic
def atomic_cas(typingctx, array, index, old, value):  # type: ignore[no-untyped-def]
    """Write `value` if the element equals `old`; return its old value."""
    _check_array("cas", array, INTEGERS, (old, value))
    _check_index("cas", array, index)

    def build(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        cell = _cell(context, builder, signature.args[0], arguments[0], signature.args[1], arguments[1])
        return builder.extract_value(builder.cmpxchg(cell, arguments[2], arguments[3], ORDER, ORDER), 0)

    return array.dtype(array, index, array.dtype, array.dtype), build


@intrinsic
def atomic_compare_and_swap(typingctx, array, old, value):  # type: ignore[no-untyped-def]
    """atomic_cas on element 0 of a 1-D array: the older function of numba-cuda."""
    _check_array("compare_and_swap", array, INTEGERS, (old, value))
    if array.ndim != 1:
        raise TypingError(
            f"cuda.atomic.compare_and_swap takes a 1-D array; this one is {array.ndim}-D: use cuda.atomic.cas"
        )

    def build(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        zero = context.get_constant(types.intp, 0)
        cell = _cell(context, builder, signature.args[0], arguments[0], types.intp, zero)
        return builder.extract_value(builder.cmpxchg(cell, arguments[1], arguments[2], ORDER, ORDER), 0)

    return array.dtype(array, array.dtype, array.dtype), build


__all__ = [
    *("atomic_add", "atomic_sub", "atomic_max", "atomic_min", "atomic_nanmax", "atomic_nanmin"),
    *("atomic_inc", "atomic_dec", "atomic_and_", "atomic_or_", "atomic_xor"),
    *("atomic_exch", "atomic_cas", "atomic_compare_and_swap"),
]
