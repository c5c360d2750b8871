"""JSON from files that are not trusted."""

from __future__ import annotations

import json
from typing import Any

from treadle.core.errors import FormatError


def parse_json(text: str | bytes, what: str, constants: bool = False) -> Any:
    """JSON from a file, without what JSON's readers let pass. FormatError says what is wrong.

    `constants` lets NaN and Infinity pass, which some configurations have.
    """
    try:
        read = text.decode("utf-8") if isinstance(text, bytes) else text
        refused = None if constants else _no_constant
        return json.loads(read, parse_constant=refused, object_pairs_hook=_distinct)
    except UnicodeDecodeError as error:
        raise FormatError(f"{what} is not UTF-8: {error}") from None
    except RecursionError:
        raise FormatError(f"{what} is nested too deeply") from None
    except ValueError as error:
        raise FormatError(f"{what} is not JSON: {error}") from None


def _no_constant(word: str) -> Any:
    raise ValueError(f"{word} is not a number")


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise ValueError("a name stands twice in one object")
    return made
