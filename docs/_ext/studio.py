"""Pages of the studio in the book: ```{studio} digits``` puts one into the page, where it runs without a server.

    ```{studio} playground
    :title: What the words under it say
    :settings: data=xor activation=tanh
    :height: 700
    What to try.
    ```

Each page becomes one file, _static/studio/NAME.html, when the book has been built (groundup/studio/export.py), and an
<iframe> that is loaded when the reader comes near it. Below it stand what to try, and a link to the file, which can
also be saved. `:walk:` names the walk of the page kernel; `:settings:` of convolution are network, digit and class, and
the layer, channel, row and column of the number that the page shows at first.
"""

from __future__ import annotations

import hashlib
import html
import json
import re
import shutil
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.docutils import SphinxDirective

from groundup.studio.export import EXPORTED, export

FOLDER = "_static/studio"

Exports = dict[str, tuple[str, dict[str, Any]]]
"""Name of a file -> the page and its options."""


class Studio(SphinxDirective):
    """```{studio} PAGE```, with what to try as its content."""

    required_arguments = 1
    has_content = True
    option_spec = {  # noqa: RUF012 (docutils reads it from the class)
        "title": directives.unchanged_required,
        "settings": directives.unchanged,
        "walk": directives.unchanged,
        "height": directives.positive_int,
    }

    def run(self) -> list[nodes.Node]:
        page = self.arguments[0]
        if page not in EXPORTED or "title" not in self.options:
            raise self.error(f"studio: expected one of {', '.join(EXPORTED)} and a :title:, got {page}")
        for name, value in self.options.items():
            if re.search(rf"(^|\s):({'|'.join(self.option_spec)}):", str(value)):
                raise self.error(
                    f"studio: each option has a line of its own, but :{name}: has another one in it: {value}"
                )
        options = _options(self.options)
        name = file_name(page, options)
        exports(self.env).setdefault(self.env.docname, {})[name] = (page, options)
        address = html.escape("../" * self.env.docname.count("/") + f"{FOLDER}/{name}")
        title, height = html.escape(self.options["title"]), self.options.get("height", 760)
        frame = f'<iframe src="{address}" title="{title}" loading="lazy" style="height:{height}px"></iframe>'
        words = nodes.container(classes=["studio-words"])
        self.state.nested_parse(self.content, self.content_offset, words)
        link = f'<p class="studio-link">{title}. <a href="{address}">Open it alone, or save it: it is one file.</a></p>'
        return [
            nodes.raw("", f'<div class="studio studio-{page}">{frame}{link}', format="html"),
            words,
            nodes.raw("", "</div>", format="html"),
        ]


def _options(given: dict[str, Any]) -> dict[str, Any]:
    """The options of `export`. Settings are name=value, where a value is JSON or a word."""
    options: dict[str, Any] = {"walk": given["walk"]} if "walk" in given else {}
    for pair in given.get("settings", "").split():
        name, _, value = pair.partition("=")
        try:
            options[name] = json.loads(value)
        except ValueError:
            options[name] = value
    return options


def file_name(page: str, options: dict[str, Any]) -> str:
    """digits.html, kernel-tiles.html; settings give a name that is the same for the same settings."""
    if not options:
        return f"{page}.html"
    if set(options) == {"walk"}:
        return f"{page}-{options['walk']}.html"
    return f"{page}-{hashlib.sha256(json.dumps(options, sort_keys=True).encode()).hexdigest()[:8]}.html"


def exports(env: BuildEnvironment) -> dict[str, Exports]:
    """Document -> the files that it shows."""
    if not hasattr(env, "studio_exports"):
        env.studio_exports = {}
    return env.studio_exports


def forget(app: Sphinx, env: BuildEnvironment, docname: str) -> None:
    exports(env).pop(docname, None)


def merge(app: Sphinx, env: BuildEnvironment, docnames: list[str], other: BuildEnvironment) -> None:
    exports(env).update(exports(other))


def write(app: Sphinx, error: Exception | None) -> None:
    """Write the files, each once, after Sphinx has copied its static ones."""
    if error is not None or app.builder.format != "html":
        return
    folder = Path(app.outdir) / FOLDER
    shutil.rmtree(folder, ignore_errors=True)
    wanted = {name: what for files in exports(app.env).values() for name, what in files.items()}
    for name, (page, options) in sorted(wanted.items()):
        export(page, folder / name, options)


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("studio", Studio)
    app.connect("env-purge-doc", forget)
    app.connect("env-merge-info", merge)
    app.connect("build-finished", write)
    return {"env_version": 1, "parallel_read_safe": True, "parallel_write_safe": True}
