"""Drawn programs run few times each: plans become functions as soon as they come up again."""

from __future__ import annotations

import pytest

from treadle.graph import recipes


@pytest.fixture(autouse=True, scope="session")
def _functions_at_once():
    before, recipes.PLAIN_RUNS = recipes.PLAIN_RUNS, 0
    yield
    recipes.PLAIN_RUNS = before
