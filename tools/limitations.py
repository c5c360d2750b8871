"""Write the tables of refused constructs into docs/limitations.md: of Python, and of CUDA C++."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "limitations.md"


def page_with_table(page: str) -> str:
    """The page's text with the tables as they should be now."""
    from treadle.cuda_cpp.syntax import refusals as of_cuda
    from treadle.lang import refusals as of_python

    page = _with_table(page, "refused", of_python.markdown_table())
    return _with_table(page, "refused-cuda", of_cuda.markdown_table())


def _with_table(page: str, mark: str, table: str) -> str:
    begin, end = f"<!-- {mark}:begin -->\n", f"<!-- {mark}:end -->"
    before, rest = page.split(begin)
    _, after = rest.split(end)
    return f"{before}{begin}\n{table}\n{end}{after}"


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT / "src"))
    PAGE.write_text(page_with_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
