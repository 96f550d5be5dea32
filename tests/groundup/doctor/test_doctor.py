"""groundup doctor looking at a machine, and telling what it found; test_machines.py has what it concludes."""

import ast
import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from groundup import doctor
from groundup.commands import doctor as command
from groundup.doctor import Facts, Finding, report, rescue, survey
from groundup.doctor.facts import DEPENDENCIES, TOO_NEW_FOR_INTEL_MACS, Trial
from shared import contract
from shared.data import datasets
from shared.data.datasets import DataError
from shared.machine import environment, hardware, software
from shared.machine.processes import ROOT, finding_our_packages, run
from tests.stages import USABLE_STAGES
from tests.wide import wide


@pytest.fixture(scope="module")
def here() -> Facts:
    """This machine, looked at once."""
    return survey.gather()


def by_name(findings: list[Finding]) -> dict[str, Finding]:
    return {finding.about: finding for finding in findings}


def test_the_dependencies_are_those_of_pyproject() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    everywhere = [f"{name}>={oldest}" for name, oldest in DEPENDENCIES.items()]
    intel_mac = "sys_platform == 'darwin' and platform_machine == 'x86_64'"
    there = [f"{name}<{too_new}; {intel_mac}" for name, too_new in TOO_NEW_FOR_INTEL_MACS.items()]
    assert sorted(project["dependencies"]) == sorted(everywhere + there)


def test_this_machine_is_well(here: Facts) -> None:
    diagnosis = doctor.judge(here)
    assert diagnosis.ok, report.plain(diagnosis)
    found = by_name(diagnosis.findings)
    assert found["python"].text.startswith(f"{sys.version_info[0]}.{sys.version_info[1]}.")
    assert found["numpy"].text == software.installed_version("numpy")
    assert found["BLAS"].text.startswith(software.blas())
    assert found["emulator"].text.startswith("compiles and runs CUDA kernels on the CPU")
    assert found["mnist-subset"].text == "6,000 training and 1,000 test images, bundled"
    assert str(hardware.usable_cores()) in found["machine"].text


@pytest.mark.skipif("stage3_c" not in USABLE_STAGES, reason="stage 3 needs a C compiler")
def test_the_doctor_compiles_stage_3_and_the_environment_records_with_what(here: Facts) -> None:
    found = by_name(doctor.judge(here).findings)
    facts = environment.environment()["stage3_c"]
    assert found["C compiler"] == Finding("C compiler", "ok", facts["compiler"])
    assert f"{facts['simd_bits']}-bit SIMD: {facts['simd_bits'] // 32} float32 at a time" in found["stage3_c"].text
    assert f"{facts['threads']} thread" in found["stage3_c"].text
    assert "-std=c11" in found["stage3_c"].text
    assert facts["simd_bits"] in (128, 256, 512)


def test_the_environment_builds_nothing_where_stage_3_is_not_loaded() -> None:
    code = "from shared.machine.environment import environment; print(environment()['stage3_c'])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "{}\n"


def stage_loader(broken: str, error: Exception) -> Callable[[str], Any]:
    def load(name: str) -> Any:
        if name == broken:
            raise error
        return contract.Stage(name, *[None] * 7)  # type: ignore[arg-type]

    return load


def test_a_stage_that_cannot_be_used_is_told_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    reason = contract.StageUnavailable("needs a C compiler", fix="install one")
    monkeypatch.setattr(contract, "load_stage", stage_loader("stage3_c", reason))
    found = {stage.name: stage for stage in survey._stages()}
    assert (found["stage3_c"].status, found["stage3_c"].said) == ("unavailable", "needs a C compiler")
    assert found["stage3_c"].fix == "install one"
    assert found["stage4_numba_cuda"].status == "ok"


def test_a_stage_that_does_not_import_is_an_answer_and_not_a_crash(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contract, "load_stage", stage_loader("stage2_numpy", SyntaxError("invalid syntax")))
    found = survey._stage("stage2_numpy")
    assert (found.status, found.said, found.restorable) == ("broken", "SyntaxError: invalid syntax", True)
    absent = ModuleNotFoundError("No module named 'numpy'", name="numpy")
    monkeypatch.setattr(contract, "load_stage", stage_loader("stage2_numpy", absent))
    assert survey._stage("stage2_numpy").missing == "numpy"


@pytest.mark.skipif("stage3_c" not in USABLE_STAGES, reason="stage 3 needs a C compiler")
def test_c_that_does_not_compile_is_a_problem_whose_fix_does_not_throw_the_learners_edit_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from stage3_c.build import CompileError

    error = CompileError("csrc/losses.c:7: expected ';'", "the compiler's whole output")
    monkeypatch.setattr(contract, "load_stage", stage_loader("stage3_c", error))
    finding = by_name(doctor.judge(Facts(stages=survey._stages())).findings)["stage3_c"]
    assert (finding.status, finding.fix) == ("problem", None)
    assert "csrc/losses.c:7" in finding.text


def test_a_trial_that_dies_is_told_by_its_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    code = "import os, sys; print('last words', file=sys.stderr, flush=True); os._exit(3)"
    monkeypatch.setattr(survey, "run", lambda command, seconds, **more: run([command[0], "-c", code], seconds, **more))
    assert survey.trial("gpu") == Trial(False, "exit code 3: last words")
    code = "import time; time.sleep(60)"
    monkeypatch.setattr(survey, "TRIAL_SECONDS", 0.5)
    assert survey.trial("gpu") == Trial(False, "no answer within 0.5 seconds")


