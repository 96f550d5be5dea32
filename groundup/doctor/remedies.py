"""The commands that mend what the doctor found.

Each function returns one command, or several with a line for each, for the machine's own shell: sh, or PowerShell on
Windows.
"""

from __future__ import annotations

import shlex

from groundup.doctor.facts import DEPENDENCIES, TOO_NEW_FOR_INTEL_MACS, Facts

MANAGERS = {
    "apt": ("debian", "ubuntu"),
    "dnf": ("fedora", "rhel", "centos"),
    "pacman": ("arch",),
    "zypper": ("suse", "opensuse"),
    "apk": ("alpine",),
}
"""Package manager -> the names in ID and ID_LIKE of /etc/os-release of systems that have it."""

INSTALL = {
    "apt": "apt update\napt install",
    "dnf": "dnf install",
    "pacman": "pacman -S",
    "zypper": "zypper install",
    "apk": "apk add",
}
REMOVE = {"apt": "apt purge", "dnf": "dnf remove", "pacman": "pacman -Rns", "zypper": "zypper remove", "apk": "apk del"}

COMPILER = {
    "apt": "gcc libc6-dev",
    "dnf": "gcc glibc-devel",
    "pacman": "gcc",
    "zypper": "gcc glibc-devel",
    "apk": "gcc musl-dev",
}
PYTHON = {"apt": "python3.11 python3.11-venv", "dnf": "python3.12", "zypper": "python312", "apk": "python3"}

DRIVERS = "https://www.nvidia.com/drivers"


def requirement(facts: Facts, name: str) -> str:
    """What pip is asked for to have a package that groundup needs: "numba>=0.62"."""
    intel_mac = facts.system == "darwin" and "x86_64" in facts.machine
    below = TOO_NEW_FOR_INTEL_MACS.get(name) if intel_mac else None
    return f"{name}>={DEPENDENCIES[name]}" + (f",<{below}" if below else "")


def manager(facts: Facts) -> str | None:
    """The package manager of this Linux; None on other systems and unknown distributions."""
    if facts.system != "linux":
        return None
    for name, systems in MANAGERS.items():
        # openSUSE calls itself opensuse-tumbleweed or opensuse-leap.
        if any(each.split("-")[0] in systems for each in facts.distribution):
            return name
    return None


def _as_administrator(facts: Facts, commands: str) -> str:
    return commands if facts.administrator else "\n".join(f"sudo {line}" for line in commands.splitlines())


def install(facts: Facts, packages: dict[str, str]) -> str | None:
    """Install packages of the system. packages: manager -> their names; None for an unknown manager."""
    name = manager(facts)
    if name is None or name not in packages:
        return None
    return _as_administrator(facts, f"{INSTALL[name]} {packages[name]}")


def remove(facts: Facts, packages: tuple[str, ...]) -> str | None:
    """Remove packages of the system; None for an unknown package manager."""
    name = manager(facts)
    if name is None or not packages:
        return None
    return _as_administrator(facts, f"{REMOVE[name]} {' '.join(packages)}")


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
    if manager(facts) == "apt" and not facts.ensurepip and program is None:
        lines.insert(0, _as_administrator(facts, f"{INSTALL['apt']} python3-venv"))
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
    return install(facts, COMPILER) or pip(facts, "ziglang>=0.14")


def newer_python(facts: Facts) -> str | None:
    """Make an environment with a Python that is new enough; where none is installed, install one."""
    if facts.other_pythons:
        return environment(facts, program=facts.other_pythons[0])
    if facts.system == "win32":
        return "winget install Python.Python.3.13"
    if facts.system == "darwin":
        return "brew install python@3.13"
    return install(facts, PYTHON)


def driver(facts: Facts) -> str | None:
    """Install NVIDIA's driver from the system's packages; None where the user has to take it from NVIDIA's page."""
    if facts.wsl or facts.hosted or facts.system != "linux":
        return None
    if "ubuntu" in facts.distribution:
        return _as_administrator(facts, "ubuntu-drivers install\nreboot")
    if manager(facts) == "apt":
        return _as_administrator(facts, f"{INSTALL['apt']} nvidia-driver\nreboot")
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
