"""The book: it builds without a warning, every link in it leads somewhere, it asks nothing of the network, every
picture says in words what it shows, and on a phone no page is wider than the screen."""

from __future__ import annotations

import html
import importlib.util
import json
import os
import re
import runpy
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

from tests.wide import wide

ROOT = Path(__file__).resolve().parents[2]
NEEDED = ("sphinx", "myst_nb", "furo", "latex2mathml")
MISSING = [name for name in NEEDED if importlib.util.find_spec(name) is None]

pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"needs {', '.join(MISSING)}: pip install -e '.[docs]'")

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
browser = pytest.mark.skipif(
    BROWSER is None, reason="no Chromium on the path (Debian and Ubuntu: apt install chromium)"
)

PHONE = 360
"""Width of a small phone held upright, in CSS pixels."""

LOADED = {"script": ("src",), "img": ("src", "srcset"), "source": ("src", "srcset"), "iframe": ("src",)}
LOADED |= {"video": ("src", "poster"), "audio": ("src",), "embed": ("src",), "object": ("data",)}
"""What a browser fetches when it opens a page: tag -> attributes. <link> is looked at by itself."""

FETCHED_LINKS = {"stylesheet", "icon", "preload", "modulepreload", "prefetch", "preconnect", "dns-prefetch", "manifest"}
"""Values of <link rel=...> at which a browser goes and fetches something."""

ASK = """<script>onload = async () => {
const frame = document.querySelector("iframe"), found = {};
for (const page of PAGES) {
  await new Promise(done => { frame.onload = done; frame.src = page; });
  const inside = frame.contentDocument, view = frame.contentWindow, root = inside.documentElement;
  const boxed = each => { for (let box = each.parentElement; box.tagName != "ARTICLE"; box = box.parentElement)
    if (/auto|scroll|hidden/.test(view.getComputedStyle(box).overflowX)) return true; return false; };
  const channel = value => (value /= 255) <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  const numbers = text => text.match(/[\\d.]+/g).map(Number);
  const light = ([red, green, blue]) => 0.2126 * channel(red) + 0.7152 * channel(green) + 0.0722 * channel(blue);
  const ground = each => { for (; each; each = each.parentElement) {
    const colour = numbers(view.getComputedStyle(each).backgroundColor);
    if (colour.length < 4 || colour[3] > 0.99) return colour; } return [255, 255, 255]; };
  const contrast = each => { const [a, b] = [numbers(view.getComputedStyle(each).color), ground(each)].map(light);
    return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05); };
  const faint = [];
  for (const theme of ["light", "dark"]) {
    inside.body.dataset.theme = theme;
    for (const each of inside.querySelectorAll("article *"))
      if ([...each.childNodes].some(node => node.nodeType == 3 && node.data.trim()) && each.offsetParent
        && !each.closest("svg, math") && contrast(each) < 4.5)
        faint.push(`${theme}, ${contrast(each).toFixed(1)}, ${each.className}: ${each.textContent.slice(0, 40)}`);
  }
  found[page] = {
    faint,
    width: view.innerWidth, wide: Math.max(...["html", "body", ".content"]
      .map(each => inside.querySelector(each)).filter(each => each).map(each => each.scrollWidth)),
    outside: [...inside.querySelectorAll("article *")]
      .filter(each => each.getBoundingClientRect().right > root.clientWidth + 1 && !boxed(each))
      .map(each => each.outerHTML.slice(0, 100)),
    fetched: view.performance.getEntriesByType("resource").map(each => each.name).filter(each => /^https?:/.test(each)),
  };
}
document.title = JSON.stringify(found);
}</script>"""


