"""The backward pass: from results to leaves, along histories.

Histories are numbered as they are made, so that the one with the greatest number has no reader that
is still to be visited. What a pass makes is lazy, as all operations are; it has gradients computed
from time to time, so that the memory of what they were made of can go.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any, TypeVar

from treadle.autograd.anomaly import checked, is_checked
from treadle.autograd.partial_gradients import Gradients, Placed
from treadle.core.errors import AutogradError, DtypeError, ShapeError
from treadle.graph.history import PART, History, Leaf, recorded
from treadle.graph.node import CONSTANT, COPY, VIEW, Node, constant, view_of
from treadle.graph.placeholders import within
from treadle.graph.realize import realize
from treadle.tensor.compiled.tracing import is_tracing
from treadle.tensor.conversions import number_as
from treadle.tensor.creation import asarray
from treadle.tensor.reductions import sum as total
from treadle.tensor.tensor import Tensor, copy_for_views, from_node

COMPUTED_AFTER = 200  # histories: about two layers of a transformer


def backward(
    outputs: Tensor | Sequence[Tensor],
    gradients: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
) -> None:
    """Add gradients to those of leaves: `Tensor.backward` for one or several tensors."""
    outputs, gradients = _listed(outputs), _listed(gradients)
    wanted = None if inputs is None else _histories_of(_listed(inputs))
    Pass(retain_graph, create_graph, wanted, True).run(outputs, gradients)


def grad(
    outputs: Tensor | Sequence[Tensor],
    inputs: Tensor | Sequence[Tensor],
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    allow_unused: bool | None = None,
    materialize_grads: bool = False,
) -> tuple[Any, ...]:
    """The gradients of outputs with respect to inputs, as a tuple; `grad` of leaves stays as it is.

    `grad_outputs` are the gradients of the outputs, of which those of one element may be left out.
    AutogradError if an input was not used, unless `allow_unused`: then its gradient is None, or
    zeros with `materialize_grads`.

    >>> import treadle as td
    >>> x = td.asarray(2.0, device="cpu").requires_grad_()
    >>> (first,) = td.autograd.grad(x**3, x, create_graph=True)
    >>> (second,) = td.autograd.grad(first, x)
    >>> first.item(), second.item()
    (12.0, 12.0)
    """
    if materialize_grads and allow_unused is False:
        raise ValueError("materialize_grads=True gives zeros for what is unused: allow_unused=True")
    listed = _listed(inputs)
    wanted = _histories_of(listed)
    found = Pass(retain_graph, create_graph, wanted, False).run(
        _listed(outputs), _listed(grad_outputs)
    )
    if materialize_grads:
        return tuple(
            [
                zeros_of(each) if gradient is None else gradient
                for each, gradient in zip(listed, found, strict=True)
            ]
        )
    if not allow_unused:
        for number, gradient in enumerate(found):
            if gradient is None:
                raise AutogradError(
                    f"input {number} was not used for the outputs, so that it has no gradient: "
                    "leave it out, or say allow_unused=True to get None for it"
                )
    return tuple(found)


# The backward pass that runs in this thread.
_running: ContextVar[Pass | None] = ContextVar("backward pass", default=None)
Ending = TypeVar("Ending", bound=Callable[[], None])


def of_this_pass(owner: object, make: Callable[[], Ending]) -> Ending:
    """What an owner keeps for the backward pass that runs, made when it is first asked for; it is
    called when all leaves of the pass have their gradients. For hooks of several leaves. If the
    pass fails, its `failed` is called instead, if it has one."""
    running = _running.get()
    assert running is not None, "hooks are called by a backward pass"
    found: Any = running.endings.get(id(owner))
    if found is None:
        found = running.endings[id(owner)] = make()
    return found  # type: ignore[no-any-return]


def compute_so_far(*results: Tensor) -> None:
    """Compute the gradients that the running backward pass has by now, and some results with them:
    memory that they read is about to be let go of."""
    running = _running.get()
    assert running is not None, "derivatives are called by a backward pass"
    running.compute([each._node for each in results])


def add_to_leaf(leaf: Tensor, gradient: Tensor) -> None:
    """Add to the gradient of a leaf at the end of the running backward pass (`of_this_pass`), as
    the pass itself does."""
    running, made = _running.get(), leaf._leaf
    assert running is not None, "endings are called by a backward pass"
    if made is not None:
        running.accumulate(made, running.hooked(made, fitted(gradient, made)))


def leaves_are_given() -> bool:
    """Whether the running backward pass adds to the gradients of all leaves, as `backward()`, and
    not of chosen ones, as `td.autograd.grad`."""
    running = _running.get()
    return running is not None and running.is_of_all_leaves


class Pass:
    """One backward pass."""

    def __init__(
        self,
        retain_graph: bool | None,
        create_graph: bool,
        wanted: list[History] | None,
        accumulate: bool,
        is_inner: bool = False,
    ) -> None:
        self._retain = create_graph if retain_graph is None else retain_graph
        self._create = create_graph
        self._accumulate = accumulate
        self._is_inner = is_inner  # its results are used in another pass
        self._wanted = wanted
        self._found: dict[History, Tensor] = {}
        self._waiting: dict[History, list[Gradients]] = {}
        self._heap: list[tuple[int, History]] = []
        self._since = 0  # histories visited since gradients were computed
        self._leaves: list[Leaf] = []  # whose gradients may be pending
        self._given: set[int] = set()  # nodes that are leaves' gradients
        self._left: dict[History, int] = {}  # gradients that still may flow to leaves, in a trace
        self._needed: set[History] | None = None  # the histories that lead to an input; None: all
        self.endings: dict[int, Callable[[], None]] = {}  # by owners: see `of_this_pass`

    def run(self, outputs: list[Tensor], gradients: list[Any]) -> list[Tensor | None]:
        """The gradients of what is wanted."""
        gradients = gradients or [None] * len(outputs)
        if len(gradients) != len(outputs):
            raise ShapeError(f"{len(gradients)} gradients for {len(outputs)} tensors")
        roots = [_root(output) for output in outputs]
        if self._wanted is not None:
            self._needed = _leading_to(self._wanted, roots)
        if self._accumulate and is_tracing.get():
            self._left = _uses_of_leaves(roots)
        token = _running.set(self)
        try:
            self._run(roots, outputs, gradients)
        except BaseException:
            for ending in self.endings.values():
                getattr(ending, "failed", lambda: None)()
            raise
        finally:
            _running.reset(token)
        return [self._found.get(each) for each in self._wanted or ()]

    def _run(self, roots: list[History], outputs: list[Tensor], gradients: list[Any]) -> None:
        with recorded(self._create):
            for root, output, gradient in zip(roots, outputs, gradients, strict=True):
                self._add(root, _seed(output, gradient))
            while self._heap:
                _, made = heapq.heappop(self._heap)
                if made in self._waiting:  # else it is a leaf that had all its gradients before
                    self._visit(made)
            for ending in self.endings.values():
                ending()

    def _visit(self, made: History) -> None:
        waiting = self._waiting.pop(made)
        gradients: list[Tensor | None] = [
            each.total(made.shape, made.dtype, made.device) for each in waiting
        ]
        first = gradients[0]
        is_wanted = self._wanted is not None and made in self._wanted
        if first is not None and made.parts == 1 and not (is_wanted and self._is_inner):
            gradients[0] = first = self.hooked(made, _part_of(first, made))
        if is_wanted:
            assert first is not None
            if not self._accumulate:
                self._found[made] = first
            elif not isinstance(made, Leaf):
                made.retained = first
        if isinstance(made, Leaf):
            if self._accumulate and (self._wanted is None or made in self._wanted):
                assert first is not None
                self.accumulate(made, first)
            return
        if self._needed is not None and self._needed.isdisjoint(made.edges):
            return  # no other input is reached through it
        made.passed = made.passed or not self._retain
        if made.derivative is PART:
            self._add(made.edges[0], first, made.options)
            return
        backward = getattr(made.derivative, "backward", None)
        if backward is None:
            raise AutogradError(
                f"{made.derivative.name} has no derivative: compute it within td.no_grad(), or "
                "give it one with td.autograd.Function"
            )
        flow = backward(made, gradients)
        if is_checked.get():
            flow = checked(made, gradients, flow)
        for edge, gradient in flow:
            if edge is not None and gradient is not None:
                self._add(edge, gradient)
        if not self._retain:
            made.release()
        self._since += getattr(made.derivative, "weight", 1)
        if self._since >= COMPUTED_AFTER and not self._create:
            self.compute()

    def hooked(self, made: History, gradient: Tensor) -> Tensor:
        """A gradient as the hooks of its tensor have it."""
        for hook in tuple(made.hooks or ()):
            changed = hook(gradient)
            if changed is not None:
                _check_hooked(changed, gradient)
                gradient = changed
        if made.retained is not None:
            made.retained = gradient if made.retained is True else made.retained + gradient
        return gradient

    def _add(self, made: History | None, gradient: Any, part: int = 0) -> None:
        """A gradient that flows to a history."""
        assert made is not None
        if self._needed is not None and made not in self._needed:
            return
        waiting = self._waiting.get(made)
        if waiting is None:
            waiting = self._waiting[made] = [Gradients() for _ in range(made.parts)]
            heapq.heappush(self._heap, (-made.serial, made))
        if not isinstance(gradient, Placed) and made.parts == 1:  # parts fit already
            gradient = fitted(gradient, made)
        waiting[part].add(gradient)
        left = self._left.get(made)
        if left is not None:
            self._left[made] = left - 1
            if left == 1:
                self._visit(made)

    @property
    def is_of_all_leaves(self) -> bool:
        """Whether it adds to the gradients of all leaves."""
        return self._accumulate and self._wanted is None

    def accumulate(self, leaf: Leaf, gradient: Tensor) -> None:
        """Add to the gradient of a leaf."""
        owner = leaf.owner() if leaf.owner is not None else None
        if owner is None:
            return  # no tensor refers to it any more
        if within.get() is not None:
            raise AutogradError(
                "backward() within td.vmap would leave gradients of one example in x.grad: use "
                "td.grad, whose results are stacked"
            )
        before = leaf.gradient
        if before is not None and self._create:
            leaf.gradient = before + gradient
        elif before is not None:
            before._write((before + gradient)._node)
        elif leaf.home is not None and not self._create:
            home = _home_of(leaf)
            # A part of memory is written; a whole would take over the node.
            home._write(self._own(gradient) if home._view is None else gradient._node)
            leaf.gradient = home
        else:
            leaf.gradient = from_node(self._own(gradient))
        self._leaves.append(leaf)
        for hook in leaf.accumulated or ():
            hook(owner)

    def _own(self, gradient: Tensor) -> Node:
        """A gradient's node, which is in no cell and no other leaf's gradient."""
        node = gradient._node
        is_fresh = node.array is None and node.op not in (VIEW, CONSTANT)
        if not is_fresh or id(node) in self._given or self._create:
            node = Node(COPY, (node,), node.shape, node.dtype, node.device)
        self._given.add(id(node))
        return node

    def compute(self, nodes: Sequence[Node] = ()) -> None:
        """Compute the gradients so far, so that the memory of their sources is released."""
        self._since = 0
        if within.get() is not None:
            return
        nodes = [*nodes]
        nodes += [leaf.gradient._cell.value for leaf in self._leaves if leaf.gradient is not None]
        self._leaves.clear()
        for waiting in self._waiting.values():
            nodes += [node for each in waiting for node in each.nodes()]
        realize(nodes)


def _uses_of_leaves(roots: list[History]) -> dict[History, int]:
    """How many gradients flow to each leaf at most. Leaves are older than what is made of them, and
    would come last; in a trace a gradient goes to its place as soon as it is whole, so that what it
    is made of need not be kept until then. Elsewhere that is not worth going through all edges."""
    found: dict[History, int] = {}
    seen = set(roots)
    todo = list(seen)
    for root in roots:
        if isinstance(root, Leaf):
            found[root] = found.get(root, 0) + 1
    while todo:
        for edge in todo.pop().edges:
            if edge is None:
                continue
            if isinstance(edge, Leaf):
                found[edge] = found.get(edge, 0) + 1
            if edge not in seen:
                seen.add(edge)
                todo.append(edge)
    return found


def zeros_of(like: Tensor) -> Tensor:
    """Zeros of a tensor's shape and dtype, where it is."""
    zero = number_as(0, like.dtype)
    return from_node(constant(zero, like.shape, like.dtype, like.device))


