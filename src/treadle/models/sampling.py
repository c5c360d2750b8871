"""How the next token of a sequence is chosen: the parameters, and what they may be."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from treadle.models.arguments import integer, number, shown

MOST_CANDIDATES = 1024  # tokens among which top-k and top-p choose
MOST_WINDOW = 4096  # tokens that penalties look back at, unless at all of them
MOST_LOGPROBS = 20
_BIASED_MOST = 1024  # tokens with a bias of their own

# The range of each number: the least, the greatest, and what its ends mean.
_RANGES: dict[str, tuple[float, float, str]] = {
    "temperature": (0.0, 100.0, "0 takes the most probable token"),
    "top_p": (0.0, 1.0, "1 keeps all tokens"),
    "min_p": (0.0, 1.0, "0 keeps all tokens"),
    "repeat_penalty": (0.01, 100.0, "1 has no effect"),
    "presence_penalty": (-100.0, 100.0, "0 has no effect"),
    "frequency_penalty": (-100.0, 100.0, "0 has no effect"),
}
_INTEGERS: dict[str, tuple[int, int, str]] = {
    "top_k": (0, MOST_CANDIDATES, "0 keeps all tokens"),
    "penalty_window": (-1, MOST_WINDOW, "-1 looks at the whole text, 0 at none of it"),
}


@dataclass(frozen=True)
class Sampling:
    """How the next token of a sequence is chosen. Without arguments: the most probable one.

    The steps are llama.cpp's, in its order: `logit_bias` is added; the tokens of the last
    `penalty_window` ones, the prompt's included, are penalized; a grammar or JSON schema leaves
    only the tokens that it allows; `top_k` keeps that many of the most probable; `top_p` keeps the
    fewest most probable ones whose probabilities add up to at least top_p; `min_p` keeps those that
    are at least min_p times as probable as the most probable one; one of the remaining is drawn,
    their logits divided by `temperature`. A temperature of 0 takes the most probable token that the
    penalties and the grammar leave.

    top_k and top_p choose among the 1,024 most probable tokens: where these have less than top_p
    together, they are what is kept. Without top_k and top_p (0 and 1) all tokens take part.

    `repeat_penalty` divides a positive logit of a token that occurred, and multiplies a negative
    one; `frequency_penalty` is subtracted once for each time that it occurred, `presence_penalty`
    once. `seed` makes the drawn tokens a function of the logits; without it they differ at every
    run. `logprobs` asks for the log-probabilities of that many tokens beside the chosen one's.

    >>> Sampling(temperature=0.8, top_p=0.95, seed=1).temperature
    0.8
    >>> Sampling(top_p=95)
    Traceback (most recent call last):
    ValueError: top_p is a number from 0 to 1 (1 keeps all tokens), not 95
    """

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    repeat_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    penalty_window: int = 64
    seed: int | None = None
    logit_bias: tuple[tuple[int, float], ...] | Mapping[int, float] = ()
    grammar: str | None = None
    json_schema: str | Mapping[str, Any] | bool | None = None
    logprobs: int | None = None

    def __post_init__(self) -> None:
        for name, (least, most, meaning) in _RANGES.items():
            value = number(name, getattr(self, name), least, most, meaning)
            object.__setattr__(self, name, value)
        for name, (low, high, meaning) in _INTEGERS.items():
            count = integer(name, getattr(self, name), low, high, f" ({meaning})")
            object.__setattr__(self, name, count)
        if self.seed is not None:
            object.__setattr__(self, "seed", integer("seed", self.seed, -(2**63), 2**64 - 1))
        if self.logprobs is not None:
            count = integer("logprobs", self.logprobs, 0, MOST_LOGPROBS)
            object.__setattr__(self, "logprobs", count)
        object.__setattr__(self, "logit_bias", _biases(self.logit_bias))
        if self.grammar is not None and not isinstance(self.grammar, str):
            raise TypeError(f"grammar is a text, not {shown(self.grammar)}")
        if self.grammar is not None and self.json_schema is not None:
            raise ValueError("a grammar and a JSON schema exclude each other: give one of them")
        object.__setattr__(self, "json_schema", _schema(self.json_schema))

    @property
    def biases(self) -> tuple[tuple[int, float], ...]:
        """Tokens and what is added to their logits."""
        return tuple(self.logit_bias)  # type: ignore[arg-type]

    @property
    def is_greedy(self) -> bool:
        """Whether the most probable token is taken."""
        return self.temperature == 0

    @property
    def has_penalties(self) -> bool:
        """Whether tokens that occurred are penalized."""
        numbers = (self.repeat_penalty, self.presence_penalty, self.frequency_penalty)
        return self.penalty_window != 0 and numbers != (1.0, 0.0, 0.0)

    @property
    def is_constrained(self) -> bool:
        """Whether a grammar or a JSON schema says which tokens may follow."""
        return self.grammar is not None or self.json_schema is not None


def _biases(given: Any) -> tuple[tuple[int, float], ...]:
    pairs = given.items() if isinstance(given, Mapping) else given
    try:
        found = {token: float(bias) for token, bias in pairs}
    except (TypeError, ValueError):
        raise TypeError(
            f"logit_bias maps tokens to what is added to their logits, as in {{42: -100}}, not "
            f"{shown(given)}"
        ) from None
    if len(found) > _BIASED_MOST:
        raise ValueError(f"logit_bias is for at most {_BIASED_MOST} tokens, not {len(found)}")
    for token, bias in found.items():
        integer("logit_bias: a token", token, 0, 2**31 - 1)
        if not -float("inf") <= bias < float("inf"):
            raise ValueError(f"logit_bias: {bias} for token {token} is not a number below infinity")
    return tuple(sorted(found.items()))


def _schema(given: Any) -> str | None:
    """A schema as text, so that Sampling has a hash."""
    if given is None:
        return None
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"json_schema is not JSON: {error}") from None
    if not isinstance(given, (Mapping, bool)):
        raise TypeError(f"json_schema is a JSON object, not {shown(given)}")
    try:
        return json.dumps(given)
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"json_schema is not JSON: {error}") from None


greedy = Sampling()
NAMES = frozenset(field.name for field in fields(Sampling))
