"""The declarations for type checkers are what the tables say, and leave out no public name."""

from __future__ import annotations

import ast
import collections
import importlib
import inspect

import pytest

import treadle as td
from tools import stubs
from treadle.tensor import elementwise_functions, method_table


@pytest.mark.parametrize("path", stubs.STUBS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_stub_is_up_to_date(path):
    assert path.read_text() == stubs.laid_out(stubs.STUBS[path](), path), (
        "run python tools/stubs.py"
    )


def _declared(path, within=None):
    """The names that a stub declares, with their docstrings."""
    body = ast.parse(path.read_text()).body
    if within is not None:
        (body,) = (node.body for node in body if getattr(node, "name", None) == within)
    found = {}
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.setdefault(node.name, ast.get_docstring(node) or "")
        elif isinstance(node, ast.AnnAssign):
            found[node.target.id] = ""
        elif isinstance(node, ast.ImportFrom):
            found.update(dict.fromkeys((each.asname or each.name for each in node.names), ""))
    return found


def test_every_attribute_of_tensors_is_declared():
    declared = _declared(stubs.SOURCE / "tensor" / "declarations.pyi", "Declarations")
    assert set(declared) == set(stubs.given_to_tensor())


def test_every_name_of_the_kernel_language_is_declared():
    declared = _declared(stubs.SOURCE / "lang" / "__init__.pyi")
    assert set(td.lang.__all__) <= set(declared)


def test_stubs_and_help_say_the_same():
    declared = _declared(stubs.SOURCE / "lang" / "__init__.pyi")
    methods = _declared(stubs.SOURCE / "tensor" / "declarations.pyi", "Declarations")
    for name in ("exp", "where", "atomic_add", "grid"):
        assert declared[name] == inspect.getdoc(getattr(td, name))
    for name in ("exp", "sum", "T", "scatter_"):
        assert methods[name] == inspect.getdoc(getattr(td.Tensor, name))


def test_public_names_are_listed_once_and_are_there():
    for room in (td, td.lang, td.tensor, td.nn, td.nn.functional, td.linalg, td.fft, td.random):
        doubled = [name for name, n in collections.Counter(room.__all__).items() if n > 1]
        assert doubled == []
        assert set(room.__all__) <= set(dir(room))


def test_functions_of_layers_are_all_listed():
    listed = set()
    for name in td.nn.functional.NAMES:
        listed |= set(importlib.import_module(name).__all__)
    assert set(td.nn.functional.__all__) == listed


def test_names_of_the_kernel_language_are_all_listed():
    namespace = importlib.import_module("treadle.lang.namespace")
    assert set(td.lang.NAMES["treadle.lang.namespace"].split()) == set(namespace.__all__)


def test_methods_of_tensors_are_all_listed():
    for places in (method_table.METHODS, method_table.PROPERTIES):
        for place, names in places.items():
            module, _, table = place.partition(":")
            if table in ("METHODS", "OPERATORS"):
                assert set(names.split()) == set(getattr(importlib.import_module(module), table))
    functions = {
        name
        for places in (method_table.METHODS, method_table.PROPERTIES)
        for name in places["treadle.tensor.elementwise_functions:FUNCTIONS"].split()
    }
    # `x.where(condition, other)` has other parameters than the function.
    assert functions == elementwise_functions.FUNCTIONS.keys() - {"where"}
