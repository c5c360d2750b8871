"""Layers whose parameters are divided among the ranks of a group: each computes with its part, and
the results are those of the whole layer.

All ranks give the same input and compute the same loss. With a `sequence_axis` each rank has a part
of the sequence outside of these layers: what norms and dropouts keep for the backward pass is
divided, too, and an all-reduce becomes a reduce-scatter and an all-gather.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, TypeVar

from treadle.core.dtypes import float32
from treadle.core.errors import DistributedError, DtypeError, ShapeError
from treadle.distributed.collectives import all_gather, all_reduce, reduce_scatter
from treadle.distributed.group import current
from treadle.distributed.holders import held_by
from treadle.distributed.layers.parts import Part, copied, divided, part_of, summed, whole
from treadle.distributed.members import Group
from treadle.nn.embedding import Embedding
from treadle.nn.linear import Linear
from treadle.nn.module import Module
from treadle.nn.parameter import Parameter
from treadle.tensor.annotations import ArrayLike, DeviceLike, DTypeLike
from treadle.tensor.assembly import stack
from treadle.tensor.creation import asarray
from treadle.tensor.dtypes import default_integer
from treadle.tensor.elementwise_functions import FUNCTIONS, where
from treadle.tensor.functional.affine import linear
from treadle.tensor.functional.embeddings import check_inside, embedding
from treadle.tensor.reductions import max as largest
from treadle.tensor.reductions import sum as total
from treadle.tensor.searching import take_along_axis
from treadle.tensor.tensor import Tensor

Own = TypeVar("Own", bound="Divided")
_exp, _log = FUNCTIONS["exp"], FUNCTIONS["log"]
_REDUCTIONS = ("mean", "sum", "none")


class Divided(Module):
    """A layer of which each rank has a part. `parts` says how its parameters are divided."""

    _plain: ClassVar[type[Module]]  # the layer that it is made from
    _begin: Any  # takes over a layer's settings, and parts of its parameters
    group: Group
    parts: dict[str, Part]

    @classmethod
    def of(cls: type[Own], layer: Any, *, group: Group | None = None, **options: Any) -> Own:
        """A layer with this rank's part of the parameters of a whole one, which are the same on all
        ranks; the options are those of the class."""
        if not isinstance(layer, cls._plain) or isinstance(layer, Divided):
            raise TypeError(
                f"{cls.__name__}.of takes a td.nn.{cls._plain.__name__}, not {type(layer).__name__}"
            )
        made = cls.__new__(cls)
        made._divide(layer, group, **options)
        made.train(layer.training)
        return made

    def _divide(self, layer: Any, group: Group | None, **options: Any) -> None:
        """Begin as a part of a layer."""
        Module.__init__(self)
        self.group = current() if group is None else group
        self.parts = {}
        self._begin(layer, **options)

    def _take(self, layer: Module, name: str, part: Part | None) -> None:
        """A part of a parameter, or all of it if each rank has it."""
        found: Any = layer._parameters[name]
        if part is not None:
            leaf = None if found is None else found._own_leaf
            if leaf is not None and leaf.home is not None:
                raise DistributedError(
                    f"an optimizer has the {name} of a {type(layer).__name__} already, and would "
                    "not change its parts: divide the model first, then make the optimizer"
                )
            found = part_of(found, part, self.group)
            self.parts[name] = part
            if found is not None and self.group.size > 1:
                held_by([found], self.group)
        self.register_parameter(name, found)

    def _entered(self, x: Tensor, axis: int | None) -> Tensor:
        """The whole input, at the beginning."""
        if axis is None:
            return copied(x, self.group)
        return all_gather(x, _place(axis, x), self.group)

    def _left(self, x: Tensor, axis: int | None) -> Tensor:
        """The sum of all ranks' results, or this rank's part of the sequence in it, at the end."""
        if axis is None:
            return summed(x, self.group)
        return reduce_scatter(x, _place(axis, x), "sum", self.group)


def _place(axis: int, x: Tensor) -> int:
    """An axis of a sequence; for sequences without a batch it is the first."""
    return 0 if x.ndim == 2 else axis


class ColumnParallelLinear(Divided):
    """`td.nn.Linear` of which each rank computes a part of the outputs: (…, out_features) becomes
    (…, its part), which a `RowParallelLinear` takes. If the outputs are not a multiple of the
    ranks, the first have one more.

    `gather_output` gives all outputs to all ranks. `sequence_axis` is the axis of the input's
    sequence, of which each rank then has a part. The initial values are those of `td.nn.Linear`
    with the same seed; `ColumnParallelLinear.of(linear)` takes those of a layer.

    >>> import treadle as td
    >>> layer = td.distributed.ColumnParallelLinear(3, 2, device="cpu")  # of one rank: the layer
    >>> layer(td.ones((4, 3), device="cpu")).shape
    (4, 2)
    """

    _plain = Linear
    weight: Parameter
    bias: Parameter | None

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        device: DeviceLike | None = None,
        dtype: DTypeLike | None = None,
        *,
        gather_output: bool = False,
        sequence_axis: int | None = None,
        group: Group | None = None,
    ) -> None:
        layer = Linear(in_features, out_features, bias, device, dtype)
        self._divide(layer, group, gather_output=gather_output, sequence_axis=sequence_axis)

    def _begin(
        self,
        layer: Linear,
        *,
        gather_output: bool = False,
        sequence_axis: int | None = None,
        unit: int = 1,
    ) -> None:
        self.in_features, self.out_features = layer.in_features, layer.out_features
        self.gather_output = gather_output
        self.sequence_axis = sequence_axis
        part = divided("ColumnParallelLinear's outputs", layer.out_features, self.group, unit)
        for name in ("weight", "bias"):
            self._take(layer, name, part)

    def forward(self, input: Tensor) -> Tensor:
        """This rank's outputs, or all of them."""
        x = self._entered(input, self.sequence_axis)
        found = linear(x, self.weight, self.bias)
        if not self.gather_output:
            return found
        part = self.parts["weight"]
        return whole(found, Part(part.extent, part.ranks, part.unit, found.ndim - 1), self.group)

    def extra_repr(self) -> str:
        """The numbers of features."""
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}, ranks={self.group.size}"
        )


