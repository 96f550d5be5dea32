"""The document around every page: head, navigation, the lines for news and errors, and the page's own part.

A page's part is static/page.html in its folder, a fragment without scripts and styles of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from shared.markup import Html, join, tag

HERE = Path(__file__).parent
NOTHING = Html("")


@dataclass(frozen=True)
class Page:
    """One page. name: its folder and its address; title: in the navigation; sentence: what it shows."""

    name: str
    title: str
    sentence: str

    @property
    def static(self) -> Path:
        """The folder of its own files."""
        return HERE / self.name / "static"


PAGES = (
    Page("playground", "Playground", "Train a small network and watch what every neuron has learned."),
    Page("digits", "Digits", "Draw a digit and see how the network reads it, on every stage."),
    Page("convolution", "Convolution", "Click a pixel of a map and see the window, the filter and the sum behind it."),
    Page("race", "Race", "Four stages train the same network at once, and all of them read your digit."),
    Page("runs", "Runs", "Follow a training, and compare it with earlier ones."),
    Page("floors", "Floors", "The same function on four stages, line by line, and run on the same numbers."),
    Page("kernel", "Kernel", "Walk through a CUDA kernel, thread by thread, forwards and backwards."),
    Page("course", "Course", "Your exercises, with the verdict at every save."),
    Page("benchmarks", "Benchmarks", "Your own race or bench beside a recorded one: how fast is this machine?"),
)


def page_named(name: str) -> Page:
    """The page of this name. Raises ValueError, naming all, for an unknown one."""
    for page in PAGES:
        if page.name == name:
            return page
    raise ValueError(f"studio: there is no page {name!r}; the pages are {', '.join(page.name for page in PAGES)}")


def document(page: Page) -> str:
    """A page as the studio serves it."""
    fragment = Html((page.static / "page.html").read_text(encoding="utf-8"))
    head = join(
        _sheet("/static/common/studio.css"),
        _sheet(f"/static/{page.name}/page.css"),
        tag("script", type="module", src=f"/static/{page.name}/page.js"),
    )
    return framed(page.title, head, fragment, page)


def index() -> str:
    """The start page, which lists all pages."""
    cards = [
        tag("li", tag("a", tag("b", each.title), tag("span", each.sentence), href=f"/{each.name}")) for each in PAGES
    ]
    body = join(
        tag("h1", "The studio of groundup"),
        tag(
            "p",
            "One neural network, built four times: in pure Python, NumPy, C and CUDA. These are its four stages. ",
            "Everything here runs on this machine, with the library's own code.",
        ),
        tag("ul", *cards, class_="cards"),
    )
    return framed("Studio", _sheet("/static/common/studio.css"), body, None)


def framed(title: str, head: Html, body: Html, page: Page | None) -> str:
    """The whole document. page: which one is current in the navigation."""
    links = [tag("a", each.title, href=f"/{each.name}", **_current(each, page)) for each in PAGES]
    navigation = join(
        tag("a", "Skip to the page", href="#main", class_="skip"),
        tag("header", tag("nav", tag("a", "groundup", href="/", class_="home"), *links, aria_label="Pages")),
    )
    alive = tag("script", type="module", src="/static/common/alive.js")
    return alone(title, join(head, alive), tag("main", body, id="main", tabindex=-1), navigation)


def alone(title: str, head: Html, main: Html, navigation: Html = NOTHING) -> str:
    """The whole document of a page that may stand alone, without a navigation. main: with its element"""
    return "<!DOCTYPE html>\n" + tag(
        "html",
        tag(
            "head",
            tag("meta", charset="utf-8"),
            tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
            tag("meta", name="color-scheme", content="light dark"),
            tag("title", f"{title} · groundup studio"),
            Html('<link rel="icon" href="data:,">'),  # or the browser asks for /favicon.ico
            head,
        ),
        tag(
            "body",
            navigation,
            main,
            tag("div", id="said", class_="hidden", role="status"),
            tag("div", id="failed", role="alert", hidden="hidden"),
        ),
        lang="en",
    )


def _current(each: Page, page: Page | None) -> dict[str, str]:
    return {"aria_current": "page"} if each is page else {}


def _sheet(path: str) -> Html:
    return Html(f'<link rel="stylesheet" href="{path}">')
