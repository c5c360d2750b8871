"""`treadle.core.errors`, for `import treadle.errors`: both are one module."""

import sys

from treadle.core import errors

sys.modules[__name__] = errors
