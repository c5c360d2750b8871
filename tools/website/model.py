"""The public names as griffe's objects, from which mkdocstrings renders the reference.

Many of the names are made at run time, where reading the source finds none of them; and an object's
own module is not where users look for it. So each object is described as it is at run time, under
the name by which users reach it: `td.nn.Linear`.
"""

from __future__ import annotations

import ast
import functools
import inspect
import re
import types
import typing
from pathlib import Path
from typing import Any

import griffe

import treadle as td
from tools.website.sections import expected_names
from treadle.core.deferred_imports import Elsewhere
from treadle.lang.builtins import BuiltinFunction

_KINDS = {
    inspect.Parameter.POSITIONAL_ONLY: griffe.ParameterKind.positional_only,
    inspect.Parameter.POSITIONAL_OR_KEYWORD: griffe.ParameterKind.positional_or_keyword,
    inspect.Parameter.VAR_POSITIONAL: griffe.ParameterKind.var_positional,
    inspect.Parameter.KEYWORD_ONLY: griffe.ParameterKind.keyword_only,
    inspect.Parameter.VAR_KEYWORD: griffe.ParameterKind.var_keyword,
}
_GIVEN = {"Device", "Stream", "Tensor"}  # classes whose objects users get, and do not make
_HIDDEN = {"extra_repr"}  # what a module's repr consists of


def package(names: list[str]) -> griffe.Module:
    """The package `td` with an entry for each of the names."""
    source = Path(td.__file__)
    root = griffe.Module("td", filepath=source)
    for name in names:
        value: Any = td
        parent: griffe.Module = root
        *modules, last = name.split(".")
        for part in modules:
            value = getattr(value, part)
            if part not in parent.members:
                parent.set_member(part, griffe.Module(part, filepath=source))
            parent = parent[part]
        parent.set_member(last, _entry(last, getattr(value, last), parent))
    return root


def find(name: str) -> Any:
    """The object that users reach by `td.{name}`."""
    value: Any = td
    for part in name.split("."):
        value = getattr(value, part)
    return value


def summary(name: str) -> str:
    """The first sentence of a name's docstring, as Markdown."""
    text = _docstring(name.rpartition(".")[2], find(name)) or ""
    sentence, stop, _ = text.partition("\n\n")[0].replace("\n", " ").partition(". ")
    return _paragraph(sentence + stop.strip())


def _entry(name: str, value: Any, parent: griffe.Object) -> griffe.Object:
    if inspect.isclass(value):
        return _class(name, value, parent)
    if callable(value) and not isinstance(value, td.DType) and _signature(value) is not None:
        return _function(name, value, parent)
    return griffe.Attribute(
        name,
        docstring=_as_docstring(_docstring(name, value)),
        value=repr(value) if isinstance(value, float | str | types.NoneType) else None,
    )


def _class(name: str, value: type, parent: griffe.Object) -> griffe.Class:
    entry = griffe.Class(name, parent=parent, bases=_bases(value))
    entry.docstring = _as_docstring(_docstring(name, value))
    # How a class is called stands in the signature of its __init__, which has no entry of its own.
    if not issubclass(value, Exception) and name not in _GIVEN:
        maker = griffe.Function("__init__", parent=entry)
        maker.parameters = _parameters(_signature(value), entry, bound=False)
        entry.set_member("__init__", maker)
    for member in members(value):
        getattr(value, member, None)  # what is deferred is imported, and takes its place
        described = _member(member, inspect.getattr_static(value, member), entry)
        if described is not None and described.docstring is not None:
            entry.set_member(member, described)
    return entry


def members(value: type) -> list[str]:
    """The public names of a class, without those of bases that have entries of their own."""
    parts = [value, *(base for base in value.__mro__[1:] if _is_part(base))]
    names = {
        name
        for part in parts
        for name, each in vars(part).items()
        if not isinstance(each, Elsewhere)
    }
    return sorted(name for name in names if not name.startswith("_") and name not in _HIDDEN)


def _is_part(base: type) -> bool:
    """Whether a base is one of ours that users do not know, so that its members are the class's."""
    return base.__module__.startswith("treadle.") and base not in _public_classes()


@functools.cache
def _public_classes() -> frozenset[type]:
    return frozenset(value for name in expected_names() if inspect.isclass(value := find(name)))


def _member(name: str, value: Any, parent: griffe.Class) -> griffe.Object | None:
    if isinstance(value, property):
        entry = griffe.Attribute(name, parent=parent, docstring=_as_docstring(value.__doc__))
        entry.labels.add("property")
        returned = inspect.signature(value.fget).return_annotation if value.fget else Any
        entry.annotation = _expression(returned, parent)
        return entry
    label = {staticmethod: "staticmethod", classmethod: "classmethod"}.get(type(value))
    value = value.__func__ if label else value
    if not inspect.isfunction(value):
        return None
    entry = _function(name, value, parent, bound=label != "staticmethod")
    if label:
        entry.labels.add(label)
    return entry


def _function(name: str, value: Any, parent: griffe.Object, bound: bool = False) -> griffe.Function:
    signature = _signature(value)
    entry = griffe.Function(name, parent=parent, docstring=_as_docstring(_docstring(name, value)))
    entry.parameters = _parameters(signature, parent, bound)
    if signature is not None and signature.return_annotation is not signature.empty:
        entry.returns = _expression(signature.return_annotation, parent)
    if inspect.iscoroutinefunction(value):
        entry.labels.add("async")
    return entry


