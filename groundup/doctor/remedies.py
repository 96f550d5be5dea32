"""The commands that mend what the doctor found.

Each function returns one command, or several with a line for each, for the machine's own shell: sh, or PowerShell on
Windows.
"""

from __future__ import annotations

import shlex
from typing import NamedTuple

from groundup.doctor.facts import DEPENDENCIES, TOO_NEW_FOR_INTEL_MACS, Facts


class Manager(NamedTuple):
    """A package manager, and what it calls things.

    systems: the names in ID and ID_LIKE of /etc/os-release of those that have it; install, remove: its commands
    compiler, python: the packages of a C compiler, and of a Python that is new enough; "" where it has none
    """

    systems: tuple[str, ...]
    install: str
    remove: str
    compiler: str
    python: str


MANAGERS = {
    "apt": Manager(
        ("debian", "ubuntu"), "apt update\napt install", "apt purge", "gcc libc6-dev", "python3.11 python3.11-venv"
    ),
    "dnf": Manager(("fedora", "rhel", "centos"), "dnf install", "dnf remove", "gcc glibc-devel", "python3.12"),
    "pacman": Manager(("arch",), "pacman -S", "pacman -Rns", "gcc", ""),
    "zypper": Manager(("suse", "opensuse"), "zypper install", "zypper remove", "gcc glibc-devel", "python312"),
    "apk": Manager(("alpine",), "apk add", "apk del", "gcc musl-dev", "python3"),
}

DRIVERS = "https://www.nvidia.com/drivers"


def requirement(facts: Facts, name: str) -> str:
    """What pip is asked for to have a package that groundup needs: "numba>=0.62"."""
    intel_mac = facts.system == "darwin" and "x86_64" in facts.machine
    below = TOO_NEW_FOR_INTEL_MACS.get(name) if intel_mac else None
    return f"{name}>={DEPENDENCIES[name]}" + (f",<{below}" if below else "")


def manager(facts: Facts) -> Manager | None:
    """The package manager of this Linux; None on other systems and unknown distributions."""
    names = {each.split("-")[0] for each in facts.distribution}  # openSUSE's is opensuse-tumbleweed or opensuse-leap
    found = (each for each in MANAGERS.values() if names & set(each.systems))
    return next(found, None) if facts.system == "linux" else None


def _as_administrator(facts: Facts, commands: str) -> str:
    return commands if facts.administrator else "\n".join(f"sudo {line}" for line in commands.splitlines())


def install(facts: Facts, packages: str) -> str:
    """Install packages of the system, by its package manager."""
    known = manager(facts)
    return _as_administrator(facts, f"{known.install} {packages}") if known and packages else ""


def remove(facts: Facts, packages: tuple[str, ...]) -> str | None:
    """Remove packages of the system; None for an unknown package manager."""
    known = manager(facts)
    return _as_administrator(facts, f"{known.remove} {' '.join(packages)}") if known and packages else None


def quoted(facts: Facts, path: str) -> str:
    """A path as an argument for this machine's shell, in quotes where it needs them."""
    if facts.system != "win32":
        return shlex.quote(path)
    return f'"{path}"' if set(path) & set(" ()&'") else path


def python(facts: Facts, executable: str | None = None) -> str:
    """The words that call this Python, or another. PowerShell takes a program in quotes only after an ampersand."""
    word = quoted(facts, executable or facts.executable)
    return f"& {word}" if facts.system == "win32" and word.startswith('"') else word


def pip(facts: Facts, *packages: str, options: str = "") -> str:
    """Install packages, as pip writes them, into this Python; where pip would refuse to, into a new environment beside
    the project, with groundup itself."""
    if facts.externally_managed:
        return environment(facts, *packages)
    words = " ".join([*([options] if options else []), *(f'"{each}"' for each in packages)])
    if facts.pip:
        return f"{python(facts)} -m pip install {words}"
    if facts.uv:
        return f"uv pip install --python {quoted(facts, facts.executable)} {words}"
    return f"{python(facts)} -m ensurepip --upgrade\n{python(facts)} -m pip install {words}"


