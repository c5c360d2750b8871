"""`treadle serve`: models over HTTP."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from treadle.core.errors import FormatError
from treadle.models.model import Model
from treadle.models.serving.app import Served, Settings, served
from treadle.models.serving.server import Server, is_loopback
from treadle.models.text.chat import chat_template_of_gguf
from treadle.models.text.tokenizer import Tokenizer


class ServedText:
    """A model under the name that clients use."""

    def __init__(self, model: Model, name: str) -> None:
        assert model.tokenizer is not None
        self.name, self.context = name, model.context
        self.tokenizer: Tokenizer = model.tokenizer
        self.chat_template = _template_of(model)
        self._model = model

    def chat_tokens(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Any] | None = None,
        most: int | None = None,
    ) -> list[int]:
        """The tokens of a conversation, up to where the answer begins. TooManyTokens if its length
        alone says that there are more than `most`."""
        return self._model.chat_tokens(messages, tools, most=most)


def _template_of(model: Model) -> str | None:
    try:
        return chat_template_of_gguf(model.metadata)
    except FormatError:  # which the answer to a request to chat says
        return None


def name_of(path: Path) -> str:
    """The name of a model by its file: without the suffix, and without the number of a shard."""
    full = Path(os.path.abspath(path))  # a link keeps its name: what it leads to may be a hash
    stem = full.stem if path.suffix == ".gguf" else full.name
    return stem.rpartition("-00001-of-")[0] or stem


def serve(
    models: Served, settings: Settings, host: str, port: int, say: Callable[[str], None]
) -> None:
    """Answer until the process is interrupted."""
    server = Server(models, settings, host, port)
    say(f"serving {', '.join(models.names)} at {server.url}; clients use {server.url}/v1")
    if models.texts:
        say(f"a page to chat in: {server.url}/")
    if not is_loopback(host) and settings.api_key is None:
        say("anyone who reaches this machine can use the server: --api-key-file asks for a key")
    try:
        server.run()
    except KeyboardInterrupt:  # which uvicorn raises again after it has ended
        say("stopped")


def served_models(
    texts: Sequence[tuple[str, Model]],
    encoders: Sequence[Any],
    sequences: int,
    settings: Settings,
) -> Served:
    """Models and their engines, each for several sequences at once."""
    pairs = [(ServedText(model, name), model.engine(sequences)) for name, model in texts]
    return served(pairs, encoders, settings.most_queued)
