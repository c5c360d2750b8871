"""What a differentiable node was made of: the tape that a backward pass follows.

A node has a history if one of its sources has one and histories are being recorded. A history
remembers the histories of its sources (the edges), and of the values only those that the derivative
needs, so that all else can go as soon as it is computed. What a derivative is, and which values it
needs, is said by a table of the layer above.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol
from weakref import ref

from treadle.core.errors import AutogradError

if TYPE_CHECKING:
    from treadle.graph.node import Node  # a node has its history: `node` imports this module

# Whether what is computed remembers how; `td.no_grad()` says no.
recording: ContextVar[bool] = ContextVar("recording", default=True)

# What tells where an operation is made, in words, for anomaly detection.
placing: ContextVar[Callable[[], str] | None] = ContextVar("placing", default=None)
# Whether histories keep what derivatives need. Those that don't only tell what came from what.
keeping: ContextVar[bool] = ContextVar("keeping", default=True)

RESULT = -1  # the position of a node's own value among those that a derivative needs
_serial = itertools.count()
# The values that histories which are gone had counted. A finalizer in Python would lose an
# interrupt (Ctrl-C), so theirs, which is C, puts them here.
_ended: deque[list[ref[Node]]] = deque()


def settle_ended() -> None:
    """Count the values of histories that are gone no longer as saved."""
    while _ended:
        _uncount(_ended.popleft())


def _uncount(values: list[ref[Node]]) -> None:
    while values:
        node = values.pop()()
        if node is not None:
            node.saved -= 1


def next_serial() -> int:
    """A number that is greater than those of all histories until now, and less than all others."""
    return next(_serial)


class Derivative(Protocol):
    """How gradients of an operation's sources follow from the gradients of its results."""

    name: str

    def needs(self, tracked: Sequence[bool]) -> Sequence[int]:
        """The positions of the sources, or RESULT, whose values are needed for the gradients of
        those sources that are tracked."""


# The derivatives of operations by their names, and of functions that are recorded as one operation;
# and what runs a backward pass. `treadle/__init__.py` installs them, which are known above.
derivatives: Mapping[str, Derivative]
_known: Callable[[], Mapping[str, Derivative]]
run_backward: Callable[..., None]


def install(known: Callable[[], Mapping[str, Derivative]], backward: Callable[..., None]) -> None:
    """Set the functions that find the derivatives and that run a backward pass."""
    global _known, run_backward
    _known, run_backward = known, backward


def __getattr__(name: str) -> Any:
    """The derivatives, which are imported when one is first asked for."""
    if name != "derivatives":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = _known()
    return found


