"""What most likely causes a syntax error: a keyword with a wrong letter, a macro whose text is not
what its author meant, a character that a text processor put in the place of another one."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Mapping

from treadle.cuda_cpp.source.tokens import Token

# Words that begin a statement or declaration.
_BEGINNINGS_TEXT = """
return for while if else switch case break continue goto do const static struct typedef using
template unsigned signed float double int long short char bool void auto constexpr inline extern
"""
_BEGINNINGS = _BEGINNINGS_TEXT.split()
# CUDA's specifiers without their underscores, or by a name that other languages have for one.
BARE_SPECIFIERS = {
    word.strip("_"): word
    for word in ("__shared__", "__global__", "__device__", "__constant__", "__host__")
}
BARE_SPECIFIERS["kernel"] = BARE_SPECIFIERS["__kernel"] = "__global__"

# Words of other languages, and what C++ has for them.
OTHER_LANGUAGES = {
    "True": "true", "False": "false", "TRUE": "true", "FALSE": "false", "None": "nullptr",
    "null": "nullptr", "nil": "nullptr", "var": "auto", "let": "auto", "boolean": "bool",
    "string": "const char *", "byte": "unsigned char", "uchar": "unsigned char", "real": "float",
    "int8": "signed char", "uint8": "unsigned char", "int16": "short", "uint16": "unsigned short",
    "int32": "int", "uint32": "unsigned int", "int64": "long long",
    "uint64": "unsigned long long", "float32": "float", "float64": "double", "elif": "else if",
    "elseif": "else if", "elsif": "else if", "foreach": "for", "until": "while", "then": "{",
}  # fmt: skip

_LOOK_ALIKES = {
    **dict.fromkeys("“”„‟″＂", '"'),
    **dict.fromkeys("‘’‚‛′＇", "'"),
    **dict.fromkeys("‐‑‒–—−－", "-"),
    "×": "*", "∗": "*", "·": "*", "÷": "/", "∕": "/", "≤": "<=", "≥": ">=", "≠": "!=",
    "；": ";", "，": ",", "（": "(", "）": ")", "｛": "{", "｝": "}", "：": ":", "＝": "=",
    "\u00a0": "a plain space", "\u200b": "nothing", "\ufeff": "nothing",
}  # fmt: skip


def meant_keyword(word: str, known: Collection[str]) -> str:
    """The keyword that a word at the beginning of a statement nearly is; "" for names that are
    `known` and for others."""
    if word in known:
        return ""
    if word in BARE_SPECIFIERS or word in OTHER_LANGUAGES:
        return BARE_SPECIFIERS.get(word) or OTHER_LANGUAGES[word]
    close = difflib.get_close_matches(word, _BEGINNINGS, 1, 0.7)
    if not close:  # letters in another order
        close = [one for one in _BEGINNINGS if sorted(one) == sorted(word)]
    return close[0] if close else ""


def in_place_of(character: str) -> str:
    """How to write a character that looks like one of C++; "" for others."""
    meant = _LOOK_ALIKES.get(character[:1], "")
    return f" (write {meant})" if meant else ""


_NAME = re.compile(r"[A-Za-z_]\w*")


def macro_of(token: Token, sources: Mapping[str, str]) -> str:
    """The macro that stands where a token is, whose replacement has the token; "" if the token
    itself is there."""
    lines = sources.get(token.file, "").split("\n")
    if not 0 < token.line <= len(lines):
        return ""
    written = lines[token.line - 1][token.column - 1 :]
    name = _NAME.match(written)
    if name is None or not token.text or written.startswith(token.text):
        return ""
    return name[0]
