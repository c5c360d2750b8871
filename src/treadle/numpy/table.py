"""Which names of NumPy's are here, what computes them, and what is a method.

One line a module of `operations`: its names, as `name[=function][:flags]`. Flags: f is a function
`np.name`, m a method `x.name`, o that it takes `out=`, v that a result without axes is an element,
where NumPy has a scalar, l that it is one if the argument is, s that the argument itself is
returned where nothing changes. Without flags it is a function.
Ufuncs are in `ufuncs`.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any, NamedTuple

_HERE = "treadle.numpy.operations"
OPERATIONS = {
    f"{_HERE}.creation": (
        "arange array:fs asanyarray:fs asarray:fs asarray_chkfinite:fs ascontiguousarray:fs "
        "astype copy empty "
        "empty_like eye frombuffer fromfile fromiter fromstring from_dlpack full full_like "
        "geomspace identity linspace:fv logspace ones ones_like require:fs tri vander zeros "
        "zeros_like"
    ),
    f"{_HERE}.indexing": (
        "argwhere broadcast_shapes choose:fmov compress:fo compress=compress_method:mo copyto "
        "diag_indices diag_indices_from extract fill_diagonal flatnonzero indices ix_ "
        "nonzero:fm place put put_along_axis putmask ravel_multi_index:fv select take:fmov "
        "take_along_axis tril_indices tril_indices_from triu_indices triu_indices_from "
        "unravel_index:fv where"
    ),
    f"{_HERE}.joining": (
        "append array_split block column_stack concat=concatenate:fo concatenate:fo delete "
        "dsplit dstack hsplit hstack insert meshgrid pad row_stack split stack:fo unstack:fv "
        "vsplit vstack"
    ),
    f"{_HERE}.mathematics": (
        "angle:fv around:fov bartlett blackman clip:fov clip=clip_method:mov convolve correlate "
        "diff ediff1d fix:fov gradient hamming hanning i0 imag:fl interp:fv iscomplex:fv "
        "iscomplexobj isneginf:fov isposinf:fov isreal:fv isrealobj kaiser nan_to_num:fv "
        "packbits real:fl real_if_close round:fmov sinc:fv trapezoid:fv unpackbits unwrap"
    ),
    f"{_HERE}.products": (
        "cross dot:fmov einsum:fov einsum_path inner:fv kron:fv matmul:fov matvec:fov outer:fo "
        "tensordot trace:fmov vdot:fv vecdot:fov vecmat:fov"
    ),
    f"{_HERE}.reductions": (
        "all:fmov amax:fov amin:fov any:fmov argmax:fmov argmin:fmov average:fv "
        "count_nonzero:fv cumprod:fmo cumsum:fmo cumulative_prod:fo cumulative_sum:fo "
        "max=amax:fmov mean:fmov min=amin:fmov prod:fmov ptp:fov std:fmov sum:fmov var:fmov"
    ),
    f"{_HERE}.shapes": (
        "atleast_1d:fs atleast_2d:fs atleast_3d:fs broadcast_arrays broadcast_to diag diagflat "
        "diagonal:fm expand_dims flip:fv fliplr flipud isfortran matrix_transpose "
        "may_share_memory moveaxis ndim permute_dims:fl ravel:fm repeat:fm reshape "
        "reshape=reshape_method:m resize roll rollaxis rot90 shape shares_memory size "
        "squeeze:fml swapaxes:fml tile transpose:fl transpose=transpose_method:ml tril trim_zeros "
        "triu"
    ),
    f"{_HERE}.sorting": (
        "allclose argpartition:fm argsort:fm array_equal array_equiv bincount digitize:fv "
        "intersect1d isclose:fv isin lexsort:fv partition searchsorted:fmv setdiff1d setxor1d sort "
        "sort_complex union1d unique unique_all unique_counts unique_inverse unique_values"
    ),
    f"{_HERE}.statistics": (
        "corrcoef:fv cov histogram histogram2d histogram_bin_edges histogramdd median:fov "
        "nanargmax:fov nanargmin:fov nancumprod:fo nancumsum:fo nanmax:fov nanmean:fov "
        "nanmedian:fov nanmin:fov nanpercentile:fov nanprod:fov nanquantile:fov nanstd:fov "
        "nansum:fov nanvar:fov percentile:fov quantile:fov"
    ),
}
# What differs from NumPy, by the names of functions (or "ndarray.name"): for the reference.
DIFFERENCES: dict[str, str] = {
    "array": "Fortran's order is refused; strings, dates and objects are refused",
    "asarray": "a NumPy array is always copied; Fortran's order is refused",
    "astype": "floating numbers beyond an integer dtype become its limits, and NaN 0",
    "broadcast": "the shape alone, without the iterator",
    "choose": "indices are read, to be checked",
    "empty": "contents are undefined, as in NumPy",
    "errstate": 'without effect on arrays, which ignore errors; "raise" is refused',
    "einsum": "`optimize=` has no effect on results",
    "frombuffer": "copies",
    "from_dlpack": "on the array's device",
    "genfromtxt": "numbers only",
    "histogram": "complex numbers are refused",
    "histogram2d": "complex numbers are refused",
    "histogramdd": "complex numbers are refused",
    "histogram_bin_edges": "complex numbers are refused; bins by a rule are computed on the host",
    "ldexp": "reduce and accumulate are refused",
    "load": "memory maps and pickled objects are refused",
    "may_share_memory": "only of arrays of treadle.numpy",
    "ndarray.base": "an array of all elements of the memory, not the object that was sliced",
    "ndarray.byteswap": "inplace=True is refused",
    "ndarray.flags": "`writeable` alone can be set",
    "ndarray.strides": "cannot be set",
    "ndarray.view": "to another dtype it is a copy",
    "pad": "a function as the mode is refused",
    "partition": "the array is sorted",
    "argpartition": "the order is that of sorting",
    "percentile": "`weights=` is refused",
    "quantile": "`weights=` is refused",
    "nanpercentile": "`weights=` is refused",
    "nanquantile": "`weights=` is refused",
    "power": "exponents of integers that are arrays are read, to be checked",
    "seterr": 'without effect on arrays, which ignore errors; "raise" is refused',
    "setbufsize": "accepted, and without effect",
    "unique_values": "the values are sorted",
    "linalg.qr": 'mode="raw" is refused',
    "random.Generator": "the numbers are treadle's, not NumPy's of the same seed",
    "random.RandomState": "the numbers are treadle's, not NumPy's of the same seed",
    "random.default_rng": "the numbers are treadle's, not NumPy's of the same seed",
    "random.get_state": "a seed and a position",
    "random.seed": "the numbers are treadle's, not NumPy's of the same seed",
    "random.set_state": "a seed and a position",
}


class Entry(NamedTuple):
    """A name of NumPy's: the module and the function that computes it, and its flags."""

    name: str
    module: str
    function: str
    flags: str


def entries() -> Iterator[Entry]:
    """All names."""
    for module, names in OPERATIONS.items():
        for each in names.split():
            named, _, flags = each.partition(":")
            name, _, function = named.partition("=")
            yield Entry(name, module, function or name, flags or "f")


def function_of(entry: Entry) -> Any:
    """The function of an entry, imported."""
    return getattr(import_module(entry.module), entry.function)
