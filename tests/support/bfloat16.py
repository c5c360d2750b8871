"""NumPy's bfloat16, by a package that a web page may lack: then the tests of arrays with it are
left out, and the others of their file run."""

from __future__ import annotations

from typing import Any

BFLOAT16: tuple[Any, ...]
"""It, or nothing, for lists of dtypes."""

try:
    from ml_dtypes import bfloat16
except ImportError:
    BFLOAT16 = ()
else:
    BFLOAT16 = (bfloat16,)
