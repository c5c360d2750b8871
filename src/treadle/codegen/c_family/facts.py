"""Where C++'s own operators mean what the IR means.

Signed arithmetic that overflows is undefined in C++ and wraps in the IR; dividing by zero and
shifting by the width are undefined too. Where the ranges of values prove that none of it happens
the printers write the plain operator, elsewhere a helper function.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from treadle.ir import nodes as n
from treadle.ir.passes.bounds import CheckDropper
from treadle.ir.passes.range_expressions import is_integer, type_range
from treadle.ir.passes.ranges import State, Sum, minus, plus, times
from treadle.ir.traverse import children
from treadle.ir.types import Scalar

_MOST_OPERATIONS = 60  # in an expression that anything is proven of


@dataclass(frozen=True, slots=True)
class Facts:
    """Nodes known by identity, of the kernel that `find_facts` gave along with this.

    An operation that is `plain` neither overflows nor divides by zero nor shifts too far, and its
    quotient is not negative; a plain check's index is not negative; a plain loop's counter does
    not overflow.
    """

    nodes: dict[int, Any]

    def plain(self, node: object) -> bool:
        """Whether C++'s own operator, comparison or loop does what this node means."""
        return id(node) in self.nodes


def find_facts(kernel: n.Kernel) -> tuple[n.Kernel, Facts]:
    """The same kernel, built so that each of its nodes is an object of its own where it matters,
    and what is known of them."""
    finder = _Finder(kernel)
    body, _ = finder.block(kernel.body, finder.start)
    functions = []
    for function in kernel.functions:
        inner, _ = finder.block(function.body, State())
        functions.append(replace(function, body=inner))
    kernel = replace(kernel, body=body, functions=tuple(functions))
    return kernel, Facts(finder.plain)


