"""How many tokens a text has at least, without making them.

A text of megabytes is refused by its length alone: to make its tokens takes seconds.
"""

from __future__ import annotations

from collections.abc import Callable

from treadle.models.text.encoders import byte_tokens
from treadle.models.text.pieces import bytes_of_characters
from treadle.models.text.score_merges import SPACE
from treadle.models.text.vocabulary import CONTROL, UNKNOWN, USER_DEFINED, Vocabulary

_WHITE_SPACE = b" \t\n\v\f\r"


class TooManyTokens(ValueError):
    """A text with more tokens than were asked for: `least` is how many it has at least."""

    def __init__(self, least: int, most: int) -> None:
        super().__init__(f"the text has at least {least} tokens: at most {most} are possible")
        self.least = least


def least_tokens(vocabulary: Vocabulary) -> Callable[[str], int]:
    """A function from a text to a number of tokens that it has at least: its length by that of the
    longest token. Characters that may give no token do not count."""
    if vocabulary.model not in ("llama", "gpt2"):  # the others change the text first
        return lambda text: 0
    written = frozenset(vocabulary.of_type(UNKNOWN, CONTROL, USER_DEFINED))  # as they are
    if vocabulary.model == "llama":
        written = frozenset(range(len(vocabulary.tokens)))
    longest = max(
        # Byte-level tokens have a character for each byte.
        len(text.replace(SPACE, " ").encode()) if token in written else len(text)
        for token, text in enumerate(vocabulary.tokens)
    )
    ignored = bytes(_without_token(vocabulary))
    if vocabulary.strip_after:
        ignored += _WHITE_SPACE

    def least(text: str) -> int:
        data = text.replace(SPACE, " ").encode("utf-8", "replace")
        return -(-len(data.translate(None, ignored)) // max(longest, 1))

    return least


def _without_token(vocabulary: Vocabulary) -> list[int]:
    """The bytes that encoding leaves out."""
    if vocabulary.model == "gpt2":
        characters = bytes_of_characters()
        return [byte for character, byte in characters.items() if character not in vocabulary.ids]
    if vocabulary.unknown is not None:
        return []
    return [byte for byte, token in enumerate(byte_tokens(vocabulary)) if token is None]
