"""Fourier transforms, as the Array API's extension has them, and NumPy's for two axes.

They are lazy, computed on the device in the dtype of what is transformed: complex64 of float32 and
of integers, complex128 of float64, where the device has that.
"""

from treadle.tensor.fft import frequencies, one_axis, several_axes
from treadle.tensor.fft.frequencies import *  # noqa: F403  what its __all__ names
from treadle.tensor.fft.one_axis import *  # noqa: F403  what its __all__ names
from treadle.tensor.fft.several_axes import *  # noqa: F403  what its __all__ names

__all__ = [*one_axis.__all__, *several_axes.__all__, *frequencies.__all__]