class RowParallelLinear(Divided):
    """`td.nn.Linear` of which each rank has a part of the inputs: its part of (…, in_features), as
    a `ColumnParallelLinear` gives it, becomes (…, out_features), the sum over all ranks.

    With a `sequence_axis` each rank gets its part of the result's sequence, which is divisible by
    the number of ranks. Other arguments are as for `ColumnParallelLinear`.

    >>> import treadle as td
    >>> layer = td.distributed.RowParallelLinear(3, 2, device="cpu")  # of one rank: the layer
    >>> layer(td.ones((4, 3), device="cpu")).shape
    (4, 2)
    """

    _plain = Linear
    weight: Parameter
    bias: Parameter | None

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        device: DeviceLike | None = None,
        dtype: DTypeLike | None = None,
        *,
        sequence_axis: int | None = None,
        group: Group | None = None,
    ) -> None:
        layer = Linear(in_features, out_features, bias, device, dtype)
        self._divide(layer, group, sequence_axis=sequence_axis)

    def _begin(self, layer: Linear, *, sequence_axis: int | None = None, unit: int = 1) -> None:
        self.in_features, self.out_features = layer.in_features, layer.out_features
        self.sequence_axis = sequence_axis
        inputs = "RowParallelLinear's inputs"
        self._take(layer, "weight", divided(inputs, layer.in_features, self.group, unit, 1))
        self._take(layer, "bias", None)

    def forward(self, input: Tensor) -> Tensor:
        """The outputs, of all or of this rank's part of the sequence."""
        found = self._left(linear(input, self.weight), self.sequence_axis)
        if self.bias is None:
            return found
        if self.sequence_axis is None:
            return found + self.bias
        return found + copied(self.bias, self.group)

    def extra_repr(self) -> str:
        """The numbers of features."""
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}, ranks={self.group.size}"
        )


class VocabParallelEmbedding(Divided):
    """`td.nn.Embedding` of which each rank has some rows. If they are not a multiple of the ranks,
    the first have one more.

    With a `sequence_axis` (of the result) each rank gets its part of the sequence.

    >>> import treadle as td
    >>> layer = td.distributed.VocabParallelEmbedding(10, 3, device="cpu")  # of one rank: the layer
    >>> layer(td.asarray([[1, 2], [4, 5]], device="cpu")).shape
    (2, 2, 3)
    """

    _plain = Embedding
    weight: Parameter

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        device: DeviceLike | None = None,
        dtype: DTypeLike | None = None,
        *,
        sequence_axis: int | None = None,
        group: Group | None = None,
    ) -> None:
        layer = Embedding(num_embeddings, embedding_dim, padding_idx, device=device, dtype=dtype)
        self._divide(layer, group, sequence_axis=sequence_axis)

    def _begin(self, layer: Embedding, *, sequence_axis: int | None = None) -> None:
        if layer.max_norm is not None or layer.scale_grad_by_freq:
            raise ValueError(
                "VocabParallelEmbedding has no max_norm and no scale_grad_by_freq: make the "
                "embedding without them"
            )
        self.num_embeddings, self.embedding_dim = layer.num_embeddings, layer.embedding_dim
        self.padding_idx = layer.padding_idx
        self.sequence_axis = sequence_axis
        part = divided("VocabParallelEmbedding's rows", layer.num_embeddings, self.group)
        self._take(layer, "weight", part)
        self._first, stop = part.bounds[self.group.rank]
        is_here = self.padding_idx is not None and self._first <= self.padding_idx < stop
        self._own_padding = self.padding_idx - self._first if is_here else None  # type: ignore[operator]

    def forward(self, input: ArrayLike) -> Tensor:
        """The rows: the shape of the input, and behind it embedding_dim."""
        index = asarray(input, device=self.weight.device)
        if index.dtype.kind not in ("int", "uint"):
            raise DtypeError(f"VocabParallelEmbedding takes integers, not {index.dtype}")
        check_inside("VocabParallelEmbedding", input, index, self.num_embeddings)
        own = index.to(default_integer(index.device)) - self._first
        is_here = (own >= 0) & (own < len(self.weight))
        found = embedding(where(is_here, own, 0), self.weight, self._own_padding)
        # Rows that other ranks have are zeros here.
        return self._left(where(is_here[..., None], found, 0.0), self.sequence_axis)

    def extra_repr(self) -> str:
        """The table's shape."""
        return f"{self.num_embeddings}, {self.embedding_dim}, ranks={self.group.size}"


