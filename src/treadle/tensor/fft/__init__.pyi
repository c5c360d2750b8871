# Written by tools/stubs.py: change the tables or docstrings that it reads instead.
"""Fourier transforms: the Array API's extension, and NumPy's functions for two axes.

They are lazy and computed on the device: complex64 for float32 and integers, complex128 for
float64, where the device has that.
"""

from treadle.tensor.fft.frequencies import fftfreq as fftfreq
from treadle.tensor.fft.frequencies import fftshift as fftshift
from treadle.tensor.fft.frequencies import ifftshift as ifftshift
from treadle.tensor.fft.frequencies import rfftfreq as rfftfreq
from treadle.tensor.fft.one_axis import fft as fft
from treadle.tensor.fft.one_axis import hfft as hfft
from treadle.tensor.fft.one_axis import ifft as ifft
from treadle.tensor.fft.one_axis import ihfft as ihfft
from treadle.tensor.fft.one_axis import irfft as irfft
from treadle.tensor.fft.one_axis import rfft as rfft
from treadle.tensor.fft.several_axes import fft2 as fft2
from treadle.tensor.fft.several_axes import fftn as fftn
from treadle.tensor.fft.several_axes import ifft2 as ifft2
from treadle.tensor.fft.several_axes import ifftn as ifftn
from treadle.tensor.fft.several_axes import irfft2 as irfft2
from treadle.tensor.fft.several_axes import irfftn as irfftn
from treadle.tensor.fft.several_axes import rfft2 as rfft2
from treadle.tensor.fft.several_axes import rfftn as rfftn

__all__ = [
    "fft",
    "fft2",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "ihfft",
    "irfft",
    "irfft2",
    "irfftn",
    "rfft",
    "rfft2",
    "rfftfreq",
    "rfftn",
]
