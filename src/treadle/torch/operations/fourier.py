"""`torch.fft`, and spectra of stretches of signals: `stft` and `istft`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import treadle as td
from treadle.core.dtypes import DType
from treadle.tensor.tensor import Tensor as Inner
from treadle.torch.devices import place
from treadle.torch.dtypes import floating, get_default_dtype, integers
from treadle.torch.operations.axes import one, several
from treadle.torch.operations.operands import cast

_NORMS = {None: "backward", "backward": "backward", "forward": "forward", "ortho": "ortho"}
# What a transform of the other direction calls the same factor.
_TURNED = {"backward": "forward", "forward": "backward", "ortho": "ortho"}


def _norm(norm: str | None) -> str:
    if norm not in _NORMS:
        raise RuntimeError(f"Invalid normalization mode: {norm!r}")
    return _NORMS[norm]


def _operand(name: str, input: Inner) -> Inner:
    found = cast(input, floating(input.dtype))
    if found.dtype in (td.float16, td.bfloat16):
        raise RuntimeError(f"Unsupported dtype {found.dtype} for {name}: use x.float()")
    return found


def _one_axis(name: str) -> Callable[..., Inner]:
    transform = getattr(td.fft, name)

    def function(
        input: Inner, n: int | None = None, dim: int = -1, norm: str | None = None
    ) -> Inner:
        if not input.shape:
            raise IndexError("Dimension specified as -1 but tensor has no dimensions")
        at = one(dim, len(input.shape))
        if n is not None and n < 1:
            raise RuntimeError(f"Invalid number of data points ({n}) specified")
        return transform(_operand(name, input), n, axis=at, norm=_norm(norm))

    function.__name__, function.__doc__ = name, f"`td.fft.{name}` along an axis."
    return function


def _axes(input: Inner, s: Any, dim: Any) -> tuple[Any, Any]:
    """The lengths and the axes of a transform along several axes."""
    ndim = len(input.shape)
    if s is not None:
        s = (s,) if isinstance(s, int) else tuple(s)
    if dim is not None:
        axes = several(tuple(dim) if isinstance(dim, (tuple, list)) else (dim,), ndim)
    elif s is not None:
        axes = tuple(range(ndim - len(s), ndim))
        if len(s) > ndim:
            raise RuntimeError(
                f"Got shape with {len(s)} values but input tensor only has {ndim} dimensions."
            )
    else:
        axes = tuple(range(ndim))
    if s is not None and len(s) != len(axes):
        raise RuntimeError(
            f"When given, dim and shape arguments must have the same length (got {len(axes)} and "
            f"{len(s)})"
        )
    return s, axes


def _several_axes(name: str, default: Any) -> Callable[..., Inner]:
    transform = getattr(td.fft, f"{name}n")

    def function(input: Inner, s: Any = None, dim: Any = default, norm: str | None = None) -> Inner:
        s, axes = _axes(input, s, dim)
        input = _operand(name, input)
        if not axes:
            dtype = input.dtype
            return input if name in ("irfft",) else input.to(_complex_of(dtype))
        return transform(input, s, axes=axes, norm=_norm(norm))

    function.__name__ = f"{name}{'n' if default is None else 2}"
    function.__doc__ = f"`td.fft.{name}n` along axes."
    return function


def _complex_of(dtype: DType) -> DType:
    return td.complex128 if dtype in (td.float64, td.complex128) else td.complex64


def _hermitian(name: str, default: Any) -> Callable[..., Inner]:
    """`hfftn` is `irfftn` of the conjugates with the factor of the other direction, and `ihfftn`
    the conjugates of `rfftn`."""

    def function(input: Inner, s: Any = None, dim: Any = default, norm: str | None = None) -> Inner:
        s, axes = _axes(input, s, dim)
        turned = _TURNED[_norm(norm)]
        input = _operand(name, input)
        if name == "hfft":
            wide = input.to(_complex_of(input.dtype))
            return td.fft.irfftn(td.conj(wide), s, axes=axes, norm=turned)
        return td.conj(td.fft.rfftn(input, s, axes=axes, norm=turned))

    function.__name__ = f"{name}{'n' if default is None else 2}"
    function.__doc__ = f"`td.fft.{name}` along several axes."
    return function


FUNCTIONS = {
    **{name: _one_axis(name) for name in ("fft", "hfft", "ifft", "ihfft", "irfft", "rfft")},
    **{f"{name}n": _several_axes(name, None) for name in ("fft", "ifft", "irfft", "rfft")},
    **{f"{name}2": _several_axes(name, (-2, -1)) for name in ("fft", "ifft", "irfft", "rfft")},
    **{f"{name}n": _hermitian(name, None) for name in ("hfft", "ihfft")},
    **{f"{name}2": _hermitian(name, (-2, -1)) for name in ("hfft", "ihfft")},
}


def fftshift(input: Inner, dim: Any = None) -> Inner:
    """Frequency 0 in the middle."""
    return td.fft.fftshift(input, axes=tuple(dim) if isinstance(dim, list) else dim)


def ifftshift(input: Inner, dim: Any = None) -> Inner:
    """Frequency 0 first."""
    return td.fft.ifftshift(input, axes=tuple(dim) if isinstance(dim, list) else dim)


def _frequencies(name: str) -> Callable[..., Inner]:
    make = getattr(td.fft, name)

    def function(
        n: int, d: float = 1.0, *, dtype: DType | None = None, layout: Any = None,
        device: Any = None, requires_grad: bool = False,
    ) -> Inner:  # fmt: skip
        found = make(n, d, dtype=dtype or get_default_dtype(), device=place(device))
        return found.requires_grad_() if requires_grad else found

    function.__name__, function.__doc__ = name, f"`td.fft.{name}`."
    return function


fftfreq, rfftfreq = _frequencies("fftfreq"), _frequencies("rfftfreq")


# --- stretches of signals ------------------------------------------------------------------------


def stft(
    input: Inner, n_fft: int, hop_length: int | None = None, win_length: int | None = None,
    window: Inner | None = None, center: bool = True, pad_mode: str = "reflect",
    normalized: bool = False, onesided: bool | None = None, return_complex: bool | None = None,
    align_to_window: bool | None = None,
) -> Inner:  # fmt: skip
    """The spectra of stretches of a signal that overlap."""
    is_complex = "complex" in (input.dtype.kind, window.dtype.kind if window is not None else "")
    if return_complex is None and not is_complex:
        raise RuntimeError("stft requires the return_complex parameter be given for real inputs")
    if not n_fft > 0 or (hop_length is not None and hop_length <= 0):
        raise RuntimeError(f"stft: n_fft ({n_fft}) and hop_length ({hop_length}) are positive")
    found = td.stft(
        input, n_fft, hop_length, win_length, window, center, pad_mode, normalized, onesided
    )
    return found if return_complex in (None, True) else _parts(found)


def _parts(found: Inner) -> Inner:
    return td.stack([td.real(found), td.imag(found)], axis=-1)


def istft(
    input: Inner, n_fft: int, hop_length: int | None = None, win_length: int | None = None,
    window: Inner | None = None, center: bool = True, normalized: bool = False,
    onesided: bool | None = None, length: int | None = None, return_complex: bool = False,
) -> Inner:  # fmt: skip
    """The signal with these spectra: the inverse of `stft`, by stretches that overlap and are
    added up."""
    hop = n_fft // 4 if hop_length is None else hop_length
    wide = n_fft if win_length is None else win_length
    if input.dtype.kind != "complex":
        raise RuntimeError("istft requires a complex-valued input tensor")
    if not 0 < hop <= wide <= n_fft:
        raise RuntimeError("istft: 0 < hop_length <= win_length <= n_fft is expected")
    spectra = input if len(input.shape) == 3 else td.expand_dims(input, axis=0)
    count, rows, frames = spectra.shape
    halves = rows != n_fft if onesided is None else onesided
    real = input.dtype.component
    weights = td.ones(wide, dtype=real, device=input.device) if window is None else window
    before = (n_fft - wide) // 2
    if wide < n_fft:
        weights = td.pad(weights, (before, n_fft - wide - before))
    norm = "ortho" if normalized else "backward"
    turned = td.moveaxis(spectra, 1, 2)
    if return_complex:
        stretches = td.fft.ifft(turned, axis=-1, norm=norm)
    elif halves:
        stretches = td.fft.irfft(turned, n_fft, axis=-1, norm=norm)
    else:
        stretches = td.real(td.fft.ifft(turned, axis=-1, norm=norm))
    stretches = stretches * weights
    total = n_fft + hop * (frames - 1)
    signal = _overlapped(stretches, hop, total)
    squares = td.broadcast_to(weights * weights, (1, frames, n_fft))
    envelope = _overlapped(squares, hop, total)
    begin = n_fft // 2 if center else 0
    if length is not None:
        end = begin + length
    else:
        end = total - n_fft // 2 if center else total
    end_known = min(end, total)
    sums = envelope[:, begin:end_known]
    if float(td.min(td.abs(sums)).item()) <= 1e-11:
        raise RuntimeError("window overlap add min: 1, that is not above 0 everywhere")
    found = signal[:, begin:end_known] / sums
    if end > total:
        zeros = td.zeros((count, end - total), dtype=found.dtype, device=found.device)
        found = td.concat([found, zeros], axis=1)
    return found if len(input.shape) == 3 else td.squeeze(found, axis=0)


def _overlapped(stretches: Inner, hop: int, total: int) -> Inner:
    """Stretches of shape (count, frames, n), each `hop` after the last, added up."""
    count, frames, n = stretches.shape
    begins = td.arange(frames, dtype=integers(stretches.device), device=stretches.device) * hop
    along = td.arange(n, dtype=integers(stretches.device), device=stretches.device)
    places = (td.expand_dims(begins, axis=1) + along).reshape(frames * n)
    made = td.zeros((count, total), dtype=stretches.dtype, device=stretches.device)
    return td.index_add(made, 1, places, stretches.reshape(count, frames * n))
