"""Attention of which each rank has some of the heads, and transformers made of such layers."""

from __future__ import annotations

from typing import Any

from treadle.core.errors import ShapeError
from treadle.distributed.collectives import all_reduce
from treadle.distributed.group import current
from treadle.distributed.layers.divided import (
    ColumnParallelLinear,
    Divided,
    RowParallelLinear,
)
from treadle.distributed.layers.parts import Part, divided, summed, whole
from treadle.distributed.members import Group
from treadle.nn.attention import MultiheadAttention
from treadle.nn.module import Module
from treadle.nn.transformer import TransformerDecoderLayer, TransformerEncoderLayer
from treadle.tensor.creation import asarray
from treadle.tensor.reductions import sum as total
from treadle.tensor.tensor import Tensor

_PROJECTIONS = ("q_proj_weight", "k_proj_weight", "v_proj_weight")


class ParallelMultiheadAttention(Divided, MultiheadAttention):
    """`td.nn.MultiheadAttention` of which each rank has some of the heads: made from a layer, by
    `ParallelMultiheadAttention.of(layer)`. If the heads are not a multiple of the ranks, the first
    have one more.

    With `sequence_parallel=True` each rank gives and gets its part of the sequence, which is
    divisible by the number of ranks; masks are of the whole sequence.

    >>> import treadle as td
    >>> layer = td.nn.MultiheadAttention(8, 2, batch_first=True, device="cpu")
    >>> x = td.ones((3, 5, 8), device="cpu")
    >>> td.distributed.ParallelMultiheadAttention.of(layer)(x, x, x)[0].shape  # of one rank
    (3, 5, 8)
    """

    _plain = MultiheadAttention

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        *,
        sequence_parallel: bool = False,
        group: Group | None = None,
        **options: Any,
    ) -> None:
        layer = MultiheadAttention(embed_dim, num_heads, **options)
        self._divide(layer, group, sequence_parallel=sequence_parallel)

    def _begin(self, layer: MultiheadAttention, *, sequence_parallel: bool = False) -> None:
        for name in (
            "embed_dim", "kdim", "vdim", "dropout", "batch_first", "head_dim", "add_zero_attn",
        ):  # fmt: skip
            setattr(self, name, getattr(layer, name))
        self.sequence_parallel = sequence_parallel
        group, size = self.group, self.embed_dim
        self._heads_of_all = divided("ParallelMultiheadAttention's heads", layer.num_heads, group)
        start, stop = self._heads_of_all.bounds[group.rank]
        self.num_heads = stop - start

        def part(axis: int = 0, blocks: int = 1) -> Part:
            return Part(size, group.size, self.head_dim, axis, blocks)

        for name in ("in_proj_weight", "in_proj_bias"):
            self._take(layer, name, part(blocks=3))
        for name in _PROJECTIONS:
            self._take(layer, name, part())
        for name in ("bias_k", "bias_v"):
            self._take(layer, name, part(2))
        # Within, the sequence is behind the batch.
        axis = 1 if sequence_parallel else None
        own = RowParallelLinear.of(
            layer.out_proj, group=group, sequence_axis=axis, unit=self.head_dim
        )
        self.register_module("out_proj", own)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """What `td.nn.MultiheadAttention` gives; with `sequence_parallel` this rank's part of what
        the queries found, and all weights."""
        axis = (1 if self.batch_first else 0) if self.sequence_parallel else None
        known: dict[int, Tensor] = {}
        states = [query, key, value]
        for each in states:
            if id(each) not in known:
                known[id(each)] = self._entered(each, axis)
        query, key, value = (known[id(each)] for each in states)
        own = self._own_mask(attn_mask)
        found, weights = MultiheadAttention.forward(
            self, query, key, value, key_padding_mask, need_weights, own, False, is_causal
        )
        if weights is None:
            return found, None
        heads = self._heads_of_all
        if average_attn_weights:
            return found, summed(total(weights, axis=-3), self.group) / heads.extent
        part = Part(heads.extent, heads.ranks, axis=weights.ndim - 3)
        return found, whole(weights, part, self.group)

    def _own_mask(self, mask: Any) -> Any:
        """The part of a mask with an own matrix for each head."""
        if mask is None:
            return None
        mask = asarray(mask)
        if mask.ndim != 3:
            return mask
        heads = self._heads_of_all
        if len(mask) % heads.extent:
            raise ShapeError(
                f"ParallelMultiheadAttention: attn_mask has shape {mask.shape}, and the first "
                f"extent is a multiple of the {heads.extent} heads of all ranks"
            )
        each = mask.reshape((len(mask) // heads.extent, heads.extent, *mask.shape[1:]))
        own = Part(heads.extent, heads.ranks, axis=1).of(self.group.rank, each)
        return own.reshape((-1, *mask.shape[1:]))


def tensor_parallel(
    model: Module, sequence_parallel: bool = False, group: Group | None = None
) -> Module:
    """Divide the transformer layers of a model (`td.nn.TransformerEncoderLayer` and
    `TransformerDecoderLayer`) among the ranks of a group, in place: attention by heads, the network
    at each position by its hidden features. The model has the same values on all ranks.

    With `sequence_parallel=True` these layers take and give parts of the sequence (`split` makes
    them, `join` ends that), and gradients of their norms are summed over the ranks.

    >>> import treadle as td
    >>> layer = td.nn.TransformerEncoderLayer(8, 2, 16, device="cpu")
    >>> td.distributed.tensor_parallel(layer)(td.ones((5, 1, 8), device="cpu")).shape
    (5, 1, 8)
    """
    group = current() if group is None else group
    layers = [
        each
        for each in model.modules()
        if isinstance(each, (TransformerEncoderLayer, TransformerDecoderLayer))
    ]
    if not layers:
        raise ValueError(
            f"{type(model).__name__} has no TransformerEncoderLayer or TransformerDecoderLayer: "
            "make its layers from ColumnParallelLinear, RowParallelLinear and "
            "ParallelMultiheadAttention"
        )
    for layer in layers:
        axis = (1 if layer.self_attn.batch_first else 0) if sequence_parallel else None
        for name in ("self_attn", "multihead_attn"):
            attention = layer._modules.get(name)
            if attention is not None:
                own = ParallelMultiheadAttention.of(
                    attention, group=group, sequence_parallel=sequence_parallel
                )
                layer.register_module(name, own)
        first = ColumnParallelLinear.of(layer.linear1, group=group, sequence_axis=axis)
        second = RowParallelLinear.of(layer.linear2, group=group, sequence_axis=axis)
        layer.register_module("linear1", first)
        layer.register_module("linear2", second)
        if sequence_parallel:
            for name in ("norm1", "norm2", "norm3"):
                norm = layer._modules.get(name)
                if norm is not None:
                    sum_gradients(norm, group)
    return model


def sum_gradients(module: Module, group: Group | None = None) -> Module:
    """Sum the gradients of a module's parameters over the ranks of a group, in each backward pass:
    for a norm that each rank applies to its part of a sequence. The module itself is returned.

    >>> import treadle as td
    >>> norm = td.distributed.sum_gradients(td.nn.LayerNorm(4, device="cpu"))
    >>> norm(td.ones((2, 4), device="cpu")).shape
    (2, 4)
    """
    group = current() if group is None else group
    if group.engine is not None:
        for parameter in module.parameters():
            if parameter.requires_grad:
                parameter.register_hook(_Sum(group))
    return module


class _Sum:
    is_copied = True  # copies of a layer sum, too

    def __init__(self, group: Group) -> None:
        self._group = group

    def __call__(self, gradient: Tensor) -> Tensor:
        """The sum of all ranks' gradients."""
        return all_reduce(gradient, "sum", self._group)
