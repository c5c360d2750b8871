"""Grammars and JSON schemas: which tokens may follow, by llguidance.

A constraint says before each token which ones keep the text within the grammar, as one bit a token,
and follows the token that was chosen. The bits go to the device, where `sample` applies them.
"""

from __future__ import annotations

import json
import weakref
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import numpy as np

from treadle.core.errors import GrammarError
from treadle.core.recent_cache import RecentCache
from treadle.models.sampling import Sampling

_INSTALL = 'grammars and JSON schemas need llguidance: pip install "treadle[llm]"'


_DEAD_END = (
    "the grammar has come to a dead end: no token of this model continues the text as it demands"
)


class Vocabulary(Protocol):
    """What a constraint needs of a tokenizer."""

    vocabulary_size: int
    ends: frozenset[int]

    def bytes_of(self, token: int) -> bytes:
        """The bytes of a token, none for a control token."""

    def encode(self, text: str, special: bool = ..., add_bos: bool | None = ...) -> Sequence[int]:
        """The tokens of a text."""


class Constraint:
    """The state of one text within a grammar."""

    def __init__(self, matcher: Any, vocabulary: int, ends: Iterable[int]) -> None:
        self._matcher = matcher
        self._ends = tuple(ends)
        self._mask = np.zeros(-(-vocabulary // 32), np.uint32)
        self._check()

    def words(self) -> np.ndarray:
        """Which tokens may follow: bit j of word i is token 32 i + j.

        GrammarError where none may: the grammar cannot be continued with this model's tokens.
        """
        if self._matcher.is_stopped():  # nothing may follow but the end
            self._check()
            self._mask[:] = 0
            self._allow_ends()
        else:
            self._matcher.unsafe_compute_mask_ptr(self._mask.ctypes.data, self._mask.nbytes)
            self._check()
            if self._matcher.is_accepting():
                self._allow_ends()
        if not self._mask.any():
            raise GrammarError(_DEAD_END)
        return self._mask

    def _allow_ends(self) -> None:
        for token in self._ends:
            self._mask[token // 32] |= np.uint32(1 << token % 32)

    def accept(self, token: int) -> None:
        """Go on after a token. Tokens that end the generation change nothing."""
        if token in self._ends:
            return
        if not self._matcher.consume_token(token):
            self._check()
            raise GrammarError(f"token {token} does not follow by the grammar")

    @property
    def is_complete(self) -> bool:
        """Whether the text fulfils the grammar, and nothing can follow."""
        return bool(self._matcher.is_stopped()) and not self._matcher.is_error()

    def _check(self) -> None:
        message = self._matcher.get_error()
        if message:
            if message.startswith("NoExtension"):
                raise GrammarError(_DEAD_END)
            raise _wrong(message)


def _wrong(message: str) -> GrammarError:
    message = message.partition("\n<state>")[0].strip()  # what follows is for llguidance's authors
    return GrammarError(f"the grammar cannot be used: {message}")


def constraint_of(sampling: Sampling, tokenizer: Vocabulary) -> Constraint | None:
    """A constraint for a new text; None if any token may follow.

    GrammarError for a grammar or a schema that is wrong, or that has what is not supported.
    """
    if not sampling.is_constrained:
        return None
    known = _grammars_of(tokenizer)
    given = sampling.grammar, sampling.json_schema
    matcher = known.matchers.get(given)
    if matcher is None:
        grammar = _compiled(sampling)
        from llguidance import LLMatcher

        matcher = LLMatcher(known.tokens, grammar, log_level=0)
        known.matchers[given] = matcher
    return Constraint(matcher.deep_copy(), tokenizer.vocabulary_size, tokenizer.ends)


def check(sampling: Sampling) -> None:
    """GrammarError for a grammar or a schema that is wrong, before a model is asked."""
    if sampling.is_constrained:
        from llguidance import LLMatcher

        message = LLMatcher.validate_grammar(_compiled(sampling))
        if message and not message.startswith("WARNING"):
            raise _wrong(message)


def _compiled(sampling: Sampling) -> str:
    try:
        from llguidance import LLMatcher
        from llguidance.gbnf_to_lark import any_to_lark
    except ImportError:
        raise ImportError(_INSTALL) from None

    if sampling.json_schema is not None:
        return str(LLMatcher.grammar_from_json_schema(_schema_of(sampling)))
    assert sampling.grammar is not None
    try:
        lark = any_to_lark(sampling.grammar)
    except Exception as error:  # noqa: BLE001 - the converter's own kinds are not documented
        raise GrammarError(f"the grammar is neither GBNF nor Lark: {error}") from None
    return str(LLMatcher.grammar_from_lark(lark))


def _schema_of(sampling: Sampling) -> str:
    schema = json.loads(str(sampling.json_schema))
    if isinstance(schema, dict):
        # As dense as json.dumps writes it: a small model would otherwise fill lines with spaces.
        schema = {"x-guidance": {"whitespace_flexible": False}, **schema}
    return json.dumps(schema)


class _Grammars:
    """What is remembered of a tokenizer: its bytes as llguidance wants them, which take a pass over
    the vocabulary, and matchers of grammars at their beginning, which may take a second each."""

    def __init__(self, tokenizer: Vocabulary) -> None:
        try:
            from llguidance import LLTokenizer, TokenizerWrapper
        except ImportError:
            raise ImportError(_INSTALL) from None

        wrapper: Any = TokenizerWrapper(_Bytes(tokenizer))
        self.tokens = LLTokenizer(wrapper, n_vocab=tokenizer.vocabulary_size)
        self.matchers: RecentCache[tuple[str | None, Any], Any] = RecentCache(16)


_KNOWN: weakref.WeakKeyDictionary[Any, _Grammars] = weakref.WeakKeyDictionary()


def _grammars_of(tokenizer: Vocabulary) -> _Grammars:
    found = _KNOWN.get(tokenizer)
    if found is None:
        found = _KNOWN[tokenizer] = _Grammars(tokenizer)
    return found


class _Bytes:
    """A tokenizer as llguidance wants it."""

    def __init__(self, tokenizer: Vocabulary) -> None:
        size = tokenizer.vocabulary_size
        self.tokens = [tokenizer.bytes_of(token) for token in range(size)]
        self.bos_token_id = None
        self.special_token_ids = [token for token in range(size) if not self.tokens[token]]
        self.eos_token_id = min(tokenizer.ends, default=size - 1)
        self._tokenizer = tokenizer

    def __call__(self, text: str | bytes) -> Sequence[int]:
        if isinstance(text, bytes):  # llguidance asks whether bytes are taken
            raise TypeError("it takes text")
        return self._tokenizer.encode(text, add_bos=False)
