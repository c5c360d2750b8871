"""What `Tensor` has besides its class: `declarations.pyi` says it to type checkers and editors."""


class Declarations:
    """Nothing at run time: tables give tensors their methods."""

    __slots__ = ()
