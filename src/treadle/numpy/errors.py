"""NumPy's settings of floating-point errors: accepted, and without effect, since devices do not
report such errors."""

from __future__ import annotations

from types import TracebackType
from typing import Any

import numpy as np


class errstate:
    """`with np.errstate(divide="ignore"):` is accepted; nothing warns on devices anyway.

    >>> import treadle.numpy as np
    >>> with np.errstate(divide="ignore"):
    ...     print(np.array([1.0]) / 0)
    [inf]
    """

    def __init__(self, *, call: Any = None, **kinds: str) -> None:
        _check(kinds)

    def __enter__(self) -> None:
        return None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        return None


def _check(kinds: dict[str, Any]) -> None:
    for kind, action in kinds.items():
        if kind not in ("all", "divide", "over", "under", "invalid"):
            raise TypeError(f"there is no kind of errors {kind!r}")
        if action not in (None, "ignore", "warn", "raise", "call", "print", "log"):
            raise ValueError(f"invalid error action: {action!r}")
        if action == "raise":
            raise NotImplementedError(
                "devices do not report floating-point errors: test the result with np.isfinite"
            )


def seterr(
    all: Any = None, divide: Any = None, over: Any = None, under: Any = None, invalid: Any = None
) -> dict[str, str]:
    """Accepted, without effect; "raise" is refused. Returns the settings before.

    >>> import treadle.numpy as np
    >>> np.seterr(all="ignore")["divide"]
    'ignore'
    """
    _check({"all": all, "divide": divide, "over": over, "under": under, "invalid": invalid})
    return geterr()


def geterr() -> dict[str, str]:
    """The settings: every error is ignored.

    >>> import treadle.numpy as np
    >>> np.geterr()["over"]
    'ignore'
    """
    return dict.fromkeys(("divide", "over", "under", "invalid"), "ignore")


def getbufsize() -> int:
    """NumPy's number of elements in its buffers, which are not used here.

    >>> import treadle.numpy as np
    >>> np.getbufsize() > 0
    True
    """
    return int(np.getbufsize())


def setbufsize(size: int) -> int:
    """Accepted, without effect.

    >>> import treadle.numpy as np
    >>> np.setbufsize(8192) > 0
    True
    """
    return getbufsize()
