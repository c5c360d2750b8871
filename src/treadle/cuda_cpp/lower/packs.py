"""Parameter packs: a template with packs of known lengths becomes one without packs.

The tree is copied: a pack `args` of three becomes `args__0`, `args__1` and `args__2`, a pattern
that is expanded becomes a pattern for each, and a fold expression becomes operations. So everything
after this sees templates without packs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

from treadle.core.source import Span
from treadle.cuda_cpp.lower.context import Context, tree_made
from treadle.cuda_cpp.source.tokens import Token
from treadle.cuda_cpp.syntax import tree
from treadle.cuda_cpp.syntax.walk import walk_tree

Counts = Mapping[str, int]  # the lengths of packs by their names
_MOST = 256  # parameters that a pack may have
_Tree = TypeVar("_Tree")
_EMPTY_FOLDS = {"&&": tree.BoolLiteral(True), "||": tree.BoolLiteral(False)}


def packs_of(declaration: Any) -> tuple[str, ...]:
    """The names of a template's parameter packs."""
    return tuple(one.name for one in declaration.template or () if one.pack)


def counts_by_arguments(declaration: Any, given: int) -> Counts:
    """The length of a template's pack for so many template arguments."""
    template = declaration.template or ()
    others = sum(not one.pack for one in template)
    return {one.name: max(given - others, 0) for one in template if one.pack}


def expanded(cx: Context, declaration: _Tree, counts: Counts) -> _Tree:
    """A template whose packs have these lengths, as one without packs."""
    if any(count > _MOST for count in counts.values()):
        span = getattr(declaration, "span", cx.span)
        raise cx.error(f"a parameter pack has more than {_MOST} parameters", span)
    key = ("packs", tuple(sorted(counts.items())))
    made: _Tree = tree_made(cx, key, declaration, lambda: _expand(declaration, counts, cx))
    return made


def name_of(pack: str, at: int) -> str:
    """The name of one of a pack's parameters."""
    return f"{pack}__{at}" if pack else ""


def mentioned(node: Any, names: Any) -> set[str]:
    """The packs that a pattern mentions: not those of an expansion inside of it."""
    found: set[str] = set()
    pending = [node]
    while pending:
        one = pending.pop()
        if isinstance(one, (tree.PackExpansion, tree.Fold)) or (
            isinstance(one, tree.SizeOf) and one.op == "sizeof..."
        ):
            continue
        if isinstance(one, tree.Name) and one.text in names:
            found.add(one.text)
        if isinstance(one, tuple) and not isinstance(one, Token):
            pending.extend(one)
        elif is_dataclass(one) and not isinstance(one, Span):
            pending.extend(getattr(one, part.name) for part in fields(one))
    return found


def _expand(node: Any, counts: Counts, cx: Context) -> Any:
    match node:
        case tree.SizeOf(operand=tree.Name(text=text), op="sizeof...") if text in counts:
            return tree.IntegerLiteral(counts[text], "ul", True, node.span)
        case tree.SizeOf(operand=tree.NamedType(tree.Name(text=text)), op="sizeof...") if (
            text in counts
        ):
            return tree.IntegerLiteral(counts[text], "ul", True, node.span)
        case tree.Fold():
            return _folded(node, counts, cx)
        case tree.FunctionDeclaration() | tree.FunctionType() | tree.Requires():
            own = {
                one.name: counts[next(iter(packs))]
                for one in node.parameters
                if one.pack and (packs := mentioned(one.type, counts))
            }
            return _rebuilt(node, {**counts, **own}, cx)
        case tree.Lambda():
            own = {
                one.name: counts[next(iter(packs))]
                for one in node.captures
                if isinstance(one.initializer, tree.PackExpansion)
                and (packs := mentioned(one.initializer.pattern, counts))
            }
            return _rebuilt(node, {**counts, **own}, cx)
    return _rebuilt(node, counts, cx)


