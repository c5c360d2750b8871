"""Names that C++ accepts, as near to the user's own as can be."""

from __future__ import annotations

import re

_KEYWORDS = """
alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t class
compl const constexpr const_cast continue decltype default delete do double dynamic_cast else enum
explicit export extern false float for friend goto if inline int long mutable namespace new noexcept
not not_eq nullptr operator or or_eq private protected public register reinterpret_cast return short
signed sizeof static static_assert static_cast struct switch template this thread_local throw true
try typedef typeid typename union unsigned using virtual void volatile wchar_t while xor xor_eq
concept requires restrict half bfloat16 bfloat main std NULL INFINITY NAN
"""
KEYWORDS = frozenset(_KEYWORDS.split())


def mangle(name: str) -> str:
    """An identifier from any name: dots and other signs become underscores."""
    name = re.sub(r"\W", "_", name, flags=re.ASCII)
    name = re.sub(r"__+", "_", name)  # two in a row belong to the compiler
    return f"n{name}" if not name or name[0].isdigit() or name[0] == "_" else name


class Names:
    """Hands out names that are unique within it and its parent, and never one of `reserved`.

    Names of `declared` are outside already: names from `inner` may hide them.
    """

    def __init__(
        self,
        reserved: frozenset[str],
        parent: Names | None = None,
        declared: frozenset[str] = frozenset(),
    ) -> None:
        self._reserved = reserved
        self._parent = parent
        self._declared = declared
        self._taken: set[str] = set()

    def _is_given(self, name: str) -> bool:
        return name in self._taken or (self._parent is not None and self._parent._is_given(name))

    def _is_unfit(self, name: str, hides: bool) -> bool:
        return name in self._reserved or (name in self._declared and not hides)

    def inner(self) -> Names:
        """Names for an inner scope, which hide none that was given here."""
        return Names(self._reserved, self)

    def fresh(self, wanted: str, *, hides: bool = False) -> str:
        """`wanted`, mangled, with a number behind it if it is taken. It may be one of `declared`
        if it `hides` that, as parameters do."""
        base = mangle(wanted)
        if self._is_unfit(base, hides):
            base = base.rstrip("_") + "_"
        name, count = base, 1
        while self._is_given(name) or self._is_unfit(name, hides):
            count += 1
            name = f"{base.rstrip('_')}_{count}"
        self._taken.add(name)
        return name

    def avoid(self, name: str) -> None:
        """Never hand out this name."""
        self._taken.add(name)