def uninstall(facts: Facts, *packages: str) -> str:
    """Remove packages from this Python."""
    words = " ".join(packages)
    if not facts.pip and facts.uv:
        return f"uv pip uninstall --python {quoted(facts, facts.executable)} {words}"
    return f"{python(facts)} -m pip uninstall -y {words}"


def environment(facts: Facts, *packages: str, program: str | None = None) -> str:
    """A new virtual environment, with groundup and these packages in it. program: the Python to make it with."""
    windows = facts.system == "win32"
    slash = "\\" if windows else "/"
    folder = f"{facts.root}{slash}.venv" if facts.project else ".venv"
    inner = slash.join([folder, *(("Scripts", "python.exe") if windows else ("bin", "python"))])
    if facts.project:
        source = f"-e {quoted(facts, facts.root)}"
    else:
        source = quoted(facts, facts.origin) if facts.origin else "-e ."  # no index has it: in a checkout's folder
    words = [source, *(f'"{each}"' for each in packages)]
    lines = [
        f"{program or python(facts)} -m venv {quoted(facts, folder)}",
        f"{python(facts, inner)} -m pip install {' '.join(words)}",
    ]
    if manager(facts) == MANAGERS["apt"] and not facts.ensurepip and program is None:
        lines.insert(0, install(facts, "python3-venv"))
    return "\n".join(lines)


def unset(facts: Facts, *names: str) -> str:
    """Remove environment variables, in this window only: what sets them for new windows is not known."""
    if facts.system == "win32":
        return "\n".join(f"Remove-Item Env:{name}" for name in names)
    return f"unset {' '.join(names)}"


def compiler(facts: Facts) -> str:
    """Install a C compiler: the system's package where one is known, else the Python package that brings one."""
    if facts.system == "darwin":
        return "xcode-select --install"
    known = manager(facts)
    return install(facts, known.compiler if known else "") or pip(facts, "ziglang>=0.14")


def newer_python(facts: Facts) -> str | None:
    """Make an environment with a Python that is new enough; where none is installed, install one."""
    if facts.other_pythons:
        return environment(facts, program=facts.other_pythons[0])
    if facts.system == "win32":
        return "winget install Python.Python.3.13"
    if facts.system == "darwin":
        return "brew install python@3.13"
    known = manager(facts)
    return install(facts, known.python if known else "") or None


def driver(facts: Facts) -> str | None:
    """Install NVIDIA's driver from the system's packages; None where the user has to take it from NVIDIA's page."""
    if facts.wsl or facts.hosted or facts.system != "linux":
        return None
    if "ubuntu" in facts.distribution:
        return _as_administrator(facts, "ubuntu-drivers install\nreboot")
    if manager(facts) == MANAGERS["apt"]:
        return install(facts, "nvidia-driver") + "\n" + _as_administrator(facts, "reboot")
    if "fedora" in facts.distribution[:1]:
        return _as_administrator(facts, "dnf install akmod-nvidia xorg-x11-drv-nvidia-cuda\nreboot")
    return None


def restore(facts: Facts, part: str) -> str | None:
    """Bring back a folder of groundup as it was published; None where its source is not known."""
    if facts.checkout:
        return f"git -C {quoted(facts, facts.root)} restore {part}"
    if facts.origin is None:
        return None
    return pip(facts, facts.origin, options="--force-reinstall --no-deps")


def move(facts: Facts, old: str, new: str) -> str:
    """Rename a folder."""
    return f"{'move' if facts.system == 'win32' else 'mv'} {quoted(facts, old)} {quoted(facts, new)}"


def folder(facts: Facts, path: str) -> str:
    """Make a folder."""
    return f"mkdir {quoted(facts, path)}" if facts.system == "win32" else f"mkdir -p {quoted(facts, path)}"


def assign(facts: Facts, name: str, value: str) -> str:
    """Set an environment variable, in this window."""
    if facts.system == "win32":
        return f'$env:{name} = "{value}"'
    return f'export {name}="{value}"'
