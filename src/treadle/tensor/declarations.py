"""What type checkers and editors see of the methods, attributes and operators that `methods`,
`operators` and `products` give to `Tensor` when they are imported: `declarations.pyi`.

`python tools/stubs.py` writes that file from the same tables.
"""

from __future__ import annotations


class Declarations:
    """The base of `Tensor` that has the declarations; while the program runs it is empty."""

    __slots__ = ()