class History:
    """How a node, or several that were computed together, came to be.

    `edges` has the history of each source, None for those without. `kept` has the values that the
    derivative needs by their position; None once they were let go of. `parts` is of how many
    results this is the history.
    """

    __slots__ = (
        "__weakref__", "_counted", "_finalizer", "_recipe", "_result", "derivative", "device",
        "dtype", "edges", "hooks", "kept", "needs", "options", "overwritten", "overwritten_parts",
        "parts", "passed", "place",
        "retained", "serial", "shape",
    )  # fmt: skip

    def __init__(
        self,
        derivative: Derivative,
        node: Node,
        sources: Sequence[Node],
        options: Any = None,
        extra: Sequence[Node] = (),
        parts: int = 1,
    ) -> None:
        self.derivative = derivative
        self.shape = node.shape
        self.dtype = node.dtype
        self.device = node.device
        self.edges: tuple[History | None, ...] = tuple([each.history for each in sources])
        self.options = options
        self.parts = parts
        self.serial = next(_serial)
        self.hooks: list[Callable[[Any], Any]] | None = None
        self.retained: Any = None  # the gradient, for those who asked to see it
        self.passed = False  # whether a backward pass came through, and was the last one
        self.overwritten = False  # the result, which the derivative needs
        self.overwritten_parts: Set[int] = frozenset()  # those of several results
        self.kept: dict[int, Node] | None = {}
        self._counted: list[ref[Node]] = []
        self._finalizer = partial(_ended.append, self._counted)
        self._result: ref[Node] | None = None
        self._recipe: Callable[[], Node] | None = None
        place = placing.get()
        self.place = None if place is None else place()
        self.needs: Sequence[int] = ()
        if not keeping.get():
            return
        self.needs = derivative.needs([edge is not None for edge in self.edges])
        for position in self.needs:
            if position == RESULT:
                self._keep_result(node)
            else:
                self._keep(position, sources[position])
        for number, value in enumerate(extra):
            self._keep(len(sources) + number, value)

    # --- values ----------------------------------------------------------------------------------

    def _keep(self, position: int, value: Node) -> None:
        assert self.kept is not None
        self.kept[position] = value
        self._count(value)

    def _count(self, value: Node) -> None:
        *_, value = value.chain()
        value.saved += 1
        self._counted.append(ref(value))

    def _keep_result(self, node: Node) -> None:
        # The node has this history, so that having the node here would be a circle: a
        # node that is dropped would keep its memory until Python looks for circles.
        self._result = ref(node)
        node.saved += 1
        self._recipe = node.recipe()

    def keeps(self, value: Node) -> bool:
        """Whether an operand that is needed is this value, or a view of it."""
        kept = self.kept or {}
        return any(value is each for node in kept.values() for each in node.chain())

    def computed(self, node: Node) -> None:
        """The node is computed: what its value is made of is not needed any more."""
        if self._recipe is not None:
            self._recipe = node.recipe()

    def value(self, position: int) -> Node:
        """A value that the derivative needs. AutogradError if it is gone, or was written since."""
        if self.kept is None:
            raise AutogradError(
                f"the backward pass goes through {self.derivative.name} a second time, and the "
                "values that it needs are gone: call the first one with retain_graph=True"
            )
        if position != RESULT:
            node = self.kept[position]
            if _is_overwritten(node):
                raise self._written(f"operand {position + 1}", node)
            return node
        if self.overwritten:
            raise self._written("the result")
        assert self._result is not None
        found = self._result()
        if found is not None:
            return found
        assert self._recipe is not None
        with recorded(False):
            made = self._recipe()
        made.history = self  # gradients of gradients go on from here
        return made

    def part(self, number: int, position: int) -> Node:
        """One of several results, of which the values are kept at a position."""
        if number in self.overwritten_parts:
            raise self._written(f"result {number + 1}")
        value = self.value(position)
        if not is_differentiable(value):
            return value
        node = value.alias()
        make_part(self, node, number)
        return node

    def overwrite(self) -> None:
        """The result is not in its tensor any more, and perhaps not in memory."""
        self.overwritten = True
        if self.derivative is PART:
            together = self.edges[0]
            assert together is not None
            together.overwritten_parts = {*together.overwritten_parts, self.options}

    def restore(self, node: Node) -> None:
        """This node is in its tensor again, as what was to replace it was dropped."""
        if self._result is not None and self._result() is node:
            self.overwritten = False

    def _written(self, what: str, value: Node | None = None) -> AutogradError:
        """The error for a value that was changed; a result, unless the value is given."""
        shape = self.shape if value is None else value.shape
        seen = () if value is None else tuple(value.chain())
        if any(isinstance(each.history, Leaf) for each in seen):
            kind = "a leaf"
            way = (
                "call backward() before the leaf is updated (by an optimizer's step, say), or "
                "compute again after the update"
            )
        elif value is None or value.history is not None:
            kind = "a value"
            way = (
                "change a copy of it, y = x.clone(), or make a new tensor, as y = x + 1 for x += 1 "
                "and y = td.where(mask, 0, x) for x[mask] = 0"
            )
        else:
            kind = "a tensor"
            way = "change it after backward(), or compute with a copy of it, x.clone()"
        return AutogradError(
            f"{kind} that the gradient of {self.derivative.name} needs ({what}, of shape {shape}) "
            f"was changed in place after it was used: {way}"
        )

    def release(self) -> None:
        """Let the values go: the backward pass has been here."""
        if self.needs or self.kept:
            self.kept = None
        self._recipe = None
        _uncount(self._counted)
        if self._result is not None:
            result = self._result()
            if result is not None:
                result.saved -= 1
            self._result = None

    def __repr__(self) -> str:
        return f"<{self.derivative.name} of shape {self.shape}>"


# Python calls what the slot holds, without arguments.
History.__del__ = History._finalizer  # type: ignore[attr-defined, has-type, misc]


def _is_overwritten(node: Node) -> bool:
    return any(each.overwritten for each in node.chain())


# --- the ends ------------------------------------------------------------------------------------


class _Leaf:
    name = "a leaf"

    def needs(self, tracked: Sequence[bool]) -> Sequence[int]:
        return ()


