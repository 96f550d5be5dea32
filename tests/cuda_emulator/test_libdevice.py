"""Every function of cuda.libdevice against NumPy, math or plain integers, by its name: compiled and step by step.

One kernel calls all functions that take the same kind of arguments, because each kernel has to be compiled.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from cuda_emulator import cuda, options
from cuda_emulator.compiler.functions import DeviceFunction
from tests.cuda_emulator.emulator_steps import function
from tests.wide import widely

both_modes = pytest.mark.parametrize("step", widely([True, False]), ids=["step", "compiled"])
"""Compiling a hundred functions takes many seconds."""


def normal_distribution(x: float) -> float:
    return (1 + math.erf(x / math.sqrt(2))) / 2


def half_away_from_zero(x: float) -> float:
    return math.copysign(math.floor(abs(x) + 0.5), x)


REAL_ONE: dict[str, Callable[[Any], Any]] = {
    **{name: getattr(np, name) for name in ("cos", "cosh", "exp", "exp2", "expm1", "fabs", "floor", "ceil", "trunc")},
    **{name: getattr(np, name) for name in ("log", "log10", "log1p", "log2", "sin", "sinh", "sqrt", "tan", "tanh")},
    "acos": np.arccos,
    "acosh": np.arccosh,
    "asin": np.arcsin,
    "asinh": np.arcsinh,
    "atan": np.arctan,
    "atanh": np.arctanh,
    "cbrt": np.cbrt,
    "rint": np.rint,
    "nearbyint": np.rint,
    "erf": math.erf,
    "erfc": math.erfc,
    "tgamma": math.gamma,
    "lgamma": math.lgamma,
    "normcdf": normal_distribution,
    "round": half_away_from_zero,
    "exp10": lambda x: np.power(10.0, x),
    "rcbrt": lambda x: 1 / np.cbrt(x),
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sinpi": lambda x: np.sin(np.pi * x),
    "cospi": lambda x: np.cos(np.pi * x),
}
FAST_ONE = {f"fast_{name}f": REAL_ONE[name] for name in ("cos", "exp", "exp10", "log", "log10", "log2", "sin", "tan")}
ONE: dict[str, Callable[[Any], Any]] = {
    **REAL_ONE,
    **{f"{name}f": reference for name, reference in REAL_ONE.items()},
    **FAST_ONE,
    "dsqrt_rn": np.sqrt,
    "fsqrt_rn": np.sqrt,
    "frsqrt_rn": REAL_ONE["rsqrt"],
    **dict.fromkeys(("drcp_rn", "frcp_rn"), lambda x: 1 / x),
    "saturatef": lambda x: np.clip(x, 0, 1),
    "double2float_rn": lambda x: x,
}
REAL_TWO: dict[str, Callable[[Any, Any], Any]] = {
    "atan2": np.arctan2,
    "copysign": np.copysign,
    "fmod": np.fmod,
    "hypot": np.hypot,
    "pow": np.power,
    "fmax": np.fmax,
    "fmin": np.fmin,
    "fdim": lambda x, y: np.maximum(x - y, 0),
}
TWO: dict[str, Callable[[Any, Any], Any]] = {
    **REAL_TWO,
    **{f"{name}f": reference for name, reference in REAL_TWO.items()},
    "fast_powf": np.power,
    "fast_fdividef": np.divide,
    "dadd_rn": np.add,
    "fadd_rn": np.add,
    "fsub_rn": np.subtract,
    "dmul_rn": np.multiply,
    "fmul_rn": np.multiply,
    "ddiv_rn": np.divide,
    "fdiv_rn": np.divide,
}
SINGLE = {
    *(f"{name}f" for name in (*REAL_ONE, *REAL_TWO)),
    *(
        name
        for name in (*ONE, *TWO)
        if name.startswith(("fast_", "fadd_", "fsub_", "fmul_", "fdiv_", "frcp_", "fsqrt_"))
    ),
    *("frsqrt_rn", "saturatef", "double2float_rn"),
}
"""The names whose arguments and results are float32."""

X = np.array([0.3, 0.75, 1.0, 1.5, 2.5, 3.7, 10.2, -0.3, -0.6, -1.5, -2.5, -7.1])
Y = np.array([0.7, 1.25, 0.5, -1.5, 3.0, 2.2, 0.1, 2.0, 0.6, -0.8, 2.0, 3.0])


def call_all(names: Any, arguments: str, step: bool, *arrays: np.ndarray, dtype: Any = np.float64) -> np.ndarray:
    """The results of every function, one column each."""
    out = np.zeros((len(arrays[0]), len(names)), dtype)
    calls = [f"out[i, {column}] = cuda.libdevice.{name}({arguments})" for column, name in enumerate(names)]
    kernel = cuda.jit(function("\n".join(["i = cuda.grid(1)", *calls]), parameters="x, y, z, out"))
    with options(step=step, threads=1):
        kernel[1, len(out)](*(arrays[min(n, len(arrays) - 1)] for n in range(3)), out)
    return out


def check_reals(table: dict[str, Callable[..., Any]], got: np.ndarray, *arrays: np.ndarray) -> None:
    for name, results in zip(table, got.T, strict=True):
        single = name in SINGLE
        with np.errstate(all="ignore"):
            given = [array.astype(np.float32).astype(np.float64) if single else array for array in arrays]
            wanted = np.array([table[name](*numbers) for numbers in zip(*given, strict=True)])
        tolerance = 1e-6 if single else 2e-15
        np.testing.assert_allclose(results, wanted, rtol=10 * tolerance, atol=tolerance, err_msg=name)
        assert np.array_equal(results, results.astype(np.float32), equal_nan=True) or not single, name


@both_modes
def test_functions_of_one_real_number(step: bool) -> None:
    check_reals(ONE, call_all(ONE, "x[i]", step, X), X)


@both_modes
def test_functions_of_two_real_numbers(step: bool) -> None:
    check_reals(TWO, call_all(TWO, "x[i], y[i]", step, X, Y), X, Y)


THREE = {"fma": 30, "fma_rn": 30, "fmaf": 13, "fmaf_rn": 13}
"""The bits b for which (1 + 2^-b) (1 - 2^-b) - 1 is 0 if the product is rounded."""
NEXT = {"nextafter": np.float64, "nextafterf": np.float32}


@both_modes
def test_the_product_of_fma_is_not_rounded(step: bool) -> None:
    for name, bits in THREE.items():
        little = 2.0**-bits
        numbers = [np.array([number]) for number in (1 + little, 1 - little, -1.0)]
        assert call_all([name], "x[i], y[i], z[i]", step, *numbers).tolist() == [[-little * little]]


@both_modes
def test_nextafter_is_the_next_number_of_the_functions_type(step: bool) -> None:
    got = call_all(NEXT, "x[i], y[i]", step, X, Y)
    for results, kind in zip(got.T, NEXT.values(), strict=True):
        assert results.tolist() == np.nextafter(X.astype(kind), Y.astype(kind)).tolist()


def rounded(function: Callable[[Any], Any]) -> Callable[[float], int]:
    return lambda x: int(function(x)) if math.isfinite(x) and abs(x) < 1e9 else 0


TO_WHOLE: dict[str, Callable[[float], int]] = {
    **dict.fromkeys(("isnand", "isnanf"), lambda x: int(np.isnan(x))),
    **dict.fromkeys(("isinfd", "isinff"), lambda x: int(np.isinf(x))),
    **dict.fromkeys(("isfinited", "finitef"), lambda x: int(np.isfinite(x))),
    **dict.fromkeys(("signbitd", "signbitf"), lambda x: int(np.signbit(x))),
}
ROUNDED: dict[str, Callable[[float], int]] = {
    **dict.fromkeys(("float2int_rz", "double2int_rz"), math.trunc),
    **dict.fromkeys(("float2int_rn", "double2int_rn"), round),
    "float2int_rd": math.floor,
    "float2int_ru": math.ceil,
}


@both_modes
def test_what_kind_of_number_it_is(step: bool) -> None:
    x = np.array([math.nan, math.inf, -math.inf, -0.0, 0.0, 1.0, -1.0])
    got = call_all(TO_WHOLE, "x[i]", step, x, dtype=np.int64)
    for (name, reference), results in zip(TO_WHOLE.items(), got.T, strict=True):
        assert results.tolist() == [reference(each) for each in x], name


@both_modes
def test_real_numbers_are_rounded_to_whole_ones_as_the_name_says(step: bool) -> None:
    x = np.array([0.0, 0.5, 1.5, 2.25, 2.75, -0.5, -1.5, -2.25, -2.75])
    got = call_all(ROUNDED, "x[i]", step, x, dtype=np.int64)
    for (name, reference), results in zip(ROUNDED.items(), got.T, strict=True):
        assert results.tolist() == [reference(each) for each in x], name


# ---- whole numbers


def signed(value: int, bits: int) -> int:
    value %= 2**bits
    return value - 2**bits if value >= 2 ** (bits - 1) else value


def digits(value: int, bits: int) -> str:
    return format(value % 2**bits, f"0{bits}b")


def of_bits(bits: int) -> dict[str, Callable[[int], int]]:
    end = "ll" if bits == 64 else ""
    return {
        "llabs" if end else "abs": lambda x: abs(signed(x, bits)),
        f"brev{end}": lambda x: signed(int(digits(x, bits)[::-1], 2), bits),
        f"popc{end}": lambda x: digits(x, bits).count("1"),
        f"clz{end}": lambda x: bits - len(digits(x, bits).lstrip("0")),
        f"ffs{end}": lambda x: len(digits(x, bits)) - digits(x, bits).rindex("1") if x % 2**bits else 0,
    }


WHOLE_ONE: dict[str, Callable[[int], float]] = {
    **of_bits(32),
    **of_bits(64),
    "int2float_rn": lambda x: float(np.float32(signed(x, 32))),
    "uint2float_rn": lambda x: float(np.float32(x % 2**32)),
    "int2double_rn": lambda x: signed(x, 32),
}
WHOLE_TWO: dict[str, Callable[[int, int], int]] = {
    f"{'u' if unsigned else ''}{'ll' if bits == 64 else ''}{choose.__name__}": (
        lambda x, y, choose=choose, bits=bits, unsigned=unsigned: signed(
            choose(x % 2**bits, y % 2**bits) if unsigned else choose(signed(x, bits), signed(y, bits)), 64
        )
    )
    for choose in (min, max)
    for bits in (32, 64)
    for unsigned in (False, True)
}
WHOLE_X = np.array([0, 1, -1, 12, -12, 2**24 + 1, 2**31 - 1, 2**40 + 5, -(2**40) - 5, 2**63 - 1, 2**32])
WHOLE_Y = np.array([1, -1, 3, -12, 12, 2**31, 2**33, 7, -9, -1, 5])


@both_modes
def test_functions_of_one_whole_number(step: bool) -> None:
    got = call_all(WHOLE_ONE, "x[i]", step, WHOLE_X, dtype=np.int64)
    for (name, reference), results in zip(WHOLE_ONE.items(), got.T, strict=True):
        assert results.tolist() == [reference(x) for x in WHOLE_X.tolist()], name


@both_modes
def test_the_smaller_and_the_larger_of_two_whole_numbers(step: bool) -> None:
    got = call_all(WHOLE_TWO, "x[i], y[i]", step, WHOLE_X, WHOLE_Y, dtype=np.int64)
    for (name, reference), results in zip(WHOLE_TWO.items(), got.T, strict=True):
        wanted = [reference(x, y) for x, y in zip(WHOLE_X.tolist(), WHOLE_Y.tolist(), strict=True)]
        assert results.tolist() == wanted, name


def test_every_name_has_its_reference_here() -> None:
    names = {name for name, each in vars(cuda.libdevice).items() if isinstance(each, DeviceFunction) and name[0] != "_"}
    assert names == {*ONE, *TWO, *THREE, *NEXT, *TO_WHOLE, *ROUNDED, *WHOLE_ONE, *WHOLE_TWO}
