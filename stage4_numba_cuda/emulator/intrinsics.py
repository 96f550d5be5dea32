"""The names that have a meaning inside a kernel only: `cuda.threadIdx`, `cuda.syncthreads`, `cuda.atomic.add`.

To Python they are inert objects that know their own path. The compiler meets them when it looks up the names of
a kernel (names.py) and puts something in their place; called outside a kernel they say so.
"""

from __future__ import annotations

from .errors import KernelError

INDEX = ("threadIdx", "blockIdx", "blockDim", "gridDim")
AXES = ("x", "y", "z")
ARRAYS = ("shared.array", "local.array", "const.array_like")
FENCES = ("threadfence", "threadfence_block", "threadfence_system", "nanosleep")

#: Every thread of the block meets here.
BARRIERS = ("syncthreads", "syncthreads_count", "syncthreads_and", "syncthreads_or")
#: The lanes of a warp meet here, or look at who is there.
SHUFFLES = ("shfl_sync", "shfl_up_sync", "shfl_down_sync", "shfl_xor_sync")
VOTES = ("all_sync", "any_sync", "eq_sync", "ballot_sync", "match_any_sync", "match_all_sync")
WARP = (*SHUFFLES, *VOTES, "syncwarp", "activemask")
#: What threads do together: a kernel is cut into pieces at these.
COLLECTIVES = (*BARRIERS, *WARP)

BITS = ("popc", "clz", "ffs", "brev", "fma", "selp", "cbrt", "rsqrt", "lanemask_lt")
ATOMICS = (
    *("add", "sub", "max", "min", "nanmax", "nanmin", "inc", "dec"),
    *("and_", "or_", "xor", "exch", "cas", "compare_and_swap"),
)
#: Names that numba-cuda has inside kernels and the emulator has not; asking for one is answered with a sentence.
NOT_SUPPORTED = ("cg", "fp16", "libdevice", "bf16", "vote_sync_intrinsic", "shfl_sync_intrinsic", "syncthreads_id")


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
        raise KernelError(
            f"cuda.{self.path}() means something inside a @cuda.jit kernel only; it was called outside one"
        )

    def __repr__(self) -> str:
        return f"cuda.{self.path}"


def intrinsics() -> dict[str, Intrinsic]:
    """Every intrinsic by its first name: what `cuda` gets as attributes."""
    plain = ("grid", "gridsize", "laneid", "warpsize", *FENCES, *COLLECTIVES, *BITS, *NOT_SUPPORTED)
    return {
        **{name: Intrinsic(name) for name in plain},
        **{name: Intrinsic(name, AXES) for name in INDEX},
        "shared": Intrinsic("shared", ("array",)),
        "local": Intrinsic("local", ("array",)),
        "const": Intrinsic("const", ("array_like",)),
        "atomic": Intrinsic("atomic", ATOMICS),
    }