def _signature(value: Any) -> inspect.Signature | None:
    if isinstance(value, BuiltinFunction) and not hasattr(value, "__signature__"):
        # Of kernels only: Python sees that it takes anything, and its messages say what.
        names = value.usage.partition("(")[2].removesuffix(")").split(", ")
        kind = inspect.Parameter.POSITIONAL_ONLY
        return inspect.Signature([inspect.Parameter(name, kind) for name in names if name])
    try:
        found = inspect.signature(value)
    except (TypeError, ValueError):
        return None
    made = value.__init__ if inspect.isclass(value) else inspect.unwrap(value)
    return _spelled(found, getattr(made, "__globals__", {}))


def _parameters(
    signature: inspect.Signature | None, parent: griffe.Object, bound: bool
) -> griffe.Parameters:
    found = list(signature.parameters.values()) if signature is not None else []
    return griffe.Parameters(
        *(
            griffe.Parameter(
                one.name,
                annotation=_expression(one.annotation, parent),
                kind=_KINDS[one.kind],
                default=_default(one),
            )
            for one in (found[1:] if bound else found)
        )
    )


def _default(parameter: inspect.Parameter) -> str | None:
    value = parameter.default
    if value is parameter.empty:
        if parameter.kind is parameter.VAR_POSITIONAL:
            return "()"
        return "{}" if parameter.kind is parameter.VAR_KEYWORD else None
    if isinstance(value, td.DType):
        return f"td.{value.name}"
    text = getattr(value, "__name__", None) or repr(value)
    return "..." if text.startswith("<") else text


def _expression(annotation: Any, parent: griffe.Object) -> str | griffe.Expr | None:
    """An annotation; what takes anything says nothing."""
    if annotation in (inspect.Parameter.empty, Any, "Any"):
        return None
    if isinstance(annotation, type):
        annotation = annotation.__name__
    text = str(getattr(annotation, "__forward_arg__", annotation)).strip("'\"")
    try:
        node = ast.parse(text, mode="eval").body
    except SyntaxError:
        return text
    return griffe.safe_get_expression(node, parent=parent, parse_strings=False) or text


def _spelled(signature: inspect.Signature, names: dict[str, Any]) -> inspect.Signature:
    """The signature with our own aliases written out: `Sizes` says nothing to users."""

    def written(annotation: Any) -> Any:
        if not isinstance(annotation, str):
            return annotation
        return _WORD.sub(lambda word: _alias(names.get(word[0])) or word[0], annotation)

    parameters = [
        one.replace(annotation=written(one.annotation)) for one in signature.parameters.values()
    ]
    returned = written(signature.return_annotation)
    return signature.replace(parameters=parameters, return_annotation=returned)


_WORD = re.compile(r"\b[A-Z]\w*\b")


def _alias(value: Any) -> str:
    """What an alias of a type is an alias of, without the names of modules; "" for other things."""
    if not isinstance(value, types.UnionType | types.GenericAlias) and not (
        typing.get_origin(value) and getattr(value, "__args__", ())
    ):
        return ""
    text = re.sub(r"\bForwardRef\('(\w+)'\)", r"\1", str(value))
    return re.sub(r"\b(?:\w+\.)+(\w+)", r"\1", text)


def _bases(value: type) -> list[str]:
    return [base.__name__ for base in value.__bases__ if base is not object and not _is_part(base)]


def _docstring(name: str, value: Any) -> str | None:
    """What the object says of itself, not what the class of a number or a dtype says."""
    if isinstance(value, td.DType):
        return f"{value.name}: `td.{value.name}`, in kernels also `td.{value.short}`."
    if isinstance(value, float | str | types.NoneType):
        return _CONSTANTS[name]
    return inspect.getdoc(value)


_CONSTANTS = {
    "e": "Euler's number.",
    "pi": "The circle's circumference over its diameter.",
    "inf": "Infinity.",
    "nan": "Not a number.",
    "newaxis": "In an index: an axis of size 1.",
    "__version__": "The version of treadle.",
    "__array_api_version__": "The version of the Array API standard that `td` follows.",
}


def _as_docstring(text: str | None) -> griffe.Docstring | None:
    return griffe.Docstring(markdown(text), parser="google") if text else None


_CODE = re.compile(r"(``.*?``|`[^`]*`)", re.DOTALL)


def markdown(docstring: str) -> str:
    r"""A docstring as Markdown: doctests as code to copy, and signs that mean themselves.

    >>> print(markdown("x**2 where y**2 < `z**2`."))
    x\*\*2 where y\*\*2 &lt; `z**2`.
    >>> print(markdown(">>> x = 1\n>>> x + 1\n2"))
    ```python
    x = 1
    x + 1
    # 2
    ```
    """
    return "\n\n".join(_paragraph(part) for part in docstring.split("\n\n"))


def _paragraph(text: str) -> str:
    indent = " " * (len(text) - len(text.lstrip(" ")))
    if text.lstrip().startswith(">>>"):
        lines = [_doctest(line.removeprefix(indent)) for line in text.splitlines()]
        return "\n".join(indent + line for line in ("```python", *lines, "```"))
    parts = _CODE.split(text)
    parts[::2] = (_escaped(part) for part in parts[::2])
    return "".join(parts)


def _doctest(line: str) -> str:
    code = line.startswith((">>>", "..."))
    return line[4:] if code else f"# {line}"


def _escaped(text: str) -> str:
    text = re.sub(r"(?<!^)(?<!\n)\*", r"\*", text)  # one at the start of a line is a list's
    return text.replace("<", "&lt;").replace("][", r"]\[")
