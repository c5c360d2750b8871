"""The function that `@td.stencil` decorates: its arrays and numbers, and its position."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import FunctionType
from typing import Any

from treadle.core.dtypes import float32
from treadle.core.errors import CompileError
from treadle.core.source import Span
from treadle.ir import types as t
from treadle.lang.captures import CaptureSet
from treadle.lang.decorators import as_function
from treadle.lang.positions import GridPos
from treadle.lang.source import Source, resolve_annotations, source_of
from treadle.lang.types import ArrayType, annotation_of


@dataclass(frozen=True)
class Body:
    """A stencil's function. `names` are its parameters but the position, `order` all of them."""

    function: FunctionType
    source: Source
    names: tuple[str, ...]
    order: tuple[str, ...]
    position: str
    annotations: dict[str, Any]

    @property
    def name(self) -> str:
        """The stencil's name."""
        return self.function.__name__

    @cached_property
    def captures(self) -> CaptureSet:
        """The constants from outside, on whose values the halo may depend."""
        return CaptureSet(self.function)

    @cached_property
    def written_at_position(self) -> tuple[str, ...]:
        """The parameters that the function assigns at its position, as in `out[pos] = …`."""
        found = {
            place[0]
            for node in ast.walk(self.source.tree)
            if isinstance(node, ast.Subscript)
            and (isinstance(node.ctx, ast.Store) or node in self._bases)
            and (place := self._cell(node))
        }
        return tuple(name for name in self.names if name in found)

    @cached_property
    def stacked(self) -> dict[str, int]:
        """Of the parameters that are stacks of grids, by how many numbers one is chosen: 1 in
        `f[q][pos]`."""
        found: dict[str, int] = {}
        for node in ast.walk(self.source.tree):
            place = None
            if isinstance(node, ast.Subscript):
                place = self._cell(node)
            elif isinstance(node, ast.Call) and node.args and _is_method(node, self.position):
                place = self._grid(node.args[0])
            if place is not None and place[1]:
                found[place[0]] = place[1]
        return found

    def _cell(self, node: ast.Subscript) -> tuple[str, int] | None:
        """The parameter of `u[pos]` or `f[q][pos]`, and by how many numbers its grid is chosen."""
        return self._grid(node.value) if self._is_place(node.slice) else None

    def _is_place(self, node: ast.expr) -> bool:
        """Whether an index is the position, or `pos.shifted(…)`."""
        if isinstance(node, ast.Name):
            node = self._named.get(node.id, node)
        if isinstance(node, ast.Call) and _is_method(node, self.position):
            return isinstance(node.func, ast.Attribute) and node.func.attr == "shifted"
        return isinstance(node, ast.Name) and node.id == self.position

    def _grid(self, base: ast.expr) -> tuple[str, int] | None:
        """The parameter of an array `u` or `f[q]`, and by how many numbers its grid is chosen."""
        count, seen = 0, set()
        while base not in seen:
            seen.add(base)
            if isinstance(base, ast.Subscript):
                count += len(base.slice.elts) if isinstance(base.slice, ast.Tuple) else 1
                base = base.value
            elif isinstance(base, ast.Name):
                base = self._named.get(base.id, base)
        return (base.id, count) if isinstance(base, ast.Name) and base.id in self.names else None

    @cached_property
    def _named(self) -> dict[str, ast.expr]:
        """What local names stand for that are assigned once, as in `rho = f[0]`."""
        found: dict[str, ast.expr] = {}
        pairs: list[tuple[ast.expr, ast.expr]] = []
        for node in ast.walk(self.source.tree):
            if isinstance(node, ast.Assign):
                pairs += [(target, node.value) for target in node.targets]
        for target, value in pairs:
            if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
                pairs += zip(target.elts, value.elts, strict=False)
            elif isinstance(target, ast.Name) and target.id not in self.order:
                known = found.setdefault(target.id, value)
                if known is not value:  # of several values it stands for none
                    found[target.id] = target
        return found

    @cached_property
    def outputs(self) -> tuple[str, ...]:
        """The parameters that are assigned at the position and never read: a call may omit them."""
        stores: dict[str, int] = dict.fromkeys(self.written_at_position, 0)
        uses = dict(stores)
        of = {name: place[0] for name, value in self._named.items() if (place := self._grid(value))}
        for name in of.values():  # naming a grid does not count
            if name in uses:
                uses[name] -= 1
        updated = {
            place[0]
            for node in ast.walk(self.source.tree)
            if isinstance(node, ast.AugAssign)
            and isinstance(node.target, ast.Subscript)
            and (place := self._cell(node.target))
        }
        for node in ast.walk(self.source.tree):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                name = of.get(node.id, node.id)
                if name in uses:
                    uses[name] += 1
            if not isinstance(node, ast.Subscript) or not isinstance(node.ctx, ast.Store):
                continue
            if isinstance(node.value, ast.Name) and node.value.id in stores:
                stores[node.value.id] += 1
            elif (place := self._cell(node)) and place[0] in stores:
                stores[place[0]] += 1
        return tuple(name for name in stores if stores[name] == uses[name] and name not in updated)

    @cached_property
    def always_written(self) -> frozenset[str]:
        """The parameters that are assigned at the position whatever the body decides."""
        return frozenset(self._assigned(self.source.tree.body))

    def _assigned(self, statements: Sequence[ast.stmt]) -> set[str]:
        found: set[str] = set()
        for statement in statements:
            if isinstance(statement, ast.Assign):
                found |= {
                    target.value.id
                    for target in statement.targets
                    if isinstance(target, ast.Subscript)
                    and isinstance(target.value, ast.Name)
                    and isinstance(target.slice, ast.Name)
                    and target.slice.id == self.position
                }
            elif isinstance(statement, ast.If):
                found |= self._assigned(statement.body) & self._assigned(statement.orelse)
            if any(isinstance(node, ast.Return) for node in ast.walk(statement)):
                break
        return found

    @cached_property
    def plain_writes(self) -> frozenset[Span]:
        """The targets of assignments outside branches and loops."""
        return frozenset(
            self.source.span(target)
            for statement in self.source.tree.body
            if isinstance(statement, ast.Assign)
            for target in statement.targets
        )

    @cached_property
    def repeats(self) -> bool:
        """Whether the function has a while loop, which some values might never end, or prints."""
        return any(
            isinstance(node, ast.While) or (isinstance(node, ast.Name) and node.id == "print")
            for node in ast.walk(self.source.tree)
        )

    @cached_property
    def _bases(self) -> set[ast.AST]:
        """What assigned parts are of, as `out[pos]` in `out[pos].x = …` and `out[pos].f[q] = …`."""
        found: set[ast.AST] = set()
        for node in ast.walk(self.source.tree):
            part: ast.AST = node
            if isinstance(getattr(node, "ctx", None), ast.Store):
                while isinstance(part, (ast.Attribute, ast.Subscript)):
                    part = part.value
                    found.add(part)
        return found

    def ndim_of(self, name: str, given: int | None) -> int | None:
        """The number of axes of a parameter: as annotated, or else those of the argument."""
        annotation = self.annotations.get(name)
        return annotation.ndim if isinstance(annotation, ArrayType) else given

    def refused(self, message: str, node: ast.AST | None = None) -> CompileError:
        """A CompileError at a node, or at the function."""
        source = self.source
        return CompileError(message, source.span(node or source.tree), source.text)


