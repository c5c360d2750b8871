"""Characters to tokens: kinds, places, and texts that end too early."""

from __future__ import annotations

import time

import pytest

from treadle.cuda_cpp.source.lexer import lex, normalized, printable, single
from treadle.cuda_cpp.source.tokens import Token


def tokens(text: str) -> list[Token]:
    words = []
    for stretch in lex(normalized(text), "a.cu").stretches:
        words += [stretch.hash] if stretch.hash else []
        words += stretch.tokens
    return words


def words(text: str) -> list[str]:
    return [token.text for token in tokens(text)]


def kinds(text: str) -> list[str]:
    return [token.kind for token in tokens(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a+++b", ["a", "++", "+", "b"]),
        ("k<<<g,b>>>(x)", ["k", "<<", "<", "g", ",", "b", ">>", ">", "(", "x", ")"]),
        ("a<<=b>>=c", ["a", "<<=", "b", ">>=", "c"]),
        ("a->b->*c.*d...", ["a", "->", "b", "->*", "c", ".*", "d", "..."]),
        ("a::b:c?d", ["a", "::", "b", ":", "c", "?", "d"]),
        ("x<::y", ["x", "<", "::", "y"]),
        ("a&&b||!c&d|e^f", ["a", "&&", "b", "||", "!", "c", "&", "d", "|", "e", "^", "f"]),
        ("a<=b>=c==d!=e", ["a", "<=", "b", ">=", "c", "==", "d", "!=", "e"]),
        ("f(a)[1]{2};~g", ["f", "(", "a", ")", "[", "1", "]", "{", "2", "}", ";", "~", "g"]),
        ("a%b%=c-->d", ["a", "%", "b", "%=", "c", "--", ">", "d"]),
    ],
)
def test_punctuators_take_as_much_as_they_can(text: str, expected: list[str]) -> None:
    assert words(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "0",
        "1'000'000ull",
        "0x1F",
        "0b1010",
        "017",
        "1.5f",
        ".5e+3",
        "1e-5F",
        "0x1.8p-3f",
        "1.",
        "3u",
    ],
)
def test_a_number_is_one_token(text: str) -> None:
    assert kinds(text) == ["number"]
    assert words(f"x={text};") == ["x", "=", text, ";"]


def test_a_sign_belongs_to_a_number_only_behind_an_exponent() -> None:
    assert words("1+2 1e+2 0x1p-1 1.f-2") == ["1", "+", "2", "1e+2", "0x1p-1", "1.f", "-", "2"]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ('"plain"', "string"),
        (r'"with \" quote and \\"', "string"),
        ('u8"a"', "string"),
        ('L"a"', "string"),
        ('""', "string"),
        ('R"(a " b)"', "string"),
        ('u8R"x(a )" b)x"', "string"),
        ("'a'", "character"),
        (r"'\''", "character"),
        (r"L'\x41'", "character"),
        ("'ab'", "character"),
        ("u8x", "identifier"),
        ("LR", "identifier"),
        ("$a", "identifier"),
        ("größe", "identifier"),
        ("@", "other"),
        ("\\", "other"),
        ('"open', "other"),
        ("'open", "other"),
    ],
)
def test_kinds(text: str, kind: str) -> None:
    assert [(token.kind, token.text) for token in tokens(text)] == [(kind, text)]


def test_a_literal_right_behind_a_name() -> None:
    assert words("case'a':return\"b\"") == ["case", "'a'", ":", "return", '"b"']


def test_places_count_from_one() -> None:
    text = "int a;\n\tb /* one\n two */ c // three\nd"
    assert [(t.text, t.line, t.column) for t in tokens(text)] == [
        ("int", 1, 1),
        ("a", 1, 5),
        (";", 1, 6),
        ("b", 2, 2),
        ("c", 3, 9),
        ("d", 4, 1),
    ]


def test_places_behind_joined_lines() -> None:
    text = "ab\\\ncd e\\  \n  f\ng"
    assert [(t.text, t.line, t.column, t.spaced) for t in tokens(text)] == [
        ("abcd", 1, 1, True),
        ("e", 2, 4, True),
        ("f", 3, 3, True),
        ("g", 4, 1, True),
    ]


def test_white_space_before_a_token_is_known() -> None:
    assert [t.spaced for t in tokens("a b/**/c\nd(")] == [True, True, True, True, False]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_all_line_ends(end: str) -> None:
    text = end.join(["\ufeffa", "b \\", "c", "d"])
    assert [(t.text, t.line) for t in tokens(text)] == [("a", 1), ("b", 2), ("c", 3), ("d", 4)]


def test_a_raw_string_keeps_its_lines() -> None:
    text = 'x = R"(one \\\n"two")" + y'
    found = tokens(text)
    assert found[2].text == 'R"(one \\\n"two")"'
    assert (found[3].line, found[3].column) == (2, 9)


def test_directives_are_stretches_of_their_own() -> None:
    stretches = lex("a\nb\n # define X \\\n 1 // one\n#\n/* x */ # if\nc # d", "a.cu").stretches
    shown = [(s.hash is not None, [t.text for t in s.tokens]) for s in stretches]
    assert shown == [
        (False, ["a", "b"]),
        (True, ["define", "X", "1"]),
        (True, []),
        (True, ["if"]),
        (False, ["c", "#", "d"]),
    ]


def test_a_comment_without_an_end_has_a_place() -> None:
    lexed = lex("a\n  /* b\nc", "a.cu")
    assert [t.text for s in lexed.stretches for t in s.tokens] == ["a"]
    assert lexed.unterminated is not None
    assert (lexed.unterminated.line, lexed.unterminated.column) == (2, 3)


def test_a_literal_ends_with_its_line() -> None:
    assert words("'it\nb \"c\nd") == ["'it", "b", '"c', "d"]


def test_bytes_that_are_no_text_are_tokens_too() -> None:
    text = b"a \xff\xfe b \x00".decode("utf-8", "surrogateescape")
    assert words(text)[0::3] == ["a", "b"]
    assert printable(text) == "a �� b \x00"


@pytest.mark.parametrize("text", ["a", "1.5f", "<<=", '"x"', "'y'", "##"])
def test_one_token(text: str) -> None:
    assert single(text) == kinds(text)[0]


@pytest.mark.parametrize("text", ["", "a b", "+-", " a", "a ", "//", "/*", '"x', "@", "\n", "-1"])
def test_not_one_token(text: str) -> None:
    assert single(text) is None


@pytest.mark.parametrize(
    "text",
    ["/*", 'R"(', '"\\', "'\\", "\\\n", "*/", "/*/", "u8", "1'", "\\ ", "a.", "''", "#\n"],
)
def test_time_grows_with_the_text_alone(text: str) -> None:
    start = time.perf_counter()
    lex(text * 20_000, "a.cu")
    assert time.perf_counter() - start < 2


def test_no_more_tokens_than_allowed() -> None:
    lexed = lex("a " * 100, "a.cu", most=10)
    assert sum(len(s.tokens) for s in lexed.stretches) == 10
    assert lexed.size == 11
