"""What a generation hands on, token by token."""

from __future__ import annotations

from typing import NamedTuple


class LogProbability(NamedTuple):
    """The log-probability of a chosen token, and the most probable tokens with theirs."""

    token: int
    value: float
    top: tuple[tuple[int, float], ...] = ()


class Piece(NamedTuple):
    """New text of a generation and the tokens that it came with. The text is empty while bytes of a
    character, or what may become a stop string, are held back."""

    text: str
    tokens: tuple[int, ...] = ()
    logprobs: tuple[LogProbability, ...] = ()
