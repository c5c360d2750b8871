"""Which values of an environment variable switch something on."""

from __future__ import annotations

import pytest

from treadle.core.environment import is_on


@pytest.mark.parametrize("value", ["1", "true", "YES", "on", "2", "anything"])
def test_on(monkeypatch, value):
    monkeypatch.setenv("TREADLE_CHECK", value)
    assert is_on("TREADLE_CHECK")


@pytest.mark.parametrize("value", ["", " ", "0", "false", "No", "OFF", None])
def test_off(monkeypatch, value):
    monkeypatch.delenv("TREADLE_CHECK", raising=False)
    if value is not None:
        monkeypatch.setenv("TREADLE_CHECK", value)
    assert not is_on("TREADLE_CHECK")
