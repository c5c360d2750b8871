"""bf16 kept in floats: rounding to the nearest float that a bf16 can represent, and its bits.

Also the conversions that must not round twice: through a float rounded to odd, whose last bit
remembers that something was lost, any narrower rounding is correct (Boldo and Melquiond, 2008,
"Emulation of FMA and correctly rounded sums: proved algorithms using rounding to odd").
"""

from __future__ import annotations

from treadle.codegen.llvm.emitter import Emitter
from treadle.codegen.llvm.spelling import splat, widened


def rounded(e: Emitter, a: str, width: int) -> str:
    """A float rounded to the nearest bf16, ties to even; NaN stays NaN."""
    single, word = widened("float", width), widened("i32", width)

    def number(value: int) -> str:
        return splat("i32", str(value), width)

    bits = e.op(f"bitcast {single} {a} to {word}")
    upper = e.op(f"lshr {word} {bits}, {number(16)}")
    odd = e.op(f"and {word} {upper}, {number(1)}")
    half = e.op(f"add {word} {odd}, {number(0x7FFF)}")
    nearest = e.op(f"add {word} {bits}, {half}")
    quiet = e.op(f"or {word} {bits}, {number(0x400000)}")
    is_nan = e.op(f"fcmp uno {single} {a}, {a}")
    chosen = e.op(f"select {widened('i1', width)} {is_nan}, {word} {quiet}, {word} {nearest}")
    cut = e.op(f"and {word} {chosen}, {number(-65536)}")
    return e.op(f"bitcast {word} {cut} to {single}")


def to_bits(e: Emitter, a: str, width: int) -> str:
    """The 16 bits of a bf16 that is kept in a float."""
    word = widened("i32", width)
    bits = e.op(f"bitcast {widened('float', width)} {a} to {word}")
    upper = e.op(f"lshr {word} {bits}, {splat('i32', '16', width)}")
    return e.op(f"trunc {word} {upper} to {widened('i16', width)}")


def from_bits(e: Emitter, bits: str, width: int) -> str:
    """The float that has 16 bits as its upper half."""
    word = widened("i32", width)
    wide = e.op(f"zext {widened('i16', width)} {bits} to {word}")
    upper = e.op(f"shl {word} {wide}, {splat('i32', '16', width)}")
    return e.op(f"bitcast {word} {upper} to {widened('float', width)}")


def odd_single(e: Emitter, a: str, width: int) -> str:
    """A double as a float, rounded to odd."""
    double, single = widened("double", width), widened("float", width)
    word, bit = widened("i32", width), widened("i1", width)
    near = e.op(f"fptrunc {double} {a} to {single}")
    back = e.op(f"fpext {single} {near} to {double}")
    lost = e.op(f"fcmp one {double} {back}, {a}")
    bits = e.op(f"bitcast {single} {near} to {word}")
    size = e.intrinsic("fabs", double, [(double, a)], [double])
    near_size = e.intrinsic("fabs", double, [(double, back)], [double])
    too_far = e.op(f"fcmp ogt {double} {near_size}, {size}")
    step = e.op(f"sext {bit} {too_far} to {word}")
    toward_zero = e.op(f"add {word} {bits}, {step}")
    sticky = e.op(f"zext {bit} {lost} to {word}")
    odd = e.op(f"or {word} {toward_zero}, {sticky}")
    return e.op(f"bitcast {word} {odd} to {single}")


def odd_from_integer(e: Emitter, a: str, bits: int, signed: bool, width: int) -> str:
    """An integer of 32 or 64 bits as a float: exact up to 24 bits, rounded to odd beyond."""
    integer, single = widened(f"i{bits}", width), widened("float", width)
    bit = widened("i1", width)

    def number(value: int) -> str:
        return splat(f"i{bits}", str(value), width)

    size = a
    if signed:
        size = e.intrinsic("abs", integer, [(integer, a), ("i1", "false")], [integer])
    zeros = e.intrinsic("ctlz", integer, [(integer, size), ("i1", "false")], [integer])
    room = e.intrinsic("umin", integer, [(integer, zeros), (integer, number(bits - 24))], [integer])
    spare = e.op(f"sub {integer} {number(bits - 24)}, {room}")  # bits that do not fit
    kept = e.op(f"lshr {integer} {size}, {spare}")
    again = e.op(f"shl {integer} {kept}, {spare}")
    lost = e.op(f"icmp ne {integer} {again}, {size}")
    sticky = e.op(f"zext {bit} {lost} to {integer}")
    odd = e.op(f"or {integer} {kept}, {sticky}")
    whole = e.op(f"shl {integer} {odd}, {spare}")
    magnitude = e.op(f"uitofp {integer} {whole} to {single}")
    if not signed:
        return magnitude
    negative = e.op(f"icmp slt {integer} {a}, {number(0)}")
    negated = e.op(f"fneg {single} {magnitude}")
    return e.op(f"select {bit} {negative}, {single} {negated}, {single} {magnitude}")
