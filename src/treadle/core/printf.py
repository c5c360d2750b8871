"""C's printf on the host: formats read, and numbers spelled as C spells them.

    >>> parse("%5.2f|%#x")
    (Conversion(kind='f', flags='', width=5, precision=2, length=''), '|', Conversion(...))

Numbers are those of a device, of which the type is known: `%u` of a negative int of 32 bits is its
bits of 32, `%lu` of one of 64 bits those of 64; a length of `hh` or `h` cuts what is printed. What
C leaves open is decided once for all devices: the sign of a NaN is not printed, and `%p` spells
addresses as Linux does.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

INTEGER_KINDS = "diouxXc"
FLOAT_KINDS = "aAeEfFgG"
POINTER_KINDS = "p"
TEXT_KINDS = "s"

# What each letter takes, for messages.
TAKES: dict[str, str] = {
    **dict.fromkeys(INTEGER_KINDS, "an integer"),
    **dict.fromkeys(FLOAT_KINDS, "a floating-point number"),
    **dict.fromkeys(POINTER_KINDS, "an address"),
    **dict.fromkeys(TEXT_KINDS, "a string"),
}

_CONVERSION = re.compile(
    r"%(?P<flags>[-+ #0]*)(?P<width>\*|\d+)?(?:\.(?P<precision>\*|\d*))?"
    r"(?P<length>hh|ll|[hljztLq])?(?P<kind>.)?",
    re.DOTALL,
)
_LENGTH_BITS = {"hh": 8, "h": 16}
_MOST = 1 << 16  # characters of a field: so that an absurd width does not fill memory


class FormatError(ValueError):
    """A format that C does not have, or that cannot be printed; `at` is where in the format."""

    def __init__(self, message: str, at: int) -> None:
        super().__init__(message)
        self.at = at


@dataclass(frozen=True, slots=True)
class Conversion:
    """One conversion of a format. A width or precision of "*" comes as an argument before it."""

    kind: str  # the letter: one of diouxXc, aAeEfFgG, p, s
    flags: str = ""
    width: int | str | None = None  # "*" is the only text
    precision: int | str | None = None
    length: str = ""

    @property
    def stars(self) -> int:
        """How many ints come before its value."""
        return (self.width == "*") + (self.precision == "*")

    def __str__(self) -> str:
        width = "" if self.width is None else self.width
        precision = "" if self.precision is None else f".{self.precision}"
        return f"%{self.flags}{width}{precision}{self.length}{self.kind}"


def parse(format: str) -> tuple[str | Conversion, ...]:
    """The parts of a format: text (`%%` is a percent sign) and conversions, in order.

    FormatError for an unknown conversion, and for `%n`, which writes to memory.
    """
    parts: list[str | Conversion] = []
    text = ""
    at = 0
    while at < len(format):
        percent = format.find("%", at)
        if percent < 0:
            percent = len(format)
        text += format[at:percent]
        at = percent
        if at == len(format):
            break
        match = _CONVERSION.match(format, at)
        assert match is not None
        if match["kind"] == "%" and match.group() == "%%":
            text += "%"
        else:
            if text:
                parts.append(text)
                text = ""
            parts.append(_conversion(match, at))
        at = match.end()
    if text:
        parts.append(text)
    return tuple(parts)


def conversion(spec: str) -> Conversion:
    """The one conversion that `spec` is. FormatError if it is not one."""
    parts = parse(spec)
    if len(parts) != 1 or not isinstance(parts[0], Conversion):
        raise FormatError(f"{spec!r} is not one conversion of printf", 0)
    return parts[0]


def _conversion(match: re.Match[str], at: int) -> Conversion:
    kind = match["kind"]
    if kind is None:
        raise FormatError(f"the format ends within the conversion {match.group()!r}", at)
    if kind == "n":
        raise FormatError("%n writes to memory, which printf on a device cannot", at)
    if kind not in INTEGER_KINDS + FLOAT_KINDS + POINTER_KINDS + TEXT_KINDS:
        raise FormatError(f"printf has no conversion {match.group()!r}", at)
    length = match["length"] or ""
    if kind in "cs" and length == "l":
        raise FormatError(f"{match.group()!r} prints wide characters, which devices lack", at)
    width, precision = _count(match["width"], at), match["precision"]
    if precision is not None:
        precision = _count(precision or "0", at)
    return Conversion(kind, match["flags"], width, precision, length)


def _count(digits: str | None, at: int) -> int | str | None:
    if digits is None or digits == "*":
        return digits
    count = int(digits[:8])
    if count > _MOST:
        raise FormatError(f"a field of {digits} characters is wider than {_MOST}", at)
    return count


# --- values --------------------------------------------------------------------------------------


def format_integer(one: Conversion, value: int, bits: int, stars: tuple[int, ...] = ()) -> str:
    """An integer of a type of so many bits (the value is signed or unsigned, as it was there), for
    a conversion of integers or addresses."""
    flags, width, precision = _fields(one, stars)
    bits = _LENGTH_BITS.get(one.length, max(bits, 32))
    value &= (1 << bits) - 1
    match one.kind:
        case "c":
            return _padded(chr(value & 0xFF), flags.replace("0", ""), width)
        case "p":
            return _padded(f"0x{value:x}" if value else "(nil)", flags.replace("0", ""), width)
        case "d" | "i":
            if value >> (bits - 1):
                value -= 1 << bits
            sign = "-" if value < 0 else "+" if "+" in flags else " " if " " in flags else ""
            digits = str(abs(value))
        case _:
            sign = ""
            digits = f"{value:{'d' if one.kind == 'u' else one.kind}}"
    if precision is not None:
        digits = "" if precision == 0 and value == 0 else digits.zfill(precision)
        flags = flags.replace("0", "")
    if "#" in flags:
        if one.kind == "o" and not digits.startswith("0"):
            digits = "0" + digits
        elif one.kind in "xX" and value:
            sign = "0" + one.kind
    return _padded(digits, flags, width, sign)


def format_float(one: Conversion, value: float, stars: tuple[int, ...] = ()) -> str:
    """A float (of any type: C prints doubles) for a conversion of floats."""
    flags, width, precision = _fields(one, stars)
    negative = math.copysign(1.0, value) < 0 and not math.isnan(value)
    sign = "-" if negative else "+" if "+" in flags else " " if " " in flags else ""
    value = abs(value)
    if not math.isfinite(value):
        word = "nan" if math.isnan(value) else "inf"
        flags = flags.replace("0", "")
        return _padded(word.upper() if one.kind.isupper() else word, flags, width, sign)
    alternate = "#" if "#" in flags else ""
    if one.kind in "aA":
        digits = _hexadecimal(value, precision, bool(alternate))
        sign += "0x"
        if one.kind == "A":
            sign, digits = sign.upper(), digits.upper()
    else:
        digits = f"%{alternate}.{6 if precision is None else precision}{one.kind}" % value
    return _padded(digits, flags, width, sign)


def format_text(one: Conversion, text: str, stars: tuple[int, ...] = ()) -> str:
    """A string for `%s`: a precision cuts it."""
    flags, width, precision = _fields(one, stars)
    return _padded(text[:precision], flags.replace("0", ""), width)


def _fields(one: Conversion, stars: tuple[int, ...]) -> tuple[str, int, int | None]:
    """Flags, width and precision with the values of the stars in place."""
    given = iter(stars)
    flags = one.flags
    width = next(given) if one.width == "*" else int(one.width or 0)
    if width < 0:
        flags, width = flags + "-", -width
    precision = one.precision
    if precision == "*":
        precision = next(given)
    if precision is not None:
        precision = int(precision)
        precision = None if precision < 0 else min(precision, _MOST)
    return flags, min(width, _MOST), precision


def _padded(digits: str, flags: str, width: int, sign: str = "") -> str:
    space = width - len(sign) - len(digits)
    if space <= 0:
        return sign + digits
    if "-" in flags:
        return sign + digits + " " * space
    if "0" in flags:
        return sign + "0" * space + digits
    return " " * space + sign + digits


def _hexadecimal(value: float, precision: int | None, point: bool) -> str:
    """A finite float that is not negative in base 16, without its `0x`."""
    mantissa, exponent = value.hex()[2:].split("p")
    whole, _, digits = mantissa.partition(".")
    if precision is None:
        digits = digits.rstrip("0")
    elif precision < len(digits):
        dropped = 4 * (len(digits) - precision)
        scaled = int(whole + digits, 16)
        half, rest = 1 << (dropped - 1), scaled & ((1 << dropped) - 1)
        kept = scaled >> dropped
        kept += rest > half or (rest == half and kept & 1 == 1)
        whole, digits = f"{kept >> (4 * precision):x}", ""
        if precision:
            digits = f"{kept & ((1 << (4 * precision)) - 1):0{precision}x}"
    else:
        digits = digits.ljust(precision, "0")
    return f"{whole}{'.' if digits or point else ''}{digits}p{exponent}"
