"""Programs written for NumPy: their text under NumPy and under `treadle.numpy`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.parity import numpy_interface

_SCRIPTS = sorted((Path(__file__).parent / "numpy_scripts").glob("*.py"))


def _run(script: Path, module: str) -> Any:
    text = script.read_text().replace("import numpy as np", f"import {module} as np")
    names: dict[str, Any] = {"__name__": script.stem}
    exec(compile(text, str(script), "exec"), names)
    return names["main"]()


# The others take longer, and are run with the slow tests.
_QUICK = ("game_of_life", "monte_carlo")
_MARKED = [
    pytest.param(each, id=each.stem, marks=() if each.stem in _QUICK else pytest.mark.slow)
    for each in _SCRIPTS
]


@pytest.mark.parametrize("script", _MARKED)
def test_a_program_of_numpys_has_its_results(script: Path) -> None:
    wanted, found = _run(script, "numpy"), _run(script, "treadle.numpy")
    assert found.keys() == wanted.keys()
    for name, value in wanted.items():
        numpy_interface.compare(found[name], value, 1e-9)
