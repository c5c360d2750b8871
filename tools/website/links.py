"""Links of the built site: each has to lead to a file, and to an anchor that the file has."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class _Page(HTMLParser):
    """The anchors of a page, and where its links lead."""

    def __init__(self) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for key, value in attrs:
            if value and (key == "id" or (key == "name" and tag == "a")):
                self.anchors.add(value)
            elif value and key in ("href", "src"):
                self.links.append(value)


def _read(path: Path) -> _Page:
    page = _Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page


def broken(site: Path) -> list[str]:
    """What is wrong with the links of all pages, one line for each."""
    pages = {path.resolve(): _read(path) for path in sorted(site.rglob("*.html"))}
    wrong = []
    for path, page in pages.items():
        where = path.relative_to(site.resolve()).as_posix()
        if where == "404.html":  # shown at any address, so its links start at the site's root
            continue
        for link in dict.fromkeys(page.links):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if target.is_dir():
                target /= "index.html"
            if not target.is_file():
                wrong.append(f"{where}: {link} leads to no file")
            elif parts.fragment and target in pages:
                anchor = unquote(parts.fragment)
                if anchor not in pages[target].anchors and not anchor.startswith("__"):
                    wrong.append(f"{where}: {link} leads to no anchor")
    return wrong


def missing(site: Path, anchors: dict[str, list[str]]) -> list[str]:
    """The anchors that pages should have and have not."""
    wrong = []
    for address, expected in anchors.items():
        found = _read(site / address).anchors
        wrong += [f"{address}: no entry of {name}" for name in expected if name not in found]
    return wrong
