"""Write this project's address wherever it belongs, once it has one.

    python scripts/set_repository.py https://HOST/OWNER/groundup

Until then the pages say `git clone ADDRESS groundup`, and docs/guides/installing.md says what ADDRESS is. This puts the
address into them, into the notebooks' first cells, pyproject.toml ([project.urls]) and CITATION.cff.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

PLACES = ("README.md", "docs/**/*.md", "docs/notebooks/*.ipynb", "pyproject.toml", "CITATION.cff")


def with_address(name: str, text: str, address: str) -> str:
    """A file's text with the address in it. name: the file's name."""
    if name == "pyproject.toml":
        pages = {
            "Homepage": "",
            "Documentation": "/tree/main/docs",
            "Issues": "/issues",
            "Changelog": "/blob/main/CHANGELOG.md",
        }
        lines = "".join(f'{key} = "{address}{rest}"\n' for key, rest in pages.items())
        return text.replace("[project.scripts]", f"[project.urls]\n{lines}\n[project.scripts]", 1)
    if name == "CITATION.cff":
        return f'{text.rstrip()}\nrepository-code: "{address}"\n'
    if name.endswith(".ipynb"):
        return text.replace('REPOSITORY = \\"\\"', f'REPOSITORY = \\"{address}\\"', 1)
    return re.sub(r"(git clone |git\+)ADDRESS", rf"\g<1>{address}", text)


def main(arguments: list[str], root: Path = ROOT) -> None:
    """Change the files below root. Ends with a sentence if the address is none, or is set already."""
    if len(arguments) != 1 or not re.fullmatch(r"https://[\w.-]+/[\w./-]*[\w-]", arguments[0]):
        sys.exit(f"expected one address such as https://HOST/OWNER/groundup, got {' '.join(arguments) or 'none'}")
    if "[project.urls]" in (root / "pyproject.toml").read_text(encoding="utf-8"):
        sys.exit("pyproject.toml has [project.urls] already: the address is set")
    for path in sorted({path for place in PLACES for path in root.glob(place)}):
        before = path.read_text(encoding="utf-8")
        after = with_address(path.name, before, arguments[0])
        if after != before:
            path.write_text(after, encoding="utf-8")
            print(path.relative_to(root).as_posix())


if __name__ == "__main__":
    main(sys.argv[1:])
