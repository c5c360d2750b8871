"""Write the table of refused constructs into docs/limitations.md, from treadle.lang.refusals."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "limitations.md"
BEGIN, END = "<!-- refused:begin -->\n", "<!-- refused:end -->"


def page_with_table(page: str) -> str:
    """The page's text with the table as it should be now."""
    from treadle.lang.refusals import markdown_table

    before, rest = page.split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}\n{markdown_table()}\n{END}{after}"


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT / "src"))
    PAGE.write_text(page_with_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
