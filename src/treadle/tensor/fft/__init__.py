"""Fourier transforms: the Array API's extension, and NumPy's functions for two axes.

They are lazy and computed on the device: complex64 for float32 and integers, complex128 for
float64, where the device has that.
"""

from treadle.tensor.fft import frequencies, one_axis, several_axes
from treadle.tensor.fft.frequencies import *  # noqa: F403  what its __all__ names
from treadle.tensor.fft.one_axis import *  # noqa: F403  what its __all__ names
from treadle.tensor.fft.several_axes import *  # noqa: F403  what its __all__ names

__all__ = [*one_axis.__all__, *several_axes.__all__, *frequencies.__all__]
