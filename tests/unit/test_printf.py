"""C's printf on the host: what it spells is compared with the C library's own."""

from __future__ import annotations

import ctypes
import itertools
import random
import sys

import pytest

from treadle.core.printf import (
    Conversion,
    FormatError,
    conversion,
    format_float,
    format_integer,
    format_text,
    parse,
)

glibc = pytest.mark.skipif(sys.platform != "linux", reason="compares with the C library of Linux")
FLOATS = [
    0.0, -0.0, 1.0, -1.5, 0.1, 123456.789, 9.9999995, 0.5, 1.5, 2.5, 1e-5, 1e300, -2.5e-310, 5e-324,
    float("inf"), float("-inf"), 1e10, 999999.5, 100000.0, 0.0001, 65504.0, 1.0 / 3,
]  # fmt: skip
INTEGERS = [0, 1, -1, 42, -42, 127, 128, 255, 256, 65535, 2**31 - 1, -(2**31), 1234567]
LONGS = [*INTEGERS, 2**63 - 1, -(2**63), 2**32, 10**15]


def c_says(format: str, *arguments: object) -> str:
    buffer = ctypes.create_string_buffer(1 << 12)
    ctypes.CDLL(None).snprintf(buffer, len(buffer), format.encode(), *arguments)
    return buffer.value.decode("latin-1")


@glibc
def test_floats_are_spelled_as_c_spells_them() -> None:
    drawn = random.Random(7)
    for kind, value in itertools.product("fFeEgGaA", FLOATS):
        for _ in range(6):
            flags = "".join(flag for flag in "-+ #0" if drawn.random() < 0.3)
            width = drawn.choice(["", "", "8", "24"])
            precision = drawn.choice(["", "", ".", ".0", ".1", ".3", ".17"])
            if (
                "#" in flags and kind in "gG"
            ):  # glibc loses zeros where rounding makes a power of 10
                flags = flags.replace("#", "")
            spec = f"%{flags}{width}{precision}{kind}"
            expected = c_says(spec, ctypes.c_double(value))
            assert format_float(conversion(spec), value) == expected, (spec, value)


@glibc
def test_ints_are_spelled_as_c_spells_them() -> None:
    drawn = random.Random(8)
    for kind, value in itertools.product("diuxXo", LONGS):
        for _ in range(8):
            flags = "".join(flag for flag in "-+ #0" if drawn.random() < 0.3)
            width = drawn.choice(["", "", "6", "30"])
            precision = drawn.choice(["", "", ".0", ".1", ".9"])
            length = drawn.choice(["", "hh", "h", "l", "ll", "j", "z"])
            wide = length in ("l", "ll", "j", "z")
            if not wide and not -(2**31) <= value < 2**31:
                continue
            spec = f"%{flags}{width}{precision}{length}{kind}"
            given = ctypes.c_longlong(value) if wide else ctypes.c_int(value)
            found = format_integer(conversion(spec), value, 64 if wide else 32)
            assert found == c_says(spec, given), (spec, value)


@glibc
def test_stars_characters_and_addresses() -> None:
    for width, precision in itertools.product([0, 3, -9, 12], [-1, 0, 2]):
        spec, arguments = "%*.*f", (width, precision)
        expected = c_says(spec, width, precision, ctypes.c_double(2.375))
        assert format_float(conversion(spec), 2.375, arguments) == expected
    for spec in ("%c", "%5c", "%-5c"):
        assert format_integer(conversion(spec), 65, 32) == c_says(spec, 65)
    for spec, value in itertools.product(("%p", "%20p", "%-20p"), (0, 0x7F00DEADBEEF)):
        assert format_integer(conversion(spec), value, 64) == c_says(spec, ctypes.c_void_p(value))
    for spec in ("%s", "%10s", "%-10s", "%.2s", "%5.1s"):
        assert format_text(conversion(spec), "warp") == c_says(spec, b"warp")


def test_a_value_keeps_the_width_of_its_type() -> None:
    assert format_integer(conversion("%u"), -1, 32) == "4294967295"
    assert format_integer(conversion("%u"), -1, 64) == "18446744073709551615"
    assert format_integer(conversion("%x"), -1, 8) == "ffffffff"  # C makes an int of it first
    assert format_integer(conversion("%d"), 2**31, 32) == "-2147483648"
    assert format_integer(conversion("%hhu"), 300, 32) == "44"


def test_an_alternate_form_keeps_its_zeros() -> None:
    assert format_float(conversion("%#g"), 999999.5) == "1.00000e+06"
    assert format_float(conversion("%#.3g"), 1.0) == "1.00"
    assert format_float(conversion("%#.0f"), 3.0) == "3."


def test_a_nan_has_no_sign() -> None:
    nan = float("nan")
    assert format_float(conversion("%f"), nan) == format_float(conversion("%f"), -nan) == "nan"
    assert format_float(conversion("%06.1E"), nan) == "   NAN"
    assert format_float(conversion("%+g"), nan) == "+nan"


def test_a_format_in_parts() -> None:
    assert parse("a %5.2f%%|%-+*d\n") == (
        "a ",
        Conversion("f", "", 5, 2),
        "%|",
        Conversion("d", "-+", "*"),
        "\n",
    )
    assert parse("") == ()
    assert parse("100%%") == ("100%",)
    assert [str(part) for part in parse("%lld%#08hhx%.*e")] == ["%lld", "%#08hhx", "%.*e"]


@pytest.mark.parametrize(
    ("format", "at", "message"),
    [
        ("abc %", 4, "ends within"),
        ("%5.2", 0, "ends within"),
        ("a%y", 1, "no conversion '%y'"),
        ("%5%", 0, "no conversion"),
        ("%n", 0, "writes to memory"),
        ("%ls", 0, "wide characters"),
        ("%99999999d", 0, "wider than"),
        ("%.99999999d", 0, "wider than"),
    ],
)
def test_what_is_no_format(format: str, at: int, message: str) -> None:
    with pytest.raises(FormatError, match=message) as caught:
        parse(format)
    assert caught.value.at == at