def _root(output: Tensor) -> History:
    # A view of a leaf, say, has a history that its cell's node lacks.
    made = output._node.history
    if made is None:
        raise AutogradError(
            "there is no backward pass from a tensor that was computed from none that requires "
            "gradients: call requires_grad_() of what you differentiate by, before, and not within "
            "td.no_grad()"
        )
    return made


def _leading_to(wanted: list[History], roots: list[History]) -> set[History]:
    """The histories on the ways from roots to what is wanted. A history is younger than those that
    its edges lead to, so that nothing older than all that is wanted leads there."""
    oldest = min((each.serial for each in wanted), default=0)
    reached = {each for each in roots if each.serial >= oldest}
    todo = list(reached)
    while todo:
        for edge in todo.pop().edges:
            if edge is not None and edge.serial >= oldest and edge not in reached:
                reached.add(edge)
                todo.append(edge)
    needed = {each for each in wanted if each in reached}
    for made in sorted(reached, key=lambda each: each.serial):
        if any(edge in needed for edge in made.edges):
            needed.add(made)
    return needed


def _home_of(leaf: Leaf) -> Tensor:
    """The tensor whose memory a gradient is to be in. If the user still holds it from an earlier
    pass, that tensor is given a copy; but not in a compiled function, whose replays leave gradients
    where they are."""
    home: Tensor = leaf.home
    if not is_tracing.get():
        copy_for_views(home)
    return home


