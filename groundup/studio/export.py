"""A page of the studio as one HTML file, which works from a USB stick without a server or a network.

The file holds the page's part, its style sheets, its modules, and its data:

- Each module is a data: URL in an import map. Modules import each other by absolute paths, which a data: URL cannot
  resolve, so "/static/common/draw.js" becomes the bare name "common/draw.js", which the import map knows.
- The data is JSON in a <script id="embedded">, where static/common/embedded.js finds it. A page that can be exported
  has a file embedded.py with the function `data(options)`, which makes it.
- A content security policy lets nothing leave the file and runs no script but these.

What needs the studio's server carries the attribute data-server in the page's part, and is not shown.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import quote

from groundup.studio.frame import HERE, Page, alone, page_named
from shared.machine.atomic import write_atomically
from shared.markup import Html, join, tag

EXPORTED = ("playground", "digits", "convolution", "race", "kernel")
"""The pages that work without a server."""

IMPORT = re.compile(r'(\bfrom\s*|\bimport\s*)"/static/([^"]+)"')
"""An import of a module of the studio."""

SHEET = re.compile(r'@import url\("/static/(\w+)/([\w.]+)"\);')
"""An import of a style sheet of the studio."""

READABLE = " !$&'()*+,-./:;=?@[]^_`{|}~"
"""What stays as it is in a data: URL, beside letters and digits, so that a reader of the file can read the modules."""

WITHOUT_SERVER = "[data-server] { display: none !important; }"


def export(page: str, path: Path, options: Mapping[str, Any]) -> None:
    """Write a page as one file.

    options: as the page's `embedded.data` takes them: for digits "run", the folder of a run, for kernel "walk"
    Raises ValueError for a page that cannot be exported and for wrong options, OSError if the file cannot be written.
    """
    write_atomically(path, document(page, options).encode())


def document(page: str, options: Mapping[str, Any]) -> str:
    """The text of the file."""
    if page not in EXPORTED:
        page_named(page)
        raise ValueError(f"studio: --export: {page} needs its server; the pages {', '.join(EXPORTED)} can be exported")
    about = page_named(page)
    data = import_module(f"groundup.studio.{page}.embedded").data(options)
    import_map = json.dumps({"imports": {name: _url(text) for name, text in modules(f"{page}/page.js").items()}})
    entry = f'import "{page}/page.js";'
    sheets = [HERE / "static" / "common" / "studio.css", about.static / "page.css"]
    style = "\n".join([*(_checked_style(path) for path in sheets), WITHOUT_SERVER])
    head = join(
        tag("meta", http_equiv="Content-Security-Policy", content=Html(policy(import_map, entry))),
        tag("style", Html(style)),
        tag("script", Html(import_map), type="importmap"),
        tag("script", Html(as_json(data)), type="application/json", id="embedded"),
        tag("script", Html(entry), type="module"),
    )
    return _document(about, head)


def policy(*scripts: str) -> str:
    """The content security policy of the file: these inline scripts, and modules from data: URLs."""
    hashes = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    allowed = " ".join([*(f"'sha256-{each}'" for each in hashes), "data:"])
    parts = ["default-src 'none'", f"script-src {allowed}", "style-src 'unsafe-inline'", "img-src data: blob:"]
    return "; ".join([*parts, "form-action 'none'", "base-uri 'none'"])


def modules(entry: str) -> dict[str, str]:
    """A module and all that it imports: bare name, such as "common/draw.js" -> its source with bare names.

    Raises ValueError for an import of a file that is not there.
    """
    found: dict[str, str] = {}
    waiting = [entry]
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        page, _, file = name.partition("/")
        path = HERE / "static" / "common" / file if page == "common" else HERE / page / "static" / file
        if not path.is_file():
            raise ValueError(f"studio: --export: /static/{name} is imported, but there is no {path}")
        source = path.read_text(encoding="utf-8")
        waiting += [each for _, each in IMPORT.findall(source)]
        found[name] = IMPORT.sub(r'\1"\2"', source)
    return found


def as_json(data: object) -> str:
    """The data as JSON that no HTML parser takes for markup; ValueError for NaN and infinity."""
    return json.dumps(data, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")


def _url(source: str) -> str:
    return "data:text/javascript;charset=utf-8," + quote(source, safe=READABLE)


def _checked_style(path: Path) -> str:
    """A style sheet with those of the studio that it imports. One that names another file, or ends the element that
    holds it, would break the page."""
    text = SHEET.sub(
        lambda found: _checked_style(HERE / found[1] / "static" / found[2]), path.read_text(encoding="utf-8")
    )
    if "</" in text or "@import" in text or re.search(r"url\((?!['\"]?data:)", text):
        raise ValueError(f"studio: --export: {path} refers to another file, which an exported page does not have")
    return text


def _document(page: Page, head: Html) -> str:
    fragment = Html((page.static / "page.html").read_text(encoding="utf-8"))
    words = "This page is one file and works without a network. With groundup installed, there is more to see: "
    last = tag("p", words, tag("code", f"groundup studio {page.name}"), class_="quiet")
    return alone(page.title, head, tag("main", fragment, last, id="main"))
