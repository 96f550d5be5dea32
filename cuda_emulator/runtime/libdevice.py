"""cuda.libdevice: the functions of CUDA's mathematical library, for kernels that call them by their own names.

    y = cuda.libdevice.rsqrtf(x)        the name of a float32 function ends in f; one without it computes in float64

The arguments are converted to the function's type, as on a device. The values are those of the CPU's own library: right
to the last digits, as a device's are, and not always the same in the very last. The fast_ functions, for which a device
takes fewer digits, are as exact here as the others.

The functions that round up, down or towards zero (_ru, _rd, _rz) are missing, and a few rare ones.
"""

from __future__ import annotations

import builtins
import math
from typing import Any

import numpy as np

from ..compiler.functions import DeviceFunction
from ..intrinsics import Intrinsic

_fma, _brev, _popc, _clz, _ffs = (Intrinsic(name) for name in ("fma", "brev", "popc", "clz", "ffs"))


def _of_one(function: Any, kind: Any, result: Any) -> DeviceFunction:
    """A function of one number."""

    @DeviceFunction
    def called(x):  # type: ignore[no-untyped-def]
        return result(function(kind(x)))

    return called


def _of_two(function: Any, kind: Any) -> DeviceFunction:
    """A function of two numbers."""

    @DeviceFunction
    def called(x, y):  # type: ignore[no-untyped-def]
        return kind(function(kind(x), kind(y)))

    return called


def _of_three(function: Any, kind: Any) -> DeviceFunction:
    """A function of three numbers."""

    @DeviceFunction
    def called(x, y, z):  # type: ignore[no-untyped-def]
        return kind(function(kind(x), kind(y), kind(z)))

    return called


# ---- what has no name in NumPy. x, y and z have the function's type already


@DeviceFunction
def _exp10(x):  # type: ignore[no-untyped-def]
    return 10**x


@DeviceFunction
def _cube_root_below_one(x):  # type: ignore[no-untyped-def]
    return 1 / np.cbrt(x)


@DeviceFunction
def _root_below_one(x):  # type: ignore[no-untyped-def]
    return 1 / math.sqrt(x)


@DeviceFunction
def _below_one(x):  # type: ignore[no-untyped-def]
    return 1 / x


@DeviceFunction
def _sine_of_pi(x):  # type: ignore[no-untyped-def]
    # The remainder first, so that large x keep their digits.
    return math.sin(math.pi * math.fmod(x, 2.0))


@DeviceFunction
def _cosine_of_pi(x):  # type: ignore[no-untyped-def]
    return math.cos(math.pi * math.fmod(x, 2.0))


@DeviceFunction
def _normal_distribution(x):  # type: ignore[no-untyped-def]
    return 0.5 * math.erfc(-x / math.sqrt(2.0))


@DeviceFunction
def _half_away_from_zero(x):  # type: ignore[no-untyped-def]
    whole = np.trunc(x)
    return whole + np.copysign(1.0, x) if builtins.abs(x - whole) >= 0.5 else whole


@DeviceFunction
def _saturate(x):  # type: ignore[no-untyped-def]
    return builtins.min(builtins.max(x, np.float32(0)), np.float32(1)) if x == x else np.float32(0)


@DeviceFunction
def _plus(x, y):  # type: ignore[no-untyped-def]
    return x + y


@DeviceFunction
def _minus(x, y):  # type: ignore[no-untyped-def]
    return x - y


@DeviceFunction
def _times(x, y):  # type: ignore[no-untyped-def]
    return x * y


@DeviceFunction
def _divided(x, y):  # type: ignore[no-untyped-def]
    return x / y


@DeviceFunction
def _positive_difference(x, y):  # type: ignore[no-untyped-def]
    return x - y if x > y or x != x or y != y else x - x


@DeviceFunction
def _smaller(x, y):  # type: ignore[no-untyped-def]
    return builtins.min(x, y)


@DeviceFunction
def _larger(x, y):  # type: ignore[no-untyped-def]
    return builtins.max(x, y)


@DeviceFunction
def _size(x):  # type: ignore[no-untyped-def]
    return builtins.abs(x)


