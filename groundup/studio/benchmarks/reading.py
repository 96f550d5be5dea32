"""A results file of `groundup bench`, `race` or `profile`, or a GPU report, as one kind of Results.

read(text, name)    the Results in a file's text, through the strict reader of its kind

A profile's operations become rows of the kind "profile", so that the page shows and compares them as any others.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from groundup import race_file
from groundup.studio.benchmarks import gpu
from shared.bench.measuring.rows import BenchRow
from shared.bench.on_gpu import gpu_record
from shared.bench.records import document as bench_file
from shared.bench.records.document import Results
from shared.bench.records.schema import shown
from shared.profile import document as profile_file
from shared.profile.step_profile import Profile, Timed

PROFILE = "profile"
"""The kind of a row that is an operation inside a training step."""

VERSIONS = {
    bench_file.KIND: (bench_file.SCHEMA,),
    race_file.KIND: (1,),
    profile_file.KIND: (profile_file.SCHEMA,),
    gpu_record.KIND: gpu.VERSIONS,
}
"""What a file's "kind" may be, and the versions of its format that are read."""


def read(text: bytes, name: str) -> Results:
    """What a file holds. Raises ValueError, with the file's name and what is wrong with it, for any other file."""
    document = bench_file.object_of(text, name)
    kind = document.get("kind")
    if kind == profile_file.KIND:
        return of_profile(profile_file.results_of(document, name))
    if kind == race_file.KIND:
        return race_file.results_of(document, name)
    if kind == gpu_record.KIND:
        return gpu.of_report(document, name)
    if kind != bench_file.KIND:
        known = ", ".join(f"`{each}`" for each in VERSIONS)
        raise ValueError(f"{name}: expected a results file of {known}; got kind {shown(kind)}")
    return bench_file.results_of(document, name)


def of_profile(profiles: profile_file.Results) -> Results:
    """A profile as rows: the plain step of each stage, and each operation inside of it."""
    rows = [row for each in profiles.profiles for row in (_step(each), *_operations(each))]
    return Results(rows, (), profiles.environment, unavailable=profiles.unavailable, command=profiles.command)


def _step(profile: Profile) -> BenchRow:
    return _row(profile, "the whole step", measurement=profile.step)


def _operations(profile: Profile) -> list[BenchRow]:
    return [_operation(profile, each) for each in profile.operations]


def _operation(profile: Profile, each: Timed) -> BenchRow:
    operation, peak = each.operation, None
    if each.share_of_peak and each.gflops:
        peak = 1e9 * each.gflops / each.share_of_peak
    layer = f"layer {operation.layer}: " if operation.layer else ""
    return _row(
        profile,
        f"{layer}{operation.name}, {operation.direction}",
        measurement=each.measurement if each.seconds else None,
        skipped=None if each.seconds else "too short for the clock",
        shape=operation.input_shape,
        flops=operation.flops,
        bytes=operation.bytes,
        peak=peak,
    )


def _row(profile: Profile, part: str, **more: Any) -> BenchRow:
    name = f"{profile.network}, batch {profile.batch}"
    common: Mapping[str, Any] = {
        "kind": PROFILE,
        "stage": profile.stage,
        "name": name,
        "part": part,
        "dtype": profile.dtype,
        "shape": (),
        "threads": profile.threads,
        "emulated": profile.emulated,
        "clock": profile.clock,
    }
    return BenchRow(**{**common, **more})
