"""Chromium for the tests here, with Python in its pages."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.browser.harness import Browser, Page, running


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Chromium, one for all tests of a worker."""
    with running() as found:
        yield found


@pytest.fixture(scope="session")
def shared_page(browser: Browser) -> Page:
    """Python with treadle in a window, one for all tests: loading it takes seconds."""
    return browser.python()


@pytest.fixture
def page(shared_page: Page) -> Iterator[Page]:
    """That page; a test fails if it leaves errors or warnings in the console."""
    shared_page.console.clear()
    shared_page.printed()
    yield shared_page
    assert shared_page.complaints() == []