@dataclass
class Page(HTMLParser):
    """What the tests ask of a page. ids: to link to; links: <a href>; fetched: (tag, address) that a browser loads;
    images, frames: (address, what it says in words or None); schemes: image -> its classes."""

    ids: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    fetched: list[tuple[str, str]] = field(default_factory=list)
    images: list[tuple[str, str | None]] = field(default_factory=list)
    schemes: dict[str, str] = field(default_factory=dict)
    frames: list[tuple[str, str | None]] = field(default_factory=list)
    styles: str = ""

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        named = dict(attributes)
        self.ids |= {named[name] or "" for name in ("id", "name") if name in named}
        self.styles += named.get("style") or ""
        if tag == "a" and named.get("href"):
            self.links.append(str(named["href"]))
        if tag == "link" and FETCHED_LINKS & set((named.get("rel") or "").split()):
            self.fetched.append((tag, named.get("href") or ""))
        for name in LOADED.get(tag, ()):
            if named.get(name):
                self.fetched.append((tag, str(named[name])))
        if tag == "img":
            self.images.append((named.get("src") or "", named.get("alt")))
            self.schemes[named.get("src") or ""] = named.get("class") or ""
        if tag == "iframe":
            self.frames.append((named.get("src") or "", named.get("title")))


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the built book. Every warning is an error, as in `make book`; notebooks are not run."""
    folder = tmp_path_factory.mktemp("book")
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", "-d", str(folder / "read")]
    command += ["-D", "nb_execution_mode=off"]
    built = subprocess.run([*command, str(ROOT / "docs"), str(folder / "html")], capture_output=True, text=True)
    assert built.returncode == 0, built.stdout + built.stderr
    return folder / "html"


@pytest.fixture(scope="module")
def pages(book: Path) -> dict[Path, Page]:
    """Every page of the book, read."""
    found = {}
    for path in sorted(book.rglob("*.html")):
        page = Page()
        page.feed(path.read_text(encoding="utf-8"))
        found[path] = page
    return found


def outside(address: str) -> bool:
    """Whether an address is not in the book."""
    return bool(urlsplit(address).scheme or urlsplit(address).netloc)


def test_every_page_of_the_docs_is_in_the_book_and_in_its_table_of_contents(
    book: Path, pages: dict[Path, Page]
) -> None:
    contents = {unquote(urlsplit(link).path) for link in pages[book / "index.html"].links}
    for page in [*(ROOT / "docs").rglob("*.md"), *(ROOT / "docs").rglob("*.ipynb")]:
        name = page.relative_to(ROOT / "docs").with_suffix(".html")
        if name.parts[0] != "_build" and ".ipynb_checkpoints" not in name.parts:
            assert (book / name).is_file(), name
            assert name.as_posix() in contents | {"index.html"}, f"index.md does not lead to {name}"


def test_every_link_leads_to_a_file_and_to_a_place_in_it(book: Path, pages: dict[Path, Page]) -> None:
    broken = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if outside(link):
                continue
            target = Path(os.path.normpath(path.parent / unquote(parts.path))) if parts.path else path
            if not target.is_file():
                broken.append(f"{path.relative_to(book)} links to {link}, which is not there")
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].ids:
                broken.append(f"{path.relative_to(book)} links to {link}, and that page has no such place")
    assert not broken, "\n".join(broken)


def test_no_page_asks_anything_of_the_network(book: Path, pages: dict[Path, Page]) -> None:
    asked = [
        f"{path.relative_to(book)}: <{tag}> {address}"
        for path, page in pages.items()
        for tag, address in page.fetched
        if outside(address) and not address.startswith("data:")
    ]
    sheets = [(path, path.read_text(encoding="utf-8")) for path in book.rglob("*.css")]
    sheets += [(path, page.styles) for path, page in pages.items()]
    for path, style in sheets:
        for address in re.findall(r"(?:url\(|@import\s)\s*['\"]?(?:https?:)?//[^'\")]*", style):
            asked.append(f"{path.relative_to(book)}: {address}")
    assert not asked, "\n".join(asked)


def test_what_a_page_fetches_is_in_the_book(book: Path, pages: dict[Path, Page]) -> None:
    for path, page in pages.items():
        for tag, address in page.fetched:
            if not outside(address):
                target = Path(os.path.normpath(path.parent / unquote(urlsplit(address).path)))
                assert target.is_file(), f"{path.relative_to(book)}: <{tag}> {address} is not there"


def test_every_picture_says_in_words_what_it_shows(book: Path, pages: dict[Path, Page]) -> None:
    images = [(path, *image) for path, page in pages.items() for image in page.images]
    assert len(images) > 10
    silent = [f"{path.relative_to(book)}: {address}" for path, address, words in images if not (words or "").strip()]
    assert not silent, "\n".join(silent)
    for path, address, words in images:
        assert Path(address).name not in str(words), f"{path.relative_to(book)}: {address} is described by its name"


def test_every_picture_fits_both_colour_schemes(book: Path, pages: dict[Path, Page]) -> None:
    """An SVG has both in it, or a dark ground of its own; a PNG has a twin. book.css turns a notebook's plots."""
    checked = 0
    for path, page in pages.items():
        for address, classes in page.schemes.items():
            picture = (path.parent / unquote(address)).resolve()
            if picture.suffix == ".svg":
                text = picture.read_text(encoding="utf-8")
                assert "prefers-color-scheme:dark" in text or 'class="ground"' in text, picture.name
            elif path.parent.name != "notebooks":
                twin = "-dark" in picture.name
                assert classes.split()[-1] == ("only-dark" if twin else "only-light"), picture.name
                other = address.replace("-dark", "") if twin else address.replace(".png", "-dark.png")
                assert other in page.schemes, f"{picture.name} stands alone"
                checked += twin
    assert checked == 8


