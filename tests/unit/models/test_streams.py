"""Streams of text: whole characters only, and nothing that may belong to a stop string."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treadle.models.text.streams import StopStrings, TextStream


def _stream(pieces: list[bytes]) -> tuple[TextStream, range]:
    return TextStream(pieces.__getitem__), range(len(pieces))


def test_a_character_comes_when_it_is_whole() -> None:
    stream, tokens = _stream([b"a\xf0", b"\x9f", b"\x99", b"\x82b"])
    assert [stream.add(token) for token in tokens] == ["a", "", "", "🙂b"]
    assert stream.end() == ""


def test_broken_bytes_are_replaced_at_once_or_at_the_end() -> None:
    stream, tokens = _stream([b"\xe2\x82", b"x\xff", b"\xf0\x9f"])
    assert [stream.add(token) for token in tokens] == ["", "\ufffdx\ufffd", ""]
    assert stream.end() == "\ufffd"
    assert [stream.add(token) for token in tokens] == ["", "\ufffdx\ufffd", ""]


@given(st.text(), st.lists(st.integers(1, 3), min_size=1))
def test_any_split_of_a_text_gives_the_text(text: str, lengths: list[int]) -> None:
    data, pieces = text.encode(), []
    while data:
        length = lengths[len(pieces) % len(lengths)]
        pieces.append(data[:length])
        data = data[length:]
    stream, tokens = _stream(pieces)
    parts = [stream.add(token) for token in tokens]
    assert "\ufffd" not in "".join(parts).replace("\ufffd" if "\ufffd" in text else "", "")
    assert "".join(parts) + stream.end() == text


def test_what_may_begin_a_stop_string_is_held_back() -> None:
    stops = StopStrings(["</end>", "\n\n"])
    assert [stops.add(text) for text in ("a\n", "b<", "/e", "x</", "end", ">more")] == [
        "a", "\nb", "", "</ex", "", "",
    ]  # fmt: skip
    assert stops.stopped == "</end>"
    assert stops.add("after") == ""
    assert stops.end() == ""


def test_what_was_held_back_comes_at_the_end() -> None:
    stops = StopStrings(["</end>"])
    assert stops.add("a</en") == "a"
    assert stops.end() == "</en"
    assert stops.stopped is None


@given(
    st.text("ab", max_size=20),
    st.lists(st.text("ab", min_size=1, max_size=4), max_size=3),
    st.integers(1, 5),
)
def test_text_ends_before_the_first_stop_string(text: str, stops: list[str], step: int) -> None:
    found = StopStrings(stops)
    given = "".join(found.add(text[i : i + step]) for i in range(0, len(text), step)) + found.end()
    if found.stopped is None:
        assert given == text
        assert not any(stop in text for stop in stops)
    else:
        assert text.startswith(given + found.stopped)
        assert not any(stop in given for stop in stops)


@pytest.mark.parametrize("stops", ["", [""], ["a", ""]])
def test_stop_strings_have_characters(stops: list[str]) -> None:
    with pytest.raises(ValueError, match="stop has an empty string"):
        StopStrings(stops)


@pytest.mark.parametrize("stops", [[1], 5, None, [b"a"]])
def test_stop_strings_are_strings(stops: list[str]) -> None:
    with pytest.raises(TypeError, match="stop is a string or several strings, not "):
        StopStrings(stops)
