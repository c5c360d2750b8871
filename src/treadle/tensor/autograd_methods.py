"""The autograd attributes and methods of a tensor, and the boundaries of its history.

A tensor's history is its node's. A leaf, which begins a tape, and a detached tensor (`x.detach()`)
may share memory with tensors whose gradients flow elsewhere, so each has a boundary between itself
and its cell.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import ref

from treadle.core.errors import AutogradError, DtypeError, ShapeError
from treadle.graph import history, views
from treadle.graph.history import History, Leaf, Ranks, is_differentiable
from treadle.graph.node import Node, computed, view_of
from treadle.graph.views import View
from treadle.runtime.arrays import DeviceArray
from treadle.tensor.properties import Properties

if TYPE_CHECKING:  # a tensor has these methods: `tensor` imports this module
    from treadle.tensor.tensor import Tensor

Own = TypeVar("Own", bound="AutogradMethods")
_Hook = Callable[[Any], Any]


class Boundary:
    """Gives tensors another history than their cell's: that of a leaf, or none.

    `frozen` is the leaf of a tensor whose `requires_grad` is off for now: a parameter stays one.
    """

    __slots__ = ("_node", "_value", "frozen", "leaf")

    def __init__(self, leaf: Leaf | None, frozen: Leaf | None = None) -> None:
        self.leaf = leaf
        self.frozen = frozen
        self._value: Node | None = None
        self._node: Node | None = None

    def of(self, value: Node) -> Node:
        """A cell's value as seen by tensors with this boundary."""
        node = self._node
        if node is None or self._value is not value or node.array is not None or node.eager:
            node = view_of(value, views.whole(value.shape))
            node.history = self.leaf
            self._value, self._node = value, node
        return node

    def refusal(self, tensor: object) -> AutogradError:
        """The error for a write through a tensor with a leaf's boundary."""
        owner = None if self.leaf is None or self.leaf.owner is None else self.leaf.owner()
        if owner is tensor:
            return AutogradError(
                "a leaf that requires gradients is not written in place while operations are "
                "recorded: give it new values within td.no_grad(), as an optimizer does, or "
                "compute with a copy of it, y = x.clone()"
            )
        return AutogradError(
            "this tensor is a view of a leaf that requires gradients, which is not written in "
            "place while operations are recorded: give the leaf new values within td.no_grad(), "
            "or take the view from a copy of the leaf, as in x.clone()[1]"
        )


