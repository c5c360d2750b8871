"""The driver for browsers, as far as it goes without one: tests/browser runs it."""

from __future__ import annotations

import asyncio
import re
import struct
from pathlib import Path

import treadle as td
from treadle.drivers import IN_A_BROWSER, webgpu_browser
from treadle.drivers.webgpu_browser import commands
from treadle.drivers.webgpu_browser.commands import Batch

HELPER = Path(webgpu_browser.__file__).with_name("helper.js").read_text()
NUMBERS = {
    name: value
    for name, value in vars(commands).items()
    if name.isupper() and isinstance(value, int)
}


def test_javascript_has_the_same_numbers() -> None:
    found = {name: int(value) for name, value in re.findall(r"\b([A-Z_]{4,}) = (\d+)\b", HELPER)}
    assert {name: found.get(name) for name in NUMBERS} == NUMBERS


def test_a_block_has_its_parts_in_order() -> None:
    batch = Batch()
    first, second = struct.pack("<II", 7, 8), struct.pack("<IIII", 1, 2, 3, 4)
    assert [batch.place(each, 256) for each in (first, second, first)] == [0, 256, 0]
    batch.words += (commands.CLEAR, 3, 0, 64)
    batch.uploads += b"abcd"
    block = batch.block([commands.FORGET_BUFFER, 9])
    raw = block.tobytes()
    assert block[:4].tolist() == [4, 512, 4, 2]
    assert block[4:8].tolist() == [commands.CLEAR, 3, 0, 64]
    assert raw[32:40] == first
    assert raw[32 + 256 :][:16] == second
    assert raw[32 + 512 :][:4] == b"abcd"
    assert block[-2:].tolist() == [commands.FORGET_BUFFER, 9]
    batch.clear()
    assert batch.block([]).tolist() == [0, 0, 0, 0]


def test_init_does_nothing_elsewhere() -> None:
    before = td.device("cpu")
    asyncio.run(td.init())
    assert td.device("cpu") is before


def test_a_page_has_a_gpu_and_a_cpu() -> None:
    assert list(IN_A_BROWSER) == ["webgpu", "cpu"]
    assert webgpu_browser.BrowserBackend().name == "webgpu"
