"""Names of NumPy's that have no form for devices: what to use instead, or why."""

from __future__ import annotations

_POLYNOMIALS = (
    "polynomials are not here: NumPy's own np.polynomial computes coefficients on the host"
)
_FIT = "polynomials are not here: np.linalg.lstsq(np.vander(x, deg + 1), y)[0] has the coefficients"
_VALUES = "polynomials are not here: np.vander(x, len(p)) @ p has the values"
_ROOTS = (
    "polynomials are not here: np.linalg.eigvals of the companion matrix, np.eye(n, k=-1) with the "
    "first row -p[1:] / p[0], has the roots"
)
_TEXT = "strings have no form for devices: use NumPy's own"
_DATES = "dates have no form for devices: use numbers, or NumPy's own"
_MATRIX = "np.matrix is not here: use arrays of two axes and @"
_LIBRARY = "it is of NumPy's own library: import numpy for it"
_STATE = (
    "there is no state of floating-point errors on devices: nothing warns, and nothing is raised"
)

# Nearest thing or reason, by names; names of submodules with their module.
MISSING: dict[str, str] = {
    **dict.fromkeys(
        [
            "poly",
            "polyadd",
            "polyder",
            "polydiv",
            "polyint",
            "polymul",
            "polysub",
            "poly1d",
            "polynomial",
        ],
        _POLYNOMIALS,
    ),
    **dict.fromkeys(
        ["char", "strings", "str_", "bytes_", "character"],
        _TEXT,
    ),
    **dict.fromkeys(
        [
            "busday_count",
            "busday_offset",
            "busdaycalendar",
            "is_busday",
            "datetime_as_string",
            "datetime_data",
            "datetime64",
            "timedelta64",
            "isnat",
        ],
        _DATES,
    ),
    **dict.fromkeys(["matrix", "asmatrix", "bmat"], _MATRIX),
    **dict.fromkeys(
        [
            "f2py",
            "rec",
            "core",
            "ctypeslib",
            "get_include",
            "info",
            "show_config",
            "show_runtime",
            "test",
            "__array_namespace_info__",
            "sctypeDict",
            "nested_iters",
        ],
        _LIBRARY,
    ),
    "asfortranarray": "arrays are in C's order: use x.T of an array of the transposed shape",
    "clongdouble": "the widest complex dtype is complex128",
    "complex256": "the widest complex dtype is complex128",
    "emath": "use np.sqrt(x.astype(complex)) and its like",
    "flexible": _TEXT,
    "float128": "the widest floating dtype is float64",
    "fromregex": _TEXT,
    "frompyfunc": "write @td.elementwise, which compiles a function of numbers for arrays",
    "geterrcall": _STATE,
    "longdouble": "the widest floating dtype is float64",
    "ma": "masked arrays are not here: use np.where, where=, and the nan-functions",
    "memmap": "memory of files is the host's: use np.load",
    "nditer": "use whole arrays, or a kernel (td.kernel), for a loop over elements",
    "polyfit": _FIT,
    "polyval": _VALUES,
    "roots": _ROOTS,
    "object_": "objects have no form for devices",
    "recarray": "use one array a field, or @td.struct",
    "record": "use one array a field, or @td.struct",
    "seterrcall": _STATE,
    "vectorize": "write @td.elementwise, which compiles a function of numbers for arrays",
    "void": "use one array a field, or @td.struct",
}
# Names that NumPy has no more, and does not explain itself.
RENAMED = {
    "alltrue": "all",
    "cumproduct": "cumprod",
    "in1d": "isin",
    "msort": "sort",
    "product": "prod",
    "row_stack": "vstack",
    "sometrue": "any",
    "trapz": "trapezoid",
}
_NO_BITS = "draws are by treadle's generator: np.random.default_rng(seed)"
_NO_MEMORY = "memory of devices has no such view: x.td.numpy() is NumPy's own array"
_NO_ADDRESS = "numpy.asarray(x) is NumPy's own array, which has it"
_STRUCTS = "use one array a field, or @td.struct"


def _within(space: str, names: str) -> list[str]:
    return [f"{space}.{name}" for name in names.split()]


# The same of other modules and classes, for the reference and for their errors.
WITHIN: dict[str, str] = {
    **dict.fromkeys(
        _within("random", "BitGenerator MT19937 PCG64 PCG64DXSM Philox SFC64 SeedSequence"),
        _NO_BITS,
    ),
    **dict.fromkeys(["ndarray.ctypes"], _NO_MEMORY),
    "ndarray.__array_interface__": _NO_ADDRESS,
    **dict.fromkeys(["ndarray.getfield", "ndarray.setfield"], _STRUCTS),
}


def missing() -> dict[str, str]:
    """NumPy's names that are not here, with what to use instead, or why.

    >>> import treadle.numpy as np
    >>> np.missing()["vectorize"]
    'write @td.elementwise, which compiles a function of numbers for arrays'
    """
    return dict(sorted({**MISSING, **WITHIN}.items()))
