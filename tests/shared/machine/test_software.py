"""shared.machine.software: the system, its Python, installed packages and the commit."""

from pathlib import Path

import pytest

from shared.machine import software


def test_the_distribution_is_read_from_os_release(tmp_path: Path) -> None:
    path = tmp_path / "os-release"
    path.write_text('# a comment\nID="rocky"\nID_LIKE="rhel centos fedora"\nVERSION_ID=9\n')
    assert software.os_release([tmp_path / "absent", path]) == {
        "ID": "rocky",
        "ID_LIKE": "rhel centos fedora",
        "VERSION_ID": "9",
    }
    assert software.os_release([tmp_path / "absent"]) == {}


@pytest.mark.parametrize(
    ("variables", "name"),
    [
        ({"COLAB_RELEASE_TAG": "release"}, "Google Colab"),
        ({"KAGGLE_KERNEL_RUN_TYPE": "Interactive"}, "Kaggle"),
        ({}, None),
    ],
)
def test_hosted_notebooks_are_known_by_their_variables(variables: dict[str, str], name: str | None) -> None:
    assert software.hosted_notebook(variables) == name


def test_installed_version_asks_the_metadata() -> None:
    assert software.installed_version("pytest") == pytest.__version__
    assert software.installed_version("no-such-distribution-here") is None


def test_a_revision_is_only_told_for_a_checkout_of_this_package(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # Installed into an environment inside another project's repository: that project's commit is not ours.
    monkeypatch.setattr(software, "output_of", lambda command: str(tmp_path))
    assert software.git_revision() is None
