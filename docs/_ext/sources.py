"""Links from a page to a file outside docs/: in the book they lead to a page that shows the file.

`[dense.py](../stage1_pure_python/dense.py)` works where the repository is browsed. The book has no repository beside
it, so each file that some page links to gets a page of its own, source/stage1_pure_python/dense.py.html, with its text
highlighted and its lines numbered. A link to a folder becomes plain text.
"""

from __future__ import annotations

import html
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docutils import nodes
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import TextLexer, get_lexer_for_filename
from pygments.util import ClassNotFound
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.transforms import SphinxTransform

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"


class LinksToSources(SphinxTransform):
    """Runs while a page is read, before Sphinx looks for the documents and downloads that its links name."""

    default_priority = 100

    def apply(self, **kwargs: Any) -> None:
        page = Path(self.env.doc2path(self.env.docname)).resolve()
        for kind in (addnodes.download_reference, addnodes.pending_xref):
            for link in list(self.document.findall(kind)):
                target = self.target(page, link)
                if target is not None:
                    link.replace_self(self.replacement(target, link))

    def target(self, page: Path, link: nodes.Element) -> Path | None:
        """The file or folder outside docs/ that a link leads to; None for every other link."""
        if link.get("reftype") != "myst":
            return None
        named = link["reftarget"]
        if link.get("refdomain") == "doc":  # MyST has taken the ending off, and counts from docs/
            base, names = DOCS, [f"{named}.md", f"{named}.ipynb"]
        else:
            base, names = page.parent, [named]
        for name in names:
            path = Path(os.path.normpath(base / name))
            inside = path.is_relative_to(DOCS) and not path.is_dir()
            if path.exists() and not inside and path.is_relative_to(ROOT):
                return path
        return None

    def replacement(self, target: Path, link: nodes.Element) -> nodes.Element:
        if target.is_dir():
            return nodes.inline("", "", *link.children)
        name = target.relative_to(ROOT).as_posix()
        sources(self.env).setdefault(self.env.docname, set()).add(name)
        up = "../" * self.env.docname.count("/")
        return nodes.reference("", "", *link.children, internal=True, refuri=f"{up}source/{name}.html")


def sources(env: BuildEnvironment) -> dict[str, set[str]]:
    """Page -> the files that it links to."""
    if not hasattr(env, "linked_sources"):
        env.linked_sources = {}
    return env.linked_sources


def forget(app: Sphinx, env: BuildEnvironment, docname: str) -> None:
    sources(env).pop(docname, None)


def merge(app: Sphinx, env: BuildEnvironment, docnames: list[str], other: BuildEnvironment) -> None:
    sources(env).update(sources(other))


def pages(app: Sphinx) -> Iterator[tuple[str, dict[str, Any], str]]:
    """A page for each file that is linked to: (name, what the template is given, template)."""
    for name in sorted(set().union(*sources(app.env).values())):
        text = (ROOT / name).read_text(encoding="utf-8")
        try:
            lexer = get_lexer_for_filename(name)
        except ClassNotFound:
            lexer = TextLexer()
        listing = highlight(text, lexer, HtmlFormatter(linenos="inline", cssclass="highlight source", wrapcode=True))
        title = f"<code>{html.escape(name)}</code>"
        body = f'<section><h1>{title}</h1><div class="highlight-source notranslate">{listing}</div></section>'
        yield f"source/{name}", {"title": html.escape(name), "body": body}, "page.html"


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_transform(LinksToSources)
    app.connect("env-purge-doc", forget)
    app.connect("env-merge-info", merge)
    app.connect("html-collect-pages", pages)
    return {"env_version": 1, "parallel_read_safe": True, "parallel_write_safe": True}
