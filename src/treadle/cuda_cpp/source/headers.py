"""The headers that kernels include, in our own words."""

from __future__ import annotations

_TEXTS = {
    "cuda_runtime.h": """
#pragma once
typedef unsigned int uint;
typedef unsigned short ushort;
""",
}


def header_text(name: str) -> str | None:
    """The text of one of our headers, or None if there is none of this name."""
    return _TEXTS.get(name)
