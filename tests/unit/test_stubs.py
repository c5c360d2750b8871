"""The declarations for type checkers are what the tables say, and leave out no public name."""

from __future__ import annotations

import ast
import collections
import inspect

import pytest

import treadle as td
from tools import stubs


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
    modules = {value.__module__ for value in vars(td.nn.functional).values() if callable(value)}
    listed = set()
    for name in modules:
        listed |= set(__import__(name, fromlist=["__all__"]).__all__)
    assert set(td.nn.functional.__all__) == listed
