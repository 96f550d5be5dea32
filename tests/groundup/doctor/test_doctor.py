"""groundup doctor looking at a machine, and telling what it found; test_doctor_machines.py has what it concludes."""

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
from groundup.doctor import Facts, Finding, look, look_gpu, report, rescue
from groundup.doctor.facts import DEPENDENCIES, Gpu, Trial
from shared import contract
from shared.data import datasets
from shared.data.datasets import DataError
from shared.machine import environment
from tests.stages import USABLE_STAGES


@pytest.fixture(scope="module")
def here() -> Facts:
    """This machine, looked at once."""
    return look.gather()


def by_name(findings: list[Finding]) -> dict[str, Finding]:
    return {finding.about: finding for finding in findings}


def test_the_dependencies_are_those_of_pyproject() -> None:
    project = tomllib.loads((Path(__file__).resolve().parents[3] / "pyproject.toml").read_text())["project"]
    assert project["dependencies"] == [f"{name}>={oldest}" for name, oldest in DEPENDENCIES.items()]


def test_this_machine_is_well(here: Facts) -> None:
    diagnosis = doctor.judge(here)
    assert diagnosis.ok, report.plain(diagnosis)
    found = by_name(diagnosis.findings)
    assert found["python"].text.startswith(f"{sys.version_info[0]}.{sys.version_info[1]}.")
    assert found["numpy"].text == environment.installed_version("numpy")
    assert found["BLAS"].text.startswith(environment.blas())
    assert found["emulator"].text.startswith("compiles and runs CUDA kernels on the CPU")
    assert found["mnist-subset"].text == "6,000 training and 1,000 test images, bundled"
    assert str(environment.usable_cores()) in found["machine"].text


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
    found = {stage.name: stage for stage in look._stages()}
    assert (found["stage3_c"].status, found["stage3_c"].said) == ("unavailable", "needs a C compiler")
    assert found["stage3_c"].fix == "install one"
    assert found["stage4_numba_cuda"].status == "ok"


def test_a_stage_that_does_not_import_is_an_answer_and_not_a_crash(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contract, "load_stage", stage_loader("stage2_numpy", SyntaxError("invalid syntax")))
    found = look._stage("stage2_numpy")
    assert (found.status, found.said, found.restorable) == ("broken", "SyntaxError: invalid syntax", True)
    absent = ModuleNotFoundError("No module named 'numpy'", name="numpy")
    monkeypatch.setattr(contract, "load_stage", stage_loader("stage2_numpy", absent))
    assert look._stage("stage2_numpy").missing == "numpy"


@pytest.mark.skipif("stage3_c" not in USABLE_STAGES, reason="stage 3 needs a C compiler")
def test_c_that_does_not_compile_is_a_problem_whose_fix_does_not_throw_the_learners_edit_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from stage3_c.build import CompileError

    error = CompileError("csrc/losses.c:7: expected ';'", "the compiler's whole output")
    monkeypatch.setattr(contract, "load_stage", stage_loader("stage3_c", error))
    finding = by_name(doctor.judge(Facts(stages=look._stages())).findings)["stage3_c"]
    assert (finding.status, finding.fix) == ("problem", None)
    assert "csrc/losses.c:7" in finding.text


def fake_smi(monkeypatch: pytest.MonkeyPatch, table: str, header: str = "", knows_capability: bool = True) -> None:
    """nvidia-smi answers with this header and this table."""
    monkeypatch.setattr(look_gpu.shutil, "which", lambda name: f"/bin/{name}")

    def run(words: list[str], seconds: int = 10) -> tuple[int, str]:
        if len(words) == 1:
            return 0, header
        asked = words[1]
        if "compute_cap" in asked and not knows_capability:
            return 2, 'Field "compute_cap" is not a valid field to query.'
        return 0, table

    monkeypatch.setattr(look_gpu, "run", run)


