"""Functions of generated code for variables that may have no value yet.

assigned(has, value, status, site, block, thread)               the value; the run ends if there is none
assigned_or_poison(has, value, status, site, block, thread)     the value; if there is none, that of fresh memory
lent(has, value, status, site, block, thread)                   the same, and for an array one without elements
"""

from __future__ import annotations

from llvmlite.ir import Constant
from numba import types
from numba.core.imputils import impl_ret_borrowed
from numba.extending import intrinsic
from numba.np.numpy_support import as_dtype

from ..poison import poison_value
from .status import UNASSIGNED, stop

__all__ = ["assigned", "assigned_or_poison", "lent"]


@intrinsic
def assigned(typingctx, has, value, status, site, block, thread):  # type: ignore[no-untyped-def]
    """The value of a variable. If this thread has not assigned it, the error is recorded and the run ends."""
    return value(types.boolean, value, status, site, block, thread), _or_stop


@intrinsic
def assigned_or_poison(typingctx, has, value, status, site, block, thread):  # type: ignore[no-untyped-def]
    """The value of a variable. If this thread has not assigned it: the value that fills fresh memory of its type.

    An array has no such value: without one, the run ends.
    """

    def build(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        other = _poison(context, builder, signature.return_type)
        if other is None:
            return _or_stop(context, builder, signature, arguments)
        return builder.select(arguments[0], arguments[1], other)

    return value(types.boolean, value, status, site, block, thread), build


@intrinsic
def lent(typingctx, has, value, status, site, block, thread):  # type: ignore[no-untyped-def]
    """The value of a variable that is passed on to a function which may leave it unread.

    If this thread has not assigned it: the value that fills fresh memory of its type, or an array without elements, so
    that an index into it is refused as any other index outside an array is.
    """

    def build(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        kind = signature.return_type
        is_array = isinstance(kind, types.Array)
        other = Constant(context.get_value_type(kind), None) if is_array else _poison(context, builder, kind)
        if other is None:
            return _or_stop(context, builder, signature, arguments)
        return builder.select(arguments[0], arguments[1], other)

    return value(types.boolean, value, status, site, block, thread), build


def _or_stop(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
    has, value, status, *place = arguments
    with builder.if_then(builder.not_(has), likely=False):
        code = context.get_constant(types.int64, UNASSIGNED)
        stop(context, builder, signature.args[2], status, (code, *place), (types.int64, *signature.args[3:]))
    return impl_ret_borrowed(context, builder, signature.return_type, value)


def _poison(context, builder, kind):  # type: ignore[no-untyped-def]
    """The value that fills fresh memory of this type; None if it is neither a number nor a tuple of numbers."""
    if isinstance(kind, types.Number | types.Boolean):
        return context.get_constant_generic(builder, kind, poison_value(as_dtype(kind)).item())
    if isinstance(kind, types.BaseTuple) and len(kind):
        parts = [_poison(context, builder, one) for one in kind.types]
        return None if any(part is None for part in parts) else context.make_tuple(builder, kind, parts)
    return None
