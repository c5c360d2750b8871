"""A decoder with its tokenizer: what `td.models.load` returns."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Mapping, Sequence
from os import PathLike
from typing import Any

import numpy as np

from treadle.autograd.modes import no_grad
from treadle.models.arguments import integer, shown, strings, token_ids
from treadle.models.attention import Batch
from treadle.models.cache import PAGE, Cache, Entries
from treadle.models.config import DecoderConfig
from treadle.models.decoder import Decoder
from treadle.models.engine import Engine
from treadle.models.generation import Generation, Overflow
from treadle.models.layers import Projection
from treadle.models.lora import Lora, attach, detach, new_lora, projections_of
from treadle.models.lora_files import read_lora, save_lora
from treadle.models.sampling import NAMES, Sampling, greedy
from treadle.models.text.tokenizer import Tokenizer
from treadle.models.training import Ids, loss_of, training_logits
from treadle.runtime.devices import Device
from treadle.tensor.tensor import Tensor, from_numpy


class Model:
    """A language model on a device.

    It has a `name`, a `config` (its sizes), a `tokenizer`, a `device`, the file's `metadata`, and a
    `context`: the number of tokens that a prompt and its answer may have together."""

    def __init__(
        self, decoder: Decoder, tokenizer: Tokenizer | None, device: Device, context: int,
        entries: Entries, metadata: Mapping[str, Any],
    ) -> None:  # fmt: skip
        self.decoder, self.tokenizer, self.device = decoder, tokenizer, device
        self.context, self.entries, self.metadata = context, entries, metadata
        self._engine: Engine | None = None

    @property
    def config(self) -> DecoderConfig:
        """The model's sizes."""
        return self.decoder.config

    @property
    def name(self) -> str:
        """As the file has it."""
        return self.config.name

    def __repr__(self) -> str:
        return (
            f"<treadle model {self.name}: {self.config.architecture}, {self.config.layers} layers "
            f"of {self.config.width}, context {self.context}, on {self.device.id}>"
        )

    def engine(
        self,
        sequences: int = 8,
        *,
        context: int | None = None,
        entries: Entries | None = None,
        pages: int | None = None,
    ) -> Engine:
        """An engine that generates for up to `sequences` texts at once, with a cache of its own of
        at most `pages` pages; by default as many as all texts need. `context` is at most the
        model's own."""
        if context is None:
            context = self.context
        integer("context", context, 2, self.context, ", the context that the model was loaded with")
        return Engine(
            self.decoder, self.tokenizer, self.device, context=context, sequences=sequences,
            entries=self.entries if entries is None else entries, pages=pages,
        )  # fmt: skip

    def encode(self, prompt: str | Sequence[int]) -> list[int]:
        """The tokens of a prompt."""
        if isinstance(prompt, (bytes, bytearray)) or not isinstance(prompt, Iterable):
            raise TypeError(f"a prompt is a text or token ids, not {shown(prompt)}")
        if not isinstance(prompt, str):
            return token_ids(prompt, self.config.vocabulary)
        if self.tokenizer is None:
            raise ValueError("this model has no tokenizer: give the prompt as token ids")
        return self.tokenizer.encode(prompt)

    def generate(
        self,
        prompt: str | Sequence[int],
        *,
        max_tokens: int | None = 128,
        sampling: Sampling | None = None,
        stop: str | Sequence[str] = (),
        overflow: Overflow = "error",
        **fields: Any,
    ) -> Generation:
        """Text that follows a prompt, as an iterator of pieces.

        By default each token is the most probable one; `sampling`, or its fields as keywords
        (temperature=0.8, top_p=0.95, seed=1, …), say otherwise. The text ends before the first of
        the strings in `stop`, at the model's own end, after `max_tokens` tokens (None: no limit),
        or where the context is full; with overflow="shift" it then goes on with the first token and
        the later half of its tokens.

        Several generations of one model may be read in turns; they share each step.
        """
        sampling = _sampling(sampling, fields)
        if self._engine is None:
            self._engine = self.engine()
        return self._engine.submit(
            self.encode(prompt), sampling, max_tokens, strings("stop", stop), overflow=overflow
        )

    def chat(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]] | None = None,
        **options: Any,
    ) -> Generation:
        """The answer to messages (dicts with `role` and `content`), by the file's chat template.
        `options` are those of `generate`."""
        return self.generate(self.chat_tokens(messages, tools), **options)

    def chat_tokens(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]] | None = None,
        **names: Any,
    ) -> list[int]:
        """The tokens of messages, with the beginning of the answer."""
        from treadle.models.text.chat import chat_template_of_gguf, chat_tokens

        if self.tokenizer is None:
            raise ValueError("this model has no tokenizer: give prompts as token ids")
        template = chat_template_of_gguf(self.metadata)
        return chat_tokens(self.tokenizer, template, messages, tools, **names)

    def logits(self, tokens: str | Sequence[int]) -> Tensor:
        """The scores of all tokens after each token of a text: (n, vocabulary), float32."""
        given = self.encode(tokens)
        if not 0 < len(given) <= self.context:
            raise ValueError(
                f"the text has {len(given)} tokens: 1 to {self.context}, the context, are possible"
            )
        pages = -(-len(given) // PAGE)
        cache = Cache(self.config, self.device, pages + 1, self.entries)
        places = np.concatenate(
            [np.arange(len(given)), np.zeros(len(given)), np.arange(1, pages + 1)]
        ).astype(np.int32)
        ids = from_numpy(np.array(given, np.int32), self.device)
        with no_grad():
            batch = Batch(ids, from_numpy(places, self.device), pages, together=True)
            found: Tensor = self.decoder(batch, cache)
        return found

    # --- fine-tuning -----------------------------------------------------------------------------

    @property
    def lora(self) -> Lora | None:
        """The adapters that the model has."""
        return self.decoder.lora

    def add_lora(
        self,
        rank: int = 8,
        alpha: float = 16.0,
        targets: Sequence[str] | None = None,
        dropout: float = 0.0,
        seed: int | None = None,
        layers: Collection[int] | None = None,
    ) -> Lora:
        """Add adapters of low rank to products of layers, and return them: their `parameters()`
        are for an optimizer, while the model's own weights stay as they are. (LoRA, 2021.)

        `targets` are the products, by GGUF's names ("attn_q", "attn_k", "attn_v", "attn_output",
        "ffn_gate", "ffn_up", "ffn_down") or Hugging Face's ("q_proj", …); by default all of them.
        `layers` are the numbers of layers that get adapters, by default all; the last few are
        enough for a style, and learn faster, since no gradient goes below them. What an adapter
        computes is multiplied by alpha / rank. `dropout` is the probability that an element of its
        input is dropped while it learns. New adapters change nothing yet; they are drawn from
        `seed`, or from the default generator.
        """
        self._check_no_lora()
        projections = projections_of(self.decoder)
        lora = new_lora(
            projections, self.config.architecture, self.device, rank=rank, alpha=alpha,
            targets=targets, dropout=dropout, seed=seed, layers=layers,
        )  # fmt: skip
        return self._attached(lora, projections)

    def remove_lora(self) -> None:
        """Take the adapters away: the model is what the file has again."""
        if self.lora is None:
            raise ValueError(f"{self.name} has no adapters to remove")
        detach(projections_of(self.decoder))
        self.decoder.lora = None
        self.decoder.revision += 1

    def save_lora(self, path: str | PathLike[str]) -> None:
        """Write the adapters to a folder as PEFT does, from which it can load them, too."""
        if self.lora is None:
            raise ValueError(f"{self.name} has no adapters to save: add_lora() adds some")
        save_lora(path, self.lora, self.config, projections_of(self.decoder))

    def load_lora(self, path: str | PathLike[str], *, trainable: bool = False) -> Lora:
        """Add the adapters of a folder that `save_lora` or PEFT has written; with `trainable` to
        learn more. FormatError if they are not for a model like this one."""
        self._check_no_lora()
        projections = projections_of(self.decoder)
        lora = read_lora(path, self.config, projections, self.device)
        return self._attached(lora.requires_grad_(trainable), projections)

    def _check_no_lora(self) -> None:
        if self.lora is not None:
            raise ValueError(f"{self.name} has adapters already: remove_lora() takes them away")

    def _attached(self, lora: Lora, projections: dict[str, Projection]) -> Lora:
        attach(lora, projections)
        self.decoder.lora = lora
        self.decoder.revision += 1
        return lora

    def training_logits(self, tokens: Ids) -> Tensor:
        """What `logits` gives, differentiable for the parameters of adapters, and for several texts
        at once: (texts, n, vocabulary) for token ids of shape (texts, n), else (n, vocabulary).
        Positions begin at 0 for each text; fill shorter ones up at their ends."""
        return training_logits(self.decoder, tokens, self.device, self.context)

    def loss(self, tokens: Ids, mask: Any = None) -> Tensor:
        """The mean cross-entropy, in nats, of each token of texts given those before it: what
        fine-tuning makes small. `tokens` are ids of shape (n,) or (texts, n). `mask`, of the same
        shape, is true for tokens that count, such as those of an answer; by default all but the
        first of each text."""
        return loss_of(self.decoder, tokens, mask, self.device, self.context)


def _sampling(given: Sampling | None, fields: Mapping[str, Any]) -> Sampling:
    """How to sample: as given, or the most probable token, but for some fields."""
    sampling = greedy if given is None else given
    if not isinstance(sampling, Sampling):
        raise TypeError(f"sampling is a td.models.Sampling, not {shown(sampling)}")
    unknown = [name for name in fields if name not in NAMES]
    if unknown:
        raise TypeError(
            f"there is no argument {unknown[0]!r}: beside max_tokens, stop and overflow there are "
            f"the fields of td.models.Sampling, {', '.join(sorted(NAMES))}"
        )
    return dataclasses.replace(sampling, **fields) if fields else sampling
