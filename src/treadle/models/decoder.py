"""What all decoders are: an embedding, layers, a norm, and scores of all tokens."""

from __future__ import annotations

from collections.abc import Callable

from treadle.models.attention import Batch
from treadle.models.cache import Cache
from treadle.models.config import DecoderConfig
from treadle.models.layers import Matrix, Norm, RowParts, Weights, multiply, rows_of
from treadle.models.lora import Lora, learns
from treadle.models.stream import Stream
from treadle.models.whole_attention import Texts
from treadle.nn.containers import ModuleList
from treadle.nn.module import Module
from treadle.tensor.tensor import Tensor

MakeLayer = Callable[[int], Module]


class Decoder(Module):
    """A stack of layers. A layer takes rows, the batch and its cache, and returns rows."""

    def __init__(
        self, config: DecoderConfig, weights: Weights, make_layer: MakeLayer, scale: float = 1.0
    ) -> None:
        super().__init__()
        self.config, self.scale, self.activations = config, scale, weights.activations
        shape = config.vocabulary, config.width
        self.embedding: Matrix = weights.matrix("token_embd.weight", *shape)
        self.layers = ModuleList([make_layer(index) for index in range(config.layers)])
        self.norm = Norm(weights, "output_norm", config.width, config.epsilon)
        tied = not weights.has("output.weight")
        self.output = self.embedding if tied else weights.matrix("output.weight", *shape)
        self.lora: Lora | None = None
        self.revision = 0  # counts changes of what the layers compute

    @property
    def is_learning(self) -> bool:
        """Whether elements of its adapters may change at any time, as they require gradients."""
        return self.lora is not None and learns(self.lora)

    def embed(self, tokens: Tensor) -> Tensor:
        """The rows of the embedding."""
        found = rows_of(self.embedding, tokens)
        return found if self.scale == 1.0 else found * self.scale

    def hidden(self, batch: Batch | Texts, cache: Cache | None) -> Tensor:
        """What the last layer gives for each token, normalized. Whole texts need no cache."""
        found: Tensor = self.norm(self._stream(batch, cache).tensor())
        return found

    def _stream(self, batch: Batch | Texts, cache: Cache | None) -> Stream:
        # In memory, or each kernel that reads them would look them up.
        stream = Stream(self.embed(batch.tokens).realize())
        if cache is None:
            for layer in self.layers:
                stream = layer(stream, batch, None)
            return stream
        for layer, layer_cache in zip(self.layers, cache.layers, strict=True):
            stream = layer(stream, batch, layer_cache)
            # In memory, so that each layer has the kernels of the one before. Else norms that no
            # product computes would compute sums that grow from layer to layer.
            stream.x.realize()
        return stream

    def scores(self, rows: Tensor) -> Tensor:
        """Logits of all tokens, after rows of `hidden`."""
        return self._capped(multiply(rows, self.output, self.activations))

    def _capped(self, found: Tensor) -> Tensor:
        cap = self.config.logits_cap
        return (found / cap).tanh() * cap if cap else found

    def forward(self, batch: Batch | Texts, cache: Cache | None = None) -> Tensor:
        """Logits after each token of a batch."""
        rows = self._stream(batch, cache).normed(self.norm)
        parts = self.output.parts if isinstance(self.output, RowParts) else (self.output,)
        found = rows.times(parts, self.activations)
        return self.scores(rows.tensor()) if found is None else self._capped(found[0])
