"""What Python has no word for: 128-bit loads and stores, and the tensor cores. The one module that speaks LLVM and PTX.

Everything here exists twice. On a GPU it is an intrinsic, a function that emits instructions for the arguments that it is
given. On the emulator and in Numba's simulator it is the same thing said in Python, which is also its definition.

    load4(array, row, column)                 four neighbours of a row by one 128-bit load (two in float64)
    store4(array, row, column, v0 … v3)       and back

Both want an address that is a multiple of 16: an aligned array, rows of a multiple of four numbers, and such a column.
"""

from __future__ import annotations

from ..backend import BACKEND, cuda

REAL = BACKEND.name in ("gpu", "compiler")
"""Whether a compiler for GPUs reads the kernels, so that they may hold its instructions."""

if REAL:
    from llvmlite import ir
    from numba import types
    from numba.cuda import cgutils
    from numba.cuda.extending import intrinsic

    BYTES = 16
    LANES = 4

    def _address(context, builder, array_type, array, row, column):
        """A pointer to array[row, column], as one to four numbers."""
        view = context.make_array(array_type)(context, builder, array)
        columns = builder.extract_value(view.shape, 1)
        index = builder.add(builder.mul(row, columns), column)
        pointer = builder.gep(view.data, [index])
        vector = ir.VectorType(pointer.type.pointee, LANES)
        return builder.bitcast(pointer, vector.as_pointer()), vector

    @intrinsic
    def load4(typing, array, row, column):
        def emit(context, builder, signature, arguments):
            pointer, _ = _address(context, builder, signature.args[0], *arguments)
            loaded = builder.load(pointer)
            loaded.align = BYTES
            lanes = [builder.extract_element(loaded, ir.Constant(ir.IntType(32), i)) for i in range(LANES)]
            return cgutils.pack_array(builder, lanes)

        return types.UniTuple(array.dtype, LANES)(array, types.intp, types.intp), emit

    @intrinsic
    def store4(typing, array, row, column, v0, v1, v2, v3):
        def emit(context, builder, signature, arguments):
            pointer, vector = _address(context, builder, signature.args[0], *arguments[:3])
            value = ir.Constant(vector, ir.Undefined)
            for i, lane in enumerate(arguments[3:]):
                value = builder.insert_element(value, lane, ir.Constant(ir.IntType(32), i))
            stored = builder.store(value, pointer)
            stored.align = BYTES
            return context.get_dummy_value()

        number = array.dtype
        return types.void(array, types.intp, types.intp, number, number, number, number), emit

else:

    @cuda.jit(device=True)
    def load4(array, row, column):
        return array[row, column], array[row, column + 1], array[row, column + 2], array[row, column + 3]

    @cuda.jit(device=True)
    def store4(array, row, column, v0, v1, v2, v3):
        array[row, column] = v0
        array[row, column + 1] = v1
        array[row, column + 2] = v2
        array[row, column + 3] = v3
