"""groundup check: tables or JSON for people and scripts, exit code 1 with a report that names the bug."""

import json
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from groundup import check as checking
from groundup.commands.check import check
from groundup.compiling.precompile import Kernel, Prepared
from groundup.progress_lines import as_it_goes
from shared import contract
from shared.architectures import mlp
from shared.checks.equivalence import LEVELS, check_stage
from shared.checks.gradients import COUNT, SIZES, GradientCheck, check_gradients
from tests.stages import USABLE_STAGES
from tests.wide import wide

app = typer.Typer(rich_markup_mode=None)
app.command()(check)


def run(*arguments: str) -> Any:
    return CliRunner().invoke(app, list(arguments), env={"COLUMNS": "100"})


@pytest.fixture(autouse=True)
def one_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trajectories of a single step, networks without images, and relu alone, for what the command makes of its
    findings; tests/shared/checks has the long."""

    def few(stage: contract.Stage, seed: int = 0) -> Iterator[GradientCheck]:
        return (check_gradients(stage, mlp(SIZES, "relu"), loss, seed=seed) for loss in contract.LOSSES)

    monkeypatch.setattr("groundup.check.check_stage", partial(check_stage, steps=1, images=False))
    monkeypatch.setattr("groundup.check.gradient_checks", few)
    monkeypatch.setattr("shared.checks.equivalence.ACTIVATIONS", ("relu",))


@pytest.fixture
def wrong_relu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stage 2 with the sign of one gradient flipped."""
    room = contract.load_stage("stage2_numpy").activations
    real = room.relu_backward

    def wrong(*args: Any, **kwargs: Any) -> Any:
        result = real(*args, **kwargs)
        return np.negative(result, out=result)

    monkeypatch.setattr(room, "relu_backward", wrong)


