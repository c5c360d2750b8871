"""The values of number, character and string literals."""

from __future__ import annotations

import math
import re
import struct
from fractions import Fraction

from treadle.core.source import Span
from treadle.cuda_cpp.syntax import tree

_NUMBER = re.compile(
    r"""(?:
        (?P<hex_float>0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?\d+)
      | (?P<float>(?:\d+\.\d*|\.\d+)(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+)
      | (?P<hex>0[xX][0-9a-fA-F]+)
      | (?P<binary>0[bB][01]+)
      | (?P<octal>0[0-7]*)
      | (?P<decimal>[1-9]\d*)
    )(?P<suffix>\w*)""",
    re.VERBOSE,
)
_KINDS = ("hex_float", "float", "hex", "binary", "octal", "decimal")
_INTEGER_SUFFIXES = {
    "": "", "u": "u", "l": "l", "ul": "ul", "lu": "ul", "ll": "ll", "ull": "ull", "llu": "ull",
}  # fmt: skip
_LONGEST = 400  # characters of a number
_ESCAPES = {
    "n": "\n", "t": "\t", "r": "\r", "0": "\0", "a": "\a", "b": "\b", "f": "\f", "v": "\v",
    "\\": "\\", "'": "'", '"': '"', "?": "?", "e": "\x1b",
}  # fmt: skip
_ESCAPE = re.compile(
    r"\\(?:x([0-9a-fA-F]+)|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-7]{1,3})|(.))", re.DOTALL
)
_RAW = re.compile(r'R"([^()\\\s]{0,16})\((.*)\)\1"$', re.DOTALL)
_OF_CHRONO = frozenset(("h", "min", "s", "ms", "us", "ns"))  # which <chrono> declares


def number(text: str, span: Span) -> tree.Expression | str:
    """The literal, or an error message."""
    digits = text.replace("'", "")
    match = _NUMBER.fullmatch(digits) if len(digits) <= _LONGEST else None
    if match is None:
        return f"'{text[:40]}' is not a number"
    kind = next(kind for kind in _KINDS if match[kind] is not None)
    body, suffix = match[kind], match["suffix"]
    if suffix[:1] == "_" or suffix in _OF_CHRONO:
        value = number(digits[: len(digits) - len(suffix)], span)
        if not isinstance(value, tree.IntegerLiteral | tree.FloatLiteral):
            return value
        written = text[: len(text) - len(suffix)]
        return tree.UserLiteral(value, suffix, written, span)
    suffix = suffix.lower()
    if kind in ("hex_float", "float"):
        if suffix not in ("", "f", "l"):
            return f"'{match['suffix']}' is not a suffix of a floating-point number"
        return tree.FloatLiteral(_float(body, kind == "hex_float", suffix == "f"), suffix, span)
    if kind == "octal" and suffix[:1] in ("8", "9"):
        return f"{body}{match['suffix']} begins with 0, so it is octal, which has no digits 8 and 9"
    if suffix not in _INTEGER_SUFFIXES:
        if suffix == "f" and kind == "decimal":
            return f"'{match['suffix']}' is not a suffix of an integer: write {body}.0f"
        return f"'{match['suffix']}' is not a suffix of an integer"
    base = {"hex": 16, "binary": 2, "octal": 8, "decimal": 10}[kind]
    whole = int(body[2:] if kind in ("hex", "binary") else body, base)
    if whole >= 1 << 64:
        return f"{text[:40]} does not fit 64 bits"
    return tree.IntegerLiteral(whole, _INTEGER_SUFFIXES[suffix], kind == "decimal", span)


def _float(body: str, hexadecimal: bool, single: bool) -> float:
    """The nearest double; for a float a double that rounds to the float nearest to the text."""
    try:
        value = float.fromhex(body) if hexadecimal else float(body)
    except OverflowError:
        value = math.inf
    if not single or not math.isfinite(value) or hexadecimal:
        return value
    bits = struct.unpack("<q", struct.pack("<d", value))[0]
    if bits & 0x1FFFFFFF == 0x10000000:
        # Halfway between two floats: rounding twice would lose the direction of the first.
        exact = Fraction(body)
        if exact > value:
            return math.nextafter(value, math.inf)
        if exact < value:
            return math.nextafter(value, -math.inf)
    return value


def character(text: str, span: Span) -> tree.Expression | str:
    """The literal (char is signed), or an error message."""
    start = text.index("'")
    if text[:start] not in ("", "u8"):
        return tree.Refused("wide_character", span)
    if not text.endswith("'") or len(text) < start + 3:
        return "a character literal needs a character between its quotes"
    body = unescaped(text[start + 1 : -1])
    if body is None:
        return f"{text[:40]} has an unknown escape sequence"
    if len(body) != 1:  # an int, as GCC and NVIDIA's compiler have it
        if len(body) > 4 or not body:
            return f"{text[:40]} has more than four characters"
        return tree.IntegerLiteral(int.from_bytes(body, "big"), "", False, span)
    value = body[0]
    return tree.CharacterLiteral(value - 256 if value > 127 else value, span)


def string(texts: list[str], span: Span) -> tree.Expression | str:
    """Adjacent literals as one, or an error message."""
    parts: list[bytes] = []
    for text in texts:
        prefix = text[: text.index('"')]
        if prefix.removesuffix("R") not in ("", "u8"):
            return tree.Refused("wide_string", span)
        if prefix.endswith("R"):
            raw = _RAW.search(text)
            if raw is None:
                return "a raw string that is not closed"
            parts.append(_bytes(raw[2]))
            continue
        end = text.rfind('"')
        if end <= len(prefix):
            return "a string that is not closed"
        body = unescaped(text[len(prefix) + 1 : end])
        if body is None:
            return f"{text[:40]} has an unknown escape sequence"
        parts.append(body)
    return tree.StringLiteral(b"".join(parts), span)


def _bytes(text: str) -> bytes:
    """The bytes of a text in its file, also those that are not valid UTF-8."""
    return text.encode("utf-8", "surrogateescape" if not _NOT_A_BYTE.search(text) else "replace")


# Surrogates that "surrogateescape" does not make.
_NOT_A_BYTE = re.compile("[\ud800-\udc7f\udd00-\udfff]")


def unescaped(body: str) -> bytes | None:
    """The bytes of a text with its escape sequences resolved; None if one is unknown."""
    if "\\" not in body:
        return _bytes(body)
    parts: list[bytes] = []
    at = 0
    for match in _ESCAPE.finditer(body):
        parts.append(_bytes(body[at : match.start()]))
        at = match.end()
        hexadecimal, four, eight, octal, letter = match.groups()
        code = hexadecimal or four or eight
        if code is not None:
            value = int(code, 16) if len(code) <= 8 else 1 << 32
            if value > (0xFF if hexadecimal else 0x10FFFF):
                return None
            parts.append(bytes((value,)) if hexadecimal else _bytes(chr(value)))
        elif octal is not None:
            parts.append(bytes((int(octal, 8) & 0xFF,)))
        elif letter in _ESCAPES:
            parts.append(_ESCAPES[letter].encode())
        else:
            return None
    if "\\" in body[at:]:
        return None
    parts.append(_bytes(body[at:]))
    return b"".join(parts)
