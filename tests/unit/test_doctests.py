"""The examples in docstrings run, and each layer has one."""

import doctest
import importlib
import inspect
import pkgutil

import pytest

import treadle

WALK = pkgutil.walk_packages(treadle.__path__, "treadle.")
MODULES = ["treadle", *sorted(m.name for m in WALK if not m.name.endswith("__main__"))]


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples(name):
    module = importlib.import_module(name)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    for docstring in doctest.DocTestFinder().find(module):
        # `doctest.testmod` runs the fifteen thousand others too, and before each of them asks the
        # disk whether any source file has changed.
        if docstring.examples:
            runner.run(docstring)
    assert runner.failures == 0


def test_every_class_of_layers_has_an_example():
    classes = {name: getattr(treadle.nn, name) for name in treadle.nn.__all__}
    lacking = [
        name
        for name, value in classes.items()
        if inspect.isclass(value) and ">>> " not in (vars(value)["__doc__"] or "")
    ]
    assert lacking == []
