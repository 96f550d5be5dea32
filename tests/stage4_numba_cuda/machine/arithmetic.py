"""What a thread computes by itself: instruction sets 9.7.1 to 9.7.9 of the manual, as far as NVVM uses them.

Each function writes the C of one instruction, by the manual's definition of it, in the forms that ARITHMETIC has for
it. Results are rounded to the nearest, as in C, unless the instruction says otherwise.
"""

from __future__ import annotations

from functools import partial

from tests.stage4_numba_cuda.machine.operands import C_TYPES, FLOATS, INTEGER, Instruction, Known, Translation
from tests.stage4_numba_cuda.machine.ptx import BITS, PtxError

COMPARED = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
COMPARED_UNSIGNED = {"lo": "<", "ls": "<=", "hi": ">", "hs": ">="}
JOINED = {"and": "&", "or": "|", "xor": "^"}
TO_WHOLE = {"rni": "nearbyint", "rzi": "trunc", "rmi": "floor", "rpi": "ceil"}


def _binary(sign: str, t: Translation, i: Instruction) -> str:
    kind = i.kind
    a, b = (t.value(operand, kind) for operand in i.operands[1:3])
    if kind == "f32" and any(m in i.modifiers for m in ("rz", "rm", "rp")):
        rounding = next(m for m in i.modifiers if m in ("rz", "rm", "rp"))
        return t.give(i, f"fused_{rounding}((double){a}, {sign}(double){b})")
    if kind in FLOATS:
        return t.give(i, f"{a} {sign} {b}")
    unsigned = kind.replace("s", "u")  # a signed overflow is no number in C
    a, b = (t.value(operand, unsigned) for operand in i.operands[1:3])
    expression = f"({C_TYPES[unsigned]})({a} {sign} {b})"
    return t.give(i, expression)


def _not(t: Translation, i: Instruction) -> str:
    sign = "!" if i.kind == "pred" else "~"
    return t.give(i, f"{sign}{t.value(i.operands[1], i.kind)}")


def product(t: Translation, i: Instruction) -> tuple[str, str]:
    """(the C of a product of whole numbers, its PTX type)."""
    kind, bits = i.kind, BITS[i.kind]
    x, y = t.value(i.operands[1], kind), t.value(i.operands[2], kind)
    wide = f"{kind[0]}{bits * 2}"
    if "wide" in i.modifiers:
        return f"({C_TYPES[wide]}){x} * ({C_TYPES[wide]}){y}", wide
    if "hi" in i.modifiers:
        whole = {"s64": "__int128", "u64": "unsigned __int128"}.get(kind) or C_TYPES[wide]
        return f"(({whole}){x} * ({whole}){y}) >> {bits}", kind
    unsigned = f"u{bits}"
    return f"({C_TYPES[unsigned]}){x} * ({C_TYPES[unsigned]}){y}", kind


def _mul(t: Translation, i: Instruction) -> str:
    if i.kind in FLOATS:
        a, b = (t.value(operand, i.kind) for operand in i.operands[1:])
        return t.give(i, f"{a} * {b}")
    return t.set(i.operands[0], *product(t, i))


def _mad(t: Translation, i: Instruction) -> str:
    found, kind = product(t, i)
    unsigned = kind.replace("s", "u")
    return t.give(i, f"({C_TYPES[unsigned]})({found}) + {t.value(i.operands[3], unsigned)}")


def _fma(t: Translation, i: Instruction) -> str:
    kind, rounding = i.kind, i.modifiers[0]
    a, b, c = (t.value(operand, kind) for operand in i.operands[1:])
    if rounding == "rn":
        return t.give(i, f"__builtin_fma{'f' * (kind == 'f32')}({a}, {b}, {c})")
    return t.give(i, f"fused_{rounding}((double){a} * (double){b}, (double){c})")


def _div(t: Translation, i: Instruction) -> str:
    kind = i.kind
    a, b = (t.value(operand, kind) for operand in i.operands[1:])
    if kind in FLOATS:
        return t.give(i, _flushed(i, f"{_flushed(i, '{}', a)} / {{}}", b))
    return t.give(i, f"quotient({C_TYPES[kind]}, {a}, divisor({b}, {i.line}))")


def _rem(t: Translation, i: Instruction) -> str:
    kind = i.kind
    a, b = (t.value(operand, kind) for operand in i.operands[1:])
    return t.give(i, f"remainder_of({C_TYPES[kind]}, {a}, divisor({b}, {i.line}))")


def _rcp(t: Translation, i: Instruction) -> str:
    kind = i.kind
    x = t.value(i.operands[1], kind)
    if kind == "f64" and "approx" in i.modifiers:  # "the lower 32 bits of the result are zero"
        return t.give(i, f"upper_half(1.0 / {x})")
    return t.give(i, _flushed(i, "1 / {}", x))


