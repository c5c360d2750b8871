"""Jinja, within bounds: what a chat template may reach, how long it may run, what it may make.

A chat template is a program in a model's file, and it is given messages of strangers. Jinja's
sandbox keeps it from Python's internals, but lets it loop for hours and build strings of any size.
Here a rendering has a budget: an iteration costs 1 and the literal text of its body, a value costs
its size when it is made, and the budget is a multiple of what the rendering was given. Operations
whose result may be far larger than what goes in (`*`, `replace`, `join`, …) are charged before they
compute. So the same template is stopped at the same place on every machine, without a thread or a
process for each prompt; a deadline, looked at with each charge, is there for what the budget does
not count (comparisons of long strings).
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from functools import cache, wraps
from itertools import chain
from typing import Any

from jinja2 import Environment, Template, Undefined, nodes, pass_context
from jinja2.exceptions import SecurityError, TemplateSyntaxError
from jinja2.ext import Extension
from jinja2.filters import FILTERS
from jinja2.parser import Parser
from jinja2.runtime import Context, LoopContext, Macro
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Namespace
from jinja2.visitor import NodeTransformer

_MOST_BITS = 4096  # of an integer
_MOST_FORMAT_WIDTH = 999
_STEPS_BETWEEN_LOOKS_AT_THE_CLOCK = 256
_LARGE = 4096  # a charge of what takes a while by itself
_CALL = 10  # what a call costs beside its result


class Budget:
    """What a rendering may still spend."""

    def __init__(self, units: int, seconds: float) -> None:
        self._left = units
        self._seconds = seconds
        self._end = time.monotonic() + seconds
        self._looks = 0

    def charge(self, units: int) -> None:
        """Takes this much, or stops the rendering."""
        self._left -= units
        if self._left < 0:
            raise SecurityError(
                "it loops too often or builds too much text for the messages it was given"
            )
        self._looks += 1
        due = self._looks % _STEPS_BETWEEN_LOOKS_AT_THE_CLOCK == 0 or units > _LARGE
        if due and time.monotonic() > self._end:
            raise SecurityError(f"it did not finish within {self._seconds:g} seconds")

    @property
    def left(self) -> int:
        """What is not spent yet."""
        return self._left


BUDGET: ContextVar[Budget] = ContextVar("budget of the rendering")


def size_of(value: Any, most: int) -> int:
    """The size of a value written out: what occurs twice counts twice. At most about `most`."""
    total, pending = 0, [value]
    while pending and total <= most:
        each = pending.pop()
        total += 1
        if isinstance(each, (str, bytes)):
            total += len(each)
        elif isinstance(each, int):
            total += each.bit_length() // 3
            if each.bit_length() > _MOST_BITS:
                raise SecurityError(f"it computes with numbers of more than {_MOST_BITS} bits")
        elif isinstance(each, Mapping):
            pending += chain(each.keys(), each.values())
        elif isinstance(each, (list, tuple)):
            pending += each
        elif isinstance(each, Namespace):
            pending += object.__getattribute__(each, "_Namespace__attrs").values()
    return total


def _made(value: Any) -> Any:
    """The value, charged; what comes bit by bit is made a list first."""
    if isinstance(value, Iterator) and not isinstance(value, LoopContext):
        value = list(_Items(value, 1))
    budget = BUDGET.get()
    budget.charge(size_of(value, budget.left))
    return value


class _Items:
    """What a loop runs over, each iteration charged."""

    def __init__(self, values: Any, cost: int) -> None:
        self._values, self._cost = values, cost

    def __iter__(self) -> Iterator[Any]:
        budget = BUDGET.get()
        for value in self._values:
            budget.charge(self._cost)
            yield value

    def __len__(self) -> int:
        return len(self._values)


# ------------------------------------------------------------ what is charged before it computes


def _replaced(text: Any, old: Any, new: Any, count: Any = None) -> str:
    whole, part, instead = str(text), str(old), str(new)
    times = whole.count(part)
    if count is not None and count >= 0:
        times = min(times, count)
    BUDGET.get().charge(times * len(instead))
    return whole.replace(part, instead, times)


def _joined(values: Any, separator: Any = "", attribute: Any = None) -> str:
    budget, between, parts = BUDGET.get(), str(separator), []
    for value in values:
        part = str(value if attribute is None else value[attribute])
        budget.charge(len(part) + len(between))
        parts.append(part)
    return between.join(parts)


def _indented(text: Any, width: Any = 4, first: bool = False, blank: bool = False) -> str:
    text = str(text)
    length = len(width) if isinstance(width, str) else int(width)
    BUDGET.get().charge((text.count("\n") + 1) * max(length, 1))
    return str(FILTERS["indent"](text, width, first, blank))


def _formatted(template: Any, *values: Any, **names: Any) -> str:
    return str(_percent(str(template), names or values))


def _percent(left: Any, right: Any) -> Any:
    if isinstance(left, str):
        for width in re.findall(r"\d+|\*", left):
            if width == "*" or int(width) > _MOST_FORMAT_WIDTH:
                raise SecurityError(f"it formats by {left[:40]!r}, which is too wide")
    return left % right


def _product(left: Any, right: Any) -> Any:
    for values, times in ((left, right), (right, left)):
        if isinstance(values, (str, list, tuple)) and isinstance(times, int):
            BUDGET.get().charge(size_of(values, BUDGET.get().left) * max(times, 0))
    return left * right


def _power(left: Any, right: Any) -> Any:
    integers = isinstance(left, int) and isinstance(right, int)
    if integers and left.bit_length() * abs(right) > _MOST_BITS:
        raise SecurityError(f"it computes with numbers of more than {_MOST_BITS} bits")
    return left**right


_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda left, right: left + right,
    "*": _product,
    "**": _power,
    "%": _percent,
}
_METHODS: dict[str, Callable[..., Any]] = {
    "replace": _replaced,
    "join": lambda text, values: _joined(values, text),
}


def to_json(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """JSON as `transformers` writes it for templates: no escapes for HTML or for other scripts."""
    encoder = json.JSONEncoder(
        ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
    )
    if indent is None:
        return encoder.encode(value)
    if indent > _MOST_FORMAT_WIDTH:
        raise SecurityError(f"it indents JSON by {indent}")
    return "".join(_Items(encoder.iterencode(value), indent))


# Of Jinja's filters those whose results are not much larger than what they are given.
_PLAIN_FILTERS = """
    abs capitalize count d default dictsort e escape first float int items last length list lower
    map max min reject rejectattr reverse safe select selectattr sort string title trim unique upper
    wordcount
