"""The pages of the targets tell the truth: each claim of their table is tried."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from treadle import errors

ROOT = Path(__file__).parents[2]


def load_tool() -> Any:
    spec = importlib.util.spec_from_file_location("targets", ROOT / "tools" / "targets.py")
    assert spec is not None
    assert spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    sys.modules["targets"] = tool  # dataclasses look their module up
    spec.loader.exec_module(tool)
    return tool


TOOL = load_tool()


@pytest.mark.parametrize("column", TOOL.COLUMNS)
@pytest.mark.parametrize("row", TOOL.ROWS, ids=lambda row: row.feature)
def test_what_the_table_claims(row: Any, column: str) -> None:
    claim = row.claims[column]
    for source in row.sources():
        if claim.word == "**refused**":
            with pytest.raises(errors.UnsupportedOnTarget, match=claim.evidence) as caught:
                TOOL.printed(source, column)
            assert caught.value.line
        else:
            text = TOOL.printed(source, column)
            assert re.search(claim.evidence, text), text


@pytest.mark.parametrize("column", TOOL.COLUMNS)
def test_how_much_shared_memory_there_is(column: str) -> None:
    def source(words: int) -> str:
        return (
            "def probe(x: td.Array[td.f32]):\n"
            f"    s = td.shared({words}, td.f32)\n"
            "    s[td.thread_idx.x] = x[0]\n"
            "    td.sync_threads()\n"
            "    x[td.grid(1)] = s[63 - td.thread_idx.x]\n"
        )

    most = TOOL.SHARED[column] << 10
    assert TOOL.printed(source(most // 4), column)
    with pytest.raises(errors.LaunchError, match=f"the device has {most} for a block"):
        TOOL.printed(source(most // 4 + 1), column)


def test_the_pages_have_the_tables_of_today() -> None:
    for (path, mark), made in TOOL.pages().items():
        page = path.read_text(encoding="utf-8")
        again = TOOL.page_with_table(page, mark, made)
        assert again == page, f"{path.name}: run python tools/targets.py"
