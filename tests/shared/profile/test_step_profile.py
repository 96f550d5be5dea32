"""What becomes of a profile: what bounds an operation, the table, the trace that Perfetto opens, the file."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import jsonschema
import pytest
from rich.console import Console

from shared.bench.measuring.timing import summarise
from shared.profile.bound import bound_of
from shared.profile.document import Results, as_document, results_of, schema
from shared.profile.gain import first_to_mend
from shared.profile.operations import Operation
from shared.profile.roofs import Roofs
from shared.profile.step_profile import Bound, Noted, Profile, Timed
from shared.profile.table import NARROW, sentences, table, title
from shared.profile.trace import trace

GIGA = 10**9
ROOFS = Roofs("stage3_c", 2, {"float32": 50e9}, ((1_000, 100e9), (10_000, 40e9), (10**8, 10e9)), ((10**8, 8e9),))
CONV = Operation("conv 5x5 + bias", "1", "forward", (2, 1, 8, 8), (2, 6, 8, 8), 38_400, 4_000, kind="conv")
SGD = Operation("SGD", "1", "update", (156,), (156,), 312, 1_872, calls=2, kind="update")


def operation(flops: int, size: int) -> Operation:
    return Operation("dense + bias", "1", "forward", (2, 3), (2, 5), flops, size)


def bound(seconds: float, flops: int, size: int, **more: Any) -> Bound:
    how: dict[str, Any] = {"dtype": "float32", "threads": 2, "roofs": ROOFS, "call": None, "interpreted": False}
    return bound_of(operation(flops, size), seconds, **how | more)


def test_arithmetic_near_the_peak_of_all_threads_is_bound_by_compute() -> None:
    found = bound(1.0, 80 * GIGA, 10**8)  # of 2 times 50
    assert (found.kind, found.roof, found.share) == ("compute", "peak", pytest.approx(0.8))


def test_bytes_near_the_roof_that_holds_them_are_bound_by_that_memory() -> None:
    small = bound(0.5e-6, 0, 9_000)
    assert (small.kind, small.roof, small.share) == ("memory", "9.77 KiB cache", pytest.approx(0.45))
    large = bound(1.0, 0, 6 * GIGA)
    assert (large.kind, large.roof, large.share) == ("memory", "memory", pytest.approx(0.6))
    assert bound(1.0, 0, 6 * GIGA, threads=1).share == pytest.approx(0.75)


@pytest.mark.parametrize(
    ("more", "reason"),
    [({}, "latency"), ({"interpreted": True}, "interpreter"), ({"call": 0.2}, "calls"), ({"call": 0.05}, "latency")],
)
def test_what_is_far_below_both_roofs_says_what_it_spends_its_time_on(more: dict[str, Any], reason: str) -> None:
    found = bound(1.0, GIGA, GIGA, **more)
    assert (found.kind, found.roof, found.share) == ("neither", reason, pytest.approx(0.1))


def profile(**more: Any) -> Profile:
    times = {CONV: [10e-6, 11e-6, 12e-6], SGD: [1e-6, 1e-6, 1e-6]}
    timed = [
        Timed(each, summarise(samples), summarise(samples).median / 20e-6, 0.07, Bound("compute", 0.5, "peak"))
        for each, samples in times.items()
    ]
    spans = [(2e-6, 11e-6), (14e-6, 1e-6)]
    own: dict[str, Any] = {
        "stage": "stage3_c",
        "network": "lenet5",
        "batch": 2,
        "dtype": "float32",
        "threads": 2,
        "emulated": False,
        "clock": "wall",
        "step": summarise([20e-6] * 3),
        "noted_step": summarise([21e-6] * 3),
        "between": summarise([8e-6] * 3),
        "notes": 3,
        "note_seconds": 25e-9,
        "operations": timed,
        "timeline": Noted(21e-6, spans),
    }
    return Profile(**own | more)


def test_a_profile_survives_the_file_and_fits_its_schema() -> None:
    results = Results([profile()], [ROOFS, Roofs()], {"cpu": "a"}, "groundup profile 3", {"stage2_numpy": "why"})
    document = json.loads(json.dumps(as_document(results)))
    jsonschema.Draft202012Validator.check_schema(schema())
    jsonschema.Draft202012Validator(schema()).validate(document)
    read = Profile.from_dict(document["profiles"][0])
    assert read.as_dict() == profile().as_dict()
    assert [Roofs.from_dict(each) for each in document["roofs"]] == [ROOFS, Roofs()]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"kind": "groundup race"}, 'profile.json is no results file of `groundup profile`.* got "groundup race"'),
        ({"roofs": [{"on": 1}]}, r"profile.json: roofs\[0\].threads: is missing"),
        (
            {"roofs": [{**ROOFS.as_dict(), "bandwidth": [[1]]}]},
            r"roofs\[0\].bandwidth\[0\]: expected two numbers, got \[1\]",
        ),
    ],
)
def test_another_document_is_refused_with_its_name_and_the_place(change: dict[str, Any], said: str) -> None:
    document = json.loads(json.dumps(as_document(Results([profile()], [ROOFS], {}))))
    with pytest.raises(ValueError, match=said):
        results_of({**document, **change}, "profile.json")


def test_a_timeline_that_lacks_an_operation_is_refused() -> None:
    document = json.loads(json.dumps(as_document(Results([profile()], [], {}))))
    document["profiles"][0]["timeline"]["spans"] = []
    with pytest.raises(
        ValueError, match=r"profiles\[0\].timeline.spans: expected one for each of \d operations, got 0"
    ):
        results_of(document, "profile.json")


def test_the_trace_has_a_track_for_each_stage_with_its_operations_inside_the_step() -> None:
    document = trace([profile(), profile(stage="stage4_numba_cuda", emulated=True)])
    assert json.loads(json.dumps(document)) == document
    events = document["traceEvents"]
    assert {event["ph"] for event in events} == {"M", "X"}
    names = {event["args"]["name"] for event in events if event["name"] == "process_name"}
    assert names == {"stage 3: C", "stage 4: CUDA, emulated on the CPU: not a GPU's times"}
    for process in (3, 4):
        slices = [event for event in events if event["ph"] == "X" and event["pid"] == process]
        whole, *inside = slices
        assert (whole["ts"], whole["dur"]) == (0.0, pytest.approx(21.0))
        assert [(each["name"], each["ts"], each["dur"]) for each in inside] == [
            ("conv 5x5 + bias", pytest.approx(2.0), pytest.approx(11.0)),
            ("SGD", pytest.approx(14.0), pytest.approx(1.0)),
        ]
        assert len({each["tid"] for each in slices}) == 1
        assert inside[0]["args"]["flops"] == 38_400


def printed(each: Profile, width: int) -> str:
    console = Console(width=width, file=None)
    with console.capture() as captured:
        console.print(table(each, width))
    return captured.get()


def test_a_wide_table_has_everything_and_a_narrow_one_fits_eighty_columns() -> None:
    wide, narrow = printed(profile(), 180), printed(profile(), 80)
    for word in ("2 x 1 x 8 x 8 → 2 x 6 x 8 x 8", "forward", "55%", "0.0384", "compute"):
        assert word in wide
    assert "2 x 1 x 8 x 8" not in narrow
    assert "…" not in narrow
    assert max(map(len, narrow.splitlines())) <= 80 < NARROW
    assert "between the operations" in narrow


def test_the_sentences_say_whether_it_adds_up_and_what_listening_costs() -> None:
    whole, cost, *_ = sentences(profile())
    assert "add up to 12 µs, 60 % of the step as it is when nobody listens (20 µs" in whole
    assert whole.endswith("with 8 µs between them it is 100 %.")
    assert cost.startswith("Listening: 3 readings of the clock of 25 ns, 0.37 % of the step; ")
    assert cost.endswith("a noted step took 5.0 % longer than a plain one.")
    quick = replace(profile(), noted_step=replace(profile().noted_step, median=profile().step.median * 0.9))
    assert list(sentences(quick))[1].endswith("a noted step took 10.0 % less time than a plain one.")
    assert "not the times of a GPU" in title(profile(stage="stage4_numba_cuda", emulated=True))


def test_what_to_mend_first_is_what_shortens_the_step_most() -> None:
    assert first_to_mend([90, 30, 2], [88, 10, 0.01], 130) == (1, 110)  # neither the slowest nor the least efficient
    assert first_to_mend([90, 9, 12], [None, 4, 7], 120) == (1, 115)  # no roof is known of the slowest; then the first
    assert first_to_mend([5, 5, 5], [5, 6, None], 20) is None
    assert first_to_mend([], [], 1) is None
    with pytest.raises(ValueError, match="shorter"):
        first_to_mend([1, 2], [1], 3)
