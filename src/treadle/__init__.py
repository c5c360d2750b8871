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

import os as _os
from collections.abc import Mapping as _Mapping
from typing import Any as _Any

from treadle import lang as _lang
from treadle import tensor as _tensor
from treadle.core.deferred_imports import exports as _exports
from treadle.core.deferred_imports import importing as _importing
from treadle.graph import history as _history
from treadle.lang import tensor_functions as _tensor_functions
from treadle.runtime import lazy as _lazy

# A name of both the kernel language and tensors is one function: of numbers and of tensors.
NAMES = {
    **_lang.NAMES,
    **_tensor.NAMES,
    "treadle.actors.decorator": "actor",
    "treadle.autograd.checkpoint": "checkpoint",
    "treadle.autograd.jacobians": "hessian jacfwd jacrev",
    "treadle.autograd.modes": "enable_grad inference_mode is_grad_enabled no_grad set_grad_enabled",
    "treadle.autograd.transforms": "grad jvp value_and_grad vjp",
    "treadle.autograd.vmap": "vmap",
    "treadle.core": "errors",
    "treadle.core.dtypes": "DType",
    "treadle.core.version": "__version__",
    "treadle.cuda_cpp.load": "cuda_module",
    "treadle.cuda_cpp.texture": "texture",
    "treadle.data.saving": "load save",
    "treadle.distributed.arrays.sharded": "shard",
    "treadle.optim.scaling": "GradScaler",
    "treadle.quant.gguf_files": "load_gguf",
    "treadle.runtime.devices": (
        "default_device Device device devices init is_available memory_stats set_default_device "
        "Stream "
        "use_device"
    ),
    "treadle.runtime.events": "Event",
    "treadle.runtime.graphs": "Graph",
    "treadle.runtime.profile.session": "profile",
    "treadle.stencils.decorator": "stencil",
    "treadle.stencils.loop": "stencil_loop",
    "treadle.tensor": "fft linalg random",
    "treadle.tensor.array_api": "__array_api_version__ __array_namespace_info__",
}
_MAKES = "td.asarray(…) makes a tensor"
# What is written here for names of NumPy and PyTorch.
_ELSEWHERE = {
    "addmm": "write x + a @ b", "amax": "write td.max(x, axis=…)",
    "amin": "write td.min(x, axis=…)", "append": "write td.concat",
    "arccos": "write td.acos", "arccosh": "write td.acosh", "arcsin": "write td.asin",
    "arcsinh": "write td.asinh", "arctan": "write td.atan", "arctan2": "write td.atan2",
    "arctanh": "write td.atanh", "around": "write td.round", "ascontiguousarray": _MAKES,
    "average": "write td.mean(x), or (x * w).sum() / w.sum()",
    "bartlett": "write td.bartlett_window(n, periodic=False)",
    "blackman": "write td.blackman_window(n, periodic=False)", "bmm": "write x @ y",
    "chunk": "write td.split(x, n, axis=…)", "clamp": "write td.clip(x, min, max)",
    "column_stack": "write td.stack((x, y), axis=1), or td.concat of matrices",
    "copy": "write x.clone()", "cumprod": "write td.cumulative_prod(x, axis=…)",
    "cumsum": "write td.cumulative_sum(x, axis=…)", "degrees": "write x * (180 / td.pi)",
    "deg2rad": "write x * (td.pi / 180)", "eq": "write x == y, or td.equal",
    "array_equal": "write (x == y).all()", "fix": "write td.trunc(x)",
    "flatten": "write x.flatten()", "fliplr": "write td.flip(x, axis=1)",
    "flatnonzero": "write td.nonzero(x.reshape(-1))[0]",
    "flipud": "write td.flip(x, axis=0)",
    "ge": "write x >= y", "gt": "write x > y",
    "hamming": "write td.hamming_window(n, periodic=False)",
    "hanning": "write td.hann_window(n, periodic=False)",
    "hstack": "write td.concat((x, y), axis=1), of one axis axis=0",
    "invert": "write ~x", "kaiser": "write td.kaiser_window(n, periodic=False, beta=…)",
    "le": "write x <= y", "left_shift": "write x << y", "lt": "write x < y",
    "mod": "write td.remainder, or x % y", "mm": "write x @ y", "mul": "write x * y",
    "ndim": "write x.ndim", "ne": "write x != y", "neg": "write -x", "norm": "write td.linalg.norm",
    "numel": "write x.size", "permute": "write td.permute_dims(x, axes)",
    "radians": "write x * (td.pi / 180)", "rad2deg": "write x * (180 / td.pi)",
    "ravel": "write x.reshape(-1)", "relu": "write td.nn.functional.relu(x)",
    "repeat_interleave": "write td.repeat", "right_shift": "write x >> y",
    "rint": "write td.round", "row_stack": "write td.concat((x, y), axis=0)",
    "softmax": "write td.nn.functional.softmax(x, axis)", "sub": "write x - y",
    "trapz": "write td.trapezoid", "true_divide": "write x / y",
    "unsqueeze": "write td.expand_dims(x, axis)", "vdot": "write td.vecdot(x, y)",
    "vstack": "write td.concat((x, y), axis=0), or td.stack of rows",
    "absolute": "write td.abs(x)", "array": _MAKES, "as_tensor": _MAKES, "cat": "write td.concat",
    "concatenate": "write td.concat", "from_numpy": _MAKES,
    "power": "write td.pow(x, y), or x ** y", "rand": "write td.random.uniform(shape)",
    "randint": "write td.random.integers(low, high, shape)",
    "randn": "write td.random.normal(shape)", "transpose": "write td.permute_dims(x, axes)",
}  # fmt: skip
__all__, __getattr__, __dir__ = _exports(
    __name__, NAMES, "actors autograd data distributed models nn optim quant stencils", _ELSEWHERE
)

# What lower layers ask of higher ones, which they do not import: all of it, and nowhere else. It is
# imported when it is first asked.


def _functions() -> _Mapping[str, _Any]:
    with _importing():
        from treadle.tensor.elementwise_functions import FUNCTIONS
        from treadle.tensor.linalg.powers import cross
        from treadle.tensor.products import dot

    return {**FUNCTIONS, "cross": cross, "dot": dot}


def _lazy_arrays() -> _lazy.LazyArrays:
    with _importing():
        from treadle.tensor.carried_writes import LazyTensors

    return LazyTensors()


def _derivatives() -> _Mapping[str, _history.Derivative]:
    with _importing():
        from treadle.autograd.rules import derivatives

    return derivatives


def _backward(*arguments: _Any, **keywords: _Any) -> None:
    with _importing():
        from treadle.autograd.engine import backward

    backward(*arguments, **keywords)


def _families() -> tuple[_Any, ...]:
    with _importing():
        from treadle.kernels.tuned_families import FAMILIES

    return FAMILIES


def _measure(*arguments: _Any) -> _Any:
    with _importing():
        from treadle.tuning.tuner import measure

    return measure(*arguments)


_tensor_functions.install(_functions)
_lazy.install(_lazy_arrays)
_history.install(_derivatives, _backward)
if "TREADLE_TUNE" in _os.environ:
    from treadle.tuning.choices import install as _install

    _install(_families, _measure)
if "TREADLE_EXPLAIN" in _os.environ:
    from treadle.core.environment import is_on as _is_on

    if _is_on("TREADLE_EXPLAIN"):
        from treadle.graph.explain import explain_everything as _explain_everything

        _explain_everything()
