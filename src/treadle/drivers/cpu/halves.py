"""Float16 on x86-64 processors that cannot convert it (F16C is not in all Celerons and Atoms).

LLVM then calls a compiler's support library, which a Python process does not have. The two
functions that it asks for are appended to a module, so that machine code needs nothing else.
"""

from __future__ import annotations


def with_conversions(source: str, triple: str, features: str) -> str:
    """A module's text with what it needs to convert float16 on a processor."""
    lacks = triple.startswith("x86_64") and "+f16c" not in features.split(",")
    return f"{source}\n{_CONVERSIONS}" if lacks and " half" in source else source


# The float whose bits are a half's, 13 places up, is too small by 2**112; the product is exact for
# denormals too. The other way, adding 0.5 leaves a denormal's bits, rounded, at the lower end.
_CONVERSIONS = """
define weak float @__extendhfsf2(half %half) {
  %narrow = bitcast half %half to i16
  %bits = zext i16 %narrow to i32
  %magnitude = and i32 %bits, 32767
  %up = shl i32 %magnitude, 13
  %small = bitcast i32 %up to float
  %scaled = fmul float %small, 0x46F0000000000000
  %finite = bitcast float %scaled to i32
  %special = or i32 %up, 2139095040
  %is.special = icmp uge i32 %magnitude, 31744
  %chosen = select i1 %is.special, i32 %special, i32 %finite
  %sign = and i32 %bits, 32768
  %high = shl i32 %sign, 16
  %all = or i32 %chosen, %high
  %result = bitcast i32 %all to float
  ret float %result
}

define weak half @__truncsfhf2(float %float) {
  %bits = bitcast float %float to i32
  %magnitude = and i32 %bits, 2147483647
  %down = lshr i32 %magnitude, 13
  %odd = and i32 %down, 1
  %nearly = add i32 %magnitude, 4095
  %rounded = add i32 %nearly, %odd
  %rebased = sub i32 %rounded, 939524096
  %normal = lshr i32 %rebased, 13
  %positive = bitcast i32 %magnitude to float
  %moved = fadd float %positive, 0.5
  %moved.bits = bitcast float %moved to i32
  %denormal = sub i32 %moved.bits, 1056964608
  %is.small = icmp ult i32 %magnitude, 947912704
  %finite = select i1 %is.small, i32 %denormal, i32 %normal
  %is.large = icmp uge i32 %magnitude, 1199570944
  %bounded = select i1 %is.large, i32 31744, i32 %finite
  %payload = and i32 %down, 511
  %nan = or i32 %payload, 32256
  %is.nan = icmp ugt i32 %magnitude, 2139095040
  %chosen = select i1 %is.nan, i32 %nan, i32 %bounded
  %high = lshr i32 %bits, 16
  %sign = and i32 %high, 32768
  %all = or i32 %chosen, %sign
  %narrow = trunc i32 %all to i16
  %result = bitcast i16 %narrow to half
  ret half %result
}
"""
