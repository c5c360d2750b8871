"""docs/targets/trace.md shows what the printers write today."""

from tools import trace


def test_the_page_shows_what_is_printed():
    page = trace.PAGE.read_text(encoding="utf-8")
    assert trace.with_parts(page, trace.parts()) == page, "run python tools/trace.py"