WITH_STUDIO = {
    **{week: [r"playground-[0-9a-f]{8}\.html"] for week in (2, 3, 4)},  # with settings
    5: [r"digits\.html"],
    9: [r"kernel-guard\.html"],
    10: [r"kernel-rows_down\.html", r"kernel-columns_along\.html"],
    11: [r"kernel-tiles\.html", r"kernel-tiles_race\.html"],
    12: [r"kernel-activation\.html"],
    13: [r"kernel-tree\.html", r"kernel-row_softmax\.html"],
    14: [r"kernel-bias_gradient\.html"],
    **{week: [r"convolution-[0-9a-f]{8}\.html"] * (2 if week == 20 else 1) for week in range(19, 25)},
}
"""The weeks in which pages of the studio stand, and their files."""


@pytest.mark.parametrize(("week", "shown"), WITH_STUDIO.items())
def test_a_page_of_the_studio_stands_where_a_week_explains_the_thing(
    book: Path, pages: dict[Path, Page], week: int, shown: list[str]
) -> None:
    page = pages[book / "weeks" / f"week{week:02}.html"]
    assert len(page.frames) == len(shown)
    for (address, words), name in zip(page.frames, shown, strict=True):
        assert (words or "").strip()
        assert ":" not in str(words).removeprefix("A walk:")
        assert re.fullmatch(name, Path(address).name)
        assert address in page.links, "the file can also be opened alone"
        assert (book / "weeks" / address).resolve() in {path.resolve() for path in pages}


WORDS = (
    *("rung", "stage", "dropout mask", "epoch", "one-hot", "gflop/s", "register", "multiprocessor", "occupancy"),
    *("sector", "warp", "lane", "bank", "tile", "coalescing", "barrier", "race", "epilogue", "logit", "stub"),
)
"""What pages say before they explain it."""


def test_the_front_page_has_the_race(book: Path, pages: dict[Path, Page]) -> None:
    ((address, words),) = pages[book / "index.html"].frames
    assert (address, words) == ("_static/studio/race.html", "The race of the four stages")
    assert "C runs 451" in (book / "index.html").read_text(encoding="utf-8")
    recorded = json.loads((ROOT / "groundup" / "studio" / "race" / "recorded.json").read_bytes())["lanes"]
    assert int(recorded[2]["speed"] / recorded[0]["speed"]) == 451


def test_a_word_of_the_glossary_is_linked_where_a_page_first_uses_it(book: Path, pages: dict[Path, Page]) -> None:
    glossary = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    headings = re.findall(r"^## (.+)$", glossary, re.MULTILINE)
    assert set(WORDS) <= {heading.lower() for heading in headings}
    assert headings == sorted(headings, key=str.lower)
    linked: set[str] = set()
    for week in range(1, 19):
        path = book / "weeks" / f"week{week:02}.html"
        anchors = [link.partition("#")[2] for link in pages[path].links if "glossary.html#" in link]
        assert len(set(anchors)) == len(anchors) > 3, f"week {week}"
        linked |= set(anchors)
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"<(h\d|code)[^>]*>(?:(?!</\1>).)*glossary-word", text), (
            f"week {week}: in a heading or code"
        )
    assert {"rung", "warp", "sector", "epoch", "logit", "multiprocessor"} <= linked


