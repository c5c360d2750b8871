"""`MultiheadAttention`: queries that look at keys in several heads, with learned projections."""

from __future__ import annotations

import math
from typing import Any

from treadle.core.dtypes import bool_
from treadle.core.errors import ShapeError
from treadle.nn import init
from treadle.nn.linear import Linear
from treadle.nn.module import Module
from treadle.nn.parameter import Parameter
from treadle.tensor.annotations import DeviceLike, DTypeLike
from treadle.tensor.assembly import concat
from treadle.tensor.creation import asarray, empty, zeros
from treadle.tensor.elementwise_functions import FUNCTIONS, where
from treadle.tensor.functional.affine import linear
from treadle.tensor.functional.attention import scaled_dot_product_attention
from treadle.tensor.functional.dropouts import dropout
from treadle.tensor.functional.normalization import softmax
from treadle.tensor.manipulation import broadcast_to, matrix_transpose, swapaxes
from treadle.tensor.products import matmul
from treadle.tensor.reductions import mean
from treadle.tensor.tensor import Tensor

_not = FUNCTIONS["logical_not"]
_NAME = "MultiheadAttention"


class MultiheadAttention(Module):
    """Attention in `num_heads` heads, by A. Vaswani and others, 2017. Queries, keys and values are
    projected, each head attends with its part of the elements, and the results are projected.

    Shapes are (L, N, embed_dim), or (N, L, embed_dim) with `batch_first`, or (L, embed_dim). Keys
    and values may have `kdim` and `vdim` elements. `add_bias_kv` adds a learned key and value to
    the sequence, `add_zero_attn` zeros. With `need_weights=False` the matrix of attention weights
    is not written to memory, which is faster.

    >>> import treadle as td
    >>> layer = td.nn.MultiheadAttention(8, 2, batch_first=True, device="cpu")
    >>> x = td.ones((3, 5, 8), device="cpu")
    >>> found, weights = layer(x, x, x)
    >>> found.shape, weights.shape
    ((3, 5, 8), (3, 5, 5))
    """

    in_proj_weight: Parameter | None
    q_proj_weight: Parameter | None
    k_proj_weight: Parameter | None
    v_proj_weight: Parameter | None
    in_proj_bias: Parameter | None
    bias_k: Parameter | None
    bias_v: Parameter | None

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: DeviceLike | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__()
        if embed_dim <= 0 or num_heads <= 0 or embed_dim % num_heads:
            raise ValueError(
                f"{_NAME}: embed_dim={embed_dim} is not num_heads={num_heads} heads of as many "
                "elements each"
            )
        self.embed_dim = embed_dim
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self.num_heads = num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.head_dim = embed_dim // num_heads
        self.add_zero_attn = add_zero_attn
        is_same = self.kdim == self.vdim == embed_dim
        shapes: dict[str, tuple[int, ...] | None] = {
            "in_proj_weight": (3 * embed_dim, embed_dim) if is_same else None,
            "q_proj_weight": None if is_same else (embed_dim, embed_dim),
            "k_proj_weight": None if is_same else (embed_dim, self.kdim),
            "v_proj_weight": None if is_same else (embed_dim, self.vdim),
            "in_proj_bias": (3 * embed_dim,) if bias else None,
            "bias_k": (1, 1, embed_dim) if add_bias_kv else None,
            "bias_v": (1, 1, embed_dim) if add_bias_kv else None,
        }
        for name, shape in shapes.items():
            made = None if shape is None else Parameter(empty(shape, dtype=dtype, device=device))
            self.register_parameter(name, made)
        self.out_proj = Linear(embed_dim, embed_dim, bias, device=device, dtype=dtype)
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        """Draw the parameters anew."""
        for name in ("in_proj_weight", "q_proj_weight", "k_proj_weight", "v_proj_weight"):
            if self._parameters[name] is not None:
                init.xavier_uniform_(self._parameters[name])  # type: ignore[arg-type]
        if self.in_proj_bias is not None:
            init.zeros_(self.in_proj_bias)
            assert self.out_proj.bias is not None
            init.zeros_(self.out_proj.bias)
        for added in (self.bias_k, self.bias_v):
            if added is not None:
                init.xavier_normal_(added)

    # --- computing -------------------------------------------------------------------------------

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
        """What the queries found, and the weights: their mean over the heads, (N, L, S), or those
        of each head, (N, num_heads, L, S), or None.

        `key_padding_mask`, (N, S), names keys that count for nothing, `attn_mask`, (L, S) or
        (N * num_heads, L, S), what each query does not see: where they are true, or, if they are
        floats, by what is added to the scores. `is_causal` says that `attn_mask` is the causal one.
        """
        is_batch = query.ndim == 3
        states = [query, key, value]
        self._check(states)
        if not is_batch:
            same = states[0] is states[1] is states[2]
            states = [states[0][None]] * 3 if same else [each[None] for each in states]
            key_padding_mask = None if key_padding_mask is None else key_padding_mask[None]
        elif not self.batch_first:
            states = _swapped(states)
        q, k, v = self._projected(states)
        if is_causal and attn_mask is None:
            raise ValueError(
                f"{_NAME}: is_causal says that attn_mask is the causal one, and there is none"
            )
        extra = (self.bias_k is not None) + self.add_zero_attn
        is_plain = is_causal and key_padding_mask is None and not need_weights and not extra
        mask = None if is_plain else self._mask(key_padding_mask, attn_mask, q, k, extra)
        if self.bias_k is not None:
            assert self.bias_v is not None
            k, v = _longer(k, self.bias_k.to(k.dtype)), _longer(v, self.bias_v.to(v.dtype))
        q, k, v = (self._heads(each) for each in (q, k, v))
        if self.add_zero_attn:
            k, v = (_longer(x, zeros((1,), dtype=x.dtype, device=x.device)) for x in (k, v))
        weights = None
        if need_weights:
            found, weights = self._weighted(q, k, v, mask)
        else:
            part = self.dropout if self.training else 0.0
            found = scaled_dot_product_attention(q, k, v, mask, part, is_causal=is_plain)
        found = swapaxes(found, 1, 2).reshape((len(q), q.shape[2], self._width))
        found = self.out_proj(found)
        if weights is not None and average_attn_weights:
            weights = mean(weights, axis=1)
        if not is_batch:
            return found[0], None if weights is None else weights[0]
        return found if self.batch_first else swapaxes(found, 0, 1).copied(), weights

    def _check(self, states: list[Any]) -> None:
        query, key, value = (tuple(each.shape) for each in states)
        lengths = (self.embed_dim, self.kdim, self.vdim)
        batch = 0 if self.batch_first else 1
        fits = (
            len(query) in (2, 3)
            and len(query) == len(key) == len(value)
            and tuple(each[-1] for each in (query, key, value)) == lengths
            and key[:-1] == value[:-1]
            and (len(query) == 2 or query[batch] == key[batch])
        )
        if not fits:
            raise ShapeError(
                f"{_NAME}: query, key and value have the shapes {query}, {key} and {value}: all "
                f"have a batch or none has, key and value are as long, and the last extents are "
                f"{', '.join(str(each) for each in lengths)}"
            )

    @property
    def _width(self) -> int:
        """The elements of all heads that this module has."""
        return int(self.num_heads * self.head_dim)

    def _projected(self, states: list[Tensor]) -> list[Tensor]:
        """Queries, keys and values, by one product for those that are one tensor."""
        e = self._width
        weight, bias = self.in_proj_weight, self.in_proj_bias
        biases: list[Any] = (
            [None] * 3 if bias is None else [bias[k * e : (k + 1) * e] for k in range(3)]
        )
        if weight is None:
            own: Any = (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)
            return [linear(x, w, b) for x, w, b in zip(states, own, biases, strict=True)]
        if states[0] is states[1] is states[2]:
            return _cut(linear(states[0], weight, bias), 3)
        first = linear(states[0], weight[:e], biases[0])
        if states[1] is states[2]:
            rest = None if bias is None else bias[e:]
            return [first, *_cut(linear(states[1], weight[e:], rest), 2)]
        others = zip(states[1:], (weight[e : 2 * e], weight[2 * e :]), biases[1:], strict=True)
        return [first, *(linear(x, w, b) for x, w, b in others)]

    def _heads(self, x: Tensor) -> Tensor:
        """(N, L, E) as (N, heads, L, E / heads)."""
        return swapaxes(x.reshape((*x.shape[:2], self.num_heads, self.head_dim)), 1, 2)

    def _mask(self, padding: Any, seen: Any, q: Tensor, k: Tensor, extra: int) -> Tensor | None:
        """Both masks as one: true where a query sees a key, or what is added to the scores."""
        batch, queries, keys = len(q), q.shape[1], k.shape[1]
        parts = []
        if seen is not None:
            mask = asarray(seen, device=q.device)
            if mask.shape == (queries, keys):
                parts.append(mask[None, None])
            elif mask.shape == (batch * self.num_heads, queries, keys):
                parts.append(mask.reshape((batch, self.num_heads, queries, keys)))
            else:
                raise ShapeError(
                    f"{_NAME}: attn_mask has shape {mask.shape}, not {(queries, keys)} or "
                    f"{(batch * self.num_heads, queries, keys)}"
                )
        if padding is not None:
            mask = asarray(padding, device=q.device)
            if mask.shape != (batch, keys):
                raise ShapeError(
                    f"{_NAME}: key_padding_mask has shape {mask.shape}, not {(batch, keys)}"
                )
            parts.append(mask[:, None, None])
        if not parts:
            return None
        if all(mask.dtype is bool_ for mask in parts):
            hidden = parts[0] if len(parts) == 1 else parts[0] | parts[1]
            found = _not(hidden)
        else:
            added = [where(x, -math.inf, 0.0) if x.dtype is bool_ else x for x in parts]
            found = added[0] if len(added) == 1 else added[0] + added[1]
            found = found.to(q.dtype)
        if extra:  # what is added to the keys is seen by all
            shape = (*found.shape[:-1], extra)
            more = zeros(shape, dtype=found.dtype, device=found.device)
            found = concat([found, _not(more) if found.dtype is bool_ else more], axis=-1)
        assert isinstance(found, Tensor)
        return found

    def _weighted(
        self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """The results, and the weights that made them."""
        scores = matmul(q * (1 / math.sqrt(self.head_dim)), matrix_transpose(k))
        if mask is not None:
            is_bool = mask.dtype is bool_
            scores = where(mask, scores, -math.inf) if is_bool else scores + mask
        weights = softmax(scores)
        if self.dropout and self.training:
            weights = dropout(weights, self.dropout)
        return matmul(weights, v), weights


def _swapped(states: list[Tensor]) -> list[Tensor]:
    """(L, N, E) as (N, L, E); what is one tensor stays one."""
    known: dict[int, Tensor] = {}
    return [known.setdefault(id(x), swapaxes(x, 0, 1)) for x in states]


def _longer(x: Tensor, row: Tensor) -> Tensor:
    """Sequences with one more place each, the same for all."""
    return concat([x, broadcast_to(row, (*x.shape[:-2], 1, x.shape[-1]))], axis=-2)


def _cut(x: Tensor, count: int) -> list[Tensor]:
    width = x.shape[-1] // count
    return [x[..., k * width : (k + 1) * width] for k in range(count)]
