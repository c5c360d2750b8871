"""What type checkers and editors see of `treadle.numpy`: its functions, which tables make of
functions of treadle's tensors, and the methods of its arrays. `tools/stubs.py` writes them."""

from __future__ import annotations

import inspect
from importlib import import_module

from tools.torch_stubs import _signature
from treadle.numpy import attributes, linalg, methods
from treadle.numpy.operations import matrices, transforms
from treadle.numpy.table import entries, function_of

_HEAD = """import builtins
from typing import Any

from treadle.numpy.arrays import ndarray

"""
_HEAD_OF_METHODS = """import builtins
from collections.abc import Iterator
from typing import Any

import numpy

from treadle.numpy.arrays import ndarray
from treadle.runtime.devices import Device

"""
# Special methods whose results are no arrays.
_RESULTS = {
    "bool": "builtins.bool", "complex": "builtins.complex", "float": "builtins.float",
    "index": "builtins.int", "int": "builtins.int", "len": "builtins.int", "repr": "builtins.str",
    "str": "builtins.str", "trunc": "builtins.int", "iter": "Iterator[Any]", "neg": "Any",
    "pos": "Any", "abs": "Any", "invert": "Any",
}  # fmt: skip
_ATTRIBUTES = {
    "dtype": "numpy.dtype[Any]", "shape": "tuple[builtins.int, ...]", "ndim": "builtins.int",
    "size": "builtins.int", "itemsize": "builtins.int", "nbytes": "builtins.int",
    "strides": "tuple[builtins.int, ...]", "device": "Device", "T": "ndarray", "mT": "ndarray",
}  # fmt: skip


def _text(function: object, **options: bool) -> str:
    """A signature whose tensors are arrays; what may be an element is Any."""
    return _signature(function, **options).replace("Tensor", "ndarray")  # type: ignore[arg-type]


def functions() -> str:
    """The functions of the table."""
    lines = {}
    for each in entries():
        if "f" in each.flags:
            text = _text(function_of(each), has_out="o" in each.flags)
            if "v" in each.flags:
                text = text.replace("-> ndarray:", "-> Any:")
            lines[each.name] = f"def {each.name}{text}\n"
    return _HEAD + "".join(lines[name] for name in sorted(lines))


def namespace(name: str) -> str:
    """The functions of `np.linalg` and `np.fft`."""
    module = import_module(f"treadle.numpy.{name}")
    owner = matrices if module is linalg else transforms
    lines = []
    for each in module.__all__:
        if each == "LinAlgError":
            lines.append("from numpy.linalg import LinAlgError as LinAlgError\n")
        elif hasattr(owner, each) and inspect.isfunction(getattr(owner, each)):
            text = _text(getattr(owner, each))
            text = text if module is not linalg else text.replace("-> ndarray:", "-> Any:")
            lines.append(f"def {each}{text}\n")
        else:
            lines.append(f"from treadle.numpy.functions import {each} as {each}\n")
    listed = "".join(f'    "{each}",\n' for each in module.__all__)
    body = "".join(sorted(lines, key=lambda line: not line.startswith("from")))
    return f'"""{inspect.getdoc(module)}"""\n\n{_HEAD}{body}\n__all__ = [\n{listed}]\n'


def _special(short: str) -> str:
    if short in _RESULTS:
        return f"def __{short}__(self) -> {_RESULTS[short]}: ..."
    if short == "contains":
        return "def __contains__(self, value: object) -> builtins.bool: ..."
    if short == "format":
        return "def __format__(self, spec: builtins.str) -> builtins.str: ..."
    if short in ("eq", "ne"):
        return f"def __{short}__(self, other: object) -> Any: ...  # type: ignore[override]"
    if short == "setitem":
        return "def __setitem__(self, index: Any, value: Any) -> None: ..."
    if short in ("getitem",):
        return "def __getitem__(self, index: Any) -> Any: ..."
    if short.startswith(("array", "dlpack", "deepcopy", "copy", "reduce", "round")):
        return f"def __{short}__(self, *args: Any, **kwargs: Any) -> Any: ..."
    return f"def __{short}__(self, other: Any) -> Any: ..."


def declarations() -> str:
    """The methods, attributes and operators of arrays and their elements."""
    lines = {}
    for short in (*methods.OPERATORS.split(), *methods.IN_PLACE.split()):
        lines[f"__{short}__"] = _special(short)
    for each in entries():
        if "m" in each.flags:
            text = _text(function_of(each), is_method=True, has_out="o" in each.flags)
            result = "-> Any:" if "v" in each.flags else "-> ndarray:"
            lines[each.name] = f"def {each.name}{text.replace('-> ndarray:', result)}"
    for listed in methods.PLAIN.split():
        name, _, function = listed.partition("=")
        text = _text(getattr(attributes, function or name), is_method=True)
        lines[name] = f"def {name}{text}"
    for name in methods.ATTRIBUTES.split():
        found = getattr(attributes, name)
        lines[name] = f"@property\n    def {name}(self) -> {_ATTRIBUTES.get(name, 'Any')}: ..."
        if isinstance(found, property) and found.fset is not None:
            lines[name] += f"\n    @{name}.setter\n    def {name}(self, value: Any) -> None: ..."
    body = "\n".join(f"    {lines[name]}" for name in sorted(lines))
    return (
        f'"""The methods and operators of arrays that tables say."""\n\n{_HEAD_OF_METHODS}\n'
        f'class Declarations:\n    """What arrays have besides their class."""\n\n{body}\n'
    )