class Ranks(Protocol):
    """The processes that have the parts of a tensor, of which each sees its own part alone, or the
    other tensors of a model. What is computed from all gradients, as their norm, is computed from
    all of them. Those that have the same are equal."""

    @property
    def outer(self) -> Ranks | None:
        """The processes that have what these have not."""

    @property
    def divides(self) -> bool:
        """Whether they have parts of one tensor, rather than other tensors."""

    def __hash__(self) -> int: ...

    def total(self, x: Any, op: str) -> Any:
        """The "sum", "max" or "min" of all processes' values, a tensor."""


class Leaf(History):
    """Where a backward pass ends: a tensor that was made to require gradients, and has one. If the
    tensor is a part of its cell, the history is that of the whole."""

    __slots__ = (
        "_gradient", "_shown", "accumulated", "fixed", "home", "is_parameter", "owner", "ranks",
    )  # fmt: skip

    def __init__(self, node: Node, is_parameter: bool = False) -> None:
        super().__init__(_Leaf(), node, ())
        self.is_parameter = is_parameter
        self._gradient: Any = None
        self.home: Any = None  # a tensor whose memory the gradient is to be in, for optimizers
        self._shown: ref[Any] | None = None  # what sees the home, for those who ask for `grad`
        self.owner: ref[Any] | None = None  # the tensor whose `grad` this is
        self.accumulated: list[Callable[[Any], Any]] | None = None  # hooks for after it
        self.fixed = ""  # why the tensor stays of its dtype and device, if something counts on that
        self.ranks: Ranks | None = None  # the processes that have its other parts, if it is a part

    def succeed(self, before: Leaf) -> None:
        """Take over what belongs to the tensor, not to its memory, from the leaf that it had: its
        hooks, and who has its other parts. The lists are the same, for those who remove hooks."""
        self.ranks = before.ranks
        self.hooks, self.accumulated, self.fixed = before.hooks, before.accumulated, before.fixed

    def copied_hooks(self) -> list[Callable[[Any], Any]]:
        """The hooks that copies of the tensor have, too: those that say so. Others may mean this
        very tensor."""
        return [each for each in self.hooks or () if getattr(each, "is_copied", False)]

    @property
    def gradient(self) -> Any:
        """A tensor, `x.grad`, or None."""
        if (noted := observed.get()) is not None:
            noted.setdefault(self, (True, self._gradient))
        return self._gradient

    @gradient.setter
    def gradient(self, value: Any) -> None:
        if (noted := observed.get()) is not None:
            noted.setdefault(self, (False, None))
        self._gradient = value

    def shown(self) -> Any:
        """The gradient for who asks for it. The home is the optimizer's: another tensor sees it,
        the same one as long as it is in use."""
        gradient = self.gradient
        if gradient is None or gradient is not self.home:
            return gradient
        known = None if self._shown is None else self._shown()
        if known is None or not known._sees_same(gradient):
            known = gradient._seen_again()
            self._shown = ref(known)
        return known

    def is_shown(self, value: Any) -> bool:
        """Whether a tensor is what `shown` gave, and still sees the home."""
        known = None if self._shown is None else self._shown()
        return known is value and self.home is not None and known._sees_same(self.home)


# The leaves whose gradients are looked at, or set, while a function is traced: whether they were
# looked at first, and what there was then.
observed: ContextVar[dict[Leaf, tuple[bool, Any]] | None] = ContextVar("observed", default=None)


def has_way_back(made: History | None) -> bool:
    """Whether a backward pass could still go from a history to a leaf."""
    todo, seen = [made], set[History]()
    while todo:
        each = todo.pop()
        if each is None or each.passed or each in seen:
            continue
        if isinstance(each, Leaf):
            return True
        seen.add(each)
        todo += each.edges
    return False


class _Part:
    """One of several results."""

    name = "one of several results"

    def needs(self, tracked: Sequence[bool]) -> Sequence[int]:
        return ()


PART = _Part()


# --- recording -----------------------------------------------------------------------------------


def is_differentiable(node: Node) -> bool:
    """Whether gradients of a node's elements make sense."""
    return getattr(node.dtype, "kind", "") in ("float", "complex")


class Unknown:
    """The derivative of what has none."""

    def __init__(self, name: str) -> None:
        self.name = name

    def needs(self, tracked: Sequence[bool]) -> Sequence[int]:
        """Nothing will help."""
        return ()


def make_part(together: History, node: Node, number: int) -> None:
    """Give a node its history as one of several results."""
    node.history = History(PART, node, (), number)
    node.history.edges = (together,)


@contextmanager
def recorded(enabled: bool) -> Iterator[None]:
    """Record histories, or don't, within a with statement."""
    before = recording.set(enabled)
    try:
        yield
    finally:
        recording.reset(before)
