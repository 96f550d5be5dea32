"""The names that work inside a kernel only: `cuda.threadIdx`, `cuda.syncthreads`, `cuda.atomic.add`.

In Python each is an object that holds its own path and does nothing. The compiler finds these objects when it looks up
the names of a kernel (names.py), and replaces each by code. A call outside a kernel raises KernelError.
"""

from __future__ import annotations

from .errors import KernelError

INDEX = ("threadIdx", "blockIdx", "blockDim", "gridDim")
AXES = ("x", "y", "z")
ARRAYS = ("shared.array", "local.array", "const.array_like")
FENCES = ("threadfence", "threadfence_block", "threadfence_system", "nanosleep")

#: Every thread of the block waits here for the others.
BARRIERS = ("syncthreads", "syncthreads_count", "syncthreads_and", "syncthreads_or")
#: The lanes of a warp wait here for each other, or ask which lanes are active.
SHUFFLES = ("shfl_sync", "shfl_up_sync", "shfl_down_sync", "shfl_xor_sync")
VOTES = ("all_sync", "any_sync", "eq_sync", "ballot_sync", "match_any_sync", "match_all_sync")
WARP = (*SHUFFLES, *VOTES, "syncwarp", "activemask")
#: Operations that several threads execute together. The compiler cuts a kernel into pieces at these.
COLLECTIVES = (*BARRIERS, *WARP)

#: The group of all blocks of the launch, and its barrier: every thread of the grid waits there for the others.
THIS_GRID = "cg.this_grid"
GRID_BARRIER = f"{THIS_GRID}().sync"

BITS = ("popc", "clz", "ffs", "brev", "fma", "selp", "cbrt", "rsqrt", "lanemask_lt")
ATOMICS = (
    *("add", "sub", "max", "min", "nanmax", "nanmin", "inc", "dec"),
    *("and_", "or_", "xor", "exch", "cas", "compare_and_swap"),
)
#: Loads and stores with a hint for a device's caches. The emulator treats them as ordinary loads and stores.
LOADS = ("ldca", "ldcg", "ldcs", "ldcv", "ldlu")
STORES = ("stcg", "stcs", "stwb", "stwt")

#: The functions of cuda.fp16: what each computes of its arguments a, b and c, which are float16. The results of all but
#: the comparisons are rounded to float16.
_IN_FLOAT32 = ("sin", "cos", "tanh", "exp", "exp2", "log", "log2", "log10", "sqrt", "floor", "ceil", "trunc", "rint")
FP16 = {
    "hadd": "a + b",
    "hsub": "a - b",
    "hmul": "a * b",
    "hdiv": "a / b",
    "hneg": "-a",
    "habs": "abs(a)",
    "hfma": "np.float64(a) * np.float64(b) + np.float64(c)",  # exact before it is rounded
    "hmax": "np.fmax(np.float32(a), np.float32(b))",
    "hmin": "np.fmin(np.float32(a), np.float32(b))",
    "heq": "a == b",
    "hlt": "a < b",
    "hle": "a <= b",
    "hgt": "a > b",
    "hge": "a >= b",
    "hne": "abs(a - b) > 0",  # false where one is NaN
    **{f"h{name}": f"np.{name}(np.float32(a))" for name in _IN_FLOAT32},
    "hexp10": "np.float32(10) ** np.float32(a)",
    "hrcp": "np.float32(1) / np.float32(a)",
    "hrsqrt": "np.float32(1) / np.sqrt(np.float32(a))",
}

#: float32x4, float4: two to four numbers in one value.
VECTORS = tuple(
    f"{kind}{count}"
    for kinds, counts in (
        ([f"{kind}{bits}x" for kind in ("int", "uint") for bits in (8, 16, 32, 64)], (1, 2, 3, 4)),
        (("float32x", "float64x", "float", "double"), (1, 2, 3, 4)),
        ([sign + kind for sign in ("", "u") for kind in ("char", "short", "int", "long", "longlong")], (1, 2, 3, 4)),
    )
    for kind in kinds
    for count in counts
)

#: Names that numba-cuda supports inside kernels and the emulator does not, each with a replacement if there is one.
NOT_SUPPORTED = {
    **dict.fromkeys(("vote_sync_intrinsic", "shfl_sync_intrinsic", "syncthreads_id"), ""),
    **dict.fromkeys(("bf16", "bfloat16"), ": compute in float32"),
    **dict.fromkeys(VECTORS, ": use as many single numbers, or an array"),
    **dict.fromkeys(("Dim3", "dim3"), ": use a tuple of ints"),
}


class Intrinsic:
    """One name of the `cuda` namespace that kernels use, like `atomic.add`.

    path: the name below `cuda`
    """

    def __init__(self, path: str, members: tuple[str, ...] = ()) -> None:
        self.path = path
        self._members = members

    def __getattr__(self, name: str) -> Intrinsic:
        if name in self.__dict__.get("_members", ()):
            return Intrinsic(f"{self.path}.{name}")
        raise AttributeError(f"cuda.{self.path} has no {name!r}")

    def __call__(self, *arguments: object, **keywords: object) -> object:
        if self.path in NOT_SUPPORTED:
            raise KernelError(not_supported(self.path))
        raise KernelError(f"cuda.{self.path}() works inside a @cuda.jit kernel only; it was called outside one")

    def __repr__(self) -> str:
        return f"cuda.{self.path}"


def not_supported(path: str) -> str:
    """The error message for a part of cuda that the emulator does not support."""
    return f"cuda.{path} is not supported by the emulator" + NOT_SUPPORTED.get(path.split(".")[0].split("(")[0], "")


def intrinsics() -> dict[str, Intrinsic]:
    """{name: Intrinsic}: the attributes of the module `cuda` that work inside kernels only."""
    plain = ("grid", "gridsize", "laneid", "warpsize", *FENCES, *COLLECTIVES, *BITS, *LOADS, *STORES, *NOT_SUPPORTED)
    return {
        **{name: Intrinsic(name) for name in plain},
        **{name: Intrinsic(name, AXES) for name in INDEX},
        "shared": Intrinsic("shared", ("array",)),
        "local": Intrinsic("local", ("array",)),
        "const": Intrinsic("const", ("array_like",)),
        "atomic": Intrinsic("atomic", ATOMICS),
        "cg": Intrinsic("cg", ("this_grid",)),
        "fp16": Intrinsic("fp16", tuple(FP16)),
    }
