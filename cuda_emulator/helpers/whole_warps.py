"""Shuffles of a whole warp: all 32 lanes take part, with one distance, so that vector instructions can move the values.

A shuffle is compiled once for all its calls in a kernel (linking.py), so the distance is known only when it runs. It is
made of five fixed moves, by 16, 8, 4, 2 and 1 lanes: each happens if the distance has that bit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core.errors import TypingError
from numba.extending import intrinsic, overload

LANES = 32
BITS = (16, 8, 4, 2, 1)
LANE = ir.IntType(32)
_OPTIONS = {"error_model": "numpy", "forceinline": True}


def _across(lane: int, distance: int) -> int:
    return lane ^ distance


def _above(lane: int, distance: int) -> int:
    return min(lane + distance, LANES - 1)


def _below(lane: int, distance: int) -> int:
    return max(lane - distance, 0)


def _mover(name: str, source_of: Callable[[int, int], int]) -> Any:
    """The function (result, values, start, distance) that moves 32 values; lanes without a source keep their own.

    source_of: the lane from which a lane gets its value in a fixed move
    """

    @intrinsic
    def in_vectors(typingctx, result, values, start, distance):  # type: ignore[no-untyped-def]
        def build(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
            into, values = (
                context.make_array(kind)(context, builder, value=array)
                for kind, array in zip(signature.args[:2], arguments[:2], strict=True)
            )
            start_value, distance_value = arguments[2:]
            kind = context.get_data_type(signature.args[1].dtype)
            vector = ir.VectorType(kind, LANES)
            size = context.get_abi_sizeof(kind)
            source = builder.bitcast(builder.gep(values.data, [start_value]), vector.as_pointer())
            own = builder.load(source, align=size)
            moved = own
            for bit in BITS:
                lanes = ir.Constant(ir.VectorType(LANE, LANES), [source_of(lane, bit) for lane in range(LANES)])
                wanted = builder.icmp_signed(
                    "!=", builder.and_(distance_value, ir.Constant(distance_value.type, bit)),
                    ir.Constant(distance_value.type, 0),
                )  # fmt: skip
                before = builder.block
                with builder.if_then(wanted):
                    further = builder.shuffle_vector(moved, ir.Constant(vector, ir.Undefined), lanes)
                    inside = builder.block
                either = builder.phi(vector)
                either.add_incoming(moved, before)
                either.add_incoming(further, inside)
                moved = either
            if source_of is not _across:
                moved = builder.select(_has_source(builder, distance_value), moved, own)
            target = builder.bitcast(builder.gep(into.data, [start_value]), vector.as_pointer())
            builder.store(moved, target, align=size)
            return context.get_dummy_value()

        return types.none(result, values, types.int64, types.int64), build

    def _has_source(builder: Any, distance: Any) -> Any:
        """For each lane whether the one at this distance is in the warp."""
        vector = ir.VectorType(LANE, LANES)
        first = builder.insert_element(ir.Constant(vector, ir.Undefined), builder.trunc(distance, LANE), LANE(0))
        everywhere = builder.shuffle_vector(first, ir.Constant(vector, ir.Undefined), ir.Constant(vector, [0] * LANES))
        beyond = [LANES - lane if source_of is _above else lane + 1 for lane in range(LANES)]
        return builder.icmp_signed("<", everywhere, ir.Constant(vector, beyond))

    def moved(result: Any, values: Any, start: Any, distance: Any) -> None:
        raise NotImplementedError("compiled code only")

    moved.__name__ = moved.__qualname__ = name

    @overload(moved, jit_options=_OPTIONS)
    def compiled(result, values, start, distance):  # type: ignore[no-untyped-def]
        if not isinstance(values, types.Array):  # one value for all lanes

            def fill(result, values, start, distance):  # type: ignore[no-untyped-def]
                for thread in range(start, start + LANES):
                    result[thread] = values

            return fill
        if result.dtype != values.dtype or not {result.layout, values.layout} <= {"C"}:
            raise TypingError(f"a shuffle of {values} into {result}")
        if not isinstance(values.dtype, types.Integer | types.Float):
            raise TypingError(f"a shuffle does not move {values.dtype}")
        return lambda result, values, start, distance: in_vectors(result, values, start, distance)

    return moved


moved_across = _mover("moved_across", _across)
moved_down = _mover("moved_down", _above)
moved_up = _mover("moved_up", _below)


def moved_index(result: Any, values: Any, start: Any, lane: Any) -> None:
    """Give the value of one lane to all."""
    raise NotImplementedError("compiled code only")


@overload(moved_index, jit_options=_OPTIONS)
def _compiled_index(result, values, start, lane):  # type: ignore[no-untyped-def]
    def spread(result, values, start, lane):  # type: ignore[no-untyped-def]
        value = values[start + lane]
        for thread in range(start, start + LANES):
            result[thread] = value

    def fill(result, values, start, lane):  # type: ignore[no-untyped-def]
        for thread in range(start, start + LANES):
            result[thread] = values

    return spread if isinstance(values, types.Array) else fill


@intrinsic
def nonzero_lanes(typingctx, values, start):  # type: ignore[no-untyped-def]
    """A mask of the 32 entries from `start` on: bit i is set if entry i is not 0. values: bools or integers"""
    if not isinstance(values.dtype, types.Integer | types.Boolean):
        raise TypingError(f"a vote does not take {values.dtype}")

    def build(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        view = context.make_array(signature.args[0])(context, builder, value=arguments[0])
        kind = context.get_data_type(signature.args[0].dtype)
        vector = ir.VectorType(kind, LANES)
        source = builder.bitcast(builder.gep(view.data, [arguments[1]]), vector.as_pointer())
        held = builder.load(source, align=context.get_abi_sizeof(kind))
        bits = builder.icmp_signed("!=", held, ir.Constant(vector, [0] * LANES))
        return builder.zext(builder.bitcast(bits, LANE), ir.IntType(64))

    return types.int64(values, types.int64), build


__all__ = ["moved_across", "moved_down", "moved_index", "moved_up", "nonzero_lanes"]
