"""What Python has no word for: 128-bit loads and stores, and the tensor cores. The one module with LLVM and PTX in it.

Everything here exists twice. On a GPU it is an intrinsic: a function that emits the instructions for its arguments. On
the emulator and in Numba's simulator it is the same thing said in Python, which is also its definition. Of what a warp
does together on tensor cores that definition is in fragments.py.

    load4(array, row, column)               four neighbours of a row in one 128-bit load (two of them in float64)
    fetch4(array, offset)                   the same, counted from the first of at most MOST_NUMBERS: in 32 bits
    store4(array, row, column, v0 … v3)     and back
    put4(words, at, w0 … w3)                the same into an array of one dimension, as tiles for tensor cores are
    to_tf32(x), to_bf16(x)                  the nearest number that a tensor core can take, still as a float32
    meet(meetings, target)                  a barrier across the grid that gives up after PATIENCE
    multiply_tf32, multiply_bf16            a warp multiplies 16 x 8 (x 8) and 8 (16) x 8 numbers from shared memory
    word_tf32(x), word_bf16(x, y), word_f16(x, y)
                                            one or two rounded numbers as the 32 bits that a tensor core reads
    matrices(tile, at)                      a warp loads four matrices of 8 rows of 16 bytes (ldmatrix)
    mma_tf32, mma_bf16, mma_f16             a warp multiplies what `matrices` has loaded
    nothing_on_its_way, copy4, send, wait_for_all_but_one
                                            copies to shared memory that arrive later (cp.async)

load4 and store4 want an address that is a multiple of 16 bytes: an aligned array whose rows are a multiple of four
numbers, and a column that is one.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from ..backend import BACKEND, cuda

REAL = BACKEND.name in ("gpu", "compiler")
"""Whether kernels are compiled for a GPU, and so may hold its instructions."""

BYTES = 16
LANES = 4

MOST_NUMBERS = 2**31 - 1
"""Of an array that fetch4 reads: an offset of 32 bits takes half the registers of an address, and ends there."""

PATIENCE = 2_000_000_000
"""Nanoseconds that a block waits at a barrier across the grid. Other blocks take microseconds: it is only reached where
some never come."""

POLLS = 256
"""Looks at the count of arrivals between two looks at the clock."""

ARRIVED, GAVE_UP, BEFORE = range(3)
"""What the numbers of `meetings` are: arrivals at barriers, whether a block gave up, and the arrivals of the launches
before this one, which the kernel counts on to at its end. Arrivals go round at 2**32, so only differences say anything.
"""

if REAL:
    from llvmlite import ir
    from numba import int32, types
    from numba.cuda import cgutils
    from numba.cuda.extending import intrinsic

    INT = ir.IntType(32)
    FLOAT = ir.FloatType()

    def _element(context, builder, array_type, array, row, column):
        """A pointer to array[row, column]. Rows are contiguous, and nothing is checked: no negative index either."""
        view = context.make_array(array_type)(context, builder, array)
        columns = builder.extract_value(view.shape, 1)
        return builder.gep(view.data, [builder.add(builder.mul(row, columns), column)])

    def _four(pointer):
        return ir.VectorType(pointer.type.pointee, LANES)

    def _load(builder, pointer):
        loaded = builder.load(builder.bitcast(pointer, _four(pointer).as_pointer()))
        loaded.align = BYTES
        return cgutils.pack_array(builder, [builder.extract_element(loaded, INT(i)) for i in range(LANES)])

    def _store(builder, pointer, numbers):
        value = ir.Constant(_four(pointer), ir.Undefined)
        for i, number in enumerate(numbers):
            value = builder.insert_element(value, number, INT(i))
        builder.store(value, builder.bitcast(pointer, _four(pointer).as_pointer())).align = BYTES

    @intrinsic
    def load4(typing, array, row, column):
        def emit(context, builder, signature, arguments):
            return _load(builder, _element(context, builder, signature.args[0], *arguments))

        return types.UniTuple(array.dtype, LANES)(array, types.intp, types.intp), emit

    @intrinsic
    def fetch4(typing, array, offset):
        def emit(context, builder, signature, arguments):
            view = context.make_array(signature.args[0])(context, builder, arguments[0])
            return _load(builder, builder.gep(view.data, [arguments[1]]))

        return types.UniTuple(array.dtype, LANES)(array, types.int32), emit

    @intrinsic
    def store4(typing, array, row, column, v0, v1, v2, v3):
        def emit(context, builder, signature, arguments):
            _store(builder, _element(context, builder, signature.args[0], *arguments[:3]), arguments[3:])
            return context.get_dummy_value()

        return types.void(array, types.intp, types.intp, *[array.dtype] * LANES), emit

    @intrinsic
    def put4(typing, words, at, w0, w1, w2, w3):
        def emit(context, builder, signature, arguments):
            view = context.make_array(signature.args[0])(context, builder, arguments[0])
            _store(builder, builder.gep(view.data, [arguments[1]]), arguments[2:])
            return context.get_dummy_value()

        return types.void(words, types.int32, *[words.dtype] * LANES), emit

    def _rounding(instruction):
        """An intrinsic for a PTX instruction that makes 32 bits of a float32; they are read as a float32 again."""

        @intrinsic
        def rounded(typing, x):
            def emit(context, builder, signature, arguments):
                function = ir.FunctionType(INT, [FLOAT])
                bits = builder.call(ir.InlineAsm(function, instruction, "=r,f"), arguments)
                return builder.bitcast(bits, FLOAT)

            return types.float32(types.float32), emit

        return rounded

    # What cvt makes of a NaN is the device's to decide, and on one of compute capability 9.0 it was no NaN for some.
    to_tf32 = _rounding(
        "{ .reg .pred ordinary; .reg .b32 nan, rounded; mov.b32 nan, $1; or.b32 nan, nan, 0x00400000; "
        "and.b32 nan, nan, 0xFFFFE000; setp.eq.f32 ordinary, $1, $1; cvt.rna.tf32.f32 rounded, $1; "
        "selp.b32 $0, rounded, nan, ordinary; }"
    )
    # cvt makes two bf16 at once. The first becomes the upper half: there a float32 has what a bf16 keeps of it.
    to_bf16 = _rounding("{ .reg .f32 zero; mov.f32 zero, 0f00000000; cvt.rn.bf16x2.f32 $0, $1, zero; }")

    @intrinsic
    def _bits(typing, array, row, column):
        """The 32 bits of array[row, column]."""

        def emit(context, builder, signature, arguments):
            pointer = _element(context, builder, signature.args[0], *arguments)
            return builder.bitcast(builder.load(pointer), INT)

        return types.int32(array, types.intp, types.intp), emit

    @intrinsic
    def _halves(typing, first, second):
        """The upper half of the first below that of the second: two numbers that to_bf16 has rounded."""

        def emit(context, builder, signature, arguments):
            low, high = arguments
            return builder.or_(builder.lshr(low, INT(16)), builder.and_(high, INT(0xFFFF0000)))

        return types.int32(types.int32, types.int32), emit

    def _mma(instruction, left=4, right=2):
        """An intrinsic d = a b + c for a warp. A thread has `left` words of a, `right` of b, 4 float32 of c and d."""
        names = [f"${i}" for i in range(4 + left + right + 4)]
        groups = [names[:4], names[4 : 4 + left], names[4 + left : -4], names[-4:]]
        text = f"{instruction} {', '.join('{' + ','.join(group) + '}' for group in groups)};"
        constraints = ",".join(["=f"] * 4 + ["r"] * (left + right) + ["f"] * 4)

        def emit(context, builder, signature, arguments):
            function = ir.FunctionType(ir.LiteralStructType([FLOAT] * 4), [INT] * (left + right) + [FLOAT] * 4)
            result = builder.call(ir.InlineAsm(function, text, constraints), arguments)
            return cgutils.pack_array(builder, [builder.extract_value(result, i) for i in range(4)])

        signature = types.UniTuple(types.float32, 4)(*[types.int32] * (left + right), *[types.float32] * 4)
        if left == 2:

            @intrinsic
            def mma(typing, a0, a1, b0, c0, c1, c2, c3):
                return signature, emit
        else:

            @intrinsic
            def mma(typing, a0, a1, a2, a3, b0, b1, c0, c1, c2, c3):
                return signature, emit

        return mma

    mma_tf32 = _mma("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32")
    mma_bf16 = _mma("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32")
    _half_mma_f16 = _mma("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32", 2, 1)

    @cuda.jit(device=True)
    def mma_f16(a0, a1, a2, a3, b0, b1, c0, c1, c2, c3):
        c0, c1, c2, c3 = _half_mma_f16(a0, a1, b0, c0, c1, c2, c3)
        return _half_mma_f16(a2, a3, b1, c0, c1, c2, c3)

    def _pair_word(text):
        """An intrinsic that makes 32 bits of two float32: the first becomes the lower half."""

        @intrinsic
        def word(typing, low, high):
            def emit(context, builder, signature, arguments):
                return builder.call(ir.InlineAsm(ir.FunctionType(INT, [FLOAT] * 2), text, "=r,f,f"), arguments)

            return types.int32(types.float32, types.float32), emit

        return word

    word_bf16 = _pair_word("cvt.rn.bf16x2.f32 $0, $2, $1;")
    # cvt makes two f16 at once from compute capability 8.0 on only.
    word_f16 = _pair_word(
        "{ .reg .b16 low, high; cvt.rn.f16.f32 low, $1; cvt.rn.f16.f32 high, $2; mov.b32 $0, {low, high}; }"
    )

    @intrinsic
    def _word(typing, x):
        """The bits of a float32."""

        def emit(context, builder, signature, arguments):
            return builder.bitcast(arguments[0], INT)

        return types.int32(types.float32), emit

    @cuda.jit(device=True)
    def word_tf32(x):
        return _word(to_tf32(x))

    def _shared_address(context, builder, array_type, array, at):
        """Where tile[at] is in shared memory, which instructions count from its own beginning, in 32 bits."""
        view = context.make_array(array_type)(context, builder, array)
        pointer = builder.gep(view.data, [at])
        return builder.ptrtoint(builder.addrspacecast(pointer, pointer.type.pointee.as_pointer(addrspace=3)), INT)

    @intrinsic
    def matrices(typing, tile, at):
        def emit(context, builder, signature, arguments):
            address = _shared_address(context, builder, signature.args[0], *arguments)
            function = ir.FunctionType(ir.LiteralStructType([INT] * 4), [INT])
            text = "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {$0,$1,$2,$3}, [$4];"
            assembly = ir.InlineAsm(function, text, "=r,=r,=r,=r,r,~{memory}", side_effect=True)
            made = builder.call(assembly, [address])
            return cgutils.pack_array(builder, [builder.extract_value(made, i) for i in range(4)])

        return types.UniTuple(types.int32, 4)(tile, types.int32), emit

    @intrinsic
    def _copy16(typing, tile, at, source, offset):
        def emit(context, builder, signature, arguments):
            to = _shared_address(context, builder, signature.args[0], *arguments[:2])
            view = context.make_array(signature.args[2])(context, builder, arguments[2])
            place = builder.ptrtoint(builder.gep(view.data, [arguments[3]]), ir.IntType(64))
            function = ir.FunctionType(ir.VoidType(), [INT, ir.IntType(64)])
            text = "{ .reg .u64 there; cvta.to.global.u64 there, $1; cp.async.cg.shared.global [$0], [there], 16; }"
            builder.call(ir.InlineAsm(function, text, "r,l,~{memory}", side_effect=True), [to, place])
            return context.get_dummy_value()

        return types.void(tile, types.int32, source, types.int32), emit

    def _order(text):
        """An intrinsic without arguments, for an instruction without any."""

        @intrinsic
        def order(typing):
            def emit(context, builder, signature, arguments):
                function = ir.FunctionType(ir.VoidType(), [])
                builder.call(ir.InlineAsm(function, text, "~{memory}", side_effect=True), [])
                return context.get_dummy_value()

            return types.void(), emit

        return order

    _commit = _order("cp.async.commit_group;")
    _wait_for_all_but_one = _order("cp.async.wait_group 1;")

    @cuda.jit(device=True)
    def nothing_on_its_way(flight):
        pass

    @cuda.jit(device=True)
    def copy4(tile, at, source, offset, flight):
        _copy16(tile, at, source, offset)

    @cuda.jit(device=True)
    def send(flight):
        _commit()

    @cuda.jit(device=True)
    def wait_for_all_but_one(tile, flight):
        _wait_for_all_but_one()

    def _first(context, builder, signature, arguments):
        """The address of an array's first element, as a number."""
        view = context.make_array(signature.args[0])(context, builder, arguments[0])
        return builder.ptrtoint(view.data, ir.IntType(64))

    @intrinsic
    def _arrive(typing, meetings):
        """meetings[ARRIVED] += 1; all earlier writes of the block are seen by whoever sees it (red.release).

        The kernel is launched cooperatively from now on: the driver refuses a grid whose blocks do not fit at once.
        """

        def emit(context, builder, signature, arguments):
            context.active_code_library.use_cooperative = True
            function = ir.FunctionType(ir.VoidType(), [ir.IntType(64)])
            text = "{ .reg .u64 there; cvta.to.global.u64 there, $0; red.release.gpu.global.add.u32 [there], 1; }"
            address = _first(context, builder, signature, arguments)
            builder.call(ir.InlineAsm(function, text, "l,~{memory}", side_effect=True), [address])
            return context.get_dummy_value()

        return types.void(meetings), emit

    @intrinsic
    def _arrived(typing, meetings):
        """meetings[ARRIVED], and with it what the blocks that have arrived wrote before (ld.acquire)."""

        def emit(context, builder, signature, arguments):
            function = ir.FunctionType(INT, [ir.IntType(64)])
            text = "{ .reg .u64 there; cvta.to.global.u64 there, $1; ld.acquire.gpu.global.u32 $0, [there]; }"
            address = _first(context, builder, signature, arguments)
            return builder.call(ir.InlineAsm(function, text, "=r,l,~{memory}", side_effect=True), [address])

        return types.int32(meetings), emit

    @intrinsic
    def _nanoseconds(typing):
        """The device's clock."""

        def emit(context, builder, signature, arguments):
            function = ir.FunctionType(ir.IntType(64), [])
            text = "mov.u64 $0, %globaltimer;"
            return builder.call(ir.InlineAsm(function, text, "=l", side_effect=True), [])

        return types.int64(), emit

    @cuda.jit(device=True)
    def meet(meetings, target):
        late = 0
        cuda.syncthreads()
        if cuda.threadIdx.x == 0:
            _arrive(meetings)
            begun = 0
            polls = 0
            while late == 0 and int32(_arrived(meetings) - target) < 0:
                polls += 1
                if polls % POLLS == 0:  # the clock is slow to read, and most barriers are over before
                    now = _nanoseconds()
                    if begun == 0:
                        begun = now
                    elif now - begun > PATIENCE:
                        late = 1
                        meetings[GAVE_UP] = 1
        return cuda.syncthreads_or(late) == 0

    @cuda.jit(device=True)
    def multiply_tf32(tile_a, tile_b, k, y, x, c0, c1, c2, c3):
        lane = cuda.threadIdx.x & 31
        y += lane >> 2
        x += lane >> 2
        k += lane & 3
        a0, a1 = _bits(tile_a, k, y), _bits(tile_a, k, y + 8)
        a2, a3 = _bits(tile_a, k + 4, y), _bits(tile_a, k + 4, y + 8)
        return mma_tf32(a0, a1, a2, a3, _bits(tile_b, k, x), _bits(tile_b, k + 4, x), c0, c1, c2, c3)

    @cuda.jit(device=True)
    def _pair(tile, k, i):
        return _halves(_bits(tile, k, i), _bits(tile, k + 1, i))

    @cuda.jit(device=True)
    def multiply_bf16(tile_a, tile_b, k, y, x, c0, c1, c2, c3):
        lane = cuda.threadIdx.x & 31
        y += lane >> 2
        x += lane >> 2
        k += (lane & 3) * 2
        a0, a1 = _pair(tile_a, k, y), _pair(tile_a, k, y + 8)
        a2, a3 = _pair(tile_a, k + 8, y), _pair(tile_a, k + 8, y + 8)
        return mma_bf16(a0, a1, a2, a3, _pair(tile_b, k, x), _pair(tile_b, k + 8, x), c0, c1, c2, c3)

