"""`td.shard` and the arrays that it makes."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, NoReturn

import numpy as np

from treadle.autograd.function import Function
from treadle.core.errors import AutogradError, DistributedError, ShapeError
from treadle.distributed.arrays import products, reductions, shapes
from treadle.distributed.arrays.elementwise import elementwise
from treadle.distributed.arrays.layout import Layout, as_spec, shown
from treadle.distributed.arrays.mesh import Mesh
from treadle.distributed.arrays.moving import Pieces, moved, moved_by
from treadle.distributed.group import current, world
from treadle.distributed.holders import held_by
from treadle.graph.explain import Explanation, explain
from treadle.graph.history import recorded
from treadle.tensor.axes import takes_dim
from treadle.tensor.creation import asarray, full
from treadle.tensor.elementwise_functions import FUNCTIONS
from treadle.tensor.functional import activations
from treadle.tensor.operators import BINARY, COMPARISONS, UNARY
from treadle.tensor.tensor import Tensor


def shard(x: Any, mesh: Mesh, spec: Any = ()) -> ShardedTensor:
    """An array that is divided among the ranks of a mesh: each keeps its piece of `x`, which all
    ranks have whole and alike. Nothing travels.

    `spec` has for each axis of the array the name of the mesh axis that it is split over, a tuple
    of several, or None; what is left out is None. An axis that is split over *k* ranks has parts of
    ceil(n / k) elements, of which the last may be shorter, or empty. An array that is sharded
    already is brought to the mesh and spec.

    TypeError, ValueError or ShapeError for a spec that does not fit.

    >>> import treadle as td
    >>> mesh = td.distributed.Mesh({"data": 1})
    >>> x = td.shard(td.ones((4, 3), device="cpu"), mesh, ("data", None))
    >>> x
    ShardedTensor(float32[4, 3] as ('data', None) on Mesh({'data': 1}))
    >>> (2 * x).sum(axis=0).tolist()
    [8.0, 8.0, 8.0]
    """
    if not isinstance(mesh, Mesh):
        raise TypeError(f"shard takes a td.distributed.Mesh, not {type(mesh).__name__}")
    if isinstance(x, ShardedTensor):
        if x.mesh == mesh:
            return x.reshard(spec)
        x = x.gather()
    whole = x if isinstance(x, Tensor) else asarray(x)
    layout = Layout(mesh, whole.shape, as_spec(mesh, spec, len(whole.shape)))
    if world().check and mesh.size > 1:
        _check_alike(whole)
    if whole._history is not None:
        return ShardedTensor(_Divided.apply(whole, layout), layout)
    return ShardedTensor(_piece_of(whole, layout), layout)


def from_pieces(
    piece: Any, mesh: Mesh, spec: Any = (), shape: tuple[int, ...] | None = None
) -> ShardedTensor:
    """The array of which this rank has a piece, as a batch that each rank has read for itself. All
    ranks call it; those with the same part of the array give the same piece.

    `shape` is that of the whole array, whose parts are those of `td.shard`; without it all ranks
    have pieces of equal shapes. ShapeError if the piece has not the shape of this rank's part.

    >>> import treadle as td
    >>> mesh = td.distributed.Mesh({"data": 1})
    >>> td.distributed.from_pieces(td.ones((4, 3), device="cpu"), mesh, ("data",)).shape
    (4, 3)
    """
    own = piece if isinstance(piece, Tensor) else asarray(piece)
    found = as_spec(mesh, spec, len(own.shape))
    if shape is None:
        shape = tuple(
            [
                extent * math.prod(mesh.axes[name] for name in entry)
                for extent, entry in zip(own.shape, found, strict=True)
            ]
        )
    layout = Layout(mesh, tuple(shape), as_spec(mesh, spec, len(shape)))
    if own.shape != layout.piece_shape:
        raise ShapeError(
            f"this rank's part of an array of shape {tuple(shape)} as {shown(layout.spec)} has the "
            f"shape {layout.piece_shape}, and the piece has {own.shape}"
        )
    if own._history is not None and layout.repeated:
        own = _Repeated.apply(own, layout)
    return ShardedTensor(own, layout)


class ShardedTensor(Pieces):
    """An array over a mesh of devices, which `td.shard` makes. Each rank has a piece (`piece`); all
    ranks run the same operations, which choose what travels.

    Operators, elementwise functions, reductions, products and shapes are methods, named as those of
    tensors. What an operation cannot do on pieces it refuses: `reshard` changes how the array is
    split, and `gather` gives the whole array, a tensor, to each rank.

    >>> import treadle as td
    >>> mesh = td.distributed.Mesh({"data": 1, "model": 1})
    >>> x = td.shard(td.ones((4, 3), device="cpu"), mesh, ("data", None))
    >>> w = td.shard(td.ones((3, 2), device="cpu"), mesh, (None, "model")).requires_grad_()
    >>> y = (x @ w).relu()
    >>> y.spec
    ('data', 'model')
    >>> y.mean().backward()
    >>> w.grad.tolist()
    [[0.5, 0.5], [0.5, 0.5], [0.5, 0.5]]
    """

    __array_ufunc__ = None  # NumPy leaves operators to this class
    __hash__ = object.__hash__

    @property
    def mesh(self) -> Mesh:
        """The mesh that it is on."""
        return self.layout.mesh

    @property
    def spec(self) -> tuple[Any, ...]:
        """The mesh axis that each axis is split over, or None."""
        return shown(self.layout.spec)

    @property
    def pending(self) -> tuple[str, ...]:
        """The mesh axes along which the ranks' pieces are to be added up, which the next operation
        does that needs the sum."""
        return self.layout.pending

    @property
    def device(self) -> Any:
        """The device of this rank's piece."""
        return self.piece.device

    @property
    def ndim(self) -> int:
        """How many axes it has."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """How many elements the whole array has."""
        return math.prod(self.shape)

    # ------------------------------------------------------------------ where it is

    def reshard(self, spec: Any = ()) -> ShardedTensor:
        """The array split by another spec, with nothing pending: by an all_to_all where an axis of
        the mesh changes from one axis of the array to another, reduce_scatter and all_reduce where
        something is pending, and all_gather where an axis is split no longer.

        >>> import treadle as td
        >>> mesh = td.distributed.Mesh({"data": 1})
        >>> td.shard(td.ones((4, 3), device="cpu"), mesh, ("data",)).reshard((None, "data")).spec
        (None, 'data')
        """
        wanted = as_spec(self.mesh, spec, self.ndim)
        layout = self.layout.replaced(spec=wanted, pending=())
        return self.like(moved(self, wanted, "reshard"), layout)

    def gather(self) -> Tensor:
        """The whole array as a tensor, on each rank. All ranks call it.

        In a backward pass all ranks compute the same of it, and the gradient is that of one.

        >>> import treadle as td
        >>> mesh = td.distributed.Mesh({"data": 1})
        >>> td.shard(td.ones(2, device="cpu"), mesh, ("data",)).gather().tolist()
        [1.0, 1.0]
        """
        whole = moved(self, ((),) * self.ndim, "gather")
        if whole._history is not None and self.mesh.size > 1:
            made: Tensor = _Gathered.apply(whole, self.mesh.size)
            return made
        return whole

    def numpy(self) -> np.ndarray[Any, Any]:
        """The whole array as a NumPy array, on each rank. All ranks call it, unless each of them
        has the whole: then nothing travels."""
        with recorded(False):
            return moved(self, ((),) * self.ndim, "numpy").numpy()

    def tolist(self) -> Any:
        """The whole array as Python numbers, as `numpy` gives it."""
        return self.numpy().tolist()

    def item(self) -> Any:
        """The only element, as a Python number. A sum or mean of all elements is on all ranks."""
        if self.size != 1:
            raise ShapeError(f"item is of one element, and the shape is {self.shape}")
        return self.numpy().item()

    def realize(self) -> ShardedTensor:
        """Compute this rank's piece now; the array itself."""
        self.piece.realize()
        return self

    # ------------------------------------------------------------------ gradients

    @property
    def requires_grad(self) -> bool:
        """Whether gradients flow to it, or through it."""
        return self.piece._history is not None

    def requires_grad_(self, requires_grad: bool = True) -> ShardedTensor:
        """Have backward passes add to `grad`. Where several ranks have the same piece, its gradient
        is summed up over them, once in each pass; so `piece` can be given to an optimizer."""
        if requires_grad and self.layout.pending:
            raise AutogradError("a sum that is pending has no gradient of its own: x.reshard(spec)")
        is_new = self.piece._history is None
        if is_new and requires_grad:
            self.piece = self.piece.detach()
        self.piece.requires_grad_(requires_grad)
        if is_new and requires_grad:
            for axis, size in self.mesh.axes.items():
                if size > 1 and axis in self.layout.split:
                    held_by([self.piece], self.mesh.group(axis))
        if is_new and requires_grad and self.layout.repeated and self.mesh.size > 1:
            layout = self.layout
            self.piece.register_hook(lambda gradient: _summed(gradient, layout))
        return self

    @property
    def grad(self) -> ShardedTensor | None:
        """The gradient, split as the array is; None before a backward pass."""
        found = self.piece.grad
        return None if found is None else ShardedTensor(found, self.layout)

    @grad.setter
    def grad(self, value: None) -> None:
        if value is not None:
            raise AutogradError("the gradient of a sharded array can be set to None only")
        self.piece.grad = None

    def backward(self, gradient: ShardedTensor | None = None) -> None:
        """Add the gradients of this array, of one element unless its `gradient` is given, to those
        of what it was computed from. All ranks call it."""
        if gradient is None and self.size != 1:
            raise AutogradError(
                f"backward of an array of shape {self.shape} takes its gradient; of one element, "
                "as x.sum(), it is 1"
            )
        shares = math.prod(self.mesh.axes[name] for name in self.layout.repeated)
        if gradient is None:
            piece = self.piece
            weights = full(piece.shape, 1 / shares, dtype=piece.dtype, device=piece.device)
        else:
            if gradient.shape != self.shape:
                raise ShapeError(f"a gradient of {self.shape}, not of {gradient.shape}")
            weights = moved(gradient, self.layout.spec, "backward") / shares
        self.piece.backward(weights)

    def detach(self) -> ShardedTensor:
        """The same elements without a history."""
        return ShardedTensor(self.piece.detach(), self.layout)

    # ------------------------------------------------------------------ elementwise

    def map(self, function: Callable[..., Any], *others: Any, **options: Any) -> ShardedTensor:
        """Any elementwise function of tensors, for this array and others, which broadcast.

        >>> import treadle as td
        >>> mesh = td.distributed.Mesh({"data": 1})
        >>> x = td.shard(td.asarray([1.0, 2.0], device="cpu"), mesh, ("data",))
        >>> x.map(lambda a, b: a * td.sqrt(b), x * 8).tolist()
        [2.8284270763397217, 8.0]
        """
        name = getattr(function, "__name__", "map")
        # What the function does to a sum is not known by its name.
        own = reductions.settled(self, name)
        rest = [reductions.settled(x, name) if isinstance(x, Pieces) else x for x in others]
        made: ShardedTensor = elementwise(f"map of {name}", function, own, *rest, **options)
        return made

    def where(self, condition: Any, other: Any) -> ShardedTensor:
        """The elements where the condition holds, else those of `other`."""
        made: ShardedTensor = elementwise("where", FUNCTIONS["where"], condition, self, other)
        return made

    def clip(self, min: Any = None, max: Any = None) -> ShardedTensor:
        """The elements limited to min … max."""
        made: ShardedTensor = elementwise("clip", FUNCTIONS["clip"], self, min, max)
        return made

    def to(self, dtype: Any) -> ShardedTensor:
        """The array as another dtype. Each rank's device stays what it is."""
        if not isinstance(dtype, str) or ":" not in dtype:
            own = reductions.settled(self, "to")
            made = own.piece.to(dtype)
            if made.device is own.piece.device:
                cast: ShardedTensor = own.like(made, own.layout)
                return cast
        raise DistributedError(
            f"to({dtype!r}) would move pieces to another device: each rank computes on its own; "
            "x.gather() is a tensor, which can be moved"
        )

    # ------------------------------------------------------------------ products

    def matmul(self, other: Any) -> ShardedTensor:
        """The matrix product, as `td.matmul`."""
        made: ShardedTensor = products.matmul(self, other)
        return made

    def einsum(self, subscripts: str, *others: Any, optimize: Any = True) -> ShardedTensor:
        """`td.einsum` of this array and others.

        >>> import treadle as td
        >>> mesh = td.distributed.Mesh({"data": 1})
        >>> x = td.shard(td.ones((4, 3), device="cpu"), mesh, ("data",))
        >>> x.einsum("ij,kj->ik", x).shape
        (4, 4)
        """
        made: ShardedTensor = products.einsum(subscripts, self, *others, optimize=optimize)
        return made

    def __matmul__(self, other: Any) -> ShardedTensor:
        made: ShardedTensor = products.matmul(self, other)
        return made

    def __rmatmul__(self, other: Any) -> ShardedTensor:
        made: ShardedTensor = products.matmul(other, self)
        return made

    # ------------------------------------------------------------------ shapes

    def reshape(self, *shape: Any) -> ShardedTensor:
        """The array in another shape, if each rank's elements stay its own."""
        wanted = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
        made: ShardedTensor = shapes.reshaped(self, wanted)
        return made

    def permute(self, *axes: Any) -> ShardedTensor:
        """The array with its axes in another order."""
        order = axes[0] if len(axes) == 1 and isinstance(axes[0], (tuple, list)) else axes
        made: ShardedTensor = shapes.permuted(self, order)
        return made

    permute_dims = permute

    def swapaxes(self, axis1: int, axis2: int) -> ShardedTensor:
        """The array with two axes exchanged."""
        made: ShardedTensor = shapes.exchanged(self, axis1, axis2, "swapaxes")
        return made

    transpose = swapaxes

    @property
    def T(self) -> ShardedTensor:
        """A matrix with its axes exchanged."""
        if self.ndim != 2:
            raise ShapeError(f"T is of two axes, not of shape {self.shape}: x.permute(…)")
        return self.swapaxes(0, 1)

    @property
    def mT(self) -> ShardedTensor:
        """The array with its last two axes exchanged."""
        return self.swapaxes(-1, -2)

    def expand_dims(self, axis: Any) -> ShardedTensor:
        """The array with axes of one element."""
        made: ShardedTensor = shapes.expanded(self, axis)
        return made

    unsqueeze = expand_dims

    def squeeze(self, axis: Any = None) -> ShardedTensor:
        """The array without axes of one element."""
        made: ShardedTensor = shapes.squeezed(self, axis)
        return made

    def broadcast_to(self, shape: Any) -> ShardedTensor:
        """The array repeated along axes of one element, and along new ones."""
        made: ShardedTensor = shapes.broadcast(self, shape)
        return made

    def flatten(self) -> ShardedTensor:
        """The array with one axis."""
        return self.reshape(-1)

    def take(self, indices: Any, axis: int | None = None) -> ShardedTensor:
        """The elements at integers, along an axis that is not split. The indices may be sharded."""
        made: ShardedTensor = shapes.taken(self, indices, axis)
        return made

    def __getitem__(self, key: Any) -> ShardedTensor:
        made: ShardedTensor = shapes.indexed(self, key)
        return made

    def __setitem__(self, key: Any, value: Any) -> NoReturn:
        raise TypeError(
            "sharded arrays are not written into: make a new one, as x.where(condition, other)"
        )

    # ------------------------------------------------------------------ the rest

    @staticmethod
    def __treadle_function__(
        name: str, arguments: tuple[Any, ...], keywords: Mapping[str, Any]
    ) -> Any:
        """What `td.NAME(…)` calls with sharded arrays: the method of the name, of the first one."""
        name = name.removesuffix("_by_result")
        if name == "einsum":
            return products.einsum(*arguments, **keywords)
        if name in FUNCTIONS and name not in ("clip", "round"):
            return elementwise(name, FUNCTIONS[name], *arguments, **keywords)
        first = arguments[0] if arguments else None
        if isinstance(first, ShardedTensor) and hasattr(ShardedTensor, name):
            return getattr(first, name)(*arguments[1:], **keywords)
        if isinstance(first, ShardedTensor) and name in _methods():
            return _methods()[name](*arguments, **keywords)
        raise TypeError(
            f"{name} takes no sharded arrays: x.gather() is a tensor, which all ranks have, and "
            "x.map(function) calls an elementwise function with pieces"
        )

    def __getattr__(self, name: str) -> Any:
        method = _methods().get(name)
        if method is not None:
            return method.__get__(self)
        if name.startswith("__") or not hasattr(Tensor, name):
            raise AttributeError(f"a sharded array has no attribute {name!r}")
        raise AttributeError(
            f"a sharded array has no {name}: x.gather().{name} is that of the whole array, "
            f"x.piece.{name} that of this rank's piece"
        )

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("a sharded array without axes has no length")
        return self.shape[0]

    def __iter__(self) -> NoReturn:
        raise TypeError("a sharded array is not gone through: x.gather() is a tensor")

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NoReturn:
        raise TypeError(
            "a sharded array is in pieces: x.numpy() is a NumPy array, x.gather() a tensor, for "
            "which all ranks call it"
        )

    def __bool__(self) -> bool:
        return bool(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __repr__(self) -> str:
        layout = self.layout
        return f"ShardedTensor({self.dtype}{layout} on {self.mesh})"

    def _explained(self) -> Explanation:
        """What `td.explain` shows: the layout, and how this rank's piece is computed."""
        return Explanation(
            f"{self!r}, of it here {self.piece.shape}\n{explain([self.piece._node])}"
        )


# --- the table of methods ------------------------------------------------------------------------

_REDUCTIONS = [
    "all",
    "any",
    "argmax",
    "argmin",
    "count_nonzero",
    "logsumexp",
    "log_softmax",
    "max",
    "mean",
    "min",
    "prod",
    "softmax",
    "std",
    "sum",
    "var",
]
_ACTIVATIONS = ["elu", "gelu", "leaky_relu", "relu", "silu", "softplus"]


def _operator(name: str, is_reflected: bool = False) -> Callable[..., Any]:
    function = FUNCTIONS[name]
    if is_reflected:
        return lambda self, other: elementwise(name, function, other, self)
    return lambda self, *other: elementwise(name, function, self, *other)


for _short, _name in (BINARY | COMPARISONS | UNARY | {"pos": "positive"}).items():
    setattr(ShardedTensor, f"__{_short}__", _operator(_name))
for _short, _name in BINARY.items():
    setattr(ShardedTensor, f"__r{_short}__", _operator(_name, True))


@cache
def _methods() -> Mapping[str, Callable[..., Any]]:
    """The methods that are functions of the same name."""
    found: dict[str, Callable[..., Any]] = {}
    for name, function in FUNCTIONS.items():
        found[name] = _elementwise_method(name, function)
    for name in _ACTIVATIONS:
        found[name] = _elementwise_method(name, getattr(activations, name))
    for name in _REDUCTIONS:
        found[name] = takes_dim(getattr(reductions, name))
    return found


def _elementwise_method(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def method(self: ShardedTensor, *others: Any, **options: Any) -> Any:
        return elementwise(name, function, self, *others, **options)

    method.__name__, method.__qualname__ = name, f"ShardedTensor.{name}"
    return method


# --- into the mesh and out of it -----------------------------------------------------------------


def _check_alike(whole: Tensor) -> None:
    """DistributedError, on each rank, if not all ranks have the same array."""
    with recorded(False):
        elements = hashlib.blake2b(np.ascontiguousarray(whole.numpy()).data, digest_size=8)
    own = f"{whole.dtype}{list(whole.shape)}, of which the digest is {elements.hexdigest()}"
    found = current().exchange("comparison of the arrays of td.shard", own)
    if len({*found}) > 1:
        lines = "".join(f"\n  rank {rank}: {each}" for rank, each in enumerate(found))
        raise DistributedError(
            f"td.shard takes an array that all ranks have alike:{lines}\nFor what each rank has "
            "itself there is td.distributed.from_pieces(piece, mesh, spec)"
        )


def _piece_of(whole: Tensor, layout: Layout) -> Tensor:
    """This rank's piece in memory of its own, so that the whole can go."""
    ranges = [layout.range(axis) for axis in range(len(whole.shape))]
    piece: Tensor = whole[tuple([slice(start, start + count) for start, count in ranges])]
    return piece.copied()


class _Divided(Function):
    """This rank's piece of what all ranks have; each gets the gradient of the whole."""

    @staticmethod
    def forward(ctx: Any, whole: Tensor, layout: Layout) -> Tensor:
        ctx.layout = layout
        return _piece_of(whole, layout)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        layout: Layout = ctx.layout
        gradient = Pieces(g, layout.replaced(pending=layout.repeated))
        return moved(gradient, ((),) * len(layout.shape), "gradient of shard"), None


class _Repeated(Function):
    """A piece that several ranks have; each gets the whole gradient of it."""

    @staticmethod
    def forward(ctx: Any, piece: Tensor, layout: Layout) -> Tensor:
        ctx.layout = layout
        return piece

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        return _summed(g, ctx.layout), None


class _Gathered(Function):
    """What all ranks have and use alike: each has an equal part of its gradient."""

    @staticmethod
    def forward(ctx: Any, whole: Tensor, count: int) -> Tensor:
        ctx.count = count
        return whole

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        return g / ctx.count, None


def _summed(gradient: Tensor, layout: Layout) -> Tensor:
    """The gradient of a piece that several ranks have."""
    for name in layout.repeated:
        gradient = moved_by("all_reduce", gradient, layout, name, "gradient")
    return gradient
