"""The kernel language: Python functions that run on every device.

`kernel` has the decorators and their classes, `types` the annotations, `builtins` the functions
that kernels call, `namespace` all names, `lower` the lowering to IR, `interpreter` the execution as
plain Python, `refusals` the constructs that are not allowed.
"""

from treadle.lang import namespace
from treadle.lang.interpreter_state import interpret
from treadle.lang.kernel import func, kernel
from treadle.lang.namespace import *  # noqa: F403  every name there is public

__all__ = ["func", "interpret", "kernel"]
__all__ += namespace.__all__
