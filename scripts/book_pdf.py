"""The book as one PDF: `make book-pdf`, or `python scripts/book_pdf.py` where the book is built.

Chromium prints each page of docs/_build/html, in the order of the book's contents. The prints are joined into
docs/_build/groundup.pdf, with a table of contents, bookmarks and page numbers. Links between the pages lead to their
places in the PDF. Needs the extra pdf and a Chromium on the path.
"""

from __future__ import annotations

import shutil
import sys
from dataclasses import dataclass
from html import escape
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urldefrag, urlsplit

from playwright.sync_api import sync_playwright
from pypdf import PdfReader, PdfWriter
from pypdf.generic import ArrayObject, Destination, DictionaryObject, Fit, NameObject

HTML = Path(__file__).resolve().parents[1] / "docs" / "_build" / "html"

ENTRIES = """() => [...document.querySelectorAll(".sidebar-tree .caption, .sidebar-tree li > a")].map((each) => (
  {part: each.tagName != "A", words: each.textContent, address: each.href || ""}))"""
"""The parts of the book and their pages, as the sidebar has them."""

PREPARE = """(printed) => {
  document.body.dataset.theme = "light";
  document.documentElement.style.counterReset = `page ${printed}`;
  for (const each of document.querySelectorAll("details")) each.open = true;
  const article = document.querySelector("article");
  // Chromium notes the place of an element in the PDF if a link of the page leads to it.
  for (const each of [...article.querySelectorAll("[id]")]) {
    const link = document.createElement("a");
    link.href = "#" + encodeURIComponent(each.id);
    article.append(link);
  }
  return [...article.querySelectorAll("h2")].map((each) => {
    const words = each.cloneNode(true);
    words.querySelectorAll(".headerlink").forEach((mark) => mark.remove());
    return [words.textContent, each.closest("[id]").id];
  });
}"""
"""Makes a page ready for paper, after so many printed pages; returns its headings: [words, id]."""

STYLE = """<style>@page { size: A4; margin: 18mm 24mm } body { font: 10pt sans-serif; margin: 0 }
h1 { font-size: 20pt } h2 { font-size: 11pt; margin: 1em 0 0.2em; break-after: avoid }
p { display: flex; justify-content: space-between; margin: 0.15em 0 } a { color: inherit; text-decoration: none }
</style>"""


@dataclass
class Chapter:
    """A page of the book. part: of the book; address: in the built book; headings: (words, id); first: its first page
    in the PDF, from 0; pdf: its print."""

    part: str
    title: str
    address: str
    headings: list[tuple[str, str]]
    first: int
    pdf: PdfReader

    def __post_init__(self) -> None:
        self.places = {unquote(name.lstrip("/")): place for name, place in self.pdf.named_destinations.items()}

    def place(self, identifier: str) -> tuple[int, float]:
        """(page in the PDF, height on it) of an element; that of the chapter, where it has no such element."""
        place: Destination | None = self.places.get(identifier)
        number = None if place is None else self.pdf.get_destination_page_number(place)
        if place is None or number is None:
            return self.first, float(self.pdf.pages[0].mediabox.top)
        return self.first + number, float(place.top or 0)


def main(html: Path = HTML) -> Path:
    """Print the book that was built into a folder; returns the path of the PDF, beside the folder."""
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
    if browser is None:
        sys.exit("no Chromium on the path (Debian and Ubuntu: apt install chromium)")
    if not (html / "index.html").is_file():
        sys.exit(f"expected the built book in {html}, and there is none: make book")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        page = chromium.new_page(color_scheme="light")
        page.route("**/_static/studio/**", lambda route: route.abort())  # a page of the studio does not run on paper
        page.route("**/*.svg", _still)
        page.goto((html / "index.html").as_uri())
        first = {"part": False, "words": page.title(), "address": page.url}
        entries = [first, *page.evaluate(ENTRIES)]
        front = len(contents(page, [(entry["words"], "", "" if entry["part"] else "0") for entry in entries]).pages)
        chapters = printed(page, entries, front)
        lines, part = [], ""
        for chapter in chapters:
            lines += [(chapter.part, "", "")] if chapter.part != part else []
            part = chapter.part
            lines.append((chapter.title, chapter.address, str(chapter.first + 1)))
        writer = joined(contents(page, lines), chapters)
        chromium.close()
    path = html.parent / "groundup.pdf"
    writer.write(path)
    return path


