"""docs/math.md states the bounds that the library is tested against."""

from __future__ import annotations

from tools.math_bounds import PAGE, page_with_table


def test_page_has_every_bound():
    page = PAGE.read_text(encoding="utf-8")
    assert page == page_with_table(page), "run `python tools/math_bounds.py`"
