"""The device suite inside a page: the tests are copied there, and pytest runs them."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

from tests.browser.harness import ROOT, Page

_COPIED = (
    "tests/__init__.py",
    "tests/conftest.py",
    "tests/device",
    "tests/support",
    "pyproject.toml",
)


def pack(target: Path) -> None:
    """The tests as an archive for the page."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in _COPIED:
            place = ROOT / name
            found = sorted(place.rglob("*")) if place.is_dir() else [place]
            for path in found:
                if path.is_file() and "__pycache__" not in path.parts:
                    archive.write(path, path.relative_to(ROOT))
        archive.write(Path(__file__).with_name("in_page.py"), "in_page.py")


def install(page: Page, address: str) -> None:
    """Unpack the archive, which is served at an address, in the page."""
    page.run(
        f"""
        import sys
        from pyodide.http import pyfetch
        response = await pyfetch({address!r})
        await response.unpack_archive(extract_dir="/home/pyodide/suite", format="zip")
        sys.path.insert(0, "/home/pyodide/suite")
        """
    )


def run(page: Page, *arguments: str) -> dict[str, Any]:
    """pytest with these arguments: its counts, and the tests that failed, with their texts."""
    found: dict[str, Any] = page.run(f"import in_page; in_page.run({list(arguments)!r})")
    return found
