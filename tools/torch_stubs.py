"""What type checkers and editors see of `treadle.torch`: its functions, which tables make of
functions of treadle's tensors, and the methods of its tensors. `tools/stubs.py` writes them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

from treadle.torch import methods, namespaces, table
from treadle.torch.table import Entry, entries, function_of

# Types that stubs name; all others are Any.
_KNOWN = frozenset(
    {"Any", "DType", "None", "Tensor", "bool", "complex", "dict", "float", "int", "list", "str",
     "tuple"}
)  # fmt: skip
_BUILTIN = _KNOWN - {"Any", "DType", "None", "Tensor"}
_HEAD = """import builtins
from typing import Any

from treadle.core.dtypes import DType
from treadle.torch.tensors import Tensor

"""
# Special methods whose results are no tensors; those that are compared take any object.
_RESULTS = {"bool": "bool", "complex": "complex", "contains": "bool", "float": "float",
            "format": "str", "index": "int", "int": "int", "len": "int", "repr": "str"}  # fmt: skip
_ONE = ("abs", "invert", "neg", "pos", "reversed")


def _type(annotation: Any) -> str:
    """An annotation in words of stubs, whose modules have functions named as Python's types."""
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "Any")
    text = re.sub(r"\bInner\b", "Tensor", text)
    words = set(re.findall(r"[A-Za-z_]\w*", text))
    if annotation is inspect.Parameter.empty or not words <= _KNOWN:
        return "Any"
    return re.sub(r"[A-Za-z]\w*", lambda w: f"builtins.{w[0]}" if w[0] in _BUILTIN else w[0], text)


def _parameter(each: inspect.Parameter) -> str:
    stars = {each.VAR_POSITIONAL: "*", each.VAR_KEYWORD: "**"}.get(each.kind, "")
    text = f"{stars}{each.name}: {_type(each.annotation)}"
    return text if each.default is each.empty else f"{text} = ..."


def _signature(
    function: Callable[..., Any],
    *,
    has_out: bool = False,
    is_method: bool = False,
    result: str = "",
) -> str:
    found = inspect.signature(function)
    parameters = list(found.parameters.values())
    shown, is_after = [], False
    if is_method:
        shown, parameters = ["self"], parameters[1:]
    for each in parameters:
        if each.kind is each.KEYWORD_ONLY and not is_after:
            shown.append("*")
        is_after = is_after or each.kind in (each.KEYWORD_ONLY, each.VAR_POSITIONAL)
        if has_out and each.kind is each.VAR_KEYWORD:
            shown.append("out: Any = ...")
            has_out = False
        shown.append(_parameter(each))
    if has_out:
        shown += [*([] if is_after else ["*"]), "out: Any = ..."]
    return f"({', '.join(shown)}) -> {result or _type(found.return_annotation)}: ..."


def functions(listed: dict[str, str] = table.OPERATIONS) -> str:
    """The functions of a table."""
    lines = {
        each.name: f"def {each.name}{_signature(function_of(each), has_out='o' in each.flags)}\n"
        for each in entries(listed)
        if "f" in each.flags
    }
    if listed is table.OPERATIONS:
        from treadle.torch.dtypes import ALIASES

        lines |= {name: f"{name}: DType\n" for name in ALIASES}
        lines |= {
            name: f"def {name}(input: Tensor, *args: Any, **kwargs: Any) -> Tensor: ...\n"
            for name in table.IN_PLACE
        }
    return _HEAD + "".join(lines[name] for name in sorted(lines))


def namespace(name: str) -> str:
    """The functions of `torch.linalg` and its like."""
    module = import_module(f"treadle.torch.{name}")
    listed = "".join(f'    "{each}",\n' for each in module.__all__)
    text = functions(namespaces.TABLES[name])
    others = [vars(module)[each] for each in module.__all__ if each in vars(module)]
    for each in others:
        if inspect.isclass(each):
            text = f"from {each.__module__} import {each.__name__} as {each.__name__}\n{text}"
    return f'"""{inspect.getdoc(module)}"""\n\n{text}\n__all__ = [\n{listed}]\n'


def _methods_of(each: Entry) -> Iterator[tuple[str, str]]:
    for flag in each.flags:
        if flag not in "miv":
            continue
        name = each.name if flag == "m" else f"{each.name}_"
        result = "" if flag == "m" else "Tensor"
        yield name, f"def {name}{_signature(function_of(each), is_method=True, result=result)}"


def _special(short: str) -> str:
    if short in _RESULTS:
        rest = {"contains": "element: object", "format": "spec: builtins.str"}.get(short, "")
        return (
            f"def __{short}__(self{', ' + rest if rest else ''}) -> builtins.{_RESULTS[short]}: ..."
        )
    if short in _ONE:
        return f"def __{short}__(self) -> Tensor: ..."
    if short in ("eq", "ne"):
        return f"def __{short}__(self, other: object) -> Tensor: ...  # type: ignore[override]"
    if short == "setitem":
        return "def __setitem__(self, index: Any, value: Any) -> None: ..."
    if short == "iter":
        return "def __iter__(self) -> Iterator[Tensor]: ..."
    if short in ("array", "deepcopy", "dlpack", "dlpack_device", "reduce_ex"):
        return f"def __{short}__(self, *args: Any, **kwargs: Any) -> Any: ..."
    return f"def __{short}__(self, other: Any) -> Tensor: ..."


def declarations() -> str:
    """The methods, attributes and operators of tensors."""
    lines = {}
    for short in dict.fromkeys(methods.OPERATORS.split()):
        lines[f"__{short}__"] = _special(short)
    for each in entries():
        lines |= dict(_methods_of(each))
    for places, is_property in ((methods.PLAIN, False), (methods.ATTRIBUTES, True)):
        for place, names in places.items():
            module, _, inside = place.partition(":")
            owner = import_module(module)
            for each in names.split():
                name, _, function = each.partition("=")
                found = (
                    getattr(owner, inside)[function or name]
                    if inside
                    else getattr(owner, function or name)
                )
                if not is_property:
                    lines[name] = f"def {name}{_signature(found, is_method=True)}"
                    continue
                get = found.fget if isinstance(found, property) else found
                result = _type(inspect.signature(get).return_annotation) if get else "Any"
                lines[name] = f"@property\n    def {name}(self) -> {result}: ..."
                if isinstance(found, property) and found.fset is not None:
                    lines[name] += (
                        f"\n    @{name}.setter\n    def {name}(self, value: Any) -> None: ..."
                    )
    body = "\n".join(f"    {lines[name]}" for name in sorted(lines))
    head = _HEAD.replace(
        "import builtins\n", "import builtins\nfrom collections.abc import Iterator\n"
    )
    return (
        f'"""The methods, attributes and operators of tensors that tables say."""\n\n{head}\n'
        f'class Declarations:\n    """What `Tensor` has besides its class."""\n\n{body}\n'
    )