def _check_hooked(changed: Any, gradient: Tensor) -> None:
    if not isinstance(changed, Tensor):
        raise AutogradError(
            f"a hook gives a tensor to be used as the gradient, or None, not "
            f"{type(changed).__name__}"
        )
    wanted = gradient.shape, gradient.dtype, gradient.device.id
    given = changed.shape, changed.dtype, changed.device.id
    if given != wanted:
        raise AutogradError(
            f"a hook has changed a gradient of shape {wanted[0]}, {wanted[1]} on {wanted[2]}, to "
            f"one of shape {given[0]}, {given[1]} on {given[2]}: they must be alike"
        )


def _listed(value: Any) -> list[Any]:
    return [] if value is None else list(value) if isinstance(value, (list, tuple)) else [value]


def _histories_of(inputs: list[Tensor]) -> list[History]:
    found = []
    for number, tensor in enumerate(inputs):
        if tensor._history is None:
            raise AutogradError(
                f"input {number} requires no gradient: call its requires_grad_() before it is used"
            )
        made = tensor._leaf or tensor._node.history
        assert made is not None
        found.append(made)
    return found


def _part_of(gradient: Tensor, made: History) -> Tensor:
    """Of a leaf that is a part of its cell, the gradient of that part."""
    owner = made.owner() if isinstance(made, Leaf) and made.owner is not None else None
    if owner is None or owner._view is None:
        return gradient
    return from_node(view_of(gradient._node, owner._view))


