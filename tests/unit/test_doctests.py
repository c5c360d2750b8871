"""The examples in docstrings run."""

import doctest
import importlib
import pkgutil

import pytest

import treadle

WALK = pkgutil.walk_packages(treadle.__path__, "treadle.")
MODULES = ["treadle", *sorted(m.name for m in WALK if not m.name.endswith("__main__"))]


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples(name):
    module = importlib.import_module(name)
    result = doctest.testmod(module, optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    assert result.failed == 0