class AutogradMethods(Properties):
    """The autograd attributes and methods of a tensor."""

    __slots__ = ("_boundary",)

    _boundary: Boundary | None

    if TYPE_CHECKING:

        @property
        def _node(self) -> Node: ...
        @property
        def _where(self) -> View: ...
        @property
        def _array(self) -> DeviceArray: ...
        def _seen_through(self, view: View) -> Tensor: ...

    @property
    def _history(self) -> History | None:
        """The history, found without making a node."""
        boundary = self._boundary
        return self._cell.value.history if boundary is None else boundary.leaf

    @property
    def _is_recorded(self) -> bool:
        """Whether results computed from the tensor now get a history."""
        return self._history is not None and history.recording.get()

    @property
    def _made(self) -> History | None:
        """The history of the tensor's own value: a view has one of its own."""
        return self._leaf or self._node.history

    @property
    def _leaf(self) -> Leaf | None:
        """The leaf, if this tensor itself is one; a view of a leaf is not."""
        boundary = self._boundary
        if boundary is None or boundary.leaf is None:
            return None
        owner = boundary.leaf.owner
        return boundary.leaf if owner is not None and owner() is self else None

    def __treadle_array__(self, kernel: str | None = None) -> DeviceArray:
        """The elements in memory. AutogradError if they are for a kernel, have a history, and
        operations are recorded."""
        node = self._cell.value
        array = node.array
        if array is None or self._view is not None:
            array = self._array
            node = self._cell.value
        boundary = self._boundary
        made = node.history if boundary is None else boundary.leaf
        if made is not None and kernel is not None and history.recording.get():
            raise AutogradError(
                f"kernel {kernel} is launched with a tensor that requires gradients, and what a "
                "kernel computes has none: launch it within td.no_grad(), or with x.detach(), if "
                "no gradient is wanted; else within forward and backward of a td.autograd.Function"
            )
        return array

    def _is_kept_by(self, result: AutogradMethods) -> bool:
        """Whether the derivative of `result`, which is to be written here, needs the old elements:
        then they are copied before they are overwritten."""
        made = result._history
        return made is not None and made.keeps(self._cell.value)

    def __treadle_written__(self) -> None:
        """Note that a kernel writes the memory: a derivative can no longer use the old elements."""
        cell = self._cell
        if cell.base is not None:
            raise AutogradError(
                "a kernel is to write into the parts of complex numbers, or into bits seen as "
                "another dtype, which are computed from the tensor itself: have it write into a "
                "copy, and assign that"
            )
        old = cell.value
        if old.saved or old.history is not None:
            new = computed(old.whole_array)
            new.history = old.history  # it was written without recording
            old.overwritten = True
            if old.history is not None:
                old.history.overwrite()
            cell.value = new

    @property
    def _own_leaf(self) -> Leaf | None:
        """The leaf that this tensor is, or was before `requires_grad` was turned off."""
        boundary = self._boundary
        if boundary is None:
            return None
        leaf = boundary.frozen if boundary.leaf is None else boundary.leaf
        owner = None if leaf is None else leaf.owner
        return leaf if owner is not None and owner() is self else None

    @property
    def requires_grad(self) -> bool:
        """Whether operations on the tensor are recorded for gradients.

        >>> import treadle as td
        >>> td.ones(2, device="cpu").requires_grad
        False
        """
        return self._history is not None

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self.requires_grad_(value)

    def requires_grad_(self: Own, requires_grad: bool = True) -> Own:
        """Turn on (or off) the recording of operations on the tensor, so that `backward` gives it a
        gradient. Returns the tensor. DtypeError for integers and bools.

        >>> import treadle as td
        >>> x = td.asarray([1.0, 3.0], device="cpu").requires_grad_()
        >>> (x * x).sum().backward()
        >>> x.grad.tolist()
        [2.0, 6.0]
        """
        if requires_grad == (self._history is not None):
            return self
        if not requires_grad:
            leaf = self._leaf
            if leaf is None:
                raise AutogradError(
                    "requires_grad can only be turned off for leaves, and this "
                    "tensor was computed from others: use x.detach()"
                )
            self._boundary = Boundary(None, frozen=leaf)
            return self
        leaf = self._own_leaf
        if leaf is None:
            self._begin(False)
        else:
            self._boundary = Boundary(leaf)
        return self

    def _begin(
        self, is_parameter: bool, requires_grad: bool = True, ranks: Ranks | None = None
    ) -> None:
        value = self._cell.value
        if requires_grad and not is_differentiable(value):
            raise DtypeError(
                f"only floating and complex tensors have gradients, and this one is of "
                f"{self.dtype}: cast it first, as in x.to(td.float32)"
            )
        leaf = Leaf(value, is_parameter)
        leaf.owner, leaf.ranks = ref(self), ranks
        self._boundary = Boundary(leaf) if requires_grad else Boundary(None, frozen=leaf)

    @property
    def is_leaf(self) -> bool:
        """Whether the tensor was not computed from tensors that require gradients.

        >>> import treadle as td
        >>> x = td.ones(2, device="cpu").requires_grad_()
        >>> x.is_leaf, (x * 2).is_leaf
        (True, False)
        """
        return self._history is None or self._leaf is not None

    @property
    def grad(self) -> Any:
        """The gradient accumulated by backward passes, or None.

        >>> import treadle as td
        >>> x = td.ones(2, device="cpu").requires_grad_()
        >>> (x * x).sum().backward()
        >>> x.grad.tolist()
        [2.0, 2.0]
        """
        leaf = self._own_leaf
        if leaf is not None:
            return leaf.shown()
        made = self._made
        if made is None:
            return None
        if made.retained is None:
            warnings.warn(
                "grad of a tensor that was computed from others is kept only after "
                "x.retain_grad(): read that of a leaf",
                stacklevel=2,
            )
            return None
        return made.retained if made.retained is not True else None

    @grad.setter
    def grad(self, value: Any) -> None:
        leaf = self._own_leaf
        if value is not None:
            if (value.shape, value.dtype) != (self.shape, self.dtype):
                raise ShapeError(
                    f"a gradient of shape {value.shape} and {value.dtype} does not fit a tensor of "
                    f"shape {self.shape} and {self.dtype}: they must be equal"
                )
            if value.device is not self.device:
                raise AutogradError(
                    f"the tensor is on {self.device.id}, its gradient on {value.device.id}: move it"
                )
        if leaf is not None:
            leaf.gradient = leaf.home if value is not None and leaf.is_shown(value) else value
        elif value is not None:
            raise AutogradError("only a leaf that requires gradients has one: x.requires_grad_()")

    def retain_grad(self) -> None:
        """Have backward passes keep the gradient of this tensor though it is not a leaf.

        >>> import treadle as td
        >>> x = td.ones(2, device="cpu").requires_grad_()
        >>> y = x * 3
        >>> y.retain_grad()
        >>> (y * y).sum().backward()
        >>> y.grad.tolist()
        [6.0, 6.0]
        """
        made = self._made
        if made is None:
            raise AutogradError("retain_grad() is for tensors that require gradients")
        if self._leaf is None and made.retained is None:
            made.retained = True

    def register_hook(self, hook: _Hook) -> Removable:
        """Call a function with the tensor's gradient in each backward pass; if it returns something
        else than None, that replaces the gradient. `remove()` of the result removes the hook.

        >>> import treadle as td
        >>> x = td.ones(2, device="cpu").requires_grad_()
        >>> handle = x.register_hook(lambda gradient: gradient * 10)
        >>> x.sum().backward()
        >>> x.grad.tolist()
        [10.0, 10.0]
        """
        made = self._made
        if made is None:
            raise AutogradError("register_hook is for tensors that require gradients")
        if made.hooks is None:
            made.hooks = []
        return Removable(made.hooks, hook)

    def register_post_accumulate_grad_hook(self, hook: _Hook) -> Removable:
        """Call a function with the tensor, which must be a leaf, whenever a backward pass has added
        to its `grad`. `remove()` of the result removes the hook.

        >>> import treadle as td
        >>> x = td.ones(2, device="cpu").requires_grad_()
        >>> handle = x.register_post_accumulate_grad_hook(lambda x: print(x.grad.tolist()))
        >>> (x * 3).sum().backward()
        [3.0, 3.0]
        """
        leaf = self._leaf
        if leaf is None:
            raise AutogradError(
                "only leaves accumulate gradients (tensors on which "
                "requires_grad_() was called): use register_hook for others"
            )
        if leaf.accumulated is None:
            leaf.accumulated = []
        return Removable(leaf.accumulated, hook)

    def detach(self) -> Tensor:
        """A view of the same memory without a history: gradients do not flow through it.

        >>> import treadle as td
        >>> x = td.ones(2, device="cpu").requires_grad_()
        >>> x.detach().requires_grad
        False
        """
        made = self._seen_through(self._where)
        if self._history is not None:
            made._boundary = Boundary(None)
        return made

    @property
    def data(self) -> Tensor:
        """The same memory without a history, as from `detach`."""
        return self.detach()

    @data.setter
    def data(self, value: Tensor) -> None:
        leaf = self._own_leaf
        is_like = (value.shape, value.dtype, value.device) == (self.shape, self.dtype, self.device)
        if leaf is None and not is_like:
            raise ShapeError(
                f"data of shape {value.shape} and {value.dtype} on {value.device.id} does not "
                f"replace that of shape {self.shape} and {self.dtype} on {self.device.id}: only a "
                "leaf, such as a parameter, takes on another"
            )
        if leaf is not None and leaf.fixed and not is_like:
            raise AutogradError(leaf.fixed)
        self._cell, self._view = value._cell, value._view
        if leaf is not None and not is_like:  # a history recorded so far ends at the old leaf
            requires_grad = self._history is not None
            self._begin(leaf.is_parameter, requires_grad)
            made = self._own_leaf
            assert made is not None
            made.succeed(leaf)

    def backward(
        self,
        gradient: Any = None,
        retain_graph: bool | None = None,
        create_graph: bool = False,
        inputs: Any = None,
    ) -> None:
        """Add the gradients of this tensor to `grad` of the leaves that it was computed from, or
        only of `inputs`.

        `gradient` is the gradient of the tensor itself and has its shape; for a tensor of one
        element it may be left out and is 1. `retain_graph` allows a further backward pass through
        the same operations; with `create_graph` the gradients have histories themselves.
        AutogradError for more than one element without `gradient`, for a second pass without
        `retain_graph`, and if a needed value was changed in place.

        >>> import treadle as td
        >>> x = td.asarray(3.0, device="cpu").requires_grad_()
        >>> (x**2).backward()
        >>> x.grad.item()
        6.0
        """
        history.run_backward(self, gradient, retain_graph, create_graph, inputs)


class Removable:
    """The handle of a hook, which removes it."""

    def __init__(self, hooks: list[_Hook], hook: _Hook) -> None:
        self._hooks = hooks
        self._hook = hook
        hooks.append(hook)

    def remove(self) -> None:
        """Remove the hook."""
        if self._hook in self._hooks:
            self._hooks.remove(self._hook)