def _seed(output: Tensor, gradient: Any) -> Tensor:
    """The gradient that a pass begins with."""
    if gradient is None:
        if output.size != 1:
            raise AutogradError(
                f"a gradient can be left out for one element, and this tensor has shape "
                f"{output.shape}: call backward of a number, such as loss.sum(), or pass the "
                "gradient, x.backward(gradient)"
            )
        if output.dtype.kind == "complex":
            raise AutogradError(
                "a gradient can be left out for real numbers alone: take the real part or abs(x)"
            )
        one = number_as(1, output.dtype)
        return from_node(constant(one, output.shape, output.dtype, output.device))
    if not isinstance(gradient, Tensor):
        gradient = asarray(gradient, dtype=output.dtype, device=output.device)
    assert isinstance(gradient, Tensor)
    if gradient.shape != output.shape:
        raise ShapeError(
            f"a gradient of shape {gradient.shape} does not fit a tensor of shape {output.shape}: "
            "they must be equal"
        )
    if gradient.device is not output.device:
        raise AutogradError(
            f"the tensor is on {output.device.id}, its gradient on {gradient.device.id}: move it"
        )
    return gradient


def fitted(gradient: Tensor, made: History) -> Tensor:
    """A gradient with the shape, dtype and device of what it belongs to: what was broadcast is
    summed, what was made complex has a real part."""
    if gradient.shape != made.shape:
        gradient = summed_to(gradient, made.shape)
    if gradient.dtype is not made.dtype:
        if gradient.dtype.kind == "complex" and made.dtype.kind != "complex":
            gradient = gradient.real
        if gradient.dtype is not made.dtype:
            gradient = gradient.to(made.dtype)
    if gradient.device is not made.device:
        raise DtypeError(f"a gradient on {gradient.device.id} for a tensor on {made.device.id}")
    return gradient


def summed_to(gradient: Tensor, shape: tuple[int, ...]) -> Tensor:
    """A gradient summed over the axes along which something of this shape was broadcast."""
    extra = len(gradient.shape) - len(shape)
    if extra < 0:
        raise ShapeError(f"a gradient of shape {gradient.shape} for a tensor of shape {shape}")
    axes = [
        axis
        for axis, extent in enumerate(gradient.shape)
        if axis < extra or (shape[axis - extra] == 1 and extent != 1)
    ]
    if axes:
        gradient = total(gradient, axis=tuple(axes))
    return gradient.reshape(shape)
