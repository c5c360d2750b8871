"""`np.fft`: integers are computed in float64, float32 in float32."""

from __future__ import annotations

from typing import Any

import treadle as td
from treadle.numpy import promotion
from treadle.numpy.operations.operands import array, axes_of, axis_of, floats
from treadle.numpy.operations.shapes import roll
from treadle.tensor.tensor import Tensor as Inner


def _given(a: Any) -> Inner:
    x = floats(a)
    return x.to(td.float32) if x.dtype.itemsize == 2 else x


def _check(norm: Any) -> None:
    if norm not in (None, "backward", "ortho", "forward"):
        raise ValueError(f'Invalid norm value {norm}; should be "backward", "ortho" or "forward".')


def _count(n: Any) -> Any:
    if n is not None and n < 1:
        raise ValueError(f"Invalid number of FFT data points ({n}) specified.")
    return None if n is None else int(n)


def _one(name: str, a: Any, n: Any, axis: int, norm: Any) -> Inner:
    x = _given(a)
    _check(norm)
    at = axis_of(axis, len(x.shape))
    if n is None and not x.shape[at]:
        raise ValueError("Invalid number of FFT data points (0) specified.")
    if name in ("rfft", "ihfft") and x.dtype.kind == "complex":
        raise TypeError(f"ufunc '{name}' did not contain a loop with signature matching types")
    made: Inner = getattr(td.fft, name)(x, n=_count(n), axis=at, norm=norm or "backward")
    is_half = made.dtype.kind == "float" and array(a).dtype.name == "float16"
    return made.to(td.float16) if is_half else made


def fft(a: Any, n: Any = None, axis: int = -1, norm: Any = None) -> Inner:
    """The discrete Fourier transform along an axis."""
    return _one("fft", a, n, axis, norm)


def ifft(a: Any, n: Any = None, axis: int = -1, norm: Any = None) -> Inner:
    """Its inverse."""
    return _one("ifft", a, n, axis, norm)


def rfft(a: Any, n: Any = None, axis: int = -1, norm: Any = None) -> Inner:
    """The transform of real numbers: half of the frequencies."""
    return _one("rfft", a, n, axis, norm)


def irfft(a: Any, n: Any = None, axis: int = -1, norm: Any = None) -> Inner:
    """Its inverse."""
    return _one("irfft", a, n, axis, norm)


def hfft(a: Any, n: Any = None, axis: int = -1, norm: Any = None) -> Inner:
    """The transform of a signal that is symmetric, of which half is given."""
    return _one("hfft", a, n, axis, norm)


def ihfft(a: Any, n: Any = None, axis: int = -1, norm: Any = None) -> Inner:
    """Its inverse."""
    return _one("ihfft", a, n, axis, norm)


def _several(name: str, a: Any, s: Any, axes: Any, norm: Any) -> Inner:
    x = _given(a)
    _check(norm)
    if axes is not None:
        axes = tuple(axis_of(each, len(x.shape)) for each in axes)
    if s is not None and axes is not None and len(tuple(s)) != len(axes):
        raise ValueError("Shape and axes have different lengths.")
    if name.startswith("rfft") and x.dtype.kind == "complex":
        raise TypeError("ufunc 'rfft_n_even' did not contain a loop with signature matching types")
    count = len(x.shape) if s is None else len(tuple(s))
    used = axes if axes is not None else tuple(range(len(x.shape) - count, len(x.shape)))
    sizes = None
    if s is not None:
        pairs = zip(s, used, strict=True)
        sizes = tuple([x.shape[at] if each == -1 else _count(each) for each, at in pairs])
    if sizes is None and any(x.shape[at] == 0 for at in used):
        raise ValueError("Invalid number of FFT data points (0) specified.")
    made: Inner = getattr(td.fft, name)(x, s=sizes, axes=used, norm=norm or "backward")
    return made


def fftn(a: Any, s: Any = None, axes: Any = None, norm: Any = None) -> Inner:
    """The transform along several axes."""
    return _several("fftn", a, s, axes, norm)


def ifftn(a: Any, s: Any = None, axes: Any = None, norm: Any = None) -> Inner:
    """Its inverse."""
    return _several("ifftn", a, s, axes, norm)


def rfftn(a: Any, s: Any = None, axes: Any = None, norm: Any = None) -> Inner:
    """The transform of real numbers along several axes."""
    return _several("rfftn", a, s, axes, norm)


def irfftn(a: Any, s: Any = None, axes: Any = None, norm: Any = None) -> Inner:
    """Its inverse."""
    return _several("irfftn", a, s, axes, norm)


def fft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: Any = None) -> Inner:
    """The transform along two axes."""
    return _several("fftn", a, s, axes, norm)


def ifft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: Any = None) -> Inner:
    """Its inverse."""
    return _several("ifftn", a, s, axes, norm)


def rfft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: Any = None) -> Inner:
    """The transform of real numbers along two axes."""
    return _several("rfftn", a, s, axes, norm)


def irfft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: Any = None) -> Inner:
    """Its inverse."""
    return _several("irfftn", a, s, axes, norm)


def _moved(x: Any, axes: Any, sign: int) -> Inner:
    made = array(x)
    used = axes_of(axes, len(made.shape))
    by = [made.shape[at] // 2 if sign > 0 else -(made.shape[at] // 2) for at in used]
    return roll(made, by, used) if used else made


def fftshift(x: Any, axes: Any = None) -> Inner:
    """Frequency 0 in the middle."""
    return _moved(x, axes, 1)


def ifftshift(x: Any, axes: Any = None) -> Inner:
    """Frequency 0 back at the front."""
    return _moved(x, axes, -1)


def _frequencies(name: str, n: Any, d: float, device: Any) -> Inner:
    try:
        count = n.__index__()
    except AttributeError:
        raise ValueError("n should be an integer") from None
    where = promotion.place(device)
    wanted = promotion.default_float(where)
    made: Inner = getattr(td.fft, name)(count, d=float(d), dtype=wanted, device=where)
    return made


def fftfreq(n: Any, d: float = 1.0, device: Any = None) -> Inner:
    """The frequencies of a transform of n numbers."""
    return _frequencies("fftfreq", n, d, device)


def rfftfreq(n: Any, d: float = 1.0, device: Any = None) -> Inner:
    """The frequencies of `rfft`."""
    return _frequencies("rfftfreq", n, d, device)
