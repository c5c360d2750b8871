"""The base class of `Tensor` for type checkers and editors: `declarations.pyi` declares the
methods, attributes and operators that `methods`, `operators` and `products` add when they are
imported.

`python tools/stubs.py` writes that file from the same tables.
"""

from __future__ import annotations


class Declarations:
    """The base of `Tensor` with the declarations; empty at run time."""

    __slots__ = ()
