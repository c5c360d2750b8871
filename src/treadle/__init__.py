"""GPU computing that does not care whose GPU it is: one kernel, every GPU.

Write a kernel once, in Python, and run it on the CPU and on any GPU that WebGPU reaches:

>>> import numpy as np, treadle as td
>>> @td.kernel(source='''
... def saxpy(a: td.f32, x: td.Array[td.f32], y: td.Array[td.f32]):
...     i = td.grid(1)
...     if i < y.size:
...         y[i] = a * x[i] + y[i]
... ''')
... def saxpy(a, x, y): ...
>>> x, y = td.ones(4, device="cpu"), td.zeros(4, device="cpu")
>>> saxpy.launch(y.size, 2.0, x, y)
>>> y.tolist()
[2.0, 2.0, 2.0, 2.0]
"""

from treadle import autograd, data, lang, nn, optim, tensor
from treadle.autograd.checkpoint import checkpoint
from treadle.autograd.jacobians import hessian, jacfwd, jacrev
from treadle.autograd.modes import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    no_grad,
    set_grad_enabled,
)
from treadle.autograd.transforms import grad, jvp, value_and_grad, vjp
from treadle.autograd.vmap import vmap
from treadle.core import errors
from treadle.core.dtypes import DType
from treadle.core.version import __version__
from treadle.cuda_cpp.load import cuda_module
from treadle.data import load, save
from treadle.lang import *  # noqa: F403  a name of both is one function: of numbers and of tensors
from treadle.optim.scaling import GradScaler
from treadle.runtime.devices import (
    Device,
    Stream,
    default_device,
    device,
    devices,
    is_available,
    memory_stats,
    set_default_device,
    use_device,
)
from treadle.runtime.events import Event
from treadle.runtime.graphs import Graph
from treadle.runtime.profile.session import profile
from treadle.tensor import *  # noqa: F403  every name there is public

from treadle.tensor.array_api import ARRAY_API_VERSION as __array_api_version__  # isort: skip

from treadle.autograd.rules import derivatives as _derivatives
from treadle.core.environment import is_on as _is_on
from treadle.graph import explain as _explain
from treadle.graph import history as _history
from treadle.lang import builtins as _builtins
from treadle.runtime import lazy as _lazy
from treadle.tensor.cells import LazyTensors as _LazyTensors
from treadle.tensor.elementwise_functions import FUNCTIONS as _FUNCTIONS
from treadle.tensor.products import dot as _dot

# What lower layers ask of higher ones, which they do not import: all of it, and nowhere else.
_lazy.install(_LazyTensors())
_builtins.install({**_FUNCTIONS, "dot": _dot})
_history.install(_derivatives, autograd.backward)
if _is_on("TREADLE_EXPLAIN"):
    _explain.explain_everything()

__all__ = [
    "DType",
    "Device",
    "Event",
    "GradScaler",
    "Graph",
    "Stream",
    "__array_api_version__",
    "__version__",
    "autograd",
    "checkpoint",
    "cuda_module",
    "data",
    "default_device",
    "device",
    "devices",
    "enable_grad",
    "errors",
    "grad",
    "hessian",
    "inference_mode",
    "is_available",
    "is_grad_enabled",
    "jacfwd",
    "jacrev",
    "jvp",
    "load",
    "memory_stats",
    "nn",
    "no_grad",
    "optim",
    "profile",
    "save",
    "set_default_device",
    "set_grad_enabled",
    "use_device",
    "value_and_grad",
    "vjp",
    "vmap",
]
__all__ += tensor.__all__
__all__ += lang.__all__
