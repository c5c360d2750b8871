"""Chromium for the tests here, with Python in its pages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from tests.browser.harness import Browser, Page, running
from tests.models.peer_models import write_peer


@pytest.fixture(scope="session")
def suite_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the browser's server has below `/suite`, for test_device_suite."""
    return tmp_path_factory.mktemp("suite")


@pytest.fixture(scope="session")
def browser(suite_folder: Path) -> Iterator[Browser]:
    """Chromium, one for all tests of a worker."""
    with running({"suite": suite_folder}) as found:
        yield found


# Each way in which Python may run: in the window or in a worker, with stack switching or without.
WAYS = {
    "window": (False, True),
    "worker": (True, True),
    "window without stack switching": (False, False),
    "worker without stack switching": (True, False),
}


@dataclass
class Way:
    """A page in which Python runs in one of these ways, what `td.device` did there before
    `td.init()`, and whether Python can wait."""

    page: Page
    first: str
    switches: bool


def _opened(browser: Browser, name: str) -> Way:
    worker, switches = WAYS[name]
    page = browser.python(worker=worker, stack_switching=switches)
    first = page.run(
        """
import treadle as td
try:
    found = td.device("webgpu").id
except td.errors.WouldBlock as error:
    found = f"WouldBlock: {error}"
found
"""
    )
    return Way(page, first, switches)


@pytest.fixture(scope="session")
def window(browser: Browser) -> Way:
    """Python with treadle in a window, one for all tests: loading it takes seconds."""
    return _opened(browser, "window")


# For the session, so that pytest runs the tests of one way one after another, whatever their files.
@pytest.fixture(scope="session", params=WAYS)
def way(request: pytest.FixtureRequest, browser: Browser, window: Way) -> Iterator[Way]:
    """Each of the ways; tests name one of them with `indirect`."""
    found = window if request.param == "window" else _opened(browser, request.param)
    yield found
    assert found.page.complaints() == []
    if found is not window:
        found.page.close()


@pytest.fixture
def page(window: Way) -> Iterator[Page]:
    """That window; a test fails if it leaves errors or warnings in the console."""
    window.page.console.clear()
    window.page.printed()
    yield window.page
    assert window.page.complaints() == []


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small language model with random weights, whose tokens are characters."""
    tokens = ["<s>", "</s>", "Ġ", "Ġt", *map(chr, range(0x21, 0x7D))]
    return write_peer(
        "qwen2", tmp_path_factory.mktemp("models") / "model.gguf", "q8_0",
        tokenizer__ggml__model="gpt2",
        tokenizer__ggml__pre="smollm",
        tokenizer__ggml__tokens=tokens,
        tokenizer__ggml__token_type=np.array([3, 3] + 94 * [1], np.int32),
        tokenizer__ggml__merges=["Ġ t"],
        tokenizer__ggml__bos_token_id=0,
        tokenizer__ggml__eos_token_id=1,
    )  # fmt: skip
