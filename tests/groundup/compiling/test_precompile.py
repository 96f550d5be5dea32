"""What `groundup bench --quick` compiles beforehand on a GPU: all that it launches there, side by side."""

import json
import sys
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from groundup import bench_plan
from groundup.compiling import precompile
from groundup.compiling.check import CompilerMissing
from groundup.compiling.precompile import DeviceWorker, Kernel, prepare
from groundup.kernels.launched import CHECK, KNOWN, QUICK, REPORT
from shared.bench.running import plan as planning
from shared.bench.running.plan import PASSES, QUICK_PASSES_ON_GPU, Bench, Plan, jobs
from shared.contract import STAGES
from shared.machine import processes
from stage4_numba_cuda.backend import BACKEND
from tests.wide import WIDE, wide

NETWORKS = ("networks", "network_training")
QUICK_PLAN = Plan(stages=tuple(STAGES), quick=True)
SMALL = [Kernel("stage4_numba_cuda.kernels", "dense.add_bias", "T[2] T[1]", dtype) for dtype in ("float32", "float64")]


def pretend_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precompile, "stage_facts", lambda name: {"backend": "gpu"})


# The list


OF_CHECK_AND_REPORT = {part: names for part, names in REPORT.items() if part not in NETWORKS} | {"check": CHECK}


@wide
@pytest.mark.skipif(not WIDE, reason="five rehearsals take minutes: make test-wide has them")
@pytest.mark.skipif(BACKEND.name != "emulator", reason="the rehearsal is on the emulator")
@pytest.mark.parametrize(
    ("what", "listed"),
    [
        ("bench", {part: names for part, names in QUICK.items() if names}),
        ("model", {part: REPORT[part] for part in NETWORKS}),
        ("report", OF_CHECK_AND_REPORT),
    ],
    ids=["bench", "model", "report"],
)
def test_a_list_is_what_a_rehearsal_launches(what: str, listed: dict[str, Any]) -> None:
    parts = listed if what == "report" else ()
    found: dict[str, set[str]] = {}
    for multiprocessors in (40, 68, 108, 132, 144):
        order = {"plan": Plan((STAGES[3],), quick=True).as_dict(), "multiprocessors": multiprocessors}
        command = [sys.executable, "-m", f"tests.groundup.compiling.{what}_rehearsal", str(multiprocessors), *parts]
        done = processes.run(command, 600, text=json.dumps(order))
        assert done.code == 0, done.errors
        answer = json.loads(done.output)
        assert what != "bench" or answer.pop("rows") == 58  # of one pass on stage 4, without other processes
        for part, names in answer.get("kernels", answer).items():
            found.setdefault(part, set()).update(names)
    launched = {part: names for part, names in found.items() if names or what != "bench"}
    assert launched == {part: set(names) for part, names in listed.items()}


def test_every_kernel_of_the_list_is_in_the_catalogue() -> None:
    assert {name for names in QUICK.values() for name in names} <= set(KNOWN)
    assert set(QUICK) <= {job.part for job in jobs(QUICK_PLAN)}


