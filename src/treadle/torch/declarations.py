"""What `Tensor` has besides its class, for type checkers and editors: `declarations.pyi` says it."""


class Declarations:
    """Nothing at run time: tables give tensors their methods."""

    __slots__ = ()
