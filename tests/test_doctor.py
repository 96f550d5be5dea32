"""groundup doctor on machines that it invents: what it finds, what it advises, and that it never falls ill itself."""

import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import typer
from conftest import USABLE_STAGES
from fake_stages import say_of_stage_4
from typer.testing import CliRunner

from shared import contract, doctor, environment
from shared.commands.doctor import doctor as doctor_command
from shared.datasets import DataError
from shared.doctor import Finding


def fake_programs(monkeypatch: pytest.MonkeyPatch, answers: dict[str, str | None]) -> None:
    """Only these programs are on the PATH; each answers with its text, or fails where that is None."""
    monkeypatch.setattr(environment.shutil, "which", lambda name: f"/bin/{name}" if name in answers else None)
    monkeypatch.setattr(environment, "run_quietly", lambda command: answers.get(Path(command[0]).name))


def by_name(findings: list[Finding]) -> dict[str, Finding]:
    return {finding.about: finding for finding in findings}


def test_the_dependencies_are_those_of_pyproject() -> None:
    project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text())["project"]
    assert [entry.partition(">=")[0] for entry in project["dependencies"]] == list(doctor.DEPENDENCIES)


def test_a_missing_dependency_is_a_problem_with_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    real = environment.installed_version
    monkeypatch.setattr(environment, "installed_version", lambda name: None if name == "pooch" else real(name))
    findings = by_name(doctor.dependencies())
    assert findings["pooch"].status == "problem"
    assert findings["pooch"].fix == f'"{sys.executable}" -m pip install pooch'
    assert findings["numpy"].status == "ok"
    assert not doctor.diagnose().ok


def test_installed_version_asks_the_metadata() -> None:
    assert environment.installed_version("pytest") == pytest.__version__
    assert environment.installed_version("no-such-distribution-here") is None


@pytest.mark.parametrize(
    ("version", "status", "text"),
    [((3, 9), "problem", "needs 3.11"), ((3, 11), "ok", ""), ((3, 13), "ok", ""), ((3, 99), "note", "newest tested")],
)
def test_python_version(monkeypatch: pytest.MonkeyPatch, version: tuple[int, int], status: str, text: str) -> None:
    monkeypatch.setattr(sys, "version_info", (*version, 0, "final", 0))
    finding = doctor.python()
    assert finding.status == status
    assert text in finding.text
    assert (finding.fix is not None) == (status == "problem")