def _rebuilt(node: Any, counts: Counts, cx: Context) -> Any:
    if isinstance(node, tuple) and not isinstance(node, Token):
        return _spliced(node, counts, cx)
    if not is_dataclass(node) or isinstance(node, (Span, type)):
        return node
    changed = {}
    for part in fields(node):
        before = getattr(node, part.name)
        after = _expand(before, counts, cx)
        if after is not before:
            changed[part.name] = after
    if isinstance(node, (tree.FunctionDeclaration, tree.StructDeclaration)) and changed:
        changed["expanded"] = True
    return replace(node, **changed) if changed else node


def _spliced(items: tuple[Any, ...], counts: Counts, cx: Context) -> tuple[Any, ...]:
    """A list with its expansions in place; the same object if it has none."""
    found: list[Any] = []
    for item in items:
        count = _count(item, counts, cx)
        if count is None:
            found.append(_expand(item, counts, cx))
            continue
        found += [_expand(_one_of(item, counts, at), counts, cx) for at in range(count)]
    if len(found) == len(items) and all(a is b for a, b in zip(found, items, strict=True)):
        return items
    return tuple(found)


def _count(item: Any, counts: Counts, cx: Context) -> int | None:
    """How often an item of a list is repeated; None without a known pack."""
    match item:
        case tree.PackExpansion(pattern):
            packs = mentioned(pattern, counts)
        case tree.Parameter(pack=True):
            packs = mentioned(item.type, counts)
        case tree.TemplateParameter(pack=True):
            packs = {item.name} & set(counts)
        case tree.UsingDeclaration(pack=True):
            packs = mentioned(item.name, counts)
        case tree.Capture(initializer=tree.PackExpansion(pattern)):
            packs = mentioned(pattern, counts)
        case _:
            return None
    lengths = {counts[one] for one in packs}
    if len(lengths) > 1:
        raise cx.error(
            f"the packs {' and '.join(sorted(packs))} are expanded together, and have different "
            "lengths",
            item.span,
        )
    return lengths.pop() if lengths else None


def _one_of(item: Any, counts: Counts, at: int) -> Any:
    """An item for one of a pack's parameters."""
    match item:
        case tree.PackExpansion(pattern):
            return _renamed(pattern, counts, at)
        case tree.Parameter():
            type = _renamed(item.type, counts, at)
            return replace(item, name=name_of(item.name, at), type=type, pack=False)
        case tree.TemplateParameter():
            return replace(item, name=name_of(item.name, at), pack=False)
        case tree.UsingDeclaration():
            return replace(item, name=_renamed(item.name, counts, at), pack=False)
        case tree.Capture(initializer=tree.PackExpansion()):
            of: Any = getattr(item.initializer, "pattern", None)
            own = isinstance(of, tree.Name) and of.text == item.name
            value = None if own else _renamed(of, counts, at)
            return replace(item, name=name_of(item.name, at), initializer=value)
    raise AssertionError(item)


def _renamed(node: Any, counts: Counts, at: int) -> Any:
    """A pattern in which the packs stand for one of their parameters."""
    if isinstance(node, tuple) and not isinstance(node, Token):
        made = tuple(_renamed(one, counts, at) for one in node)
        return node if all(a is b for a, b in zip(made, node, strict=True)) else made
    if not is_dataclass(node) or isinstance(node, (Span, type, tree.PackExpansion, tree.Fold)):
        return node
    if isinstance(node, tree.SizeOf) and node.op == "sizeof...":
        return node
    changed = {}
    for part in fields(node):
        before = getattr(node, part.name)
        after = _renamed(before, counts, at)
        if after is not before:
            changed[part.name] = after
    if isinstance(node, tree.Name) and node.text in counts:
        changed["text"] = name_of(node.text, at)
    return replace(node, **changed) if changed else node


