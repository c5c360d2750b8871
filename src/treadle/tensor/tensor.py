"""`Tensor`: a lazy array on a device.

A tensor is a cell and a view. The cell has the current version of an array, a graph node that may
be pending. Tensors that are views of one another share the cell, so that writing through one writes
all of them, as in NumPy. Reading the elements computes them.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any
from typing import cast as assume

import numpy as np

from treadle.core.dtypes import DType
from treadle.core.errors import AutogradError, DeviceNotFound, DtypeError, ShapeError
from treadle.core.sizes import index
from treadle.graph import history as histories
from treadle.graph import views
from treadle.graph.history import recorded, recording
from treadle.graph.node import COPY, WRITE, Node, computed, is_deep, view_of
from treadle.graph.parts import is_short
from treadle.graph.placeholders import record_composite, within
from treadle.graph.realize import finish_readers, realize
from treadle.graph.views import View
from treadle.runtime import settings
from treadle.runtime.arrays import (
    DeviceArray,
    array_dtype,
    check_cast,
    numpy_dtype,
)
from treadle.runtime.devices import Device, restored_device
from treadle.runtime.devices import device as find_device
from treadle.tensor import method_table
from treadle.tensor.array_api import ArrayApiMethods
from treadle.tensor.autograd_methods import AutogradMethods, Boundary
from treadle.tensor.cells import Cell, OwnedCell, compute, compute_soon, compute_version, written
from treadle.tensor.declarations import Declarations
from treadle.tensor.dtypes import check_dtype, named_dtype, supports
from treadle.tensor.numpy_protocols import NumPyProtocols
from treadle.tensor.torch_protocol import TorchProtocol


class Tensor(NumPyProtocols, TorchProtocol, ArrayApiMethods, AutogradMethods, Declarations):
    """An array on a device; make one with `td.asarray`, `td.zeros`, …

    Operations are lazy: results are computed when they are needed, many in one kernel. Basic
    slices, `reshape` (where strides can express it), `permute_dims` and the like are views: writing
    through one writes the other, as in NumPy.
    """

    __slots__ = ("__weakref__", "_seen")

    def __init__(self, array: DeviceArray) -> None:
        self._boundary = None
        self._locked = False  # whether writes through this view, and views of it, are refused
        if array.contiguous:
            self._cell = Cell(computed(array))
            self._view = None
        else:
            stretch, _ = array.span()
            self._cell = Cell(computed(stretch))
            self._view = View(array.shape, array.strides, array.offset - stretch.offset)
        self._seen: tuple[Any, Any] | None = None

    # --- lazy values -----------------------------------------------------------------------------

    @property
    def _node(self) -> Node:
        """The node of the tensor's value."""
        value = self._cell.value
        if self._boundary is not None:
            value = self._boundary.of(value)
        view = self._view
        if view is None:
            return value
        seen = self._seen
        # A computed one has a copy, which does not follow writes to the cell's memory.
        if seen is not None and seen[0] is value and not seen[1].eager and seen[1].array is None:
            return assume(Node, seen[1])
        node = view_of(value, view)
        if seen is not None and node.history is not None:
            before = seen[1].history
            if before is not None and before.edges == node.history.edges:
                node.history = before  # hooks and retained gradients refer to it
        self._seen = value, node
        return node

    @property
    def _whole(self) -> Node:
        """The node of the whole cell, of which the tensor is the view `_where`."""
        value = self._cell.value
        return value if self._boundary is None else self._boundary.of(value)

    @property
    def _array(self) -> DeviceArray:
        """The elements in memory, computed if they are pending."""
        node = self._cell.value
        array = node.array
        if array is None:
            compute(node, self._cell)
            array = node.whole_array
        view = self._view
        if view is None:
            return array
        return array.view(view.shape, view.strides, array.offset + view.offset)

    def _seen_through(self, view: View) -> Tensor:
        """A tensor of the same cell; `view` is a view of the whole cell."""
        made = from_cell(self._cell, view)
        made._locked = self._locked
        boundary = self._boundary
        if boundary is not None:
            made._boundary = boundary if recording.get() else Boundary(None)
        elif self._cell.value.history is not None and not recording.get():
            made._boundary = Boundary(None)
        return made

    def _seen_again(self) -> Tensor:
        """Another tensor of the same cell and view."""
        made = from_cell(self._cell, self._view)
        made._locked = self._locked
        return made

    def _check_unlocked(self) -> None:
        if self._locked:
            raise ValueError("this view is read-only: write to the array itself, or to a copy")

    def _sees_same(self, other: Tensor) -> bool:
        """Whether another tensor has the same cell and view."""
        return self._cell is other._cell and self._view == other._view

    @property
    def _where(self) -> View:
        """The view of the cell's elements."""
        return self._view or views.whole(self._cell.value.shape)

    def _write(self, value: Node) -> None:
        """Replace the elements. The value has this tensor's shape, dtype and device, and is in no
        cell."""
        self._check_unlocked()
        cell, view = self._cell, self._view
        cell.writes += 1
        old = cell.value
        if cell.base is not None:
            self._write_base(cell, old, value)
            return
        array = old.array
        if (noted := written.get()) is not None:
            noted.setdefault(cell, old)
        if view is not None and views.overlaps(view):
            raise _refusal_of_overlap()
        if array is not None:
            if array.key.read_only:
                raise ValueError("this tensor is read-only: copy it first")
            if array.storage.shared and array.storage.is_shared:
                if recording.get() and (value.history is not None or self._history is not None):
                    raise AutogradError(
                        "memory that another library has, too, is not written while operations on "
                        "it are recorded: write to x.clone(), or do it within td.no_grad()"
                    )
                self._write_memory(value, array)
                return
        is_tracked = value.history is not None
        if view is not None:
            value = Node(WRITE, (old, value), old.shape, old.dtype, old.device, view)
        if old.history is not None or is_tracked or self._boundary is not None:
            self._follow(old, value, is_tracked)
        old.overwritten = True
        if noted is not None or within.get() is not None:
            cell.value = value
        else:
            cell.defer(value)
        if within.get() is not None:
            return  # elements are not known
        if is_deep(value) or value.eager or settings.eager:
            compute(value, cell)
        elif view is not None and is_short(value):
            compute_version(value, cell)
        elif array is not None:
            compute_soon(cell)

    def _write_base(self, cell: Any, old: Node, value: Node) -> None:
        """Write through a computed view into the tensor that it is a view of."""
        boundary = self._boundary
        if recording.get() and boundary is not None and self._history is not None:
            raise boundary.refusal(self)
        if recording.get() and boundary is not None and value.history is not None:
            raise _refusal_of_detached()
        view = self._view
        with recorded(recording.get() and boundary is None):
            if view is not None:
                if views.overlaps(view):
                    raise _refusal_of_overlap()
                # The old elements are in a cache, which others may still read: not in place.
                old = Node(COPY, (old,), old.shape, old.dtype, old.device)
                value = Node(WRITE, (old, value), old.shape, old.dtype, old.device, view)
            cell.put(value)

    def _follow(self, old: Node, value: Node, is_tracked: bool) -> None:
        """Set the history of the cell's new value; `is_tracked` says whether the written value has
        one. A write without recording, or through a detached tensor, does not change the
        history."""
        if not recording.get() or self._boundary is not None:
            if recording.get() and self._boundary is not None and self._history is not None:
                raise self._boundary.refusal(self)
            if recording.get() and is_tracked:
                raise _refusal_of_detached()
            value.history = old.history
            if (traced := within.get()) is not None:
                traced.followed[value] = old
        if old.history is not None:
            old.history.overwrite()

    def _write_memory(self, value: Node, array: DeviceArray) -> None:
        """Write memory that other libraries share, at once."""
        old = self._cell.value
        realize((value,))
        finish_readers(array.storage)
        with recorded(False):
            write = Node(WRITE, (old, value), old.shape, old.dtype, old.device, self._where)
        realize((write,))
        self._replace(write)

    def _replace(self, made: Node, is_tracked: bool = False) -> None:
        """Note that the memory of the cell is written at once and then holds `made`."""
        old = self._cell.value
        if old.history is not None or is_tracked or self._boundary is not None:
            self._follow(old, made, is_tracked)
        elif not old.saved:
            return  # no derivative needs the old elements
        old.overwritten = True
        self._cell.value = made

    def realize(self) -> Tensor:
        """Compute the elements: launches the pending operations, and does not wait for them.
        Returns the tensor. Does nothing within `td.vmap`, where elements are not known.

        >>> import treadle as td
        >>> x = td.arange(3, device="cpu").realize()
        """
        if within.get() is None:
            compute(self._cell.value, self._cell)
        return self

    # --- Python's protocols ------------------------------------------------------------------

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a tensor without axes")
        return self.shape[0]

    def __format__(self, spec: str) -> str:
        return format(self.item() if spec and not self.shape else str(self), spec)

    def __bool__(self) -> bool:
        if self.size != 1:
            raise ShapeError(
                f"the truth value of a tensor of shape {self.shape} is ambiguous: it has "
                f"{self.size} elements; use x.any() or x.all()"
            )
        return bool(self.item())

    def __index__(self) -> int:
        kind = self.dtype.kind if isinstance(self.dtype, DType) else ""
        if self.shape or kind not in ("int", "uint"):
            raise TypeError(
                "only a tensor of integers without axes is an index; this one has dtype "
                f"{self.dtype} and shape {self.shape}"
            )
        return int(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __complex__(self) -> complex:
        return complex(self.item())

    __hash__ = object.__hash__

    def __reduce__(self) -> tuple[Any, ...]:
        leaf = self._own_leaf
        kind = None if leaf is None else (leaf.is_parameter, self.requires_grad)
        return _restored, (self.numpy(), self.device.id, self.device.info.api, kind)

    def __copy__(self) -> Tensor:
        # Through the copy of a computed tensor gradients go on.
        is_computed = self._own_leaf is None and self._history is not None
        return self.copied() if is_computed else self.__deepcopy__(None)

    def __deepcopy__(self, memo: Any) -> Tensor:
        leaf = self._own_leaf
        if leaf is None and self._history is not None:
            raise AutogradError(
                "copy.deepcopy of a tensor that was computed from tensors that require gradients: "
                "how it was computed cannot be copied. Copy x.detach() for its elements alone, or "
                "use x.clone(), through which gradients go on"
            )
        with recorded(False):
            made = self.copied() if memo is None else self._copied_with_others(memo)
            if leaf is not None:
                made._begin(leaf.is_parameter, self.requires_grad, leaf.ranks)
                made.grad = None if leaf.gradient is None else leaf.gradient.copied()
                for hook in leaf.copied_hooks():
                    made.register_hook(hook)
        return made

    def _copied_with_others(self, memo: dict[int, Any]) -> Tensor:
        """A copy in a deep copy of several tensors: those that share memory do so again."""
        cell = self._cell
        known = memo.get(id(cell))
        if known is None:
            if cell.base is not None or type(cell) is OwnedCell:
                return self.copied()
            if type(self.dtype) is not DType:
                return self.copied()
            known = memo[id(cell)] = from_cell(cell, None).copied()._cell
            memo.setdefault(id(memo), []).append(cell)  # so that its identity stays its own
        return from_cell(known, self._view)

    # --- views -----------------------------------------------------------------------------------

    def _whole_or(self, view: View) -> Tensor:
        """A part to write to. If it is the whole array, the old elements need not be computed."""
        whole = views.is_whole(view, self._cell.value.shape)
        part = from_cell(self._cell, None if whole else view)
        part._boundary = self._boundary
        return part

    def reshape(self, *shape: int | tuple[int, ...], copy: bool | None = None) -> Tensor:
        """The same elements with another shape; one extent may be -1. A view where strides can
        express it, else a copy; always a copy with `copy=True`, and ValueError with `copy=False`
        where a copy is needed. ShapeError if the number of elements differs.

        >>> import treadle as td
        >>> td.arange(6, device="cpu").reshape(2, -1).shape
        (2, 3)
        """
        wanted = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
        extents = _complete(tuple(wanted), self)  # type: ignore[arg-type]
        view = None if copy else views.reshape(self._where, extents)
        if view is not None:
            return self._seen_through(view)
        if copy is False:
            raise ValueError(
                f"copy=False: elements of shape {self.shape} and strides {self.strides} must be "
                f"copied to have shape {extents}; leave copy out"
            )
        made = self.copied()
        return made if made.shape == extents else made.reshape(extents)

    def copied(self) -> Tensor:
        """A copy of the tensor in new memory on the same device.

        >>> import treadle as td
        >>> x = td.asarray([[1.0, 2.0], [3.0, 4.0]], device="cpu")
        >>> x.copied().tolist()
        [[1.0, 2.0], [3.0, 4.0]]
        """
        node = self._node
        if type(node.dtype) is not DType:
            return Tensor(self._array.copy_to(self.device))
        return from_node(Node(COPY, (node,), node.shape, node.dtype, node.device))

    # --- devices and dtypes
    # ----------------------------------------------------------------------------------

    def to(
        self, target: DType | Device | str | None = None, *, dtype: Any = None, device: Any = None
    ) -> Tensor:
        """The tensor on another device, or with another dtype, or both; itself if nothing changes.

        `target` is a device (or its id) or a dtype (or its name).

        >>> import treadle as td
        >>> x = td.asarray([[1.0, 2.0], [3.0, 4.0]], device="cpu")
        >>> x.to(td.int32).tolist()
        [[1, 2], [3, 4]]
        >>> x.to("cpu").device.id
        'cpu'
        """
        if target is not None:
            try:
                as_device_dtype(target)
                dtype = target
            except DtypeError:
                device = target
        to_device = self.device if device is None else find_device(device)
        to_dtype = self.dtype if dtype is None else as_device_dtype(dtype, to_device)
        if to_device is self.device and to_dtype == self.dtype:
            return self
        check_dtype(to_dtype, to_device)
        if to_dtype == self.dtype:
            return self._moved(to_device)
        if not isinstance(to_dtype, DType) or type(self.dtype) is not DType:
            return from_numpy(cast(self.numpy(), to_dtype), to_device)
        if to_device is not self.device and not _has(self.device, to_dtype):
            return self.to(to_device).to(to_dtype)
        check_cast(self.dtype.host, to_dtype)
        node = self._node
        changed = from_node(Node("cast", (node,), node.shape, to_dtype, node.device))
        return changed if to_device is self.device else changed.to(to_device)

    def _moved(self, device: Device) -> Tensor:
        """A copy on another device. Gradients flow back to this tensor."""
        made = Tensor(self._array.copy_to(device))
        self._record_move(made)
        return made

    def _record_move(self, made: Tensor) -> None:
        if self._is_recorded:
            record_composite(histories.derivatives["moved"], [made._cell.value], [self._node])

    async def to_async(
        self, target: DType | Device | str | None = None, *, dtype: Any = None, device: Any = None
    ) -> Tensor:
        """`to`, awaiting instead of blocking where the elements go through the host's memory."""
        if target is not None:
            try:
                as_device_dtype(target)
                dtype = target
            except DtypeError:
                device = target
        where = self.device if device is None else find_device(device)
        if where.shares_backend(self.device):
            return self.to(dtype=dtype, device=where)
        if dtype is not None and not _has(where, self.dtype):
            return await self.to(dtype=dtype).to_async(device=where)
        check_dtype(self.dtype, where)
        made = from_numpy(await self.numpy_async(), where)
        self._record_move(made)
        return made.to(dtype=dtype)


method_table.add_to(Tensor)


def _refusal_of_overlap() -> ValueError:
    return ValueError(
        "several elements of this tensor are one in memory (it was broadcast): write to a copy of "
        "it, td.asarray(x, copy=True)"
    )


def _refusal_of_detached() -> AutogradError:
    return AutogradError(
        "a tensor that is cut off from gradients, as x.detach() is, is not written with values "
        "that require gradients, which would be lost: write into a x.clone(), or write "
        "values.detach()"
    )


def from_cell(cell: Cell, view: View | None) -> Tensor:
    """A tensor that sees a cell through a view."""
    made = tensor_of_owner(cell, view)
    if type(cell) is OwnedCell:
        cell.show(made)
    return made


def tensor_of_owner(cell: Cell, view: View | None) -> Tensor:
    """The same for the owner of the cell, which follows its writes."""
    made = Tensor.__new__(Tensor)
    made._cell = cell
    made._view = view
    made._seen = made._boundary = None
    made._locked = False
    return made


def copy_for_views(home: Tensor) -> None:
    """Copy for other tensors the elements that the owner of a cell is about to overwrite: tensors
    that are views of this part continue with the copy."""
    cell, place = home._cell, home._view
    if type(cell) is not OwnedCell or place is None:
        return
    first, end = place.offset, place.offset + home.size
    seen = [
        tensor
        for tensor in list(cell.tensors.values())
        if tensor._cell is cell and first <= tensor._where.offset < end
    ]
    if not seen:
        return
    copy = home.copied()._cell
    for tensor in seen:
        view = tensor._where
        tensor._cell, tensor._seen = copy, None
        tensor._view = View(view.shape, view.strides, view.offset - first)
        cell.tensors.pop(id(tensor), None)


# Whether operations are those of a function that is recorded as one: if much is pending it is
# computed where the function ends, not amid its reductions.
unbroken: ContextVar[bool] = ContextVar("unbroken", default=False)


def from_node(node: Node) -> Tensor:
    """A tensor of a new node, which no other cell has."""
    deep = is_deep(node) and not unbroken.get()
    if (deep or node.eager or settings.eager) and within.get() is None:
        compute(node)
    made = Tensor.__new__(Tensor)
    made._cell = Cell(node)
    made._view = made._seen = made._boundary = None
    made._locked = False
    return made


def computed_soon(tensor: Tensor) -> None:
    """Have a tensor that is written again and again computed with the next computation, even if it
    was never in memory: a counter that begins as a number would stay pending, and what it is made
    of with it."""
    if within.get() is None and tensor._cell.value.array is None:
        compute_soon(tensor._cell)


def _has(device: Device, dtype: DType) -> bool:
    return supports(device, dtype)


def _restored(
    data: np.ndarray[Any, Any], device: str, api: str, leaf: tuple[bool, bool] | None = None
) -> Tensor:
    """An unpickled tensor, on its device if a similar one exists here, else on the CPU. `leaf` says
    whether a leaf is a parameter, and whether it requires gradients."""
    try:
        where = restored_device(device, api)
    except DeviceNotFound:
        where = find_device("cpu")
    made = from_numpy(data, where)
    if leaf is not None:
        made._begin(*leaf)
    return made


def as_device_dtype(value: Any, device: Device | None = None) -> DType | np.dtype[Any]:
    """A DType from anything that names one, or a structured dtype with C's layout. Python's int,
    float and complex are the device's defaults (the default device's, if none is named)."""
    structured = getattr(value, "dtype", value)  # for a @td.struct class
    if isinstance(structured, np.dtype) and structured.names is not None:
        return array_dtype(structured)
    return named_dtype(value, device)


def cast(data: np.ndarray[Any, Any], dtype: DType | np.dtype[Any]) -> np.ndarray[Any, Any]:
    """NumPy data as another dtype, by the kernel language's rules: floats to integers saturate
    and NaN becomes 0. DtypeError if imaginary parts would be dropped."""
    target = numpy_dtype(dtype)
    check_cast(data.dtype, dtype)
    if data.dtype.kind != "f" or target.kind not in "iu":
        return data.astype(target)
    limits = np.iinfo(target)
    whole = np.nan_to_num(np.trunc(data.astype(np.float64)), nan=0.0)
    low, high = float(limits.min), float(limits.max)
    inside = np.clip(whole, low, np.nextafter(high, 0) if limits.bits == 64 else high)
    result: np.ndarray[Any, Any] = inside.astype(target)
    result[whole >= high] = limits.max
    return result


def from_numpy(data: np.ndarray[Any, Any], device: Device) -> Tensor:
    """A new tensor with a NumPy array's elements. DtypeError if the device lacks the dtype."""
    dtype = array_dtype(data.dtype)
    check_dtype(dtype, device)
    array = DeviceArray.allocate(device, dtype, data.shape)
    array.upload(data)
    return Tensor(array)


def _complete(shape: tuple[int, ...], tensor: Tensor) -> tuple[int, ...]:
    if not all(hasattr(extent, "__index__") for extent in shape):
        raise ShapeError(f"a shape is an integer or a tuple of integers, not {shape!r}")
    extents = tuple([index(extent) for extent in shape])
    known = 1
    for extent in extents:
        known *= extent if extent != -1 else 1
    if min(extents, default=0) < -1:
        raise ShapeError(f"an extent cannot be negative: {shape} (except for one -1)")
    if extents.count(-1) > 1:
        raise ShapeError(
            f"a tensor of shape {tensor.shape} cannot be reshaped to {shape}: only one extent of a "
            "shape can be -1"
        )
    if -1 in extents and known > 0 and tensor.size % known == 0:
        extents = tuple([tensor.size // known if e == -1 else e for e in extents])
    elif -1 in extents or known != tensor.size:
        raise ShapeError(f"a tensor of shape {tensor.shape} cannot be reshaped to {shape}")
    return extents