def _neg(t: Translation, i: Instruction) -> str:
    return t.give(i, _flushed(i, "-{}", t.value(i.operands[1], i.kind)))


def _abs(t: Translation, i: Instruction) -> str:
    kind = i.kind
    x = t.value(i.operands[1], kind)
    if kind in FLOATS:
        return t.give(i, _flushed(i, f"__builtin_fabs{'f' * (kind == 'f32')}({{}})", x))
    return t.give(i, f"{x} < 0 ? -{x} : {x}")


def _copysign(t: Translation, i: Instruction) -> str:
    kind = i.kind  # the sign of the first, the size of the second
    sign, size = (t.value(operand, kind) for operand in i.operands[1:])
    return t.give(i, f"__builtin_copysign{'f' * (kind == 'f32')}({size}, {sign})")


def _function(name: str, t: Translation, i: Instruction) -> str:
    kind = i.kind
    return t.give(i, _flushed(i, f"{name}{'f' * (kind == 'f32')}({{}})", t.value(i.operands[1], kind)))


def _rsqrt(t: Translation, i: Instruction) -> str:
    kind = i.kind
    x = t.value(i.operands[1], kind)
    return t.give(i, f"upper_half(1 / sqrt({x}))" if kind == "f64" else _flushed(i, "1 / sqrtf({})", x))


def _flushed(i: Instruction, value: str, x: str) -> str:
    """The C of a value of x, which stands where the braces are; with .ftz neither of them is subnormal, but 0."""
    return f"flushed({value.format(f'flushed({x})')})" if "ftz" in i.modifiers else value.format(x)


def _least(sign: str, t: Translation, i: Instruction) -> str:
    kind = i.kind
    a, b = (t.value(operand, kind) for operand in i.operands[1:])
    if kind in FLOATS:
        return t.give(i, f"LEAST({a}, {b}, {sign})")
    return t.give(i, f"{a} {sign} {b} ? {a} : {b}")


def _shl(t: Translation, i: Instruction) -> str:
    kind = i.kind
    x, by = t.value(i.operands[1], kind), t.value(i.operands[2], "u32")
    return t.give(i, f"{by} >= {BITS[kind]} ? 0 : {x} << {by}")


def _shr(t: Translation, i: Instruction) -> str:
    kind = i.kind
    x, by = t.value(i.operands[1], kind), t.value(i.operands[2], "u32")
    far = f"{x} >> {BITS[kind] - 1}" if kind[0] == "s" else "0"
    return t.give(i, f"{by} >= {BITS[kind]} ? {far} : {x} >> {by}")


def _shf(t: Translation, i: Instruction) -> str:
    """A word of the two words b a: the upper one shifted to the left, or the lower one shifted to the right."""
    a, b, by = (t.value(operand, "u32") for operand in i.operands[1:])
    places = f"({by} & 31)" if "wrap" in i.modifiers else f"({by} > 32 ? 32 : {by})"
    both = f"((u64){b} << 32 | {a})"
    return t.give(i, f"{both} << {places} >> 32" if i.modifiers[0] == "l" else f"{both} >> {places}")


def _selp(t: Translation, i: Instruction) -> str:
    kind = i.kind
    a, b = (t.value(operand, kind) for operand in i.operands[1:3])
    return t.give(i, f"{t.register(i.operands[3])} ? {a} : {b}")


def _setp(t: Translation, i: Instruction) -> str:
    comparison, kind = i.modifiers[0], i.kind
    a, b = (t.value(operand, kind) for operand in i.operands[1:3])
    more = i.modifiers[1:-1]
    if comparison in COMPARED:
        found = f"{a} {COMPARED[comparison]} {b}"
        if comparison == "ne" and kind in FLOATS:  # false for a NaN, where that of C is true
            found = f"({a} < {b} || {a} > {b})"
    elif comparison in COMPARED_UNSIGNED:
        found = f"{a} {COMPARED_UNSIGNED[comparison]} {b}"
    elif comparison in ("num", "nan"):
        found = f"({'!' * (comparison == 'num')}__builtin_isunordered({a}, {b}))"
    else:  # equ and so on: true also where one is a NaN
        found = f"({a} {COMPARED[comparison[:-1]]} {b} || __builtin_isunordered({a}, {b}))"
    if more:
        inverted, name = i.operands[3].startswith("!"), i.operands[3].lstrip("!")
        other = f"{'!' * inverted}{t.register(name)}"
        found = f"(({found}) {JOINED[more[0]]} {other})"
    if "|" in i.operands[0]:
        raise PtxError("two results are not known")
    return t.give(i, found, "pred")


