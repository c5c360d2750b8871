"""The version, where every layer can read it."""

try:
    from treadle.core._version import (
        __version__ as __version__,
    )  # written when the package is built
except ImportError:  # run from the source tree
    __version__ = "0+source"