def _is_method(node: ast.Call, position: str) -> bool:
    """Whether a call is that of a position's method, as `pos.west(u)`."""
    owner = node.func.value if isinstance(node.func, ast.Attribute) else None
    return isinstance(owner, ast.Name) and owner.id == position


def _stored(annotation: Any, storage: t.Scalar | None) -> Any:
    """An annotation with the dtype that an array's elements are kept in."""
    if storage is None or not isinstance(annotation, ArrayType) or annotation.element != float32:
        return annotation
    return replace(annotation, element=annotation_of(storage))


def read_body(candidate: Any, names: dict[str, Any], storage: t.Scalar | None) -> Body:
    """The function that a decorator is applied to, whose arrays of float32 are kept as `storage`.
    CompileError if it cannot be a stencil's."""
    function = as_function(candidate)
    source = source_of(function)
    arguments = source.tree.args
    nodes = arguments.posonlyargs + arguments.args
    annotations = resolve_annotations(function, names)
    positions = [each.arg for each in nodes if annotations.get(each.arg) is GridPos]
    if not positions and nodes and nodes[-1].arg == "pos" and "pos" not in annotations:
        positions = ["pos"]
    body = Body(
        function=function,
        source=source,
        names=tuple(each.arg for each in nodes if each.arg not in positions),
        order=tuple(each.arg for each in nodes),
        position=positions[0] if positions else "",
        annotations={
            name: _stored(found, storage)
            for name, found in annotations.items()
            if name not in positions
        },
    )
    if arguments.vararg or arguments.kwarg or arguments.kwonlyargs or arguments.defaults:
        raise body.refused(
            f"the parameters of the stencil {body.name} are arrays, numbers and a position, each "
            "with a name and without a default"
        )
    if body.names[:1] == ("self",) and "." in function.__qualname__:
        raise body.refused(
            f"{body.name} is a method, and a stencil is a plain function: define it outside the "
            "class, and pass what it needs of self as arguments"
        )
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Return) and node.value is not None:
            raise body.refused(
                f"a stencil returns nothing: write what {body.name} computes, as in out[pos] = …",
                node,
            )
    if len(positions) != 1:
        raise body.refused(
            f"a stencil has one parameter for its position: write def {body.name}"
            f"({', '.join((*body.names, 'pos: td.GridPos'))})"
        )
    return body