@pytest.mark.parametrize("label", ["CUDA Version: 12.4", "CUDA UMD Version: 12.4"], ids=["to 590", "from 610"])
def test_gpus_are_read_from_nvidia_smi(monkeypatch: pytest.MonkeyPatch, label: str) -> None:
    table = "NVIDIA T4, 550.54, 15360 MiB, 7.5\nNVIDIA L4, 550.54, 23034 MiB, 8.9"
    fake_smi(monkeypatch, table, f"| NVIDIA-SMI 550.54    Driver Version: 550.54    {label}  |")
    gpus = (Gpu("NVIDIA T4", "550.54", "15360 MiB", (7, 5)), Gpu("NVIDIA L4", "550.54", "23034 MiB", (8, 9)))
    assert look_gpu.nvidia_smi() == (gpus, (12, 4), "")
    finding = by_name(doctor.judge(Facts(gpus=gpus)).findings)["NVIDIA GPU"]
    assert finding.text == (
        "NVIDIA T4, 15360 MiB, compute capability 7.5; NVIDIA L4, 23034 MiB, compute capability 8.9"
    )


def test_an_nvidia_smi_that_does_not_know_compute_capabilities_is_asked_without(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fake_smi(monkeypatch, "Tesla K80, 470.82, 11441 MiB", "Driver Version: 470.82", knows_capability=False)
    assert look_gpu.nvidia_smi() == ((Gpu("Tesla K80", "470.82", "11441 MiB", None),), None, "")


def test_what_a_failing_nvidia_smi_says_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(look_gpu.shutil, "which", lambda name: f"/bin/{name}")
    monkeypatch.setattr(
        look_gpu, "run", lambda words, seconds=10: (18, "Failed to initialize NVML:\n version mismatch")
    )
    assert look_gpu.nvidia_smi() == ((), None, "Failed to initialize NVML: version mismatch")
    monkeypatch.setattr(look_gpu.shutil, "which", lambda name: None)
    monkeypatch.setattr(look_gpu, "WSL_SMI", "/no/such/program")
    assert look_gpu.nvidia_smi() == ((), None, "")


def test_programs_that_fail_hang_or_are_missing_are_answers(tmp_path: Path) -> None:
    assert look_gpu.run([sys.executable, "-c", "print(' said ')"]) == (0, "said")
    assert look_gpu.run([sys.executable, "-c", "import sys; sys.exit('why')"]) == (1, "why")
    assert look_gpu.run([str(tmp_path / "absent")])[0] is None
    assert look_gpu.run([sys.executable, "-c", "input(); import time; time.sleep(9)"], seconds=1)[0] in (1, None)


def test_a_trial_that_dies_is_told_by_its_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    real = subprocess.run

    def dies(words: list[str], **options: Any) -> Any:
        return real([words[0], "-c", "import os, sys; print('last words', file=sys.stderr); os._exit(3)"], **options)

    monkeypatch.setattr(look.subprocess, "run", dies)
    assert look.trial("gpu") == Trial(False, "exit code 3: last words")

    def hangs(words: list[str], **options: Any) -> Any:
        raise subprocess.TimeoutExpired(words, options["timeout"])

    monkeypatch.setattr(look.subprocess, "run", hangs)
    assert look.trial("gpu") == Trial(False, "no answer within 120 seconds")


def test_a_gpu_is_only_tried_where_there_are_one_and_numba_cuda(here: Facts) -> None:
    possible = bool(here.gpus) and "numba-cuda" in here.installed
    assert (here.gpu_trial is not None) == possible


def test_the_packages_that_brought_a_driver_are_read_from_dpkg() -> None:
    answer = (
        "diversion by glx-diversions from: /usr/lib/x86_64-linux-gnu/libcuda.so.1\n"
        "cuda-driver-dev-12-4: /usr/local/cuda-12.4/targets/x86_64-linux/lib/stubs/libcuda.so.1\n"
        "libnvidia-compute-535:amd64: /usr/lib/x86_64-linux-gnu/libcuda.so.1\n"
        "libnvidia-compute-535:i386: /usr/lib/i386-linux-gnu/libcuda.so.1\n"
    )
    assert look_gpu.owners(answer) == ("libnvidia-compute-535",)
    assert look_gpu.owners("dpkg-query: no path found matching pattern */libcuda.so.1") == ()


def test_the_drivers_library_is_looked_for_as_the_loader_does(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for folder in ("first", "wsl", "arm"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "libcuda.so.1").touch()
    monkeypatch.setattr(sys, "platform", "linux")
    listed = (
        f"\tlibcuda.so.1 (libc6,x86-64) => {tmp_path}/wsl/libcuda.so.1\n"
        f"\tlibcuda.so.1 (libc6) => {tmp_path}/arm/libcuda.so.1\n"
        f"\tlibcuda.so.1 (libc6,x86-64) => {tmp_path}/gone/libcuda.so.1\n"
    )
    monkeypatch.setattr(look_gpu, "run", lambda words, seconds=10: (0, listed))
    expected = (f"{tmp_path}/first/libcuda.so.1", f"{tmp_path}/wsl/libcuda.so.1")
    assert look_gpu.libcuda_places({"LD_LIBRARY_PATH": f"{tmp_path}/none:{tmp_path}/first/"}) == expected


def test_a_gpu_is_seen_on_the_bus_without_a_driver(tmp_path: Path) -> None:
    for name, vendor, kind in (("0", "0x8086", "0x030000"), ("1", "0x10de", "0x040300")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "vendor").write_text(f"{vendor}\n")
        (tmp_path / name / "class").write_text(f"{kind}\n")
    assert look_gpu.gpu_hardware(tmp_path) is False  # Intel's graphics, and the sound of an NVIDIA card
    (tmp_path / "1" / "class").write_text("0x030200\n")
    assert look_gpu.gpu_hardware(tmp_path) is True
    assert look_gpu.gpu_hardware(tmp_path / "absent") is None


def test_toolkits_are_found_once_each_the_named_one_first(tmp_path: Path) -> None:
    new, old = tmp_path / "cuda-13.0", tmp_path / "cuda-10.2"
    for folder in (new, old):
        folder.mkdir()
    (new / "version.json").write_text('{"cuda": {"name": "CUDA SDK", "version": "13.0.1"}}')
    (old / "version.txt").write_text("CUDA Version 10.2.89\n")
    assert look_gpu.toolkits({}, tmp_path) == {str(old): "10.2.89", str(new): "13.0.1"}
    assert look_gpu.toolkits({"CUDA_HOME": str(new)}, tmp_path) == {str(new): "13.0.1", str(old): "10.2.89"}
    conda = tmp_path / "conda"
    (conda / "conda-meta").mkdir(parents=True)
    (conda / "conda-meta" / "cuda-nvrtc-12.9.86-h5888daf_0.json").touch()
    assert look_gpu.toolkits({}, tmp_path, conda) == {str(conda): "12.9.86", str(old): "10.2.89", str(new): "13.0.1"}
    (new / "version.json").write_text("damaged")
    assert look_gpu.toolkits({}, tmp_path) == {str(old): "10.2.89"}


@pytest.mark.parametrize(
    ("variables", "name"),
    [
        ({"COLAB_RELEASE_TAG": "release"}, "Google Colab"),
        ({"KAGGLE_KERNEL_RUN_TYPE": "Interactive"}, "Kaggle"),
        ({}, None),
    ],
)
def test_hosted_notebooks_are_known_by_their_variables(variables: dict[str, str], name: str | None) -> None:
    assert look._hosted(variables) == name


def test_bundled_data_that_cannot_be_read_is_an_answer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def damaged(name: str) -> None:
        raise DataError("train-images: truncated")

    monkeypatch.setattr(datasets, "load_dataset", damaged)
    monkeypatch.setenv("GROUNDUP_DATA", str(tmp_path / "absent"))
    found, place = look._data()
    assert [(each.name, each.status) for each in found] == [
        ("mnist-subset", "damaged"),
        ("mnist", "absent"),
        ("fashion-mnist", "absent"),
    ]
    assert found[0].said == "train-images: truncated"
    assert place == f"GROUNDUP_DATA {tmp_path / 'absent'}"


def test_damaged_full_data_is_found_in_its_own_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folder = tmp_path / "mnist"
    folder.mkdir()
    (folder / "train-images-idx3-ubyte").write_bytes(b"not images")
    monkeypatch.setenv("GROUNDUP_DATA", str(tmp_path))
    mnist = look._data()[0][1]
    assert (mnist.status, mnist.folder) == ("damaged", str(folder))


def test_the_cache_is_judged_by_the_folder_that_is_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    chosen = tmp_path / "not" / "yet"
    monkeypatch.setenv("GROUNDUP_CACHE", str(chosen))
    folder, writable, free = look._cache()
    assert (folder, writable) == (str(chosen), True)
    assert free is not None
    assert free > 0


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
    assert 'fix: /home/ada/groundup/.venv/bin/python -m pip install "numpy>=1.26" "numba>=0.61"' in result.stdout
    assert "will not run here" in result.stdout


def test_a_fix_of_several_commands_has_a_line_for_each() -> None:
    finding = Finding("python", "problem", "too old", "make one\nuse it")
    shown = list(report.lines(doctor.Diagnosis([finding], [], False)))
    assert shown == [("problem", "python", "too old"), ("fix", "", "make one"), ("fix", "", "use it")]


def test_json_is_one_document_with_the_environment(monkeypatch: pytest.MonkeyPatch, here: Facts) -> None:
    monkeypatch.setattr(command, "diagnose", lambda: doctor.judge(here))
    document = json.loads(run_command("--json").stdout)
    assert (document["schema"], document["ok"]) == (1, True)
    assert {"python", "numpy", "stage3_c", "NVIDIA GPU", "mnist-subset"} <= {f["about"] for f in document["findings"]}
    assert all(set(finding) == {"about", "status", "text", "fix"} for finding in document["findings"])
    assert document["environment"]["python"] == environment.environment()["python"]


def test_the_doctor_answers_where_no_package_is_installed(tmp_path: Path) -> None:
    # -S leaves site-packages out, as does an interpreter into which nothing was installed.
    root = Path(__file__).resolve().parents[3]
    variables = {**os.environ, "PYTHONPATH": str(root), "GROUNDUP_CACHE": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-S", "-m", "groundup.doctor"], cwd=tmp_path, env=variables, capture_output=True, text=True
    )
    assert done.returncode == 1, done.stderr
    assert f"not installed: {', '.join(DEPENDENCIES)}" in done.stdout
    assert "stage 1: pure Python" in done.stdout
    assert "Traceback" not in done.stderr


def test_a_python_too_old_for_groundup_can_still_run_the_doctor(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    root = Path(__file__).resolve().parents[3] / "shared"
    for path in [root / "__init__.py", *(root / "doctor").glob("*.py")]:
        ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 8))
    monkeypatch.setattr(sys, "version_info", (3, 9, 2))
    monkeypatch.setattr(look, "_stages", lambda: pytest.fail("imports what needs a newer Python"))
    assert look.gather().python == (3, 9, 2)


def test_the_distribution_is_read_from_os_release(tmp_path: Path) -> None:
    path = tmp_path / "os-release"
    path.write_text('# a comment\nID="rocky"\nID_LIKE="rhel centos fedora"\nVERSION_ID=9\n')
    assert look.os_release(path) == {"ID": "rocky", "ID_LIKE": "rhel centos fedora", "VERSION_ID": "9"}
    assert look.os_release(tmp_path / "absent") == {}


def test_commands_that_cannot_start_send_to_the_doctor(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    error = ModuleNotFoundError("No module named 'jsonschema'", name="jsonschema")
    with pytest.raises(SystemExit) as left:
        rescue.rescue(error, ["race"])
    assert left.value.code == 2
    assert capsys.readouterr().err == (
        "error: jsonschema is not installed, and groundup needs it. See: groundup doctor\n"
    )
    monkeypatch.setattr(rescue, "diagnose", lambda: doctor.judge(Facts()))
    with pytest.raises(SystemExit) as left:
        rescue.rescue(error, ["doctor"])
    assert left.value.code == 1
    assert "problem packages" in capsys.readouterr().out
    with pytest.raises(ModuleNotFoundError):
        rescue.rescue(ModuleNotFoundError("No module named 'shared.typo'", name="shared.typo"), ["race"])


def test_installed_version_asks_the_metadata() -> None:
    assert environment.installed_version("pytest") == pytest.__version__
    assert environment.installed_version("no-such-distribution-here") is None


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