class _Finder(CheckDropper):
    """Walks a kernel as the pass that drops checks does, and records what it proves."""

    def __init__(self, kernel: n.Kernel) -> None:
        super().__init__(kernel)
        self.plain: dict[int, Any] = {}
        self.shapes: dict[str, list[str]] = _shapes(kernel)
        self.axes = {p.name: p.origin[1:] for p in kernel.parameters if p.origin[:1] == ("shape",)}

    def mark(self, node: Any) -> Any:
        """A copy of the node that is known to be plain: its twins elsewhere may not be."""
        copy = replace(node)
        self.plain[id(copy)] = copy  # which also keeps its identity from being used again
        return copy

    def strip(self, node: Any, state: State) -> Any:
        new = super().strip(node, state)
        match new:
            case n.Binary() | n.Unary() if is_integer(new.type) and _is_long(new):
                return new
            case n.Binary() if is_integer(new.type) and self.is_plain(new, state):
                return self.mark(new)
            case n.Unary(op="neg") if is_integer(new.type):
                low, _ = type_range(new.type)
                operand = self.sum(new.operand, state)
                if self.knowledge.low(operand, state) > low:
                    return self.mark(new)
            case n.Check() if self.knowledge.holds(self.sum(new.index, state), state):
                return self.mark(new)
            case n.Element():
                return self.element(new, state)
        return new

    def for_loop(self, node: n.For, state: State) -> tuple[n.Statement, State | None]:
        stop = self.sum(node.stop, state)
        low, high = type_range(node.variable.type)
        if node.step > 0:
            fits = self.knowledge.high(stop, state) + node.step - 1 <= high
        else:
            fits = self.knowledge.low(stop, state) + node.step + 1 >= low
        new, after = super().for_loop(node, state)
        return (self.mark(new) if fits else new), after

    # --- operations ---

    def is_plain(self, node: n.Binary, state: State) -> bool:
        rule = _RULES.get(node.op)
        assert isinstance(node.type, Scalar)
        if rule is None:
            return False
        left, right = self.sum(node.left, state), self.sum(node.right, state)
        return rule(self, left, right, node.type, state)

    def fits(self, value: Sum, type: Scalar, state: State) -> bool:
        """Whether a sum is provably within a type's range."""
        low, high = type_range(type)
        return low <= self.knowledge.low(value, state) and self.knowledge.high(value, state) <= high

    def product_fits(self, left: Sum, right: Sum, type: Scalar, state: State) -> bool:
        known = self.knowledge
        if not right[1]:
            return self.fits(times(right[0], left), type, state)
        corners = [
            a * b
            for a in (known.low(left, state), known.high(left, state))
            for b in (known.low(right, state), known.high(right, state))
        ]
        low, high = type_range(type)
        return low <= min(corners) and max(corners) <= high

    def shift_fits(self, left: Sum, right: Sum, type: Scalar, state: State) -> bool:
        low, high = self.knowledge.low(right, state), self.knowledge.high(right, state)
        if not 0 <= low <= high < type.bits:
            return False
        if not type.is_signed:
            return True
        if self.knowledge.low(left, state) < 0:
            return False
        return self.fits(times(1 << high, left), type, state)

    def divides_plainly(self, left: Sum, right: Sum, type: Scalar, state: State) -> bool:
        """Whether the divisor is positive, and so is what it divides: all divisions agree then."""
        positive = plus(right, (-1, ()))
        return self.knowledge.holds(left, state) and self.knowledge.holds(positive, state)

    def divides_safely(self, left: Sum, right: Sum, type: Scalar, state: State) -> bool:
        """Whether a division that truncates is C++'s own: by what is neither 0 nor -1."""
        known = self.knowledge
        low, high = known.low(right, state), known.high(right, state)
        return low > 0 or high < -1 or self.divides_plainly(left, right, type, state)

    # --- the position of an element, from its index along each axis ---

    def element(self, node: n.Element, state: State) -> n.Element:
        """An element whose every axis is within its array: its position does not overflow."""
        chain = self.chain(node.index)
        if chain is None:
            return node
        argument, indices = chain
        extents = self.shapes.get(argument, [])
        if len(extents) != len(indices):
            return node
        for index, extent in zip(indices, extents, strict=True):
            bound = n.Variable(extent, index.type)
            check = n.Check(index, bound)
            given = any(c.index == index and c.bound == bound for c in node.checks)
            if not given and not self.always_passes(check, state):
                return node
        return replace(node, index=self.marked_chain(node.index))

    def chain(self, node: n.Expression) -> tuple[str, list[n.Expression]] | None:
        """The array and the indices of `(i * extent1 + j) * extent2 + k`."""
        match node:
            case n.Binary(op="add", left=n.Binary(op="mul", left=outer, right=n.Variable(name))):
                axis = self.axes.get(name)
                if axis is None:
                    return None
                argument, number = str(axis[0]), axis[1]
                if number == 1:
                    return argument, [outer, node.right]
                inner = self.chain(outer)
                if inner is None or inner[0] != argument or len(inner[1]) != number:
                    return None
                return argument, [*inner[1], node.right]
        return None

    def marked_chain(self, node: Any) -> Any:
        """The nodes of such a position, marked."""
        if self.chain(node) is None:
            return node
        product = replace(node.left, left=self.marked_chain(node.left.left))
        return self.mark(replace(node, left=self.mark(product)))


def _is_long(node: n.Expression) -> bool:
    """Whether a proof would have to look at too many operations (at each of them again)."""
    stack: list[Any] = [node]
    for _ in range(_MOST_OPERATIONS):
        if not stack:
            return False
        node = stack.pop()
        if isinstance(node, (n.Binary, n.Unary, n.Cast, n.Select, n.Intrinsic)):
            stack.extend(children(node))
    return True


def _shapes(kernel: n.Kernel) -> dict[str, list[str]]:
    """The parameters that are the extents of each array, in order of the axes."""
    found: dict[str, dict[int, str]] = {}
    for parameter in kernel.parameters:
        if parameter.origin[:1] == ("shape",):
            _, argument, axis = parameter.origin
            found.setdefault(str(argument), {})[int(axis)] = parameter.name
    return {
        argument: [axes[axis] for axis in range(len(axes))]
        for argument, axes in found.items()
        if sorted(axes) == list(range(len(axes)))
    }


_Rule = Callable[[_Finder, Sum, Sum, Scalar, State], bool]
_RULES: dict[str, _Rule] = {
    "add": lambda f, a, b, type, state: f.fits(plus(a, b), type, state),
    "sub": lambda f, a, b, type, state: f.fits(minus(a, b), type, state),
    "mul": _Finder.product_fits,
    "shl": _Finder.shift_fits,
    "shr": lambda f, a, b, type, state: (
        f.knowledge.low(b, state) >= 0 and f.knowledge.high(b, state) < type.bits
    ),
    "div": _Finder.divides_safely,
    "rem": _Finder.divides_safely,
    "floordiv": _Finder.divides_plainly,
    "mod": _Finder.divides_plainly,
}
