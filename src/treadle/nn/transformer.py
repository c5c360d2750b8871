"""Transformers: layers of attention and a network at each place, by A. Vaswani and others, 2017."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

from treadle.core.errors import ShapeError
from treadle.nn import init
from treadle.nn.attention import MultiheadAttention
from treadle.nn.containers import ModuleList
from treadle.nn.dropout import Dropout
from treadle.nn.linear import Linear
from treadle.nn.module import Module
from treadle.nn.normalization import LayerNorm
from treadle.tensor.annotations import DeviceLike, DTypeLike
from treadle.tensor.creation import full
from treadle.tensor.functional import activations
from treadle.tensor.ranges import triu
from treadle.tensor.tensor import Tensor

Activation = str | Callable[[Tensor], Tensor]
_ACTIVATIONS: dict[str, Callable[..., Tensor]] = {
    "relu": activations.relu,
    "gelu": activations.gelu,
}


class _Layer(Module):
    """What encoder and decoder layers have in common: their modules, and how parts are added."""

    _looks: ClassVar[bool] = False  # at what an encoder made
    norm1: LayerNorm
    norm2: LayerNorm
    norm3: LayerNorm
    dropout1: Dropout
    dropout2: Dropout
    dropout3: Dropout

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = activations.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: DeviceLike | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__()
        options: dict[str, Any] = {"device": device, "dtype": dtype}
        attention = partial(
            MultiheadAttention, d_model, nhead, dropout, bias, batch_first=batch_first, **options
        )
        parts = ("1", "2", "3") if self._looks else ("1", "2")
        # The order of modules is that of PyTorch's state dicts.
        self.self_attn = attention()
        if self._looks:
            self.multihead_attn = attention()
        self.linear1 = Linear(d_model, dim_feedforward, bias, **options)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias, **options)
        self.norm_first = norm_first
        for part in parts:
            self.add_module(f"norm{part}", LayerNorm(d_model, layer_norm_eps, bias=bias, **options))
        for part in parts:
            self.add_module(f"dropout{part}", Dropout(dropout))
        self._add_activation(activation)

    def _add_activation(self, activation: Activation) -> None:
        if isinstance(activation, str):
            if activation not in _ACTIVATIONS:
                raise ValueError(f'activation is "relu", "gelu" or a function, not {activation!r}')
            self.activation = _ACTIVATIONS[activation]
        else:
            self.activation = activation

    def _part(
        self, x: Tensor, norm: Module, part: Callable[[Tensor], Tensor], drop: Module
    ) -> Tensor:
        """The input plus what a part makes of it; one of both is normalized."""
        if self.norm_first:
            added: Tensor = x + drop(part(norm(x)))
            return added
        found: Tensor = norm(x + drop(part(x)))
        return found

    def _network(self, x: Tensor) -> Tensor:
        found: Tensor = self.linear2(self.dropout(self.activation(self.linear1(x))))
        return found


class TransformerEncoderLayer(_Layer):
    """Self-attention of a sequence (L, N, d_model), then a network of two linear layers at each
    position.

    The result of each is added to its input, and normalized after that, or before with
    `norm_first`. With `batch_first` the shape is (N, L, d_model).

    >>> import treadle as td
    >>> layer = td.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, device="cpu")
    >>> layer(td.ones((3, 5, 8), device="cpu")).shape
    (3, 5, 8)
    """

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        """A sequence of the same shape. The masks are those of `MultiheadAttention`."""

        def attend(x: Tensor) -> Tensor:
            return _attended(self.self_attn, x, x, src_mask, src_key_padding_mask, is_causal)

        x = self._part(src, self.norm1, attend, self.dropout1)
        return self._part(x, self.norm2, self._network, self.dropout2)


class TransformerDecoderLayer(_Layer):
    """A `TransformerEncoderLayer` that also attends to the result of an encoder (`memory`).

    It takes (T, N, d_model) and memory (S, N, d_model), or with the batch first.

    >>> import treadle as td
    >>> layer = td.nn.TransformerDecoderLayer(8, 2, 16, device="cpu")
    >>> layer(td.ones((3, 1, 8), device="cpu"), td.ones((5, 1, 8), device="cpu")).shape
    (3, 1, 8)
    """

    _looks = True

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """A sequence of the shape of `tgt`."""

        def attend(x: Tensor) -> Tensor:
            return _attended(self.self_attn, x, x, tgt_mask, tgt_key_padding_mask, tgt_is_causal)

        def look(x: Tensor) -> Tensor:
            return _attended(
                self.multihead_attn, x, memory, memory_mask, memory_key_padding_mask,
                memory_is_causal,
            )  # fmt: skip

        x = self._part(tgt, self.norm1, attend, self.dropout1)
        x = self._part(x, self.norm2, look, self.dropout2)
        return self._part(x, self.norm3, self._network, self.dropout3)


def _attended(
    attention: Module, x: Tensor, seen: Tensor, mask: Any, padding: Any, is_causal: bool
) -> Tensor:
    found: Tensor = attention(
        x, seen, seen, attn_mask=mask, key_padding_mask=padding, need_weights=False,
        is_causal=is_causal,
    )[0]  # fmt: skip
    return found


# --- several layers ------------------------------------------------------------------------------


class TransformerEncoder(Module):
    """Several copies of an encoder layer, one after the other, and optionally a norm after the
    last.

    `enable_nested_tensor` and `mask_check` are PyTorch's arguments and have no effect.

    >>> import treadle as td
    >>> layer = td.nn.TransformerEncoderLayer(8, 2, 16, device="cpu")
    >>> encoder = td.nn.TransformerEncoder(layer, 2)
    >>> encoder(td.ones((5, 1, 8), device="cpu")).shape
    (5, 1, 8)
    """

    def __init__(
        self,
        encoder_layer: Module,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        super().__init__()
        self.layers = ModuleList(copy.deepcopy(encoder_layer) for _ in range(num_layers))
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        """A sequence of the same shape. Whether the mask is the causal one is not looked up, for
        that would wait for the device: say it, and keys that no query sees are left out."""
        x = src
        for layer in self.layers:
            x = layer(x, mask, src_key_padding_mask, bool(is_causal))
        return x if self.norm is None else self.norm(x)


class TransformerDecoder(Module):
    """Several copies of a decoder layer, one after the other, and optionally a norm after the last.

    >>> import treadle as td
    >>> layer = td.nn.TransformerDecoderLayer(8, 2, 16, device="cpu")
    >>> decoder = td.nn.TransformerDecoder(layer, num_layers=2)
    >>> decoder(td.ones((3, 1, 8), device="cpu"), td.ones((5, 1, 8), device="cpu")).shape
    (3, 1, 8)
    """

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__()
        self.layers = ModuleList(copy.deepcopy(decoder_layer) for _ in range(num_layers))
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """A sequence of the shape of `tgt`."""
        x = tgt
        for layer in self.layers:
            x = layer(
                x, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask,
                bool(tgt_is_causal), memory_is_causal,
            )  # fmt: skip
        return x if self.norm is None else self.norm(x)


class Transformer(Module):
    """An encoder of one sequence, and a decoder of another that attends to the encoder's result.

    It takes (S, N, d_model) and (T, N, d_model), or with the batch first, and returns (T, N,
    d_model).

    >>> import treadle as td
    >>> model = td.nn.Transformer(8, 2, 1, 1, 16, device="cpu")
    >>> model(td.ones((5, 1, 8), device="cpu"), td.ones((3, 1, 8), device="cpu")).shape
    (3, 1, 8)
    """

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = activations.relu,
        custom_encoder: Module | None = None,
        custom_decoder: Module | None = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: DeviceLike | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__()
        options: dict[str, Any] = {"device": device, "dtype": dtype}
        settings = (
            d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first,
            norm_first, bias,
        )  # fmt: skip

        def norm() -> LayerNorm:
            return LayerNorm(d_model, layer_norm_eps, bias=bias, **options)

        self.encoder = custom_encoder or TransformerEncoder(
            TransformerEncoderLayer(*settings, **options), num_encoder_layers, norm()
        )
        self.decoder = custom_decoder or TransformerDecoder(
            TransformerDecoderLayer(*settings, **options), num_decoder_layers, norm()
        )
        self.d_model = d_model
        self.nhead = nhead
        self.batch_first = batch_first
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        for parameter in self.parameters():
            if parameter.ndim > 1:
                init.xavier_uniform_(parameter)

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """A sequence of the shape of `tgt`."""
        if src.shape[-1] != self.d_model or tgt.shape[-1] != self.d_model:
            raise ShapeError(
                f"Transformer: the last extents of src and tgt are {self.d_model}; their shapes "
                f"are {src.shape} and {tgt.shape}"
            )
        memory = self.encoder(src, src_mask, src_key_padding_mask, src_is_causal)
        found: Tensor = self.decoder(
            tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask,
            tgt_is_causal, memory_is_causal,
        )  # fmt: skip
        return found

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Tensor:
        """The mask that is added to scores so that no place sees those behind it.

        >>> import treadle as td
        >>> td.nn.Transformer.generate_square_subsequent_mask(2, device="cpu").tolist()
        [[0.0, -inf], [0.0, 0.0]]
        """
        return triu(full((sz, sz), -math.inf, dtype=dtype, device=device), k=1)
