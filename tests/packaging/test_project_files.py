"""What a visitor expects beside the code: one version everywhere, types, a citation, one place for the address."""

import importlib.util
import json
import re
import shutil
from pathlib import Path
from types import ModuleType

import pytest

from groundup import __version__
from tests.packaging.test_archive import PACKAGES

ROOT = Path(__file__).resolve().parents[2]


def text(name: str) -> str:
    """A file's text."""
    return (ROOT / name).read_text(encoding="utf-8")


def test_the_changes_and_the_citation_name_the_packages_version() -> None:
    newest = re.search(r"^## ([\d.]+), ([\d-]+)$", text("CHANGELOG.md"), re.MULTILINE)
    assert newest is not None
    assert newest[1] == __version__
    assert f"\nversion: {__version__}\ndate-released: {newest[2]}\n" in text("CITATION.cff")


def test_every_package_has_its_marker_of_types() -> None:
    assert [package for package in PACKAGES if not (ROOT / package / "py.typed").is_file()] == []
    assert '"*" = ["py.typed"]' in text("pyproject.toml")


def test_the_development_container_and_the_workflow_use_the_projects_own_commands() -> None:
    container = json.loads(text(".devcontainer/devcontainer.json"))
    target = container["postCreateCommand"].removeprefix("make ")
    assert f"\n$(VENV)/{target.partition('/')[2]}: " in text("Makefile")
    assert (ROOT / ".devcontainer" / container["build"]["dockerfile"]).is_file()
    assert "run: bash .ci/run" in text(".github/workflows/ci.yml")


@pytest.fixture
def script() -> ModuleType:
    """scripts/set_repository.py"""
    spec = importlib.util.spec_from_file_location("set_repository", ROOT / "scripts" / "set_repository.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_address_is_set_in_every_place_by_one_command(script: ModuleType, tmp_path: Path) -> None:
    for path in {path for place in script.PLACES for path in ROOT.glob(place) if "_build" not in path.parts}:
        copy = tmp_path / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, copy)
    address = "https://example.org/someone/groundup"
    script.main([address], tmp_path)
    texts = {path: path.read_text(encoding="utf-8") for path in tmp_path.rglob("*.*") if path.is_file()}
    assert [path for path, written in texts.items() if "clone ADDRESS" in written or "git+ADDRESS" in written] == []
    assert f'Homepage = "{address}"' in texts[tmp_path / "pyproject.toml"]
    assert f'repository-code: "{address}"' in texts[tmp_path / "CITATION.cff"]
    assert f"git clone {address} groundup" in texts[tmp_path / "docs" / "guides" / "installing.md"]
    assert all(address in written for path, written in texts.items() if path.suffix == ".ipynb")
    with pytest.raises(SystemExit, match="the address is set"):
        script.main([address], tmp_path)


def test_what_is_no_address_is_refused(script: ModuleType, tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="expected one address such as https://HOST/OWNER/groundup, got groundup"):
        script.main(["groundup"], tmp_path)
