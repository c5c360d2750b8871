"""`treadle.tensor.random`, for `import treadle.random`: both are one module."""

import sys

from treadle.tensor import random

sys.modules[__name__] = random
