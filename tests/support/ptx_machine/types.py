"""PTX types as NumPy's: what a register holds, and what an instruction computes with."""

from __future__ import annotations

from dataclasses import dataclass

from tests.support.ptx_machine.records import PtxError


@dataclass(frozen=True, slots=True)
class PtxType:
    """`kind` is "u", "s", "b", "f", "bf" or "p" (a predicate); packed pairs are "f2" and "bf2"."""

    name: str
    kind: str
    bits: int

    @property
    def bytes(self) -> int:
        return self.bits // 8

    @property
    def stored(self) -> str:
        """The dtype of a register of this type."""
        if self.kind == "p":
            return "b1"
        return f"{'f' if self.kind == 'f' and self.bits > 16 else 'u'}{self.bytes}"

    @property
    def computed(self) -> str:
        """The dtype that arithmetic sees; "bf16" where NumPy has none."""
        if self.kind in ("f", "s"):
            return f"{'f' if self.kind == 'f' else 'i'}{self.bytes}"
        return "bf16" if self.kind == "bf" else self.stored

    @property
    def is_float(self) -> bool:
        return self.kind in ("f", "bf")

    @property
    def lowest(self) -> int:
        return -(1 << (self.bits - 1)) if self.kind == "s" else 0

    @property
    def highest(self) -> int:
        return (1 << (self.bits - (self.kind == "s"))) - 1


TYPES: dict[str, PtxType] = {
    f"{kind}{bits}": PtxType(f"{kind}{bits}", kind, bits)
    for kind, widths in {
        "u": (8, 16, 32, 64), "s": (8, 16, 32, 64), "b": (8, 16, 32, 64),
        "f": (16, 32, 64), "bf": (16,),
    }.items()
    for bits in widths
}  # fmt: skip
TYPES["pred"] = PtxType("pred", "p", 8)
TYPES["f16x2"] = PtxType("f16x2", "f2", 32)
TYPES["bf16x2"] = PtxType("bf16x2", "bf2", 32)


def types_of(modifiers: tuple[str, ...]) -> list[PtxType]:
    """The types among an instruction's modifiers, in order."""
    return [TYPES[word] for word in modifiers if word in TYPES]


def type_of(modifiers: tuple[str, ...]) -> PtxType:
    """The one type among an instruction's modifiers (the first of several)."""
    found = types_of(modifiers)
    if not found:
        raise PtxError(f"an instruction with .{'.'.join(modifiers)} names no type")
    return found[0]
