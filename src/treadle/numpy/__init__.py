"""NumPy 2's interface over treadle's tensors: `import treadle.numpy as np`.

Names, arguments, promotion, results and errors are NumPy's; what computes is treadle, on every
device that it has. Arrays are made on the default device (`np.set_device("webgpu")`, or `device=`);
they are computed when their elements are needed. `x.td` is the tensor of treadle that `x` shows.
What NumPy has and this has not raises an AttributeError that says why; `np.missing()` lists it.
"""

import sys as _sys
from typing import Any as _Any

import numpy as _numpy  # noqa: ICN001

from treadle.core.deferred_imports import exports
from treadle.numpy.absent import MISSING, RENAMED
from treadle.numpy.table import entries
from treadle.numpy.ufunc_names import ALIASES, UFUNCS

# What is NumPy's own: dtypes and their limits, constants, text and indices without arrays.
_OWN = (
    "False_ ScalarType True_ base_repr binary_repr bool bool_ byte cdouble complex128 complex64 "
    "complexfloating csingle double dtype dtypes e euler_gamma exceptions float16 float32 "
    "float64 floating format_float_positional format_float_scientific generic get_printoptions "
    "half inexact inf int16 int32 int64 int8 int_ intc integer intp isdtype issubdtype "
    "little_endian long longlong mintypecode nan ndindex newaxis number pi printoptions "
    "promote_types set_printoptions short signedinteger single typecodes typename ubyte uint "
    "uint16 uint32 uint64 uint8 uintc uintp ulong ulonglong unsignedinteger ushort"
)
NAMES = {
    "treadle.numpy.arrays": "ndarray",
    "treadle.numpy.attributes": "flatiter",
    "treadle.numpy.broadcasting": "broadcast",
    "treadle.numpy.callbacks": (
        "apply_along_axis apply_over_axes fromfunction mask_indices ndenumerate piecewise"
    ),
    "treadle.numpy.errors": "errstate getbufsize geterr setbufsize seterr",
    "treadle.numpy.files": (
        "array2string array_repr array_str genfromtxt load loadtxt save savetxt savez "
        "savez_compressed"
    ),
    "treadle.numpy.functions": " ".join(each.name for each in entries() if "f" in each.flags),
    "treadle.numpy.index_tricks": "c_ index_exp mgrid ogrid r_ s_",
    "treadle.numpy.absent": "missing",
    "treadle.numpy.settings": (
        "can_cast common_type finfo get_device iinfo isscalar iterable min_scalar_type result_type "
        "set_device wrap"
    ),
    "treadle.numpy.ufuncs": f"ufunc {UFUNCS} {' '.join(ALIASES)}",
    "numpy": _OWN,
}
__all__, _find, __dir__ = exports(__name__, NAMES, "fft lib linalg random testing typing", MISSING)


def __getattr__(name: str) -> _Any:
    """A name, imported when it is first used; of one that NumPy had, what NumPy says."""
    try:
        return _find(name)
    except AttributeError:
        said = "" if name in MISSING or name.startswith("__") else _past(name)
        if not said:
            raise
        raise AttributeError(said, name=name, obj=_sys.modules[__name__]) from None


def _past(name: str) -> str:
    """What is said of a name that NumPy no longer has, or never had."""
    if name in RENAMED:
        return f"module {__name__!r} has no attribute {name!r}: NumPy calls it np.{RENAMED[name]}"
    try:
        getattr(_numpy, name)
    except AttributeError as error:
        return str(error).replace("module 'numpy'", f"module {__name__!r}")
    return ""


__version__ = _numpy.__version__
