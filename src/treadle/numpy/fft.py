"""NumPy's `fft` over arrays on devices."""

from __future__ import annotations

from typing import Any

from treadle.numpy.adapting import adapted
from treadle.numpy.operations import transforms

_NAMES = (
    "fft fft2 fftfreq fftn fftshift hfft ifft ifft2 ifftn ifftshift ihfft irfft irfft2 irfftn rfft "
    "rfft2 rfftfreq rfftn"
)
__all__ = sorted(_NAMES.split())


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    function = adapted(getattr(transforms, name))

    def call(*args: Any, out: Any = None, **kwargs: Any) -> Any:
        result = function(*args, **kwargs)
        if out is None:
            return result
        out[...] = result
        return out

    call.__name__, call.__doc__ = name, function.__doc__
    found = globals()[name] = function if name.endswith(("freq", "shift")) else call
    return found


def __dir__() -> list[str]:
    return __all__