def _folded(node: tree.Fold, counts: Counts, cx: Context) -> Any:
    """A fold expression as operations."""
    first, second = node.first, node.second
    of_first = first is not None and bool(mentioned(first, counts))
    of_second = second is not None and bool(mentioned(second, counts))
    if not of_first and not of_second:
        return _rebuilt(node, counts, cx)
    pattern = first if of_first else second
    start = second if of_first else first
    expansion = tree.PackExpansion(pattern, node.span)  # type: ignore[arg-type]
    items = list(_spliced((expansion,), counts, cx))
    if start is not None:
        whole = _expand(start, counts, cx)
        items = [*items, whole] if of_first else [whole, *items]
    if not items:
        if node.op == ",":
            return tree.Cast(tree.BuiltinType("void"), tree.IntegerLiteral(0), span=node.span)
        if node.op not in _EMPTY_FOLDS:
            raise cx.error(f"a fold of no operands has no value for {node.op}", node.span)
        return _EMPTY_FOLDS[node.op]
    if of_first:  # (pack op ...) groups from the right
        result = items.pop()
        while items:
            result = _operation(node, items.pop(), result)
        return result
    result = items.pop(0)
    while items:
        result = _operation(node, result, items.pop(0))
    return result


def _operation(node: tree.Fold, left: Any, right: Any) -> Any:
    comparing = node.op in ("==", "!=", "<=", ">=", "<=>")
    if node.op.endswith("=") and not comparing:
        return tree.Assign(node.op, left, right, node.span)
    return tree.Binary(node.op, left, right, node.span)


# --- the lengths of packs ------------------------------------------------------------------------


def counts_of_patterns(
    packs: Sequence[str],
    patterns: Sequence[Any],
    parts: Sequence[Any],
    inner: Callable[[Any], Sequence[Any]],
    meant: Callable[[tree.Name], tree.Name] = lambda name: name,
) -> dict[str, int]:
    """The lengths of packs in a list of patterns (`T, Ts...`) for a list of types. `inner(type)`
    has the arguments that a type is made of, for patterns in patterns, and `meant(name)` is what an
    alias template stands for."""
    found: dict[str, int] = {}
    others = sum(not _is_expansion(one) for one in patterns)
    at = 0
    for pattern in patterns:
        if _is_expansion(pattern):
            count = max(len(parts) - others, 0)
            written = pattern.type if isinstance(pattern, tree.Parameter) else pattern.pattern
            found.update(dict.fromkeys(mentioned(written, packs), count))
            at += count
            continue
        if at < len(parts):
            found.update(_in_pattern(packs, pattern, parts[at], inner, meant))
        at += 1
    return found


def _is_expansion(node: Any) -> bool:
    return isinstance(node, tree.PackExpansion) or (isinstance(node, tree.Parameter) and node.pack)


def _in_pattern(
    packs: Sequence[str],
    pattern: Any,
    type: Any,
    inner: Callable[[Any], Sequence[Any]],
    meant: Callable[[tree.Name], tree.Name],
) -> dict[str, int]:
    if isinstance(pattern, tree.Parameter):
        pattern = pattern.type
    while isinstance(
        pattern,
        (tree.ConstType, tree.PointerType, tree.ReferenceType, tree.MemberPointerType),
    ):
        pattern = pattern.of if isinstance(pattern, tree.ConstType) else pattern.to
        type = getattr(type, "to", type)
    if not any(isinstance(one, tree.Name) and one.text in packs for one in walk_tree(pattern)):
        return {}
    parts = inner(type)
    if isinstance(pattern, tree.NamedType) and pattern.name.arguments is not None:
        pattern = pattern.name
    if isinstance(pattern, tree.Name) and pattern.arguments is not None:
        return counts_of_patterns(packs, meant(pattern).arguments or (), parts, inner, meant)
    if isinstance(pattern, tree.FunctionType):
        return counts_of_patterns(packs, (pattern.result, *pattern.parameters), parts, inner, meant)
    return {}
