"""Python runs in the page, and what goes wrong there is seen here."""

from __future__ import annotations

import pytest

from tests.browser.harness import Page, PageError


def test_python_runs_in_the_page(page: Page) -> None:
    assert page.run("import sys, numpy as np; [sys.platform, np.arange(4).tolist()]") == [
        "emscripten",
        [0, 1, 2, 3],
    ]
    page.run("print('one'); print('two')")
    assert page.printed() == ["one", "two"]


def test_errors_arrive_with_their_traceback(page: Page) -> None:
    with pytest.raises(PageError, match=r"line 2.*\n.*\n?.*ValueError: wrong"):
        page.run("x = 1\nraise ValueError('wrong')")


def test_awaiting_works_at_the_top(page: Page) -> None:
    assert page.run("import asyncio; await asyncio.sleep(0, result=3)") == 3