def test_each_kernel_is_compiled_once_and_the_largest_first(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend_gpu(monkeypatch)
    found = precompile.kernels_of(QUICK_PLAN)
    assert len(found) == len(set(found)) == len({name for names in QUICK.values() for name in names})
    assert "persistent" in found[0].kernel
    assert found[-1].package == "shared.bench.measuring"


def test_a_known_network_has_its_kernels_compiled_in_every_run(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend_gpu(monkeypatch)
    steps, training = ({KNOWN[name][0].kernel for name in REPORT[part]} for part in NETWORKS)
    for only, expected in ((("inference",), steps), (("training",), training), (("memory",), set())):
        found = precompile.kernels_of(Plan(tuple(STAGES), only, model="lenet5"))
        assert {kernel.kernel for kernel in found} == expected
        assert len(found) == len(set(found))


def test_every_kernel_that_the_report_launches_is_compiled_once() -> None:
    found = precompile.of_report([*precompile.OF_THE_REPORT, "launches"])
    assert len(found) == len(set(found)) == len({name for names in precompile.OF_THE_REPORT.values() for name in names})
    assert found[0].kernel.startswith("persistent.")  # which takes longest
    steps = set(precompile.of_report(["steps"]))
    assert set(found[: len(steps)]) == steps  # if the time is short, those of the last parts are left
    assert precompile.of_report(["device", "launches", "suite"]) == []
    assert {kernel.needs for kernel in found} >= {(7, 5), (8, 0)}


def test_a_check_has_the_kernels_of_its_dtype_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    assert precompile.of_check(STAGES, None) == [] or BACKEND.name == "gpu"
    pretend_gpu(monkeypatch)
    both = precompile.of_check(STAGES, None)
    assert len(both) == len(set(CHECK))
    assert {kernel.dtype for kernel in both} == {"float32", "float64"}
    assert {kernel.dtype for kernel in precompile.of_check(STAGES, "float32")} == {"float32"}
    assert precompile.of_check(STAGES[:3], None) == []


# Side by side


class Asked:
    """Processes that answer at once, and note what they were asked."""

    def __init__(self, missing: str = "", wrong: str = "", too_new: str = "", endless: str = "") -> None:
        self.missing, self.wrong, self.too_new, self.endless = missing, wrong, too_new, endless
        self.killed = threading.Event()
        self.kernels: list[str] = []
        self.made = self.closed = 0
        self.lock = threading.Lock()

    def __call__(self) -> Any:
        with self.lock:
            self.made += 1
            first = self.made == 1
        calls = {"ask": self.ask, "kill": self.killed.set, "close": self.close}
        return SimpleNamespace(wait_until_ready=lambda: self.ready(first), **calls)

    def ready(self, first: bool) -> None:
        if self.missing and first:
            raise CompilerMissing(self.missing)

    def ask(self, question: dict[str, Any]) -> dict[str, Any]:
        with self.lock:
            self.kernels.append(question["kernel"])
        if question["kernel"] == self.endless:
            assert self.killed.wait(600)
            return {"error": "the compiler's process ended with exit code -9"}
        if question["kernel"] == self.too_new:
            return {"too new": True}
        return {"error": "TypingError: no"} if question["kernel"] == self.wrong else {}

    def close(self) -> None:
        with self.lock:
            self.closed += 1


def some(count: int) -> list[Kernel]:
    return [Kernel("package", f"kernel_{i}", "T[1]", "float32") for i in range(count)]


def test_every_kernel_is_given_to_one_process() -> None:
    crew = Asked()
    done = prepare(some(20), crew, processes=3)
    assert sorted(crew.kernels) == sorted(kernel.kernel for kernel in some(20))
    assert (crew.made, crew.closed, done.compiled, done.failed) == (3, 3, 20, ())
    assert done.line().startswith("20 kernels compiled or found on disk beforehand, in ")


@pytest.mark.parametrize(
    ("count", "cores", "memory", "made"),
    [
        (30, 64, 81559, 16),
        (30, 64, 12282, 11),
        (30, 64, None, 8),
    ],
)
def test_there_are_no_more_processes_than_work_cores_or_memory(
    count: int, cores: int, memory: int | None, made: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(precompile.gpu, "free_memory", lambda: memory)
    crew = Asked()
    prepare(some(count), crew, processes=cores)
    assert crew.made == made


def test_a_kernel_that_does_not_compile_is_left_to_its_launch() -> None:
    done = prepare(some(5), Asked(wrong="kernel_2"), processes=2)
    assert (done.compiled, done.failed) == (4, ("kernel_2, TypingError: no",))
    assert "not 1 kernel, which will be when first launched: kernel_2, TypingError: no" in done.line()


def test_kernels_for_which_there_is_no_time_are_left_to_their_launch() -> None:
    crew = Asked(endless="kernel_2")
    done = prepare(some(6), crew, processes=1, seconds=0.5)
    assert (done.compiled, done.failed, done.left) == (2, (), 4)
    assert done.seconds < 300
    assert (crew.made, crew.closed) == (1, 1)
    said = "2 kernels compiled or found on disk beforehand, in "
    assert done.line().startswith(said)
    assert done.line().endswith(", all the time there was; 4 kernels will be when first launched")


@pytest.mark.skipif(BACKEND.name == "simulator", reason="Numba's simulator compiles nothing")
def test_an_older_device_than_a_kernel_needs_is_not_asked_to_compile_it() -> None:
    wanted = vars(SMALL[0]) | {"kernel": "dense.no_such"}
    assert precompile.compiled(wanted | {"needs": (99, 0)}) == {"too new": True}
    assert "no_such" in precompile.compiled(wanted)["error"]


def test_a_process_without_a_device_leaves_the_work_to_the_others() -> None:
    done = prepare(some(6), Asked(missing="the GPU is busy"), processes=2)
    assert (done.compiled, done.failed) == (6, ("the GPU is busy",))


@pytest.mark.skipif(BACKEND.name == "simulator", reason="Numba's simulator compiles nothing")
def test_processes_compile_for_the_backend_of_this_one() -> None:
    class Here(DeviceWorker):
        backend = BACKEND.name

    done = prepare([*SMALL, Kernel("stage4_numba_cuda.kernels", "dense.no_such", "T[1]", "float32")], Here, 1)
    assert done.compiled == 2
    assert len(done.failed) == 1
    assert done.failed[0] == "dense.no_such, NameError: name 'no_such' is not defined"


# Fewer measurements on a GPU


def test_a_quick_run_measures_a_gpu_in_float32(monkeypatch: pytest.MonkeyPatch) -> None:
    stages = [SimpleNamespace(name=name) for name in STAGES]
    monkeypatch.setattr(planning.gpu, "on_gpu", lambda stage: stage.name == STAGES[3])
    monkeypatch.setattr(planning, "is_emulated", lambda name: False)
    quick, full = (Bench(Plan(tuple(STAGES), quick=each), stages, None, 1) for each in (True, False))  # type: ignore[arg-type]
    assert [stage.name for stage in quick.stages_in("float64")] == list(STAGES[:3])
    assert len(quick.stages_in("float32")) == len(full.stages_in("float64")) == 4


@pytest.mark.parametrize(
    ("device", "quick", "asked", "passes"),
    [
        (True, True, None, QUICK_PASSES_ON_GPU),
        (True, False, None, PASSES),
        (False, True, None, PASSES),
        (True, True, 7, 7),
    ],
)
def test_a_quick_run_on_a_gpu_takes_fewer_passes(
    monkeypatch: pytest.MonkeyPatch, device: bool, quick: bool, asked: int | None, passes: int
) -> None:
    monkeypatch.setattr(bench_plan, "on_gpu", lambda stage: device)
    plan, _ = bench_plan.plan_for("2", None, "1", None, quick, asked, None)
    assert plan.passes == passes
