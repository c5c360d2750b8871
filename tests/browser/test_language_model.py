"""A language model in a page in which Python cannot wait."""

from __future__ import annotations

from base64 import b64encode
from pathlib import Path

import pytest

import treadle as td
from tests.browser.conftest import Way


@pytest.mark.parametrize("way", ["window without stack switching"], indirect=True)
def test_text_is_awaited_where_python_cannot_wait(way: Way, model: Path) -> None:
    here = td.models.load(model, "cpu", context=64).generate("The capital of", max_tokens=8)
    text = here.text()
    found = way.page.run(
        f"""
import base64
import treadle as td

await td.init()
with open("model.gguf", "wb") as file:
    file.write(base64.b64decode({b64encode(model.read_bytes()).decode()!r}))
model = td.models.load("model.gguf", "webgpu", context=64)
generation = model.generate("The capital of", max_tokens=8)
try:
    generation.text()
except td.errors.WouldBlock as error:
    refused = str(error)
pieces = [piece async for piece in generation]
again = await model.generate("The capital of", max_tokens=8).text_async()
["".join(pieces), generation.tokens, again, refused]
"""
    )
    assert found[:3] == [text, here.tokens, text]
    assert "await generation.text_async()" in found[3]
