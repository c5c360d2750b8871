"""Bytes of words moved about."""

from __future__ import annotations

from treadle.lang import namespace as td


def picked_byte(x: td.u32, y: td.u32, selector: td.u32) -> td.u32:
    """One of the eight bytes of y and x (0 to 3 are those of x), by the selector's low 3 bits."""
    word = td.where((selector & 4) != 0, y, x)
    return (word >> ((selector & 3) << 3)) & 0xFF


def byte_perm_u32(x: td.u32, y: td.u32, selector: td.u32) -> td.u32:
    """Four of the eight bytes of y and x, each picked by four bits of the selector."""
    low = picked_byte(x, y, selector) | (picked_byte(x, y, selector >> 4) << 8)
    return (
        low | (picked_byte(x, y, selector >> 8) << 16) | (picked_byte(x, y, selector >> 12) << 24)
    )
