"""The kernel language: Python functions that run on every device.

`kernel` has what the decorators make, `types` the annotations, `builtins` the functions that
kernels use, `namespace` all names, `lower` the way to IR, `interpreter` plain Python, `refusals`
what is not allowed.
"""

from treadle.lang import namespace
from treadle.lang.interpreter_state import interpret
from treadle.lang.kernel import func, kernel
from treadle.lang.namespace import *  # noqa: F403  every name there is public

__all__ = ["func", "interpret", "kernel"]
__all__ += namespace.__all__