def _cvt(t: Translation, i: Instruction) -> str:
    *how, to, kind = i.modifiers
    if to == "bf16x2":  # the first becomes the upper half
        upper, lower = (f"bf16({t.value(operand, 'f32')})" for operand in i.operands[1:])
        return t.give(i, f"(u32){upper} << 16 | {lower}", "b32")
    if to == "tf32":
        return t.give(i, f"tf32({t.value(i.operands[1], 'f32')})", "b32")
    if to == "f16":
        return t.give(i, f"f16({t.value(i.operands[1], 'f32')})", "f16")
    if kind == "f16":
        return t.give(i, f"float_of_f16({t.value(i.operands[1], 'f16')})", "f32")
    x = t.value(i.operands[1], kind)
    whole, was_whole = to[0] in "us", kind[0] in "us"
    if whole and was_whole:
        return t.give(i, x, to)
    if whole:
        bits = BITS[to]
        low, high = (f"-0x1p{bits - 1}", f"0x1p{bits - 1}") if to[0] == "s" else ("0.0", f"0x1p{bits}")
        return t.give(i, f"WHOLE({C_TYPES[to]}, {TO_WHOLE[how[0]]}({x}), {low}, {high})", to)
    if "sat" in how:
        x = f"saturated({x})"
    if how and how[0] in TO_WHOLE:
        x = f"{TO_WHOLE[how[0]]}({x})"
    return t.give(i, f"({C_TYPES[to]}){x}", to)  # to the nearest, as the form says


JOIN = "((and|or|xor).)?"
COMPARISONS = "|".join(
    [
        f"(eq|ne).{JOIN}b(16|32|64)",
        f"(eq|ne|lt|le|gt|ge).{JOIN}s(16|32|64)",
        f"(eq|ne|lt|le|gt|ge|lo|ls|hi|hs).{JOIN}u(16|32|64)",
        f"((eq|ne|lt|le|gt|ge)u?|num|nan).{JOIN}f(32|64)",
    ]
)
BYTES = "[us](8|16|32|64)"
CONVERSIONS = "|".join(
    [
        f"{BYTES}.{BYTES}|rn.f(32|64).{BYTES}|r[nzmp]i.{BYTES}.f(32|64)",
        "f64.f32|rn.f32.f64|((r[nzmp]i|sat).)?f32.f32|(r[nzmp]i.)?f64.f64",
        "f32.f16|rn.f16.f32|rn.bf16x2.f32|rna.tf32.f32",
    ]
)

ARITHMETIC = {
    "add": Known(partial(_binary, "+"), f"{INTEGER}|(r[nzmp].)?f32|(rn.)?f64"),
    "sub": Known(partial(_binary, "-"), f"{INTEGER}|(r[nzmp].)?f32|(rn.)?f64"),
    "and": Known(partial(_binary, "&"), "pred|b(16|32|64)"),
    "or": Known(partial(_binary, "|"), "pred|b(16|32|64)"),
    "xor": Known(partial(_binary, "^"), "pred|b(16|32|64)"),
    "not": Known(_not, "pred|b(16|32|64)"),
    "mul": Known(_mul, f"(lo|hi).{INTEGER}|wide.[us](16|32)|(rn.)?f(32|64)"),
    "mad": Known(_mad, f"(lo|hi).{INTEGER}|wide.[us](16|32)"),
    "fma": Known(_fma, "r[nzmp].f32|rn.f64"),
    "div": Known(_div, f"{INTEGER}|rn.f(32|64)|approx.(ftz.)?f32"),
    "rem": Known(_rem, INTEGER),
    "rcp": Known(_rcp, "rn.f(32|64)|approx.(ftz.)?f32|approx.ftz.f64"),
    "neg": Known(_neg, "s(16|32|64)|(ftz.)?f32|f64"),
    "abs": Known(_abs, "s(16|32|64)|(ftz.)?f32|f64"),
    "copysign": Known(_copysign, "f(32|64)"),
    "sqrt": Known(partial(_function, "sqrt"), "rn.f(32|64)|approx.(ftz.)?f32"),
    "ex2": Known(partial(_function, "exp2"), "approx.(ftz.)?f32"),
    "lg2": Known(partial(_function, "log2"), "approx.(ftz.)?f32"),
    "rsqrt": Known(_rsqrt, "approx.(ftz.)?f32|approx.ftz.f64"),
    "min": Known(partial(_least, "<"), f"{INTEGER}|f(32|64)"),
    "max": Known(partial(_least, ">"), f"{INTEGER}|f(32|64)"),
    "shl": Known(_shl, "b(16|32|64)"),
    "shr": Known(_shr, "[bus](16|32|64)"),
    "shf": Known(_shf, "[lr].(wrap|clamp).b32"),
    "selp": Known(_selp, "[bus](16|32|64)|f(32|64)"),
    "setp": Known(_setp, COMPARISONS),
    "cvt": Known(_cvt, CONVERSIONS),
}
