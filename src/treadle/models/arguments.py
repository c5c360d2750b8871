"""Checks of what callers give: numbers within bounds, and token ids."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from numbers import Real
from typing import Any


def number(name: str, value: Any, least: float, most: float, meaning: str) -> float:
    """A number of Python or NumPy within bounds; `meaning` says what its ends mean."""
    fits = isinstance(value, Real) and not isinstance(value, bool)
    if not fits or not least <= value <= most:
        text = f"{name} is a number from {least:g} to {most:g} ({meaning}), not {shown(value)}"
        raise ValueError(text) if fits else TypeError(text)
    return float(value)


def integer(name: str, value: Any, least: int, most: int | None = None, meaning: str = "") -> int:
    """An integer from `least` to `most`; `meaning` is for the message."""
    found = _index(value)
    if found is None or found < least or (most is not None and found > most):
        bounds = f"from {least} on" if most is None else f"from {least} to {most}"
        text = f"{name} is an integer {bounds}{meaning}, not {shown(value)}"
        raise TypeError(text) if found is None else ValueError(text)
    return found


def token_ids(tokens: Any, vocabulary: int) -> list[int]:
    """Token ids as a list: integers of a sequence, or of an array or tensor of one axis."""
    if hasattr(tokens, "tolist"):  # of arrays and tensors: one copy for all elements
        tokens = tokens.tolist()
    if isinstance(tokens, (str, bytes, bytearray)) or not isinstance(tokens, Iterable):
        raise TypeError(
            f"token ids are a sequence of integers, not {shown(tokens)}: a model's encode(text) "
            "gives those of a text"
        )
    found = []
    for token in tokens:
        number = _index(token)
        if number is None:
            raise TypeError(f"a token id is an integer, not {shown(token)}")
        if not 0 <= number < vocabulary:
            raise ValueError(f"token {number} is outside of the vocabulary of {vocabulary} tokens")
        found.append(number)
    return found


def _index(value: Any) -> int | None:
    """What an integer of Python or NumPy is; None for anything else, True and False among it."""
    if isinstance(value, bool):
        return None
    try:
        return operator.index(value)
    except TypeError:
        return None


def strings(name: str, given: Any) -> tuple[str, ...]:
    """A string, or several, none of which is empty."""
    found = (given,) if isinstance(given, str) or not isinstance(given, Iterable) else tuple(given)
    for each in found:
        if not isinstance(each, str):
            raise TypeError(f"{name} is a string or several strings, not {shown(given)}")
        if not each:
            raise ValueError(f"{name} has an empty string, which is in every text: leave it out")
    return found


def shown(value: Any) -> str:
    """A value for a message, cut where it is long."""
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}…"
