"""Fourier transforms: the Array API's extension, and NumPy's functions for two axes.

They are lazy and computed on the device: complex64 for float32 and integers, complex128 for
float64, where the device has that.
"""

from treadle.core.deferred_imports import exports

NAMES = {
    "treadle.tensor.fft.frequencies": "fftfreq fftshift ifftshift rfftfreq",
    "treadle.tensor.fft.one_axis": "fft hfft ifft ihfft irfft rfft",
    "treadle.tensor.fft.several_axes": "fft2 fftn ifft2 ifftn irfft2 irfftn rfft2 rfftn",
}
__all__, __getattr__, __dir__ = exports(__name__, NAMES)
