"""The instructions of the machine against Python's integers, fractions and NumPy, on random and on awkward operands."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.stage4_numba_cuda.machine.image import Image, build
from tests.stage4_numba_cuda.machine.needed import needs_numba_cuda

pytestmark = needs_numba_cuda

COUNT = 1024
KERNEL = """
.visible .entry k(.param .u64 A, .param .u64 B, .param .u64 C, .param .u64 D)
{{
    .reg .pred p, q;
    .reg .b64 at, a, b, c, d, x, y, z, w;
    .reg .f32 fa, fb, fc, fd;
    .reg .f64 ga, gb, gc, gd;
    .reg .b32 n, ra, rb, rc, rd;
    .reg .b16 ha, hb;
    mov.u32 n, %tid.x;
    mul.wide.u32 at, n, 8;
    ld.param.u64 x, [A]; add.s64 x, x, at; ld.global.u64 a, [x];
    ld.param.u64 y, [B]; add.s64 y, y, at; ld.global.u64 b, [y];
    ld.param.u64 z, [C]; add.s64 z, z, at; ld.global.u64 c, [z];
    ld.param.u64 w, [D]; add.s64 w, w, at;
    cvt.u32.u64 ra, a; cvt.u32.u64 rb, b; cvt.u32.u64 rc, c;
    mov.b32 fa, ra; mov.b32 fb, rb; mov.b32 fc, rc;
    mov.b64 ga, a; mov.b64 gb, b; mov.b64 gc, c;
    {0};
    st.global.u64 [w], d;
    ret;
}}
"""
KEEP_32, KEEP_FLOAT, KEEP_DOUBLE = "cvt.u64.u32 d, rd", "mov.b32 rd, fd; cvt.u64.u32 d, rd", "mov.b64 d, gd"
KEEP_PREDICATE = "selp.u64 d, 1, 0, p"


def floats(bits: np.ndarray) -> np.ndarray:
    return bits.astype(np.uint32).view(np.float32)


def doubles(bits: np.ndarray) -> np.ndarray:
    return bits.view(np.float64)


def rounded(exact: Fraction, towards: Callable[[float, Fraction], bool]) -> float:
    """The float32 nearest to a fraction, moved by one where `towards` says that it lies on the wrong side."""
    about = np.float32(float(exact))  # rounded twice: it or one of its neighbours is the nearest
    beside = (np.nextafter(about, np.float32(-np.inf)), about, np.nextafter(about, np.float32(np.inf)))
    near = min(beside, key=lambda x: (abs(Fraction(float(x)) - exact), int(x.view(np.uint32)) & 1))
    step = -np.inf if Fraction(float(near)) > exact else np.inf
    return float(np.nextafter(near, np.float32(step)) if towards(float(near), exact) else near)


def signed(value: int, bits: int) -> int:
    value &= 2**bits - 1
    return value - 2**bits if value >> (bits - 1) else value


def on_integers(function: Callable[..., int], bits: int) -> Callable[..., list[int]]:
    """A reference on the lower bits of a, b and c as Python's integers; its result without the upper bits."""

    def reference(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> list[int]:
        mask = 2**bits - 1
        return [
            function(int(x) & mask, int(y) & mask, int(z) & mask) & (2**64 - 1) for x, y, z in zip(a, b, c, strict=True)
        ]

    return reference


def on_floats(function: Callable[..., Any]) -> Callable[..., np.ndarray]:
    """A reference on a, b and c as float32; its result as bits."""

    def reference(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            found = np.asarray(function(floats(a), floats(b), floats(c)), np.float32)
        return found.view(np.uint32).astype(np.uint64)

    return reference


def on_doubles(function: Callable[..., Any]) -> Callable[..., np.ndarray]:
    def reference(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            return np.asarray(function(doubles(a), doubles(b), doubles(c)), np.float64).view(np.uint64)

    return reference


def exactly(a: float, b: float, c: float) -> Fraction | None:
    return Fraction(a) * Fraction(b) + Fraction(c) if all(map(math.isfinite, (a, b, c))) else None


def fused(towards: Callable[[float, Fraction], bool]) -> Callable[..., np.ndarray]:
    """a b + c of float32 numbers, rounded once; NaN where the result is huge, tiny or no number."""

    def reference(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
        made = []
        for x, y, z in zip(map(float, floats(a)), map(float, floats(b)), map(float, floats(c)), strict=True):
            exact = exactly(x, y, z)
            ordinary = exact is not None and 2.0**-126 < abs(exact) < 2.0**127
            made.append(rounded(exact, towards) if ordinary else np.nan)  # type: ignore[arg-type]
        return np.array(made, np.float32).view(np.uint32).astype(np.uint64)

    return reference


def summed(towards: Callable[[float, Fraction], bool]) -> Callable[..., np.ndarray]:
    """The same of a + b."""
    return lambda a, b, c: fused(towards)(a, np.full_like(a, 0x3F800000), b)


def down(near: float, exact: Fraction) -> bool:
    return Fraction(near) > exact


def up(near: float, exact: Fraction) -> bool:
    return Fraction(near) < exact


def to_zero(near: float, exact: Fraction) -> bool:
    return abs(Fraction(near)) > abs(exact)


def quotient(a: int, b: int) -> int:
    """a / b without its fraction, as in C."""
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def remainder(a: int, b: int) -> int:
    return a - quotient(a, b) * b


def to_unsigned(x: np.ndarray, bits: int) -> list[int]:
    """Towards 0, and the nearest that there is; 0 for a NaN."""
    return [
        0 if v != v else min(2**bits - 1, max(0, int(v))) if math.isfinite(v) else (2**bits - 1) * (v > 0)
        for v in map(float, x)
    ]


def to_tf32(x: np.ndarray) -> list[int]:
    """11 significant bits, a tie away from zero: half a unit is added, and what is below a unit dropped."""
    return [b if b & 0x7F800000 == 0x7F800000 else (b + 0x1000) & 0xFFFFE000 for b in map(int, x.view(np.uint32))]


def to_bf16(x: np.ndarray) -> list[int]:
    return [
        0x7FFF if v != v else (b + 0x7FFF + (b >> 16 & 1)) >> 16
        for v, b in zip(x, map(int, x.view(np.uint32)), strict=True)
    ]


def extreme(function: Any, a: np.ndarray, b: np.ndarray, first: np.ndarray) -> np.ndarray:
    """NumPy's fmin or fmax; of 0 and -0 the one that PTX takes: a where `first`."""
    return np.where(a == b, np.where(first, a, b), function(a, b))


NEAREST = {
    "cvt.rni.f32.f32": np.rint,
    "cvt.rzi.f32.f32": np.trunc,
    "cvt.rmi.f32.f32": np.floor,
    "cvt.rpi.f32.f32": np.ceil,
}
CASES: dict[str, tuple[str, Callable[..., Any]]] = {
    "add.s32 rd, ra, rb": (KEEP_32, on_integers(lambda a, b, c: (a + b) & 0xFFFFFFFF, 32)),
    "sub.s64 d, a, b": ("", on_integers(lambda a, b, c: a - b, 64)),
    "mul.lo.s64 d, a, b": ("", on_integers(lambda a, b, c: a * b, 64)),
    "mul.wide.s32 d, ra, rb": ("", on_integers(lambda a, b, c: signed(a, 32) * signed(b, 32), 32)),
    "mul.wide.u32 d, ra, rb": ("", on_integers(lambda a, b, c: a * b, 32)),
    "mul.hi.u32 rd, ra, rb": (KEEP_32, on_integers(lambda a, b, c: a * b >> 32, 32)),
    "mul.hi.u64 d, a, b": ("", on_integers(lambda a, b, c: a * b >> 64, 64)),
    "mul.hi.s64 d, a, b": ("", on_integers(lambda a, b, c: signed(a, 64) * signed(b, 64) >> 64, 64)),
    "mad.lo.s32 rd, ra, rb, rc": (KEEP_32, on_integers(lambda a, b, c: (a * b + c) & 0xFFFFFFFF, 32)),
    "min.s64 d, a, b": ("", on_integers(lambda a, b, c: min(signed(a, 64), signed(b, 64)), 64)),
    "max.s64 d, a, b": ("", on_integers(lambda a, b, c: max(signed(a, 64), signed(b, 64)), 64)),
    "shl.b32 rd, ra, rb": (KEEP_32, on_integers(lambda a, b, c: (a << min(b, 32)) & 0xFFFFFFFF, 32)),
    "shr.u64 d, a, rb": ("", on_integers(lambda a, b, c: a >> (b & 0xFFFFFFFF) if b & 0xFFFFFFFF < 64 else 0, 64)),
    "shr.s32 rd, ra, rb": (KEEP_32, on_integers(lambda a, b, c: (signed(a, 32) >> min(b, 31)) & 0xFFFFFFFF, 32)),
    "shf.l.wrap.b32 rd, ra, rb, rc": (
        KEEP_32,
        on_integers(lambda a, b, c: ((b << 32 | a) << (c & 31) >> 32) & 0xFFFFFFFF, 32),
    ),
    "shf.l.clamp.b32 rd, ra, rb, rc": (
        KEEP_32,
        on_integers(lambda a, b, c: ((b << 32 | a) << min(c, 32) >> 32) & 0xFFFFFFFF, 32),
    ),
    "shf.r.wrap.b32 rd, ra, rb, rc": (
        KEEP_32,
        on_integers(lambda a, b, c: (b << 32 | a) >> (c & 31) & 0xFFFFFFFF, 32),
    ),
    "shf.r.clamp.b32 rd, ra, rb, rc": (
        KEEP_32,
        on_integers(lambda a, b, c: (b << 32 | a) >> min(c, 32) & 0xFFFFFFFF, 32),
    ),
    "or.b64 d, a, b": ("", on_integers(lambda a, b, c: a | b, 64)),
    "or.b64 y, b, 1; div.s64 d, a, y": (
        "",
        on_integers(lambda a, b, c: quotient(signed(a, 64), signed(b | 1, 64)), 64),
    ),
    "or.b64 y, b, 1; rem.s64 d, a, y": (
        "",
        on_integers(lambda a, b, c: remainder(signed(a, 64), signed(b | 1, 64)), 64),
    ),
    "or.b32 rb, rb, 1; div.u32 rd, ra, rb": (KEEP_32, on_integers(lambda a, b, c: a // (b | 1), 32)),
    "or.b32 rb, rb, 1; rem.u32 rd, ra, rb": (KEEP_32, on_integers(lambda a, b, c: a % (b | 1), 32)),
    "shl.b32 ra, ra, 31; mov.u32 rb, %ntid.x; shr.u32 rb, rb, 10; neg.s32 rb, rb; div.s32 rd, ra, rb": (
        KEEP_32,
        on_integers(lambda a, b, c: (a & 1) << 31, 32),
    ),
    "shl.b32 ra, ra, 31; mov.u32 rb, %ntid.x; shr.u32 rb, rb, 10; neg.s32 rb, rb; rem.s32 rd, ra, rb": (
        KEEP_32,
        on_integers(lambda a, b, c: 0, 32),
    ),
    "cvta.to.global.u64 d, a": ("", on_integers(lambda a, b, c: a, 64)),
    "st.global.v2.u32 [w], {ra, rb}; ld.global.u64 d, [w]": ("", on_integers(lambda a, b, c: b << 32 | a, 32)),
    "xor.b64 d, a, b": ("", on_integers(lambda a, b, c: a ^ b, 64)),
    "not.b64 d, a": ("", on_integers(lambda a, b, c: ~a, 64)),
    "neg.s64 d, a": ("", on_integers(lambda a, b, c: -a, 64)),
    "bfi.b64 d, a, b, 32, 32": ("", on_integers(lambda a, b, c: (a & 0xFFFFFFFF) << 32 | b & 0xFFFFFFFF, 64)),
    "bfi.b32 rd, ra, rb, 5, 7": (KEEP_32, on_integers(lambda a, b, c: (a & 127) << 5 | b & ~(127 << 5), 32)),
    "bfe.u32 rd, ra, 30, 7": (KEEP_32, on_integers(lambda a, b, c: a >> 30, 32)),
    "popc.b32 rd, ra": (KEEP_32, on_integers(lambda a, b, c: a.bit_count(), 32)),
    "popc.b64 rd, a": (KEEP_32, on_integers(lambda a, b, c: a.bit_count(), 64)),
    "clz.b32 rd, ra": (KEEP_32, on_integers(lambda a, b, c: 32 - a.bit_length(), 32)),
    "clz.b64 rd, a": (KEEP_32, on_integers(lambda a, b, c: 64 - a.bit_length(), 64)),
    "brev.b32 rd, ra": (KEEP_32, on_integers(lambda a, b, c: int(f"{a:032b}"[::-1], 2), 32)),
    "brev.b64 d, a": ("", on_integers(lambda a, b, c: int(f"{a:064b}"[::-1], 2), 64)),
    "bfind.u32 rd, ra": (KEEP_32, on_integers(lambda a, b, c: (a.bit_length() - 1) & 0xFFFFFFFF, 32)),
    "bfind.s32 rd, ra": (
        KEEP_32,
        on_integers(lambda a, b, c: ((~a & 0xFFFFFFFF if a >> 31 else a).bit_length() - 1) & 0xFFFFFFFF, 32),
    ),
    "bfind.shiftamt.u64 rd, a": (
        KEEP_32,
        on_integers(lambda a, b, c: 64 - a.bit_length() if a else 0xFFFFFFFF, 64),
    ),
    # Two words each, whose carry goes from the lower to the upper one.
    "mov.b64 {ra, rc}, a; mov.b64 {rb, rd}, b; add.cc.u32 ra, ra, rb; addc.u32 rc, rc, rd; mov.b64 d, {ra, rc}": (
        "",
        on_integers(lambda a, b, c: a + b, 64),
    ),
    "mov.b64 {ra, rc}, a; mov.b64 {rb, rd}, b; sub.cc.s32 ra, ra, rb; subc.s32 rc, rc, rd; mov.b64 d, {ra, rc}": (
        "",
        on_integers(lambda a, b, c: a - b, 64),
    ),
    "mad.lo.cc.u32 rd, ra, rb, rc; madc.hi.u32 ra, ra, rb, 0; mov.b64 d, {rd, ra}": (
        "",
        on_integers(lambda a, b, c: a * b + c, 32),
    ),
    "mad.lo.cc.u32 rd, ra, rb, rc; addc.u32 rd, 0, 0": (
        KEEP_32,
        on_integers(lambda a, b, c: ((a * b & 0xFFFFFFFF) + c) >> 32, 32),
    ),
    "mad.hi.cc.u32 rd, ra, rb, rc": (KEEP_32, on_integers(lambda a, b, c: ((a * b >> 32) + c) & 0xFFFFFFFF, 32)),
    "mad.lo.cc.u64 d, a, b, c; madc.hi.cc.u64 x, a, b, c; addc.u64 d, 0, 0": (
        "",
        on_integers(lambda a, b, c: (a * b + c + (c << 64)) >> 128, 64),
    ),
    "mov.pred p, -1; setp.lt.u64 q, a, b; xor.pred p, p, q": (KEEP_PREDICATE, on_integers(lambda a, b, c: a >= b, 64)),
    "cvt.s64.s32 d, ra": ("", on_integers(lambda a, b, c: signed(a, 32), 32)),
    "cvt.u64.u32 d, ra": ("", on_integers(lambda a, b, c: a, 32)),
    "cvt.u16.u32 ha, ra; cvt.s64.s16 d, ha": ("", on_integers(lambda a, b, c: signed(a, 16), 32)),
    "mov.b64 {ra, rb}, a; mov.b64 d, {rb, ra}": ("", on_integers(lambda a, b, c: a << 32 | a >> 32, 64)),
    "mov.b32 {ha, hb}, ra; mov.b32 rd, {hb, ha}": (
        KEEP_32,
        on_integers(lambda a, b, c: (a << 16 | a >> 16) & 0xFFFFFFFF, 32),
    ),
    "mov.b64 d, 0dC338000000000000": ("", on_integers(lambda a, b, c: 0xC338000000000000, 64)),
    "mov.b32 rd, 0f3F800000": (KEEP_32, on_integers(lambda a, b, c: 0x3F800000, 32)),
    "setp.lt.s64 p, a, b": (KEEP_PREDICATE, on_integers(lambda a, b, c: signed(a, 64) < signed(b, 64), 64)),
    "setp.lt.u64 p, a, b": (KEEP_PREDICATE, on_integers(lambda a, b, c: a < b, 64)),
    "setp.lt.s32 q, ra, 0; setp.gt.and.u32 p, ra, rb, q": (
        KEEP_PREDICATE,
        on_integers(lambda a, b, c: a > b and a >> 31, 32),
    ),
    **{
        f"setp.{name}.f32 p, fa, fb": (KEEP_PREDICATE, lambda a, b, c, f=f: f(floats(a), floats(b)).astype(np.uint64))
        for name, f in (
            ("eq", np.equal),
            ("ne", lambda a, b: (a < b) | (a > b)),
            ("neu", np.not_equal),
            ("lt", np.less),
            ("leu", lambda a, b: ~np.greater(a, b)),
            ("geu", lambda a, b: ~np.less(a, b)),
            ("nan", lambda a, b: np.isnan(a) | np.isnan(b)),
            ("num", lambda a, b: ~(np.isnan(a) | np.isnan(b))),
        )
    },
    "setp.lt.s64 p, a, b; selp.f32 fd, fa, fb, p": (
        KEEP_FLOAT,
        lambda a, b, c: np.where(a.view(np.int64) < b.view(np.int64), a, b).astype(np.uint32).astype(np.uint64),
    ),
    "add.f32 fd, fa, fb": (KEEP_FLOAT, on_floats(lambda a, b, c: a + b)),
    "sub.f32 fd, fa, fb": (KEEP_FLOAT, on_floats(lambda a, b, c: a - b)),
    "mul.f32 fd, fa, fb": (KEEP_FLOAT, on_floats(lambda a, b, c: a * b)),
    "div.rn.f32 fd, fa, fb": (KEEP_FLOAT, on_floats(lambda a, b, c: a / b)),
    "rcp.rn.f32 fd, fa": (KEEP_FLOAT, on_floats(lambda a, b, c: np.float32(1) / a)),
    "rcp.approx.ftz.f32 fd, 0f80000010": (KEEP_FLOAT, on_floats(lambda a, b, c: np.full_like(a, -np.inf))),
    "add.rz.f32 fd, fa, fb": (KEEP_FLOAT, summed(to_zero)),
    "add.rm.f32 fd, fa, fb": (KEEP_FLOAT, summed(down)),
    "add.rp.f32 fd, fa, fb": (KEEP_FLOAT, summed(up)),
    "sqrt.rn.f32 fd, fa": (KEEP_FLOAT, on_floats(lambda a, b, c: np.sqrt(a))),
    "neg.f32 fd, fa": (KEEP_FLOAT, on_floats(lambda a, b, c: -a)),
    "neg.ftz.f32 fd, 0f80000010": (KEEP_FLOAT, on_floats(lambda a, b, c: np.full_like(a, 0.0))),
    "abs.ftz.f32 fd, 0f80000010": (KEEP_FLOAT, on_floats(lambda a, b, c: np.full_like(a, 0.0))),
    "abs.ftz.f32 fd, fa": (KEEP_FLOAT, on_floats(lambda a, b, c: np.where(np.abs(a) < 2**-126, 0, np.abs(a)))),
    "abs.f32 fd, fa": (KEEP_FLOAT, on_floats(lambda a, b, c: np.abs(a))),
    "min.f32 fd, fa, fb": (KEEP_FLOAT, on_floats(lambda a, b, c: extreme(np.fmin, a, b, np.signbit(a)))),
    "max.f32 fd, fa, fb": (KEEP_FLOAT, on_floats(lambda a, b, c: extreme(np.fmax, a, b, ~np.signbit(a)))),
    "copysign.f32 fd, fa, fb": (KEEP_FLOAT, on_floats(lambda a, b, c: np.copysign(b, a))),
    **{f"{name} fd, fa": (KEEP_FLOAT, on_floats(lambda a, b, c, f=f: f(a))) for name, f in NEAREST.items()},
    "cvt.sat.f32.f32 fd, fa": (KEEP_FLOAT, on_floats(lambda a, b, c: np.where(a > 0, np.where(a < 1, a, 1), 0))),
    "fma.rn.f32 fd, fa, fb, fc": (KEEP_FLOAT, fused(lambda near, exact: False)),
    "fma.rm.f32 fd, fa, fb, fc": (KEEP_FLOAT, fused(down)),
    "fma.rp.f32 fd, fa, fb, fc": (KEEP_FLOAT, fused(up)),
    "fma.rz.f32 fd, fa, fb, fc": (KEEP_FLOAT, fused(to_zero)),
    "mul.f64 gd, ga, gb": (KEEP_DOUBLE, on_doubles(lambda a, b, c: a * b)),
    "div.rn.f64 gd, ga, gb": (KEEP_DOUBLE, on_doubles(lambda a, b, c: a / b)),
    "rcp.rn.f64 gd, ga": (KEEP_DOUBLE, on_doubles(lambda a, b, c: 1 / a)),
    "sqrt.rn.f64 gd, ga": (KEEP_DOUBLE, on_doubles(lambda a, b, c: np.sqrt(a))),
    "cvt.rn.f32.f64 fd, ga": (KEEP_FLOAT, lambda a, b, c: on_floats(lambda *_: doubles(a).astype(np.float32))(a, b, c)),
    "cvt.f64.f32 gd, fa": (KEEP_DOUBLE, lambda a, b, c: floats(a).astype(np.float64).view(np.uint64)),
    "cvt.rn.f32.s64 fd, a": (
        KEEP_FLOAT,
        lambda a, b, c: a.view(np.int64).astype(np.float32).view(np.uint32).astype(np.uint64),
    ),
    "cvt.rn.f64.s64 gd, a": (KEEP_DOUBLE, lambda a, b, c: a.view(np.int64).astype(np.float64).view(np.uint64)),
    "cvt.rzi.s32.f32 rd, fa": (
        KEEP_32,
        lambda a, b, c: [
            (0 if v != v else max(-(2**31), min(2**31 - 1, int(np.clip(v, -1e18, 1e18))))) & 0xFFFFFFFF
            for v in map(float, floats(a))
        ],
    ),
    "cvt.rzi.u32.f32 rd, fa": (KEEP_32, lambda a, b, c: to_unsigned(floats(a), 32)),
    "cvt.rzi.u64.f64 d, ga": ("", lambda a, b, c: to_unsigned(doubles(a), 64)),
    "cvt.rna.tf32.f32 rd, fa": (KEEP_32, lambda a, b, c: to_tf32(floats(a))),
    "cvt.rn.bf16x2.f32 rd, fa, fb": (
        KEEP_32,
        lambda a, b, c: [h << 16 | lo for h, lo in zip(to_bf16(floats(a)), to_bf16(floats(b)), strict=True)],
    ),
    "cvt.rn.f16.f32 ha, fa; mov.b32 rd, {ha, ha}; and.b32 rd, rd, 65535": (
        KEEP_32,
        lambda a, b, c: floats(a).astype(np.float16).view(np.uint16).astype(np.uint64),
    ),
    "cvt.u16.u32 ha, ra; cvt.f32.f16 fd, ha": (
        KEEP_FLOAT,
        lambda a, b, c: a.astype(np.uint16).view(np.float16).astype(np.float32).view(np.uint32).astype(np.uint64),
    ),
}
NO_NAN = ("cvt.rna.tf32", "fma.", "add.r")
"""Instructions whose result for a NaN is not defined, or whose reference has none."""


def operands() -> tuple[np.ndarray, ...]:
    """(3, COUNT) 64-bit words. Their lower halves: float32 of ordinary size, ties between two of fewer bits, special
    numbers, shifts. Whole: float64 of ordinary size, and any bits."""
    random = np.random.default_rng(0)
    special = [
        0.0,
        -0.0,
        np.inf,
        -np.inf,
        np.nan,
        1.0,
        1e-40,
        -1e-45,
        65504.0,
        65520.0,
        2.0**-14,
        2.0**-25,
        3.4e38,
        2.5,
        -0.5,
    ]
    made = []
    for _ in range(3):
        words = random.integers(0, 2**64, COUNT, np.uint64)
        small = random.standard_normal(COUNT).astype(np.float32)
        ties = (random.integers(0x3F000000, 0x41000000, COUNT, np.uint32) & np.uint32(0xFFFFF000)) | np.uint32(0)
        ties[::2] = ties[::2] & np.uint32(0xFFFF0000) | np.uint32(0x8000)
        quarter = COUNT // 4
        low = np.concatenate([small[:quarter].view(np.uint32), ties[:quarter], words[: 2 * quarter].astype(np.uint32)])
        low[quarter * 2 : quarter * 2 + 200] = random.choice(np.array(special, np.float32), 200).view(np.uint32)
        low[quarter * 3 : quarter * 3 + 100] = random.integers(0, 70, 100)
        words = words & np.uint64(0xFFFFFFFF00000000) | low
        words[-200:] = random.standard_normal(200).view(np.uint64)
        made.append(words)
    return tuple(made)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, np.ndarray]:
    """Every instruction on the same operands: {instruction: results}."""
    path = tmp_path_factory.mktemp("instructions") / "image.so"
    build("".join(KERNEL.format("; ".join(filter(None, [code, keep]))) for code, (keep, _) in CASES.items()), path)
    image, made = Image(path), {}
    for number, code in enumerate(CASES):
        made[code] = np.zeros(COUNT, np.uint64)
        image.launch(number, [*operands(), made[code]], COUNT)
    return made


@pytest.mark.parametrize("code", CASES)
def test_an_instruction_does_what_the_manual_says(code: str, results: dict[str, np.ndarray]) -> None:
    keep, reference = CASES[code]
    with np.errstate(all="ignore"):
        expected, got = np.array(reference(*operands()), np.uint64), results[code]
    if keep in (KEEP_FLOAT, KEEP_DOUBLE):  # one NaN is as good as another
        read = floats if keep == KEEP_FLOAT else doubles
        same = (expected == got) | (np.isnan(read(expected)) & np.isnan(read(got)))
        same |= np.isnan(read(expected)) & code.startswith(NO_NAN)
    else:
        same = expected == got
        if code.startswith(NO_NAN) or "f16.f32" in code or "bf16x2" in code:
            same |= np.isnan(floats(operands()[0])) | ("bf16x2" in code) & np.isnan(floats(operands()[1]))
    wrong = np.flatnonzero(~same)
    assert wrong.size == 0, [*(hex(x[wrong[0]]) for x in operands()), hex(expected[wrong[0]]), hex(got[wrong[0]])]
    assert same.size == COUNT


@pytest.mark.parametrize("code", [f"fma.r{way}.f32 fd, fa, fb, fc" for way in "nmpz"])
def test_a_product_and_its_sum_are_rounded_once(code: str, tmp_path: Path) -> None:
    """a b lies in the middle between two float32 numbers, or is one, and c says on which side of it the sum is."""
    a, c = np.meshgrid(np.float32([1 + 2**-12, -1 - 2**-12, 1]), np.float32([2**-60, -(2**-60), 2**-30, -(2**-30)]))
    b = np.where(a == 1, 1, 1 + 2**-12).astype(np.float32)
    words = [x.ravel().view(np.uint32).astype(np.uint64) for x in (a, b, c)]
    build(KERNEL.format(f"{code}; {KEEP_FLOAT}"), tmp_path / "image.so")
    got = np.zeros(a.size, np.uint64)
    Image(tmp_path / "image.so").launch(0, [*words, got], a.size)
    np.testing.assert_array_equal(got, CASES[code][1](*words))


def test_the_reference_rounds_once() -> None:
    """A double lies in the middle between 1 and the next float32, and a little more was lost before."""
    assert rounded(1 + Fraction(1, 2**24) + Fraction(1, 2**60), lambda near, exact: False) == 1 + 2**-23


@pytest.mark.parametrize(
    ("code", "function"),
    [("rcp.approx.ftz.f64 gd, ga", lambda x: 1 / x), ("rsqrt.approx.ftz.f64 gd, ga", lambda x: 1 / np.sqrt(x))],
)
def test_approximations_of_doubles_have_32_bits(
    code: str, function: Callable[[np.ndarray], np.ndarray], tmp_path: Path
) -> None:
    build(KERNEL.format(f"{code}; {KEEP_DOUBLE}"), tmp_path / "image.so")
    x, got = np.linspace(0.51, 8, COUNT), np.zeros(COUNT, np.uint64)
    words = x.view(np.uint64)
    Image(tmp_path / "image.so").launch(0, [words, words, words, got], COUNT)
    assert not np.any(got & np.uint64(0xFFFFFFFF))
    np.testing.assert_allclose(doubles(got), function(x), rtol=2**-20)


def test_approximations_are_near(tmp_path: Path) -> None:
    codes = {
        "ex2.approx.ftz.f32 fd, fa": (np.exp2, 2e-7),
        "lg2.approx.f32 fd, fa": (np.log2, 2e-7),
        "rcp.approx.ftz.f32 fd, fa": (lambda x: 1 / x, 2e-7),
        "div.approx.f32 fd, fa, 0f40400000": (lambda x: x / 3, 2e-7),
        "div.approx.ftz.f32 fd, fa, 0f40400000": (lambda x: x / 3, 2e-7),
        "rsqrt.approx.f32 fd, fa": (lambda x: 1 / np.sqrt(x), 2e-7),
    }
    build("".join(KERNEL.format(f"{code}; {KEEP_FLOAT}") for code in codes), tmp_path / "image.so")
    image, x = Image(tmp_path / "image.so"), np.linspace(0.51, 8, COUNT).astype(np.float32)
    words = x.view(np.uint32).astype(np.uint64)
    for number, (function, allowed) in enumerate(codes.values()):
        got = np.zeros(COUNT, np.uint64)
        image.launch(number, [words, words, words, got], COUNT)
        expected = function(x.astype(np.float64))
        assert np.max(np.abs(floats(got) - expected) / np.maximum(1, np.abs(expected))) < allowed