def test_the_reference_has_every_public_function_of_a_module_and_the_search_finds_it(book: Path) -> None:
    page = (book / "reference" / "stage2.html").read_text(encoding="utf-8")
    found = (book / "searchindex.js").read_text(encoding="utf-8")
    source = (ROOT / "stage2_numpy" / "losses.py").read_text(encoding="utf-8")
    names = re.findall(r"^def ([a-z]\w+)", source, re.MULTILINE)
    assert len(names) > 5
    for name in names:
        assert f'id="stage2_numpy.losses.{name}"' in page
        assert f'"{name}"' in found


def test_formulas_are_drawn_by_the_browser_itself(book: Path) -> None:
    page = (book / "guides" / "backpropagation.html").read_text(encoding="utf-8")
    assert page.count("<math") > 30
    assert "MathJax" not in page
    assert not re.search(r"\\(frac|begin|sum|quad|top)", re.sub(r"<code.*?</code>", "", page, flags=re.DOTALL))


@wide
@browser
def test_on_a_phone_no_page_is_too_wide_and_all_text_can_be_read(
    book: Path, pages: dict[Path, Page], tmp_path: Path
) -> None:
    names = [path.relative_to(book).as_posix() for path in pages]
    frame = f'<iframe style="border:0;width:{PHONE}px;height:800px"></iframe>'
    script = ASK.replace("PAGES", json.dumps(names))
    shell = book / "phone.html"
    shell.write_text(f"<!DOCTYPE html><title></title><body>{frame}{script}</body>", encoding="utf-8")
    command = [str(BROWSER), "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"]
    command += ["--disable-background-networking", "--disable-component-update", "--disable-sync"]
    command += [f"--user-data-dir={tmp_path / 'browser'}", "--enable-logging=stderr", "--virtual-time-budget=60000"]
    command += ["--allow-file-access-from-files", "--dump-dom", shell.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    shell.unlink()
    title = re.search(r"<title>(.*?)</title>", done.stdout, re.DOTALL)
    assert title is not None
    found = json.loads(html.unescape(title[1]))
    assert set(found) == set(names)
    for name, seen in found.items():
        assert seen["width"] == PHONE
        assert seen["fetched"] == [], name
        assert (name, seen["outside"][:3]) == (name, [])
        assert seen["wide"] <= PHONE, f"{name} is {seen['wide']} pixels wide"
        assert (name, seen["faint"][:3]) == (name, []), "its contrast is below 4.5 to 1"
    assert [line for line in done.stderr.splitlines() if "CONSOLE" in line] == []


@wide
@browser
def test_the_pdf_has_every_page_and_every_line_of_code_in_full(book: Path) -> None:
    pypdf = pytest.importorskip("pypdf", reason="pypdf is not installed (extra pdf)")
    path = runpy.run_path(str(ROOT / "scripts" / "book_pdf.py"))["main"](book)
    pdf = pypdf.PdfReader(path)
    text = ["".join(page.extract_text().split()) for page in pdf.pages]
    starts: dict[str, list[int]] = {}
    for bookmark in leaves(pdf.outline):
        starts.setdefault(str(bookmark.title), []).append(pdf.get_destination_page_number(bookmark))
    assert f"groundup{starts['groundup'][0] + 1}" in text[0], "the table of contents has numbers"
    everything = "".join(text)
    for page in (ROOT / "docs").rglob("*.md"):
        source = page.read_text(encoding="utf-8")
        if "_build" in page.parts:
            continue
        title = re.sub(r"[`*]", "", source.split("\n", 1)[0].removeprefix("# ")).replace("'", "\u2019")
        assert any("".join(title.split()) in text[number] for number in starts[title]), f"{page.name} is missing"
        for block in re.findall(r"^```(?:python|c|console)\n(.*?)^```", source, re.DOTALL | re.MULTILINE):
            for line in block.splitlines():
                assert "".join(line.split()) in everything, f"{page.name}: {line}"
    for page in pdf.pages:
        assert [float(side) for side in page.mediabox] == pytest.approx([0, 0, 595, 842], abs=1.5)
        for link in (each.get_object() for each in page.get("/Annots", ())):
            assert "/Dest" in link or not str(link["/A"]["/URI"]).startswith("file:"), link


def leaves(outline: Any) -> Iterator[Any]:
    """The bookmarks, those of the parts and of what is in them, in their order."""
    for entry in outline:
        if isinstance(entry, list):
            yield from leaves(entry)
        else:
            yield entry
