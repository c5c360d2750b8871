"""`treadle.tensor.linalg`, for `import treadle.linalg`: both are one module."""

import sys

from treadle.tensor import linalg

sys.modules[__name__] = linalg