else:

    @cuda.jit(device=True)
    def meet(meetings, target):
        """Wait for all blocks, until `target` of them have arrived at barriers so far. False if that took too long.

        meetings (3,) int32, zeros at first: see ARRIVED. target: what meetings[BEFORE] was, and one for each arrival
        since, as an int32, which may go round. Blocks are one-dimensional.
        """
        cuda.cg.this_grid().sync()
        return True

    @cuda.jit(device=True)
    def load4(array, row, column):
        return array[row, column], array[row, column + 1], array[row, column + 2], array[row, column + 3]

    @cuda.jit(device=True)
    def fetch4(array, offset):
        row = offset // array.shape[1]
        return load4(array, row, offset - row * array.shape[1])

    @cuda.jit(device=True)
    def to_tf32(x):
        """To 11 significant bits, a tie away from zero: half a unit is added to the bits, the last 13 are dropped.

        A NaN stays one: the first bit of its payload is set, since the others might be among the 13.
        """
        number = cuda.local.array(1, np.float32)
        number[0] = x
        bits = number.view(np.uint32)
        added = bits[0] + np.uint32(0x1000) if x == x else bits[0] | np.uint32(0x00400000)
        bits[0] = added & np.uint32(0xFFFFE000)
        return number[0]

    @cuda.jit(device=True)
    def to_bf16(x):
        """To 8 significant bits, a tie to the even one: a little less than half a unit, and one more where odd.

        A NaN stays one, as in to_tf32.
        """
        number = cuda.local.array(1, np.float32)
        number[0] = x
        bits = number.view(np.uint32)
        odd = (bits[0] >> np.uint32(16)) & np.uint32(1)
        added = bits[0] + np.uint32(0x7FFF) + odd if x == x else bits[0] | np.uint32(0x00400000)
        bits[0] = added & np.uint32(0xFFFF0000)
        return number[0]

    def _multiply(depth: int) -> Any:
        """Numbers 2t and 2t + 1 of rows g and g + 8, where lane = 4g + t: where mma leaves its results."""

        @cuda.jit(device=True)
        def multiply(tile_a, tile_b, k, y, x, c0, c1, c2, c3):
            lane = cuda.threadIdx.x & 31
            y += lane >> 2
            x += (lane & 3) * 2
            for i in range(depth):
                c0 += tile_a[k + i, y] * tile_b[k + i, x]
                c1 += tile_a[k + i, y] * tile_b[k + i, x + 1]
                c2 += tile_a[k + i, y + 8] * tile_b[k + i, x]
                c3 += tile_a[k + i, y + 8] * tile_b[k + i, x + 1]
            return c0, c1, c2, c3

        return multiply

    multiply_tf32 = _multiply(8)
    multiply_bf16 = _multiply(16)

    from .fragments import (  # noqa: F401 - here, for a GPU has them above
        copy4,
        four_of,
        matrices,
        mma_bf16,
        mma_f16,
        mma_tf32,
        nothing_on_its_way,
        put4,
        send,
        store4,
        wait_for_all_but_one,
        word_bf16,
        word_f16,
        word_tf32,
    )

    if BACKEND.name == "emulator":  # for whoever traces memory: on a device, one access
        for function in (load4, fetch4, store4, put4, four_of):
            function.moves = LANES

if BACKEND.name == "simulator":
    from numba.core.types import Type
    from numba.cuda.simulator.kernelapi import FakeCUDAShared
    from numba.np.numpy_support import as_dtype

    _without_alignment = FakeCUDAShared.array

    def _shared_array(self: Any, shape: Any, dtype: Any, alignment: int | None = None) -> np.ndarray:
        """The simulator knows no alignment=, which on a GPU is what makes load4 legal. Here it is let pass.

        Like its own, this tells arrays apart by the line that asks for one, which is why it cannot call that one.
        """
        if shape == 0:
            return _without_alignment(self, shape, dtype)
        dtype = as_dtype(dtype) if isinstance(dtype, Type) else dtype
        caller = sys._getframe(1)
        place = (caller.f_code.co_filename, caller.f_lineno)
        return self._allocations.setdefault(place, np.empty(shape, dtype))

    FakeCUDAShared.array = _shared_array
