"""The JSON of answers, whole and in chunks."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from treadle.core.version import __version__
from treadle.models.pieces import LogProbability, Piece
from treadle.models.serving import tools as tool_calls
from treadle.models.serving.protocol import Tokenizer
from treadle.models.serving.requests import ChatRequest, CompletionRequest
from treadle.models.serving.running import Collected


def usage(prompt_tokens: int, completion_tokens: int) -> dict[str, int]:
    """How many tokens a request took."""
    return {
        "prompt_tokens": prompt_tokens,
        "completion_tokens": completion_tokens,
        "total_tokens": prompt_tokens + completion_tokens,
    }


class Shape(Protocol):
    """One kind of answer."""

    kind: str
    chunk_kind: str
    prefix: str

    def whole(self, number: int, found: Collected) -> dict[str, Any]:
        """A choice of an answer that is sent at once."""

    def first(self, number: int) -> list[dict[str, Any]]:
        """What a stream begins with, for each choice."""

    def piece(self, number: int, piece: Piece) -> list[dict[str, Any]]:
        """What a stream sends for a piece."""

    def last(self, number: int, reason: str) -> list[dict[str, Any]]:
        """What a stream sends at the end of a choice."""


class Envelope:
    """What all objects of an answer have in common."""

    def __init__(self, shape: Shape, model: str) -> None:
        self._shape = shape
        self._fields = {
            "id": f"{shape.prefix}-{secrets.token_hex(12)}",
            "created": int(time.time()),
            "model": model,
            "system_fingerprint": f"treadle-{__version__}",
        }

    def whole(self, collected: Sequence[Collected], counts: dict[str, int]) -> dict[str, Any]:
        """The answer, sent at once."""
        choices = [self._shape.whole(number, each) for number, each in enumerate(collected)]
        return {**self._fields, "object": self._shape.kind, "choices": choices, "usage": counts}

    def chunk(self, choices: Iterable[dict[str, Any]], **others: Any) -> dict[str, Any]:
        """A chunk of a stream."""
        kind = self._shape.chunk_kind
        return {**self._fields, "object": kind, "choices": list(choices), **others}


class CompletionShape:
    """Answers of /v1/completions."""

    kind = chunk_kind = "text_completion"
    prefix = "cmpl"

    def __init__(
        self, request: CompletionRequest, tokenizer: Tokenizer, echoed: Sequence[str]
    ) -> None:
        self._request, self._tokenizer = request, tokenizer
        self._echoed = echoed
        self._offsets: dict[int, int] = {}

    def whole(self, number: int, found: Collected) -> dict[str, Any]:
        """A choice of an answer that is sent at once."""
        text = self._before(number) + found.text
        return self._choice(number, text, found.logprobs, found.finish_reason)

    def first(self, number: int) -> list[dict[str, Any]]:
        """What a stream begins with, for each choice."""
        before = self._before(number)
        return [self._choice(number, before, (), None)] if before else []

    def piece(self, number: int, piece: Piece) -> list[dict[str, Any]]:
        """What a stream sends for a piece."""
        if not piece.text and not piece.logprobs:
            return []
        return [self._choice(number, piece.text, piece.logprobs, None)]

    def last(self, number: int, reason: str) -> list[dict[str, Any]]:
        """What a stream sends at the end of a choice."""
        return [self._choice(number, "", (), reason)]

    def _before(self, number: int) -> str:
        return self._echoed[number // self._request.choices] if self._request.echo else ""

    def _choice(
        self, number: int, text: str, logprobs: Sequence[LogProbability], reason: str | None
    ) -> dict[str, Any]:
        return {
            "index": number,
            "text": text,
            "logprobs": self._logprobs(number, logprobs),
            "finish_reason": reason,
        }

    def _logprobs(self, number: int, given: Sequence[LogProbability]) -> dict[str, Any] | None:
        if self._request.sampling.logprobs is None:
            return None
        texts = [_text(self._tokenizer, each.token) for each in given]
        offsets = []
        for text in texts:
            offsets.append(self._offsets.get(number, 0))
            self._offsets[number] = offsets[-1] + len(text)
        return {
            "tokens": texts,
            "token_logprobs": [each.value for each in given],
            "top_logprobs": [
                {_text(self._tokenizer, token): value for token, value in each.top}
                for each in given
            ],
            "text_offset": offsets,
        }


class ChatShape:
    """Answers of /v1/chat/completions."""

    kind, chunk_kind, prefix = "chat.completion", "chat.completion.chunk", "chatcmpl"

    def __init__(self, request: ChatRequest, tokenizer: Tokenizer) -> None:
        self._request, self._tokenizer = request, tokenizer
        self._streams: dict[int, _ChatStream] = {}

    def whole(self, number: int, found: Collected) -> dict[str, Any]:
        """A choice of an answer that is sent at once."""
        content, calls, reason = _finished(self._request, found.text, found.finish_reason)
        message: dict[str, Any] = {"role": "assistant", "content": content, "refusal": None}
        if calls:
            message["content"] = content or None
            message["tool_calls"] = [call.as_answer() for call in calls]
        return {
            "index": number,
            "message": message,
            "logprobs": self._logprobs(found.logprobs),
            "finish_reason": reason,
        }

    def first(self, number: int) -> list[dict[str, Any]]:
        """What a stream begins with, for each choice."""
        self._streams[number] = _ChatStream(self._request)
        return [self._choice(number, {"role": "assistant", "content": ""})]

    def piece(self, number: int, piece: Piece) -> list[dict[str, Any]]:
        """What a stream sends for a piece."""
        stream = self._streams[number]
        text = stream.add(piece)
        if not text:
            return []  # its log-probabilities go with the next text
        return [self._choice(number, {"content": text}, stream.take_logprobs())]

    def last(self, number: int, reason: str) -> list[dict[str, Any]]:
        """What a stream sends at the end of a choice."""
        stream = self._streams[number]
        content, calls, reason = _finished(self._request, stream.held, reason)
        found = []
        if content:
            found.append(self._choice(number, {"content": content}, stream.take_logprobs()))
        for at, call in enumerate(calls):
            delta = {"tool_calls": [{"index": at, **call.as_answer()}]}
            found.append(self._choice(number, delta, stream.take_logprobs()))
        return [*found, self._choice(number, {}, stream.take_logprobs(), reason)]

    def _choice(
        self,
        number: int,
        delta: dict[str, Any],
        logprobs: Sequence[LogProbability] = (),
        reason: str | None = None,
    ) -> dict[str, Any]:
        return {
            "index": number,
            "delta": delta,
            "logprobs": self._logprobs(logprobs) if logprobs else None,
            "finish_reason": reason,
        }

    def _logprobs(self, given: Sequence[LogProbability]) -> dict[str, Any] | None:
        if self._request.sampling.logprobs is None:
            return None
        content = [
            {
                **_token(self._tokenizer, each.token, each.value),
                "top_logprobs": [_token(self._tokenizer, *pair) for pair in each.top],
            }
            for each in given
        ]
        return {"content": content, "refusal": None}


class _ChatStream:
    """The text of a choice that was not sent yet, since it may become a call of a tool."""

    def __init__(self, request: ChatRequest) -> None:
        self._watches = request.tool_choice.may_call
        self._shown = False
        self.held = ""
        self._logprobs: list[LogProbability] = []

    def add(self, piece: Piece) -> str:
        """The text that may be sent now."""
        self._logprobs += piece.logprobs
        if not self._watches:
            return piece.text
        self.held += piece.text
        # An answer that begins with other text goes on as text, but for a marker.
        begins = tool_calls.may_begin_call(self.held if not self._shown else f".{self.held}")
        if begins is None:
            ready = self.held
        else:
            ready = self.held[: max(0, begins - self._shown)]
        self.held = self.held[len(ready) :]
        self._shown = self._shown or bool(ready.strip())
        return ready

    def take_logprobs(self) -> list[LogProbability]:
        """The log-probabilities of tokens that were not sent yet."""
        found, self._logprobs = self._logprobs, []
        return found


def _finished(
    request: ChatRequest, text: str, reason: str | None
) -> tuple[str, list[tool_calls.ToolCall], str]:
    """The text that is shown, the calls of tools, and why it ended."""
    reason = reason or "stop"
    if not request.tool_choice.may_call:
        return text, [], reason
    content, calls = tool_calls.calls_in(text, request.tools)
    if not calls:
        return content, [], reason
    if not request.parallel_tool_calls:
        calls = calls[:1]
    return content, calls, "tool_calls" if reason == "stop" else reason


def _text(tokenizer: Tokenizer, token: int) -> str:
    return tokenizer.bytes_of(token, special=True).decode("utf-8", "replace")


def _token(tokenizer: Tokenizer, token: int, value: float) -> dict[str, Any]:
    data = tokenizer.bytes_of(token, special=True)
    # JSON has no -inf: OpenAI's value for a token that is out of the question.
    logprob = max(value, -9999.0)
    return {"token": data.decode("utf-8", "replace"), "logprob": logprob, "bytes": list(data)}
