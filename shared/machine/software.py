"""What runs on this machine: the operating system, the Python, installed packages, and the commit of this project.

Nothing here raises, and only the standard library is imported at the top: `groundup doctor` asks all of this where
NumPy may be missing or damaged.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import platform
import sys
import sysconfig
from collections.abc import Iterable, Mapping
from pathlib import Path

from shared.machine.hardware import content
from shared.machine.processes import ROOT, output_of

PACKAGE = "groundup"
THREAD_VARIABLES = (
    *("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"),
    "GROUNDUP_THREADS",
)
"""Environment variables that decide how many threads a product uses: those of NumPy's BLAS, and stage 3's own."""

SLOWING_VARIABLES = (
    *("OPENBLAS_CORETYPE", "NPY_DISABLE_CPU_FEATURES", "BLIS_ARCH_TYPE"),
    *("MKL_DEBUG_CPU_TYPE", "MKL_ENABLE_INSTRUCTIONS", "MKL_CBWR"),
    *("ATEN_CPU_CAPABILITY", "DNNL_MAX_CPU_ISA", "ONEDNN_MAX_CPU_ISA"),
    *("NUMBA_OPT", "NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES", "NUMBA_DISABLE_JIT", "GROUNDUP_SANITIZE"),
)
"""Environment variables with which NumPy, PyTorch, Numba or stage 3 use older instructions or less optimised code."""

OS_RELEASE = (Path("/etc/os-release"), Path("/usr/lib/os-release"))


def operating_system() -> str:
    """The system's name and version: 'Debian GNU/Linux 12 (bookworm)', 'macOS 14.5', 'Windows 11'."""
    if sys.platform == "linux":
        return os_release().get("PRETTY_NAME") or f"Linux {platform.release()}"
    if sys.platform == "darwin":
        return f"macOS {platform.mac_ver()[0]}"
    return f"{platform.system()} {platform.release()}"


def os_release(places: Iterable[Path] = OS_RELEASE) -> dict[str, str]:
    """What a Linux distribution says of itself: ID, ID_LIKE, PRETTY_NAME and more; empty elsewhere.

    The platform module reads the same file, but only from Python 3.10 on, and the doctor runs on older ones.
    """
    text = next(filter(None, map(content, places)), "")
    pairs = (line.partition("=") for line in text.splitlines() if "=" in line)
    return {name.strip(): value.strip().strip("\"'") for name, _, value in pairs}


def on_wsl() -> bool:
    """Whether this Linux runs inside Windows."""
    return "microsoft" in content(Path("/proc/version")).lower()


def hosted_notebook(variables: Mapping[str, str]) -> str | None:
    """ "Google Colab" or "Kaggle", where the environment variables are those of such a notebook."""
    if "COLAB_RELEASE_TAG" in variables or "COLAB_GPU" in variables:
        return "Google Colab"
    return "Kaggle" if "KAGGLE_KERNEL_RUN_TYPE" in variables else None


def administrator() -> bool:
    """Whether this process has the rights of the system's administrator; False on Windows, which does not tell."""
    return hasattr(os, "geteuid") and os.geteuid() == 0


def virtual_environment() -> bool:
    """Whether Python runs in an environment of its own: venv, uv or conda."""
    return sys.prefix != sys.base_prefix or Path(sys.prefix, "conda-meta").is_dir()


def externally_managed() -> bool:
    """Whether pip refuses to install into this Python, because the operating system manages it (PEP 668)."""
    return sys.prefix == sys.base_prefix and Path(sysconfig.get_path("stdlib"), "EXTERNALLY-MANAGED").is_file()


def has_module(name: str) -> bool:
    """Whether a module could be imported, as far as can be seen without doing so."""
    return importlib.util.find_spec(name) is not None


def installed_version(distribution: str) -> str | None:
    """The version of an installed distribution; None where it is not installed, or only its empty folder is left."""
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def installed_versions(distributions: Iterable[str]) -> dict[str, str]:
    """Distribution -> version, of those that are installed."""
    return {name: found for name in distributions if (found := installed_version(name))}


def installed_from() -> str | None:
    """The address that pip installed this project from, where pip noted it (packaging.python.org: direct_url.json)."""
    try:
        noted = importlib.metadata.distribution(PACKAGE).read_text("direct_url.json")
        return json.loads(noted).get("url") if noted else None
    except (importlib.metadata.PackageNotFoundError, ValueError):
        return None


def extra(name: str) -> str:
    """The command that installs an extra of this project: from where it was installed, since no index has it."""
    origin = installed_from()
    if origin is None or (ROOT / "pyproject.toml").is_file():
        return f"python -m pip install -e '.[{name}]' in the project's folder"
    return f"python -m pip install '{PACKAGE}[{name}] @ {origin}'"


def blas() -> str:
    """The library behind NumPy's `@` with its version, as NumPy's build records it; "" where NumPy does not import."""
    try:
        import numpy as np
    except Exception:  # a damaged NumPy, or one for another Python, fails in its own way
        return ""
    try:
        details = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    except (AttributeError, KeyError, TypeError):  # a NumPy built by other means, or a damaged one, has no record
        return "unknown BLAS"
    name, version = details.get("name") or "unknown BLAS", details.get("version") or ""
    return f"{name} {version}".strip() if version != "unknown" else name


def git_revision() -> str | None:
    """The commit of the checkout this package runs from, with '+' where files differ from it; None outside one.

    Only a checkout whose top folder is this package's own counts: an installation inside some other project's
    repository (a virtual environment in it, say) would otherwise report that project's commit.
    """
    git = ["git", "-C", str(ROOT)]
    top = output_of([*git, "rev-parse", "--show-toplevel"])
    if top is None or Path(top).resolve() != ROOT:
        return None
    commit = output_of([*git, "rev-parse", "--short=12", "HEAD"])
    if commit is None:
        return None
    return commit + ("+" if output_of([*git, "status", "--porcelain"]) else "")
