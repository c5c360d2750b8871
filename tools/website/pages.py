"""The texts of the reference's pages: an overview of the names, then an entry for each."""

from __future__ import annotations

from tools.website import model, numpy_page
from tools.website.sections import PAGES, Page


def names() -> list[str]:
    """Every name that has an entry."""
    return [name for page in PAGES for name in page.names]


def anchors() -> dict[str, list[str]]:
    """The anchors of entries, by the address of their page in the site."""
    return {
        f"reference/{page.name}/index.html": [f"td.{name}" for name in page.names] for page in PAGES
    }


def texts() -> dict[str, str]:
    """The pages as Markdown, by their names."""
    made = {page.name: _page(page) for page in PAGES}
    return {"index": _index(), **made, "numpy": numpy_page.text()}


def _page(page: Page) -> str:
    lines = [f"# {page.title}", "", page.about, ""]
    if len(page.names) == 1:
        return "\n".join([*lines, *_of_one_class(page.names[0])])
    for section in page.sections:
        if len(page.sections) > 1:
            lines += [f"## {section.title}", ""]
        if len(section.names) > 1:
            lines += [*_HEADING, *(_row(name) for name in section.names), ""]
        for name in section.names:
            lines += [f"::: td.{name}", ""]
    return "\n".join(lines)


def _of_one_class(name: str) -> list[str]:
    """An overview of the class's members, which then stand in the page's table of contents."""
    rows = (_row(f"{name}.{member}") for member in model.members(model.find(name)))
    return [*_HEADING, *rows, "", f"::: td.{name}", "    options: { heading_level: 2 }", ""]


_HEADING = ("| name | what it is |", "|---|---|")


def _row(name: str) -> str:
    shown, about = name.rpartition(".")[2], model.summary(name).replace("|", "\\|")
    return f"| [`{shown}`](#td.{name}) | {about} |"


def _index() -> str:
    lines = [
        "# Reference",
        "",
        "Every public name, from its docstring. `td` is `import treadle as td`. The search at the "
        "top of the page finds names, too.",
        "",
        "| page | what it has |",
        "|---|---|",
    ]
    for page in PAGES:
        headings = (
            f"[{section.title}]({page.name}.md#{_slug(section.title)})" for section in page.sections
        )
        if len(page.sections) > 1:
            what = ", ".join(headings)
        elif len(page.names) > 1:
            what = f"{len(page.names)} names"
        else:
            what = f"{len(model.members(model.find(page.names[0])))} methods and properties"
        lines.append(f"| [{page.title}]({page.name}.md) | {what} |")
    lines += ["", "## All names", ""]
    for page in PAGES:
        entries = " · ".join(f"[`{name}`]({page.name}.md#td.{name})" for name in page.names)
        lines += [f"**{page.title}**: {entries}", ""]
    return "\n".join(lines)


def _slug(title: str) -> str:
    kept = "".join(c for c in title.lower() if c.isalnum() or c in " -_.")
    return "-".join(kept.replace(".", "").split())
