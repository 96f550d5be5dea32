"""Profiles made by hand, for the tests of the views: small kernels whose numbers one can work out in the head."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

from cuda_emulator.lens.profile import (
    Access,
    Branch,
    Collective,
    LineOperations,
    Party,
    Phase,
    Profile,
    Race,
    Request,
    Reuse,
    Roofline,
    Static,
    Uninitialised,
)
from cuda_emulator.trace import NotTraced, Site

FILE = "kernels.py"


def site(number, line, kind, array, text, function="kernel", space="global"):
    return Site(number, FILE, line, 4, kind, array, text, function, space)


def request(indices, size=4, columns=None, lanes=None, warp=0):
    """A request whose lanes touch the elements at these linear indices; `columns`: of a two-dimensional array."""
    lanes = tuple(range(len(indices))) if lanes is None else lanes
    shown = tuple((i,) if columns is None else divmod(i, columns) for i in indices)
    return Request(0, warp, lanes, tuple(i * size for i in indices), size, shown)


def _distinct(values):
    return len(set(values))


def global_access(place, one, times=1):
    """`times` requests like this one, with the sectors counted here, apart from the package."""
    used = _distinct(a + b for a in one.addresses for b in range(one.size))
    sectors = _distinct((a + b) // 32 for a in one.addresses for b in range(one.size))
    broadcast = times if len(one.lanes) > 1 and _distinct(one.addresses) == 1 else 0
    ideal = -(-used // 32)
    counts = {
        "sectors": times * sectors,
        "ideal_sectors": times * ideal,
        "most_sectors": sectors,
        "broadcasts": broadcast,
    }
    return Access(
        place, place.array, "global", place.kind, times, times * len(one.lanes), times * used, example=one, **counts
    )


def shared_access(place, one, times=1):
    """The same for shared memory: each half warp of an 8-byte type is a pass of its own."""
    group = {8: 16, 16: 8}.get(one.size, 32)
    passes = []
    for start in range(0, 32, group):
        banks = defaultdict(set)
        for lane, address in zip(one.lanes, one.addresses, strict=True):
            if start <= lane < start + group:
                for word in range(address // 4, (address + one.size + 3) // 4):
                    banks[word % 32].add(word)
        if banks:
            passes.append(max(len(words) for words in banks.values()))
    used = _distinct(a + b for a in one.addresses for b in range(one.size))
    counts = {"wavefronts": times * sum(passes), "ideal_wavefronts": times * len(passes), "most_ways": max(passes)}
    broadcast = times if len(one.lanes) > 1 and _distinct(one.addresses) == 1 else 0
    lanes = times * len(one.lanes)
    counts["broadcasts"] = broadcast
    return Access(place, place.array, "shared", place.kind, times, lanes, times * used, example=one, **counts)


def profile(source, /, **fields):
    """A profile of one traced block of one warp, nothing in it but what is given."""
    empty = {
        "kernel": "kernel",
        "source": [(FILE, 10, source)],
        "arguments": [("a", "float32 (1024,)"), ("n", "1024")],
        "argument_types": ["array(float32, 1d, C)", "int64"],
        "grid": (1, 1, 1),
        "block": (32, 1, 1),
        "blocks": [0],
        "grid_blocks": 1,
        "events": 0,
        "accesses": [],
        "branches": [],
        "collectives": [],
        "phases": [],
        "reuse": [],
        "operations": [],
        "races": [],
        "uninitialised": [],
    }
    return Profile(**(empty | fields))


def coalesced():
    """32 lanes read 32 neighbours and write them: 4 sectors each, no more than it takes."""
    load, store = site(0, 13, "load", "a", "a[i]"), site(1, 13, "store", "out", "out[i]")
    guard = site(2, 12, "branch", "", "i < n", space="")
    return profile(
        ["@cuda.jit", "def kernel(a, out, n):", "    if (i := cuda.grid(1)) < n:", "        out[i] = 2 * a[i]"],
        grid=(1024, 1, 1),
        blocks=[0, 341, 682, 1023],
        grid_blocks=1024,
        events=388,
        accesses=[global_access(load, request(range(32)), 4), global_access(store, request(range(32)), 4)],
        branches=[Branch(guard, 4, 1, 128, 112, (tuple(range(16)), tuple(range(16, 32))))],
        phases=[Phase(0, {0: 4, 1: 4}, 4)],
        reuse=[
            Reuse("a", "global", 32768, 128, 128, 0, 0, 1, 1, 1),
            Reuse("out", "global", 32768, 128, 0, 128, 0, 0, 0, 0),
        ],
        operations=[LineOperations(FILE, 13, 128, 0, 0)],
        static=Static("9.0", 12, 0, 0, 32, 32, 0.5, "blocks", "numba-cuda's compiler"),
        roofline=Roofline(
            "H100", "float32", 0.125, 20.0, "memory", 2.5e-6, 4.2e11, 6.7e13, 3.35e12, "NVIDIA's data sheet"
        ),
    )


def strided(stride=32, size=4):
    """32 lanes read every `stride`-th element: a sector each where the stride is 8 floats or more."""
    load = site(0, 12, "load", "a", f"a[i * {stride}]")
    access = global_access(load, request([stride * i for i in range(32)], size), 1)
    source = ["@cuda.jit", "def kernel(a, out, n):", f"    out[i] = a[i * {stride}]"]
    return profile(source, accesses=[access], phases=[Phase(0, {0: 1}, 1)], events=32)


def conflicting(pitch=32):
    """A warp reads a column of a shared tile with rows of `pitch` floats: 32-way at 32, none at 33."""
    store = site(0, 12, "store", "tile", "tile[y, x]", space="shared")
    load = site(1, 14, "load", "tile", "tile[x, y]", space="shared")
    barrier = site(2, 13, "barrier", "", "cuda.syncthreads()", space="")
    row = shared_access(store, request(range(32), columns=pitch), 32)
    column = shared_access(load, request([pitch * i for i in range(32)], columns=pitch), 32)
    source = [
        "@cuda.jit",
        "def kernel(a):",
        "    tile[y, x] = a[y, x]",
        "    cuda.syncthreads()",
        "    a[x, y] = tile[x, y]",
    ]
    return profile(
        source,
        block=(32, 32, 1),
        accesses=[row, column],
        collectives=[Collective(barrier, 32, 1024)],
        phases=[Phase(0, {0: 32}, 32), Phase(1, {1: 32}, 32)],
        shared_bytes=4 * 32 * pitch,
        events=3072,
    )


def racing():
    """conflicting(), the barrier forgotten: a thread reads what another may not have written yet."""
    made = conflicting()
    store, load = (each.site for each in made.accesses)
    races = [
        Race("read after write", "tile", "shared", (0, 5), Party(store, 0, 5), Party(load, 0, 160), 992),
        Race("write after write", "a", "global", (0, 0), Party(store, 0, 1), Party(store, 1, 1), 3),
    ]
    unwritten = [Uninitialised(load, "tile", (7, 31), 0, 40, 12)]
    return replace(
        made, races=races, uninitialised=unwritten, collectives=[], grid=(2, 1, 1), blocks=[0, 1], grid_blocks=2
    )


def faulty():
    """An index beyond the end stopped the run; the names would be markup if a view forgot to escape them."""
    made = strided()
    arguments = [("<b>a</b>", "float32 (4,) & more"), ("[red]n[/red]", "7")]
    missing = [NotTraced(FILE, 11, "x[:] = <y>", "a slice & its copy")]
    text = "IndexError: a[992] is outside a of shape (4,) <thread 31>"
    source = [
        (
            FILE,
            10,
            ["@cuda.jit", "def kernel(a, out, n):  # <script>alert(1)</script>", "    out[i] = a[i * 32]  # [bold]"],
        )
    ]
    return replace(
        made,
        kernel="<x>&'\"",
        source=source,
        arguments=arguments,
        fault=text,
        fault_line=12,
        not_traced=missing,
        unjudged=["array <a> overlaps b"],
    )


def empty():
    """A kernel that touches nothing."""
    return profile(["@cuda.jit", "def kernel():", "    pass"], arguments=[], argument_types=[])


def looping(rounds=16):
    """Two phases again and again, as in a tiled matmul, and a last one that stores."""
    sites = [
        site(n, 12 + n, kind, array, f"{array}[i]")
        for n, (kind, array) in enumerate([("load", "a"), ("store", "tile"), ("load", "tile"), ("store", "c")])
    ]
    one = request(range(32))
    accesses = [
        global_access(sites[0], one, 8 * rounds),
        shared_access(sites[1], one, 8 * rounds),
        shared_access(sites[2], one, 64 * rounds),
        global_access(sites[3], one, 8),
    ]
    phases = []
    for each in range(rounds):
        phases += [Phase(2 * each, {0: 8, 1: 8}, 8), Phase(2 * each + 1, {2: 64}, 8)]
    phases.append(Phase(2 * rounds, {3: 8}, 8))
    barriers = [Collective(site(4, 16, "barrier", "", "cuda.syncthreads()", space=""), 16 * rounds, 512 * rounds)]
    source = ["@cuda.jit", "def kernel(a, c):", *(f"    {each.text}" for each in sites), "    cuda.syncthreads()"]
    return profile(source, block=(256, 1, 1), accesses=accesses, phases=phases, collectives=barriers, shared_bytes=1024)


EVERY = {
    "coalesced": coalesced,
    "strided": strided,
    "conflicting": conflicting,
    "racing": racing,
    "faulty": faulty,
    "empty": empty,
    "looping": looping,
}