_ONE = {
    **{name: getattr(np, name) for name in ("cos", "cosh", "exp", "exp2", "expm1", "fabs", "floor", "ceil", "trunc")},
    **{name: getattr(np, name) for name in ("log", "log10", "log1p", "log2", "sin", "sinh", "sqrt", "tan", "tanh")},
    **{name: getattr(np, name.replace("a", "arc", 1)) for name in ("acos", "acosh", "asin", "asinh", "atan", "atanh")},
    "cbrt": np.cbrt,
    "rint": np.rint,
    "nearbyint": np.rint,
    "round": _half_away_from_zero,
    "erf": math.erf,
    "erfc": math.erfc,
    "tgamma": math.gamma,
    "lgamma": math.lgamma,
    "normcdf": _normal_distribution,
    "exp10": _exp10,
    "rcbrt": _cube_root_below_one,
    "rsqrt": _root_below_one,
    "sinpi": _sine_of_pi,
    "cospi": _cosine_of_pi,
}
_TWO = {
    "atan2": np.arctan2,
    "copysign": np.copysign,
    "fmod": math.fmod,
    "hypot": np.hypot,
    "nextafter": np.nextafter,
    "pow": builtins.pow,
    "fmax": np.fmax,
    "fmin": np.fmin,
    "fdim": _positive_difference,
}
_FAST = ("cos", "exp", "exp10", "log", "log10", "log2", "sin", "tan")

for _name, _function in _ONE.items():
    globals()[_name] = _of_one(_function, np.float64, np.float64)
    globals()[f"{_name}f"] = _of_one(_function, np.float32, np.float32)
for _name, _function in _TWO.items():
    globals()[_name] = _of_two(_function, np.float64)
    globals()[f"{_name}f"] = _of_two(_function, np.float32)
for _name in _FAST:
    globals()[f"fast_{_name}f"] = globals()[f"{_name}f"]
fast_powf = globals()["powf"]
fast_fdividef = _of_two(_divided, np.float32)
saturatef = _of_one(_saturate, np.float32, np.float32)
fma, fmaf = _of_three(_fma, np.float64), _of_three(_fma, np.float32)
fma_rn, fmaf_rn = fma, fmaf
dadd_rn, fadd_rn = _of_two(_plus, np.float64), _of_two(_plus, np.float32)
fsub_rn = _of_two(_minus, np.float32)
dmul_rn, fmul_rn = _of_two(_times, np.float64), _of_two(_times, np.float32)
ddiv_rn, fdiv_rn = _of_two(_divided, np.float64), _of_two(_divided, np.float32)
drcp_rn, frcp_rn = _of_one(_below_one, np.float64, np.float64), _of_one(_below_one, np.float32, np.float32)
dsqrt_rn, fsqrt_rn = globals()["sqrt"], globals()["sqrtf"]
frsqrt_rn = globals()["rsqrtf"]
isnand, isnanf = _of_one(np.isnan, np.float64, np.int32), _of_one(np.isnan, np.float32, np.int32)
isinfd, isinff = _of_one(np.isinf, np.float64, np.int32), _of_one(np.isinf, np.float32, np.int32)
isfinited, finitef = _of_one(np.isfinite, np.float64, np.int32), _of_one(np.isfinite, np.float32, np.int32)
signbitd, signbitf = _of_one(np.signbit, np.float64, np.int32), _of_one(np.signbit, np.float32, np.int32)
abs, llabs = _of_one(_size, np.int32, np.int32), _of_one(_size, np.int64, np.int64)
min, llmin, umin, ullmin = (_of_two(_smaller, kind) for kind in (np.int32, np.int64, np.uint32, np.uint64))
max, llmax, umax, ullmax = (_of_two(_larger, kind) for kind in (np.int32, np.int64, np.uint32, np.uint64))
brev, brevll = _of_one(_brev, np.uint32, np.int32), _of_one(_brev, np.uint64, np.int64)
popc, popcll = _of_one(_popc, np.int32, np.int32), _of_one(_popc, np.int64, np.int32)
clz, clzll = _of_one(_clz, np.int32, np.int32), _of_one(_clz, np.int64, np.int32)
ffs, ffsll = _of_one(_ffs, np.int32, np.int32), _of_one(_ffs, np.int64, np.int32)
int2float_rn, uint2float_rn = _of_one(np.float32, np.int32, np.float32), _of_one(np.float32, np.uint32, np.float32)
int2double_rn, double2float_rn = _of_one(np.float64, np.int32, np.float64), _of_one(np.float32, np.float64, np.float32)
float2int_rz, double2int_rz = _of_one(np.trunc, np.float32, np.int32), _of_one(np.trunc, np.float64, np.int32)
float2int_rn, double2int_rn = _of_one(np.rint, np.float32, np.int32), _of_one(np.rint, np.float64, np.int32)
float2int_rd, float2int_ru = _of_one(np.floor, np.float32, np.int32), _of_one(np.ceil, np.float32, np.int32)