def test_bundled_data_that_cannot_be_read_is_an_answer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def damaged(name: str) -> None:
        raise DataError("train-images: truncated")

    monkeypatch.setattr(datasets, "load_dataset", damaged)
    monkeypatch.setenv("GROUNDUP_DATA", str(tmp_path / "absent"))
    found, place = survey._data()
    assert [(each.name, each.status) for each in found] == [
        ("mnist-subset", "damaged"),
        ("mnist", "absent"),
        ("fashion-mnist", "absent"),
    ]
    assert found[0].said == "train-images: truncated"
    assert place == f"GROUNDUP_DATA {tmp_path / 'absent'}"


def run_command(*arguments: str) -> Any:
    app = typer.Typer()
    app.command()(command.doctor)
    return CliRunner().invoke(app, list(arguments))


def test_the_command_prints_findings_and_what_will_run(monkeypatch: pytest.MonkeyPatch, here: Facts) -> None:
    monkeypatch.setattr(command, "diagnose", lambda: doctor.judge(here))
    result = run_command()
    assert result.exit_code == 0, result.output
    assert "What will run here" in result.stdout
    for name in USABLE_STAGES:
        assert f"groundup train {name}" in result.stdout
    assert result.stdout.rstrip() == report.plain(doctor.judge(here))


def test_the_command_exits_1_and_shows_the_fix_when_the_main_job_cannot_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "diagnose", lambda: doctor.judge(Facts(installed={})))
    result = run_command()
    assert result.exit_code == 1
    assert 'fix: /home/ada/groundup/.venv/bin/python -m pip install "numpy>=2.0" "numba>=0.62"' in result.stdout
    assert "will not run here" in result.stdout


def test_json_is_one_document_with_the_environment(monkeypatch: pytest.MonkeyPatch, here: Facts) -> None:
    monkeypatch.setattr(command, "diagnose", lambda: doctor.judge(here))
    document = json.loads(run_command("--json").stdout)
    assert (document["schema"], document["ok"]) == (1, True)
    assert {"python", "numpy", "stage3_c", "NVIDIA GPU", "mnist-subset"} <= {f["about"] for f in document["findings"]}
    assert all(set(finding) == {"about", "status", "text", "fix"} for finding in document["findings"])
    assert document["environment"]["python"] == environment.environment()["python"]


@wide
def test_the_doctor_answers_where_no_package_is_installed(tmp_path: Path) -> None:
    # -S leaves site-packages out, as does an interpreter into which nothing was installed.
    variables = finding_our_packages(os.environ)
    done = run([sys.executable, "-S", "-m", "groundup.doctor"], 120, folder=tmp_path, variables=variables)
    assert done.code == 1, done.errors
    assert f"not installed: {', '.join(DEPENDENCIES)}" in done.output
    assert "stage 1: pure Python" in done.output
    assert str(hardware.cpu_name() or "processor without a name") in done.output
    assert "Traceback" not in done.errors


def test_the_doctor_answers_where_numpy_is_damaged(tmp_path: Path) -> None:
    (tmp_path / "numpy").mkdir()
    (tmp_path / "numpy" / "__init__.py").write_text("raise RuntimeError('half an installation')")
    variables = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{tmp_path}"}
    done = run([sys.executable, "-m", "groundup.doctor"], 120, folder=tmp_path, variables=variables)
    assert done.code == 1, done.errors
    assert "Traceback" not in done.errors
    lines = {line[8:].split()[0]: line for line in done.output.splitlines() if line[8:].strip()}
    assert lines["stage1_pure_python"].startswith("ok")
    assert "does not load" in lines["stage2_numpy"]
    assert "will not run here" in done.output


def test_ctrl_c_ends_the_doctor_without_a_traceback(tmp_path: Path) -> None:
    code = "import runpy; from groundup import doctor\n"
    code += "def diagnose():\n    raise KeyboardInterrupt\n"
    code += "doctor.diagnose = diagnose\nrunpy.run_module('groundup.doctor', run_name='__main__')"
    done = run([sys.executable, "-c", code], 60, folder=tmp_path, variables=finding_our_packages(os.environ))
    assert (done.code, done.output, done.errors) == (2, "", "error: interrupted\n")


def test_a_python_too_old_for_groundup_can_still_run_the_doctor(monkeypatch: pytest.MonkeyPatch) -> None:
    code = "import sys; import groundup.doctor.report, groundup.doctor.rescue; "
    code += "print(*(getattr(module, '__file__', None) for module in sys.modules.values()), sep='\\n')"
    variables = finding_our_packages(os.environ)
    imported = run([sys.executable, "-S", "-c", code], 60, variables=variables).output.splitlines()
    ours = [Path(file) for file in imported if file.startswith(str(ROOT))]
    assert {"survey.py", "gpu.py", "caches.py"} <= {path.name for path in ours}
    for path in ours:
        ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 8))
    monkeypatch.setattr(sys, "version_info", (3, 9, 2))
    monkeypatch.setattr(survey, "_stages", lambda: pytest.fail("imports what needs a newer Python"))
    assert survey.gather().python == (3, 9, 2)


def test_commands_that_cannot_start_send_to_the_doctor(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    error = ModuleNotFoundError("No module named 'safetensors'", name="safetensors")
    with pytest.raises(SystemExit) as left:
        rescue.rescue(error, ["race"])
    assert left.value.code == 2
    assert capsys.readouterr().err == (
        "error: safetensors is not installed, and groundup needs it. See: groundup doctor\n"
    )
    monkeypatch.setattr(rescue, "diagnose", lambda: doctor.judge(Facts()))
    with pytest.raises(SystemExit) as left:
        rescue.rescue(error, ["doctor"])
    assert left.value.code == 1
    assert "problem packages" in capsys.readouterr().out
    with pytest.raises(ModuleNotFoundError):
        rescue.rescue(ModuleNotFoundError("No module named 'shared.typo'", name="shared.typo"), ["race"])
