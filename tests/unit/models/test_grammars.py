"""Masks of grammars and JSON schemas."""

from __future__ import annotations

import json
import random

import pytest

from tests.support.byte_tokenizer import ByteTokenizer
from treadle.core.errors import GrammarError
from treadle.models.grammars import check, constraint_of
from treadle.models.sampling import Sampling

SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 8},
        "age": {"type": "integer", "minimum": 0, "maximum": 120},
        "likes": {"type": "array", "items": {"enum": ["tea", "café"]}, "maxItems": 3},
    },
    "required": ["name", "age", "likes"],
    "additionalProperties": False,
}
TOKENIZER = ByteTokenizer()


def allowed(words) -> list[int]:
    return [t for t in range(TOKENIZER.vocabulary_size) if words[t // 32] >> (t % 32) & 1]


def text_of(sampling: Sampling, seed: int, most: int = 400) -> str:
    """A text of tokens that are drawn among those that the constraint allows."""
    draw = random.Random(seed)
    constraint = constraint_of(sampling, TOKENIZER)
    tokens: list[int] = []
    while len(tokens) < most:
        token = draw.choice(allowed(constraint.words()))
        if token in TOKENIZER.ends:
            break
        constraint.accept(token)
        tokens.append(token)
        if constraint.is_complete:
            break
    return TOKENIZER.decode(tokens)


@pytest.mark.parametrize("seed", range(10))
def test_drawn_tokens_fulfil_a_schema(seed):
    value = json.loads(text_of(Sampling(json_schema=SCHEMA), seed))
    assert list(value) == ["name", "age", "likes"]
    assert isinstance(value["name"], str)
    assert len(value["name"]) <= 8
    assert 0 <= value["age"] <= 120
    assert set(value["likes"]) <= {"tea", "café"}


@pytest.mark.parametrize(
    "grammar", ['root ::= ("a" | "bc"){3} "!"', 'start: ("a" | "bc"){3} "!"'], ids=["gbnf", "lark"]
)
def test_grammars(grammar):
    found = {text_of(Sampling(grammar=grammar), seed) for seed in range(60)}
    assert found == {f"{a}{b}{c}!" for a in ("a", "bc") for b in ("a", "bc") for c in ("a", "bc")}


def test_the_end_is_allowed_where_the_text_may_end():
    constraint = constraint_of(Sampling(grammar='start: "a"+'), TOKENIZER)
    assert allowed(constraint.words()) == [ord("a")]
    constraint.accept(ord("a"))
    assert allowed(constraint.words()) == [ord("a"), TOKENIZER.eos]
    constraint.accept(TOKENIZER.eos)
    assert not constraint.is_complete
    with pytest.raises(GrammarError, match=r"token 98 does not follow|cannot be used"):
        constraint.accept(ord("b"))


def test_a_complete_text_allows_only_its_end():
    constraint = constraint_of(Sampling(json_schema={"const": "x"}), TOKENIZER)
    for byte in b'"x"':
        assert not constraint.is_complete
        constraint.accept(byte)
    assert allowed(constraint.words()) == [TOKENIZER.eos]
    assert constraint.is_complete


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"grammar": "start: ("}, "cannot be used"),
        ({"grammar": 'root ::= "a" ('}, "neither GBNF nor Lark|cannot be used"),
        ({"grammar": "start: missing_rule"}, "missing_rule"),
        ({"json_schema": {"type": "nonsense"}}, "nonsense"),
        ({"json_schema": {"type": "object", "if": {"minProperties": 1}}}, "cannot be used"),
    ],
)
def test_wrong_grammars(given, message):
    with pytest.raises(GrammarError, match=message):
        check(Sampling(**given))
    with pytest.raises(GrammarError, match=message):
        constraint_of(Sampling(**given), TOKENIZER)


def test_a_dead_end():
    """Without the bytes of é, the text cannot go on."""

    class Ascii(ByteTokenizer):
        def bytes_of(self, token, special=False):
            return b"" if 127 < token < 256 else super().bytes_of(token)

        def encode(self, text, special=False, add_bos=None, add_eos=None):
            return [token for token in super().encode(text) if token < 128]

    constraint = constraint_of(Sampling(grammar='start: "aé"'), Ascii())
    constraint.words()
    constraint.accept(ord("a"))
    with pytest.raises(GrammarError, match="dead end"):
        constraint.words()


def test_without_a_grammar_there_is_no_constraint():
    assert constraint_of(Sampling(), TOKENIZER) is None
    check(Sampling())