@wide
def test_on_a_gpu_the_kernels_are_compiled_side_by_side_before_the_first_comparison(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kernels = [Kernel("package", "kernel", "T[1]", "float64")]
    asked: list[Any] = []

    def of_check(stages: list[str], dtype: str | None) -> list[Kernel]:
        asked.append((stages, dtype))
        return kernels if "stage2_numpy" in stages else []

    def prepare(given: list[Kernel]) -> Prepared:
        asked.append(given)
        return Prepared(1, (), 2.0)

    monkeypatch.setattr("groundup.compiling.precompile.of_check", of_check)
    monkeypatch.setattr("groundup.compiling.precompile.prepare", prepare)
    result = run("2", "--dtype", "float64")
    assert result.exit_code == 0
    assert asked == [(["stage2_numpy"], "float64"), kernels]
    assert result.stderr.startswith("1 kernel compiled or found on disk beforehand, in 2")
    run("1", "--dtype", "float64")
    assert asked[2:] == [(["stage1_pure_python"], "float64")]  # nothing to compile


@wide
def test_all_stages_agree_and_those_that_are_missing_are_named() -> None:
    result = run()
    assert result.exit_code == 0, result.output
    assert "All agree." in result.stdout
    for name in contract.STAGES:
        short = name.partition("_")[0]
        if name in USABLE_STAGES:
            assert f"{short}, float64" in result.stdout
            if contract.is_emulated(name):
                assert f"not checked: {name} in float32: emulated kernels are compiled anew for it" in result.stdout
        elif name not in contract.available_stages():
            assert f"not checked: {name}: {name} is not installed" in result.stdout
        else:
            assert f"not checked: {name}: stage 3 " in result.stdout
    assert "not checked: stage1_pure_python in float32: the stage computes in float64" in result.stdout
    for level in ("op", "layer", "step", "trajectory"):
        assert f" {level} " in result.stdout


def test_json_is_one_document_with_every_level_and_gradient() -> None:
    result = run("2", "--dtype", "float64", "--json")
    assert result.exit_code == 0
    document = json.loads(result.stdout)
    assert document["ok"] is True
    assert document["reference"] == "stage1_pure_python"
    (report,) = document["equivalence"]
    assert (report["stage"], report["dtype"], report["ok"], report["failed_ops"]) == (
        "stage2_numpy",
        "float64",
        True,
        [],
    )
    assert [level["level"] for level in report["levels"]] == ["op", "layer", "step", "trajectory"]
    assert all(0 < level["worst"]["tolerances"] <= 1 and level["failed"] == 0 for level in report["levels"])
    checks = document["gradients"]["stage2_numpy"]
    assert [(c["activation"], c["loss"]) for c in checks] == [("relu", loss) for loss in contract.LOSSES]


def test_an_injected_bug_ends_in_exit_code_1_and_a_report_that_names_it(wrong_relu: None) -> None:
    result = run("2", "--dtype", "float64")
    assert result.exit_code == 1
    assert "All agree." not in result.stdout
    report = result.stderr.splitlines()
    assert report[0] == "stage2_numpy disagrees with stage1_pure_python in float64. First divergence:"
    assert report[1].startswith("  relu_backward, layer 2, index (")
    assert ": got " in report[1]
    assert ", expected " in report[1]
    assert "tolerances apart" in report[1]
    assert "stage2_numpy: 4 of 4 networks have a wrong gradient" in result.stderr
    assert "relu, " in report[-1]


@wide
def test_stage_2_can_be_the_reference() -> None:
    result = run("2", "--reference", "2", "--dtype", "float32", "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["reference"] == "stage2_numpy"


@wide
def test_the_full_check_passes_and_checks_more() -> None:
    quick, full = (json.loads(run("2", "--dtype", "float64", "--json", *extra).stdout) for extra in ((), ("--full",)))
    counts = [[level["checks"] for level in document["equivalence"][0]["levels"]] for document in (quick, full)]
    assert full["ok"] is True
    assert all(many > few for few, many in zip(counts[0][:3], counts[1][:3], strict=True))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["9"], "unknown stage '9'"),
        (["--reference", "fortran"], "unknown stage 'fortran'"),
        (["--dtype", "float16"], "unknown dtype 'float16'; choose one of float64, float32"),
        (["--seed", "-1"], "seed: expected a whole number of at least 0, got -1"),
        (["1", "--dtype", "float32"], "there is nothing to check: stage1_pure_python in float32"),
    ],
)
def test_a_mistake_is_an_error_that_says_what_is_wrong(arguments: list[str], message: str) -> None:
    error = run(*arguments).exception
    assert isinstance(error, ValueError)
    assert message in str(error)


@wide
def test_the_share_grows_within_a_level(monkeypatch: pytest.MonkeyPatch) -> None:
    def levels(stage: Any, reference: Any, dtype: str, on_level: Any, **_: Any) -> Any:
        for level in LEVELS:
            for share in (0.0, 0.25, 0.75):
                on_level(level, share)
        return check_stage(reference, reference, dtype)

    monkeypatch.setattr(checking, "check_stage", levels)
    monkeypatch.setattr(checking, "gradient_checks", lambda stage, seed: iter(range(COUNT)))
    told: list[tuple[str, float]] = []
    stage = contract.load_stage("numpy")
    checking.check([stage], contract.load_stage("1"), checking.Settings("float64"), {}, lambda *what: told.append(what))
    shares = [share for _, share in told]
    assert shares == sorted(shares)
    assert len(set(shares)) == len(shares)
    assert shares[0] == 0
    assert shares[-1] == 1
    assert len([what for what, _ in told if what.endswith("float64: step")]) == 3


def test_a_log_has_a_line_for_what_is_new_alone(capsys: pytest.CaptureFixture[str]) -> None:
    with as_it_goes("first", json=False) as say:
        for what, share in (("a", 0.0), ("a", 0.5), ("b", 0.6), ("b", 0.9)):
            say(what, share)
    assert [line.partition(" ")[0] for line in capsys.readouterr().out.splitlines()] == ["a", "b"]
