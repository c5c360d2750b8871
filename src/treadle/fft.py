"""`treadle.tensor.fft`, for `import treadle.fft`: both are one module."""

import sys

from treadle.tensor import fft

sys.modules[__name__] = fft