def test_gpus_are_read_from_nvidia_smi(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_programs(monkeypatch, {"nvidia-smi": "NVIDIA T4, 550.54, 15360 MiB\nNVIDIA L4, 550.54, 23034 MiB"})
    finding = doctor.gpu()
    assert finding.status == "ok"
    assert finding.text == "NVIDIA T4, 15360 MiB, driver 550.54; NVIDIA L4, 23034 MiB, driver 550.54"


@pytest.mark.parametrize("answers", [{}, {"nvidia-smi": None}, {"nvidia-smi": "No devices were found"}])
def test_without_a_gpu_nothing_is_wrong(monkeypatch: pytest.MonkeyPatch, answers: dict[str, str | None]) -> None:
    fake_programs(monkeypatch, answers)
    finding = doctor.gpu()
    assert finding.status == "note"
    assert "nothing here needs one" in finding.text


def stage_loader(broken: str, error: Exception) -> Callable[[str], Any]:
    def load(name: str) -> Any:
        if name == broken:
            raise error
        return contract.Stage(name, *[None] * 7)  # type: ignore[arg-type]

    return load


def test_a_stage_that_is_not_installed_is_named_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    reason = contract.StageUnavailable("needs a C compiler", fix="install one")
    monkeypatch.setattr(doctor, "load_stage", stage_loader("stage3_c", reason))
    findings = by_name(doctor.stages())
    assert findings["stage3_c"] == Finding("stage3_c", "note", "needs a C compiler", "install one")
    assert findings["stage4_numba_cuda"].status == "ok"
    assert doctor.diagnose().ok


@pytest.mark.parametrize(("threads", "said"), [(1, "1 thread"), (8, "8 threads")])
def test_a_compiled_stage_tells_compiler_registers_threads_and_flags(
    monkeypatch: pytest.MonkeyPatch, threads: int, said: str
) -> None:
    facts = {"compiler": "gcc 12", "flags": ["-std=c11", "-O3"], "simd_bits": 256, "threads": threads}
    monkeypatch.setattr(doctor, "load_stage", stage_loader("", Exception()))
    monkeypatch.setattr(doctor, "stage_facts", lambda name: facts if name == "stage3_c" else {})
    findings = by_name(doctor.stages())
    text = f"stage 3: C; gcc 12; 256-bit SIMD: 8 float32 at a time; {said}; -std=c11 -O3"
    assert findings["stage3_c"] == Finding("stage3_c", "ok", text)
    assert findings["stage2_numpy"] == Finding("stage2_numpy", "ok", "stage 2: NumPy")


@pytest.mark.skipif("stage3_c" not in USABLE_STAGES, reason="stage 3 needs a C compiler")
def test_c_that_does_not_compile_is_a_problem_whose_fix_does_not_throw_the_learners_edit_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from stage3_c.build import CompileError

    error = CompileError("csrc/losses.c:7: expected ';'", "the compiler's whole output")
    monkeypatch.setattr(doctor, "load_stage", stage_loader("stage3_c", error))
    (finding,) = (finding for finding in doctor.stages() if finding.about == "stage3_c")
    assert (finding.status, finding.fix) == ("problem", None)
    assert "csrc/losses.c:7" in finding.text


@pytest.mark.skipif("stage3_c" not in USABLE_STAGES, reason="stage 3 needs a C compiler")
def test_the_doctor_compiles_stage_3_and_the_environment_records_with_what() -> None:
    (finding,) = (finding for finding in doctor.stages() if finding.about == "stage3_c")
    facts = environment.environment()["stage3_c"]
    assert finding.status == "ok"
    assert facts["compiler"] in finding.text
    assert facts["simd_bits"] in (128, 256, 512)
    assert facts["threads"] >= 1
    assert "-std=c11" in facts["flags"]


def test_the_environment_builds_nothing_where_stage_3_is_not_loaded() -> None:
    code = "from shared.environment import environment; print(environment()['stage3_c'])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "{}\n"


def test_a_stage_that_does_not_import_is_a_problem_and_not_a_crash(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "load_stage", stage_loader("stage2_numpy", SyntaxError("invalid syntax")))
    finding = by_name(doctor.stages())["stage2_numpy"]
    assert finding.status == "problem"
    assert finding.text == "does not load: SyntaxError: invalid syntax"


def test_what_is_damaged_in_a_checkout_is_restored_with_git(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    monkeypatch.setattr(doctor, "ROOT", tmp_path)
    assert doctor.restore("stage2_numpy") == f'git -C "{tmp_path}" restore stage2_numpy'


def test_what_is_damaged_in_an_installation_is_installed_again_from_its_source(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    class Distribution:
        def read_text(self, name: str) -> str | None:
            return '{"url": "file:///tmp/groundup.whl"}' if name == "direct_url.json" else None

    monkeypatch.setattr(doctor, "ROOT", tmp_path)
    monkeypatch.setattr(doctor.importlib.metadata, "distribution", lambda name: Distribution())
    fix = f'"{sys.executable}" -m pip install --force-reinstall --no-deps "file:///tmp/groundup.whl"'
    assert doctor.restore("stage2_numpy") == fix


def test_bundled_data_that_cannot_be_read_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    def damaged(name: str) -> None:
        raise DataError("train-images: truncated")

    monkeypatch.setattr(doctor, "load_dataset", damaged)
    finding = by_name(doctor.data())["mnist-subset"]
    assert finding.status == "problem"
    assert "truncated" in finding.text


def test_a_data_folder_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folder = tmp_path / "absent"
    monkeypatch.setenv("GROUNDUP_DATA", str(folder))
    findings = by_name(doctor.data())
    assert findings["GROUNDUP_DATA"].fix == f'mkdir -p "{folder}"'
    assert str(folder) in findings["mnist"].text
    assert findings["mnist"].fix == "groundup train 2 --dataset mnist --epochs 1 --download"


def test_damaged_full_data_is_moved_away_before_the_download(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folder = tmp_path / "mnist"
    folder.mkdir()
    (folder / "train-images-idx3-ubyte").write_bytes(b"not images")
    monkeypatch.setenv("GROUNDUP_DATA", str(tmp_path))
    monkeypatch.setattr(sys, "platform", "linux")
    finding = by_name(doctor.data())["mnist"]
    assert finding.status == "note"
    assert finding.text.startswith("not usable: ")
    assert finding.fix is not None
    assert finding.fix.startswith(f'mv "{folder}" "{folder}.damaged" && groundup train')


def run_command(*arguments: str) -> Any:
    app = typer.Typer()
    app.command()(doctor_command)
    return CliRunner().invoke(app, list(arguments))


def test_the_command_prints_findings_and_what_will_run() -> None:
    result = run_command()
    assert result.exit_code == 0, result.output
    assert "What will run here:" in result.stdout
    for name in USABLE_STAGES:
        assert f"groundup train {name}" in result.stdout


def test_the_command_exits_1_and_shows_the_fix_when_the_main_job_cannot_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "installed_version", lambda name: None)
    result = run_command()
    assert result.exit_code == 1
    assert "fix: " in result.stdout
    assert "-m pip install numpy" in result.stdout
    assert "will not run here" in result.stdout


def test_json_is_one_document_with_the_environment() -> None:
    document = json.loads(run_command("--json").stdout)
    assert (document["schema"], document["ok"]) == (1, True)
    assert {"python", "numpy", "stage3_c", "NVIDIA GPU", "mnist-subset"} <= {f["about"] for f in document["findings"]}
    assert document["environment"]["python"] == environment.environment()["python"]


@pytest.mark.skipif(os.name == "nt", reason="the fake programs are shell scripts")
def test_programs_that_fail_hang_or_are_missing_give_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert environment.run_quietly([sys.executable, "-c", "print(' said ')"]) == "said"
    assert environment.run_quietly([sys.executable, "-c", "raise SystemExit(3)"]) is None
    assert environment.run_quietly([str(tmp_path / "absent")]) is None

    def hang(*args: Any, **kwargs: Any) -> None:
        raise subprocess.TimeoutExpired("cc", 10)

    monkeypatch.setattr(subprocess, "run", hang)
    assert environment.run_quietly(["cc"]) is None


def test_a_revision_is_only_told_for_a_checkout_of_this_package(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # Installed into an environment inside another project's repository: that project's commit is not ours.
    monkeypatch.setattr(environment, "run_quietly", lambda command: str(tmp_path))
    assert environment.git_revision() is None


def test_a_numpy_that_does_not_name_its_blas_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment.np, "show_config", lambda mode: {})
    assert environment.blas() == "unknown BLAS"


def stage_4(monkeypatch: pytest.MonkeyPatch, backend: str, **variables: str) -> Finding:
    """The doctor's line about stage 4, loaded with this backend."""
    facts = say_of_stage_4(monkeypatch, backend)
    monkeypatch.setattr(doctor, "load_stage", stage_loader("", Exception()))
    monkeypatch.setattr(doctor, "stage_facts", lambda name: facts if name == "stage4_numba_cuda" else {})
    monkeypatch.setitem(
        sys.modules, "stage4_numba_cuda.backend", SimpleNamespace(BACKEND=SimpleNamespace(reason="why"))
    )
    monkeypatch.delenv("GROUNDUP_CUDA", raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    return by_name(doctor.stages())["stage4_numba_cuda"]


def test_stage_4_tells_what_runs_its_kernels_and_why(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_programs(monkeypatch, {})
    finding = stage_4(monkeypatch, "emulator")
    assert (finding.status, finding.fix) == ("ok", None)  # without a GPU, no command brings one
    assert finding.text == "stage 4: CUDA, emulated on the CPU; emulator; numba-cuda finds no GPU; why"


@pytest.mark.parametrize(("driver", "libraries"), [("580.159.04", "cu13"), ("550.54", "cu12"), ("?", "cu12")])
def test_a_gpu_that_is_not_used_comes_with_the_command_for_it(
    monkeypatch: pytest.MonkeyPatch, driver: str, libraries: str
) -> None:
    fake_programs(monkeypatch, {"nvidia-smi": f"NVIDIA T4, {driver}, 15360 MiB"})
    finding = stage_4(monkeypatch, "emulator")
    assert finding.fix == f'"{sys.executable}" -m pip install "numba-cuda[{libraries}]"'
    assert stage_4(monkeypatch, "emulator", GROUNDUP_CUDA="emulator").fix == "unset GROUNDUP_CUDA"
    assert stage_4(monkeypatch, "gpu").fix is None
