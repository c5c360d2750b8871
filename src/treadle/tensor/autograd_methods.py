"""What makes a tensor one that gradients flow through: its attributes, and where a tape begins.

The history of a tensor is its node's. What begins a tape (a leaf) or is cut off from one
(`x.detach()`) sees the same memory as other tensors do, whose gradients go elsewhere: it has a
boundary, through which it sees its cell.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import ref

from treadle.core.errors import AutogradError, DtypeError, ShapeError
from treadle.graph import history, views
from treadle.graph.history import History, Leaf, is_differentiable
from treadle.graph.node import Node, computed, view_of
from treadle.graph.views import View
from treadle.runtime.arrays import DeviceArray
from treadle.tensor.properties import Properties

if TYPE_CHECKING:  # a tensor has these methods: `tensor` imports this module
    from treadle.tensor.tensor import Tensor

Own = TypeVar("Own", bound="AutogradMethods")
_Hook = Callable[[Any], Any]


class Boundary:
    """Where tensors have another history than their cell: that of a leaf, or none.

    `frozen` is the leaf of a tensor that requires no gradients for now; one that is a parameter
    stays one.
    """

    __slots__ = ("_node", "_value", "frozen", "leaf")

    def __init__(self, leaf: Leaf | None, frozen: Leaf | None = None) -> None:
        self.leaf = leaf
        self.frozen = frozen
        self._value: Node | None = None
        self._node: Node | None = None

    def of(self, value: Node) -> Node:
        """A cell's value as what is on this side of the boundary sees it."""
        node = self._node
        if node is None or self._value is not value or node.array is not None or node.eager:
            node = view_of(value, views.whole(value.shape))
            node.history = self.leaf
            self._value, self._node = value, node
        return node

    def refusal(self, tensor: object) -> AutogradError:
        """The error for a write through a tensor on this side of a leaf's boundary."""
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
    """A tensor's part in differentiation."""

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
        """The history, without making a node."""
        boundary = self._boundary
        return self._cell.value.history if boundary is None else boundary.leaf

    @property
    def _is_recorded(self) -> bool:
        """Whether what is computed from the tensor now has a history."""
        return self._history is not None and history.recording.get()

    @property
    def _made(self) -> History | None:
        """The history of what the tensor sees: of a view its own."""
        return self._leaf or self._node.history

    @property
    def _leaf(self) -> Leaf | None:
        """The leaf that this tensor itself is; a view of a leaf is none."""
        boundary = self._boundary
        if boundary is None or boundary.leaf is None:
            return None
        owner = boundary.leaf.owner
        return boundary.leaf if owner is not None and owner() is self else None

    def __treadle_array__(self, kernel: str | None = None) -> DeviceArray:
        """The elements in memory. AutogradError if they have a history, operations are recorded,
        and it is a kernel that is to have them."""
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
        """Whether the derivative of what is to be written here needs what it was made of: that is
        copied, then, before it is written over."""
        made = result._history
        return made is not None and made.keeps(self._cell.value)

    def __treadle_written__(self) -> None:
        """A kernel writes the memory: what a derivative needs of the old elements is gone."""
        cell = self._cell
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
        """The leaf that this tensor is, or was before it was told to require no gradients."""
        boundary = self._boundary
        if boundary is None:
            return None
        leaf = boundary.frozen if boundary.leaf is None else boundary.leaf
        owner = None if leaf is None else leaf.owner
        return leaf if owner is not None and owner() is self else None

    @property
    def requires_grad(self) -> bool:
        """Whether operations on the tensor are recorded, so that gradients can be had.

        >>> import treadle as td
        >>> td.ones(2, device="cpu").requires_grad
        False
        """
        return self._history is not None

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self.requires_grad_(value)

    def requires_grad_(self: Own, requires_grad: bool = True) -> Own:
        """Record operations on the tensor from now on, so that `backward` gives it a gradient; or
        don't. The tensor. DtypeError for integers and truth values.

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
                    "requires_grad can be taken from leaves alone, and this tensor was computed "
                    "from others that have it: use x.detach()"
                )
            self._boundary = Boundary(None, frozen=leaf)
            return self
        leaf = self._own_leaf
        if leaf is None:
            self._begin(False)
        else:
            self._boundary = Boundary(leaf)
        return self

    def _begin(self, is_parameter: bool, requires_grad: bool = True) -> None:
        value = self._cell.value
        if requires_grad and not is_differentiable(value):
            raise DtypeError(
                f"only floating and complex tensors have gradients, and this one is of "
                f"{self.dtype}: cast it first, as in x.to(td.float32)"
            )
        leaf = Leaf(value, is_parameter)
        leaf.owner = ref(self)
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
        """The gradient that backward passes have added up, or None.

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
        """Have backward passes keep the gradient of this tensor, too, though it is no leaf.

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
            raise AutogradError("a tensor that requires no gradient has none to be kept")
        if self._leaf is None and made.retained is None:
            made.retained = True

    def register_hook(self, hook: _Hook) -> Removable:
        """Have a function called with the tensor's gradient in each backward pass; what it returns,
        if not None, is used instead. `remove()` of the result ends that.

        >>> import treadle as td
        >>> x = td.ones(2, device="cpu").requires_grad_()
        >>> handle = x.register_hook(lambda gradient: gradient * 10)
        >>> x.sum().backward()
        >>> x.grad.tolist()
        [10.0, 10.0]
        """
        made = self._made
        if made is None:
            raise AutogradError("a tensor that requires no gradient never gets one: no hook")
        if made.hooks is None:
            made.hooks = []
        return Removable(made.hooks, hook)

    def register_post_accumulate_grad_hook(self, hook: _Hook) -> Removable:
        """Have a function called with the tensor, a leaf, whenever a backward pass has added to its
        `grad`. `remove()` of the result ends that.

        >>> import treadle as td
        >>> x = td.ones(2, device="cpu").requires_grad_()
        >>> handle = x.register_post_accumulate_grad_hook(lambda x: print(x.grad.tolist()))
        >>> (x * 3).sum().backward()
        [3.0, 3.0]
        """
        leaf = self._leaf
        if leaf is None:
            raise AutogradError(
                "gradients are accumulated in leaves alone, tensors that require_grad_() was "
                "called of: for others there is register_hook"
            )
        if leaf.accumulated is None:
            leaf.accumulated = []
        return Removable(leaf.accumulated, hook)

    def detach(self) -> Tensor:
        """A view of the same memory that is cut off: what is computed from it has no gradient for
        what this was made of.

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
        """The same memory, cut off from gradients: `detach`."""
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
        self._cell, self._view = value._cell, value._view
        if leaf is not None and not is_like:  # what was recorded with the old one ends there
            requires_grad = self._history is not None
            self._begin(leaf.is_parameter, requires_grad)

    def backward(
        self,
        gradient: Any = None,
        retain_graph: bool | None = None,
        create_graph: bool = False,
        inputs: Any = None,
    ) -> None:
        """Add the gradients of this tensor to `grad` of the leaves that it was computed from, or of
        `inputs` alone.

        `gradient` is that of the tensor itself, of its shape; it may be left out for one element,
        whose is 1. With `retain_graph` there can be a further backward pass through the same
        operations; with `create_graph` the gradients have histories themselves. AutogradError for
        more than one element without `gradient`, for a second pass without `retain_graph`, and if a
        value that is needed was changed in place.

        >>> import treadle as td
        >>> x = td.asarray(3.0, device="cpu").requires_grad_()
        >>> (x**2).backward()
        >>> x.grad.item()
        6.0
        """
        history.run_backward(self, gradient, retain_graph, create_graph, inputs)


class Removable:
    """A hook that can be taken away again."""

    def __init__(self, hooks: list[_Hook], hook: _Hook) -> None:
        self._hooks = hooks
        self._hook = hook
        hooks.append(hook)

    def remove(self) -> None:
        """Don't call the hook any more."""
        if self._hook in self._hooks:
            self._hooks.remove(self._hook)
