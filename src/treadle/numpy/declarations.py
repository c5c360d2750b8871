"""What arrays have besides their class, for type checkers: `declarations.pyi` says it."""


class Declarations:
    """Nothing at run time: tables give arrays their methods."""

    __slots__ = ()