def whole_state_dict(model: Module) -> dict[str, Tensor]:
    """The state dict of the plain model, in which the parts of divided layers are joined. All ranks
    call this, and each gets it.

    >>> import treadle as td
    >>> model = td.distributed.ColumnParallelLinear(3, 2, device="cpu")
    >>> {name: each.shape for name, each in td.distributed.whole_state_dict(model).items()}
    {'weight': (2, 3), 'bias': (2,)}
    """
    layers = dict(model.named_modules())
    found = {}
    for name, tensor in model.state_dict().items():
        place, _, own = name.rpartition(".")
        layer = layers.get(place)
        if isinstance(layer, Divided) and own in layer.parts:
            tensor = layer.parts[own].joined(tensor, layer.group)
        found[name] = tensor
    return found


def vocab_parallel_cross_entropy(
    input: Tensor,
    target: ArrayLike,
    classes: int | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
    group: Group | None = None,
) -> Tensor:
    """The cross entropy of scores (…, C) of which each rank has the part of its classes, as a
    `ColumnParallelLinear` gives them; the targets, of shape (…), are numbers among all classes, and
    the same on all ranks. No rank has all scores.

    `classes` is how many there are in all; without it the ranks tell each other how many they have.
    Other arguments are those of `td.nn.functional.cross_entropy`.

    >>> import treadle as td
    >>> x, target = td.zeros((2, 4), device="cpu"), td.asarray([3, 1], device="cpu")
    >>> round(td.distributed.vocab_parallel_cross_entropy(x, target).item(), 4)
    1.3863
    """
    group = current() if group is None else group
    name = "vocab_parallel_cross_entropy"
    goal = asarray(target, device=input.device)
    first: Any = 0
    own_count = input.shape[-1]
    if classes is not None:
        first, stop = divided(f"{name}'s classes", classes, group).bounds[group.rank]
        own_count = stop - first
    if own_count != input.shape[-1] or goal.shape != input.shape[:-1]:
        raise ShapeError(
            f"{name}: of {classes or 'the'} classes this rank has {own_count}, so the scores have "
            f"shape (…, {own_count}) and the target (…), not {input.shape} and {goal.shape}"
        )
    if goal.dtype.kind not in ("int", "uint"):
        raise DtypeError(f"{name}: classes are integers, not {goal.dtype}")
    if reduction not in _REDUCTIONS:
        raise ValueError(f'{name}: reduction is "mean", "sum" or "none", not {reduction!r}')
    x = input.to(float32) if input.dtype.itemsize < 4 else input
    greatest = all_reduce(largest(x.detach(), axis=-1), "max", group)
    below = x - greatest[..., None]
    goal = goal.to(default_integer(x.device))
    count: Any = classes
    if classes is None:  # on the device, so that nothing waits
        every = all_gather(asarray([own_count], dtype=goal.dtype, device=x.device), group=group)
        first, count = total(every[: group.rank]).to(goal.dtype), total(every).to(goal.dtype)
    ignored = goal == ignore_index
    own = goal - first
    is_here = (own >= 0) & (own < own_count)
    place = where(is_here, own, 0)[..., None]
    picked = where(is_here, take_along_axis(below, place, axis=-1)[..., 0], 0.0)
    sums = [total(_exp(below), axis=-1), picked]
    if label_smoothing:
        sums.append(total(below, axis=-1))
    of_all = summed(stack(sums), group)
    log_sum = _log(of_all[0])
    losses = log_sum - of_all[1]
    if label_smoothing:
        smooth = log_sum - of_all[2] / (count if classes else count.to(x.dtype))
        losses = losses * (1 - label_smoothing) + smooth * label_smoothing
    losses = where((goal < 0) | (goal >= count), math.nan, losses)  # no class
    losses = where(ignored, 0.0, losses).to(input.dtype)
    if reduction == "none":
        return losses
    found = total(losses)
    return found if reduction == "sum" else found / total((~ignored).to(found.dtype))
