"""NumPy's settings of floating-point errors. They hold for NumPy's own scalars; devices do not
report such errors of arrays."""

from __future__ import annotations

from contextlib import ContextDecorator
from types import TracebackType
from typing import Any

import numpy as np


class errstate(ContextDecorator):
    """`with np.errstate(divide="ignore"):` holds for NumPy's scalars; nothing warns on devices
    anyway.

    >>> import treadle.numpy as np
    >>> with np.errstate(divide="ignore"):
    ...     print(np.array([1.0]) / 0)
    [inf]
    """

    def __init__(self, **settings: Any) -> None:
        _check({kind: action for kind, action in settings.items() if kind != "call"})
        self._settings = settings
        self._entered: list[np.errstate] = []

    def __enter__(self) -> None:
        self._entered.append(np.errstate(**self._settings))
        self._entered[-1].__enter__()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._entered.pop().__exit__(kind, error, trace)


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
    """Set what NumPy's scalars do; arrays ignore errors, and "raise" is refused. Returns the
    settings before.

    >>> import treadle.numpy as np
    >>> before = np.seterr(divide="ignore")
    >>> np.seterr(**before)["divide"]
    'ignore'
    """
    kinds = {"all": all, "divide": divide, "over": over, "under": under, "invalid": invalid}
    _check(kinds)
    return np.seterr(**kinds)  # type: ignore[arg-type,return-value]


def geterr() -> dict[str, str]:
    """The settings, which hold for NumPy's scalars.

    >>> import treadle.numpy as np
    >>> with np.errstate(over="ignore"):
    ...     np.geterr()["over"]
    'ignore'
    """
    return np.geterr()  # type: ignore[return-value]


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
