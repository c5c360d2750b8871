"""Chromium for the tests here, with Python in its pages."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.browser.harness import Browser, Page, running
from tests.models.peer_models import write_peer


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