def printed(page: Any, entries: list[dict[str, Any]], front: int) -> list[Chapter]:
    """Every page of the book, printed. front: how many pages come before."""
    chapters, part = [], ""
    for entry in entries:
        if entry["part"]:
            part = entry["words"]
            continue
        page.goto(entry["address"])
        headings = page.evaluate(PREPARE, front)
        pdf = PdfReader(BytesIO(page.pdf(format="A4", print_background=True)))
        chapters.append(Chapter(part, entry["words"], entry["address"], headings, front, pdf))
        front += len(pdf.pages)
    return chapters


def contents(page: Any, lines: list[tuple[str, str, str]]) -> PdfReader:
    """The print of a table of contents. lines: (words, address, number of the page); a part has no number."""
    body = ["<h1>Contents</h1>"]
    for words, address, number in lines:
        link = f'<a href="{escape(address)}">{escape(words)}</a>'
        body.append(f"<p>{link}<span>{number}</span></p>" if number else f"<h2>{escape(words)}</h2>")
    page.set_content(STYLE + "".join(body))
    return PdfReader(BytesIO(page.pdf(format="A4", prefer_css_page_size=True)))


def joined(front: PdfReader, chapters: list[Chapter]) -> PdfWriter:
    """The table of contents and the chapters in one PDF, with bookmarks and links."""
    writer = PdfWriter()
    for pdf in (front, *(chapter.pdf for chapter in chapters)):
        for page in pdf.pages:
            writer.add_page(page)
    starts = {chapter.address: chapter for chapter in chapters}
    for number, page in enumerate(writer.pages):
        here = next((chapter for chapter in reversed(chapters) if chapter.first <= number), chapters[0])
        links = [link.get_object() for link in page.get("/Annots", ())]
        page[NameObject("/Annots")] = ArrayObject(link for link in links if _leads_on(link, here, starts, writer))
    parts: dict[str, Any] = {}
    for chapter in chapters:
        if chapter.part and chapter.part not in parts:
            parts[chapter.part] = writer.add_outline_item(title=chapter.part, page_number=chapter.first, bold=True)
        part = parts.get(chapter.part)
        above = writer.add_outline_item(title=chapter.title, page_number=chapter.first, parent=part, is_open=False)
        for words, identifier in chapter.headings:
            number, top = chapter.place(identifier)
            writer.add_outline_item(title=words, page_number=number, parent=above, fit=Fit.xyz(top=top))
    writer.add_metadata({"/Title": "groundup", "/Author": "The groundup authors"})
    writer.compress_identical_objects()
    return writer


def _still(route: Any) -> None:
    """Hand out a picture as it is for readers who want no motion: a page is printed at a film's first moment."""
    picture = Path(unquote(urlsplit(route.request.url).path)).read_text(encoding="utf-8")
    body = picture.replace("@media (prefers-reduced-motion:reduce)", "@media all")
    route.fulfill(body=body, content_type="image/svg+xml")


def _leads_on(link: DictionaryObject, here: Chapter, starts: dict[str, Chapter], writer: PdfWriter) -> bool:
    """Whether a link leads out into the network or to a place in the PDF, which it is given; else it is left out."""
    if "/Dest" in link:
        chapter, identifier = here, unquote(str(link["/Dest"]).lstrip("/"))
    else:
        address, identifier = urldefrag(str(link["/A"]["/URI"]))
        if not address.startswith("file:"):
            return True
        if address not in starts:
            return False
        chapter, identifier = starts[address], unquote(identifier)
        del link["/A"]
    number, top = chapter.place(identifier)
    fit = Fit.xyz(top=top)
    link[NameObject("/Dest")] = ArrayObject([writer.pages[number].indirect_reference, fit.fit_type, *fit.fit_args])
    return True


if __name__ == "__main__":
    print(main())