"""
_FILTERS: dict[str, Callable[..., Any]] = {
    **{name: FILTERS[name] for name in _PLAIN_FILTERS.split()},
    "format": _formatted,
    "indent": _indented,
    "join": _joined,
    "replace": _replaced,
    "tojson": to_json,
}

# ------------------------------------------------------------ what is reached

# By kinds of values, what may follow a dot. Methods that are not here change their object, or make
# far larger values than they are given.
_ATTRIBUTES: tuple[tuple[type, frozenset[str]], ...] = tuple(
    (kind, frozenset(names.split()))
    for kind, names in (
        (
            str,
            "capitalize casefold count endswith find index isalnum isalpha isascii isdecimal "
            "isdigit islower isnumeric isspace istitle isupper join lower lstrip partition "
            "removeprefix removesuffix replace rfind rindex rpartition rsplit rstrip split "
            "splitlines startswith strip swapcase title upper",
        ),
        (dict, "get items keys values"),
        ((list), "count index"),
        ((tuple), "count index"),
        (
            LoopContext,
            "changed cycle depth depth0 first index index0 last length nextitem previtem "
            "revindex revindex0",
        ),
        (Macro, "arguments catch_kwargs catch_varargs caller name"),
    )
)


class _Environment(ImmutableSandboxedEnvironment):
    intercepted_binops = frozenset(_OPERATORS)

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        if isinstance(obj, Namespace):
            return not attr.startswith("_")
        return any(isinstance(obj, kind) and attr in names for kind, names in _ATTRIBUTES)

    def unsafe_undefined(self, obj: Any, attribute: str) -> Any:
        if isinstance(obj, dict):  # a key with the name of one of dict's other methods
            return obj.get(attribute, self.undefined(obj=obj, name=attribute))
        raise SecurityError(
            f"it reaches for the attribute {attribute!r} of a value of type "
            f"{type(obj).__name__!r}, which templates may not"
        )

    def wrap_str_format(self, value: Any) -> None:
        """Nothing: str.format, which Jinja lets pass in a safer form, has no bound on its widths,
        so that it is refused as an attribute."""

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        return _made(_OPERATORS[operator](left, right))

    def call(__self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:
        name = getattr(__obj, "__name__", "")
        owner = getattr(__obj, "__self__", None)
        BUDGET.get().charge(
            _CALL + (size_of(args, 1 << 20) if isinstance(__obj, LoopContext) else 0)
        )
        if isinstance(owner, str) and name in _METHODS:
            return _made(_METHODS[name](owner, *args, **kwargs))
        return _made(super().call(__context, __obj, *args, **kwargs))


# ------------------------------------------------------------ what is counted

_ITERATED, _MADE = "iterated by a loop", "made by an expression"  # filters no template can name


class _Counting(NodeTransformer):
    """Charges what neither filters nor the environment see: loops, literals, joined text."""

    def visit_For(self, node: nodes.For) -> nodes.Node:
        cost = 1 + sum(len(text.data) for text in _own_text(node))
        self.generic_visit(node)
        node.iter = _filter(node.iter, _ITERATED, [nodes.Const(cost)])
        return node

    def _charged(self, node: nodes.Expr) -> nodes.Node:
        self.generic_visit(node)
        return node if getattr(node, "ctx", "load") != "load" else _filter(node, _MADE, [])

    visit_Concat = visit_List = visit_Dict = visit_Tuple = _charged

    def generic_visit(self, node: nodes.Node, *args: Any, **kwargs: Any) -> nodes.Node:
        if isinstance(node, (nodes.Include, nodes.Import, nodes.FromImport, nodes.Extends)):
            raise TemplateSyntaxError("it reads another template, which it may not", node.lineno)
        return super().generic_visit(node, *args, **kwargs)


def _own_text(node: nodes.Node) -> Iterator[nodes.TemplateData]:
    """The literal text below, without that of loops within, which count it themselves."""
    for child in node.iter_child_nodes():
        if isinstance(child, nodes.TemplateData):
            yield child
        elif not isinstance(child, nodes.For):
            yield from _own_text(child)


def _filter(node: nodes.Node, name: str, arguments: list[nodes.Expr]) -> nodes.Filter:
    return nodes.Filter(node, name, arguments, [], None, None, lineno=node.lineno)


@pass_context
def _iterated(context: Context, values: Any, cost: int) -> Any:
    return values if isinstance(values, Undefined) else _Items(values, cost)


@pass_context
def _made_by_expression(context: Context, value: Any) -> Any:
    return _made(value)


def _charging(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)  # which keeps Jinja's mark of what it passes first
    def charged(*arguments: Any, **keywords: Any) -> Any:
        return _made(function(*arguments, **keywords))

    return charged


class _Generation(Extension):
    """`{% generation %}`, by which trainers mark what the assistant says: the text within."""

    tags = {"generation"}

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


@cache
def _environment() -> Environment:
    environment = _Environment(
        trim_blocks=True,
        lstrip_blocks=True,
        optimized=False,  # it would compute constant expressions before there is a budget
        extensions=["jinja2.ext.loopcontrols", _Generation],
        finalize=_made_by_expression,
    )
    environment.filters = {name: _charging(function) for name, function in _FILTERS.items()}
    environment.filters |= {_ITERATED: _iterated, _MADE: _made_by_expression}
    environment.globals = {
        name: environment.globals[name] for name in ("range", "dict", "namespace")
    }
    return environment


def compiled(source: str, names: Mapping[str, Callable[..., Any]]) -> Template:
    """The template as bounded code, with these functions as global names."""
    environment = _environment()
    tree = _Counting().visit(environment.parse(source))
    return environment.from_string(tree, globals=dict(names))


def plain(value: Any, place: str) -> Any:
    """A copy made of JSON's types, so that a template meets no objects of the caller's."""
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise TypeError(f"{place} has the key {key!r}; keys must be strings")
        return {key: plain(each, f"{place}[{key!r}]") for key, each in value.items()}
    if isinstance(value, Sequence):
        return [plain(each, f"{place}[{index}]") for index, each in enumerate(value)]
    raise TypeError(
        f"{place} is of type {type(value).__name__}; messages and tools are made of dicts, lists, "
        "strings, numbers, True, False and None"
    )
