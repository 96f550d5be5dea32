"""A wheel, installed where the checkout is not, does what the checkout does."""

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.stages import USABLE_STAGES
from tests.wide import wide

ROOT = Path(__file__).resolve().parents[2]
pytestmark = wide

BESIDE_THE_SOURCE = shutil.ignore_patterns(".*", "build", "dist", "runs", "docs", "tests", "*.egg-info")
"""At the top of the checkout: folders inside the packages may have these names."""


def not_source(folder: str, names: list[str]) -> set[str]:
    """What of a folder of the checkout no wheel is built from."""
    return {"__pycache__", *(BESIDE_THE_SOURCE(folder, names) if Path(folder) == ROOT else ())}


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bin folder of a fresh environment with the wheel in it. The dependencies are this environment's own, by a
    path file, so that no network is needed; the editable install of the checkout does not come along that way."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    shutil.copytree(ROOT, source, ignore=not_source)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    build = [*pip, "wheel", "--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", str(folder), str(source)]
    subprocess.run(build, check=True, capture_output=True, text=True)
    (wheel,) = folder.glob("groundup-*.whl")

    environment = folder / "environment"
    venv.create(environment, with_pip=False, symlinks=os.name != "nt")
    scripts = environment / ("Scripts" if os.name == "nt" else "bin")
    python = scripts / "python"
    site = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()
    # A line of code in ASCII: before Python 3.13 a path of other letters is not read where LC_ALL=C.
    Path(site, "dependencies.pth").write_text(f"import sys; sys.path.append({sysconfig.get_path('purelib')!a})\n")
    # The few modules that a command imports are compiled as it does so.
    install = [*pip, "--python", str(python), "install", "--no-compile", "--no-deps", "--no-index", str(wheel)]
    subprocess.run(install, check=True, capture_output=True, text=True)
    shutil.rmtree(source)
    return scripts


def run(installed: Path, cwd: Path, *command: str) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "GROUNDUP_DATA")}
    # An empty one at first, so that the wheel's own sources are compiled, and one for all commands.
    environment["GROUNDUP_CACHE"] = str(installed.parent / "cache")
    return subprocess.run(
        [str(installed / command[0]), *command[1:]], cwd=cwd, env=environment, capture_output=True, text=True
    )


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (["python", "-c", "import shared; print(shared.__file__)"], "site-packages"),
        (["groundup", "--version"], "groundup 0.2.0"),
        (["groundup", "--help"], "race"),
        (["groundup", "doctor"], "NumPy"),
        (["groundup", "learn", "start"], "now: 1.1"),
        (["groundup", "check", "2", "--quick"], "stage2, float64"),
        (["groundup", "race", "--limit", "100", "--epochs", "1", "--stages", "1,2", "--out", "race"], "accuracy"),
        pytest.param(
            ["python", "-m", "stage3_c.train", "--epochs", "1", "--run-dir", "three"],
            "accuracy",
            marks=pytest.mark.skipif("stage3_c" not in USABLE_STAGES, reason="stage 3 needs a C compiler"),
        ),
    ],
    ids=lambda value: " ".join(value[:3]) if isinstance(value, list) else "",
)
def test_the_installed_wheel_runs(installed: Path, tmp_path: Path, command: list[str], expected: str) -> None:
    result = run(installed, tmp_path, *command)
    assert result.returncode == 0, result.stdout + result.stderr
    assert expected in result.stdout
    assert str(ROOT) not in result.stdout


def test_the_wheel_has_every_file_of_the_packages(installed: Path) -> None:
    """So that no command misses one. The longer commands, run from the wheel, are wide."""

    def files(folder: Path, packages: Iterable[str]) -> set[str]:
        found = (path for package in packages for path in (folder / package).rglob("*") if path.is_file())
        names = (path.relative_to(folder) for path in found if "__pycache__" not in path.parts)
        return {str(name) for name in names if not name.name.startswith(".")}

    packages = [path.parent.name for path in ROOT.glob("*/__init__.py") if path.parent.name != "tests"]
    assert {"groundup", "shared", "stage1_pure_python"} <= set(packages)
    site = next(installed.parent.rglob("site-packages"))
    alone = {f"cuda_emulator/{name}" for name in ("README.md", "LICENSE", "CHANGELOG.md", "pyproject.toml")}
    assert files(site, packages) == files(ROOT, packages) - alone  # what the emulator's own wheel is made with
