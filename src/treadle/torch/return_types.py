"""`torch.return_types`: the tuples with names that functions of several results return."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

_FIELDS = {
    "values indices": "cummax cummin kthvalue max median min mode nanmedian sort topk",
    "min max": "aminmax",
    "mantissa exponent": "frexp",
    "a tau": "geqrf",
    "hist bin_edges": "histogram histogramdd",
    "L info": "linalg_cholesky_ex",
    "eigenvalues eigenvectors": "linalg_eig linalg_eigh",
    "inverse info": "linalg_inv_ex",
    "solution residuals rank singular_values": "linalg_lstsq",
    "P L U": "linalg_lu lu_unpack",
    "LU pivots": "linalg_lu_factor",
    "LU pivots info": "linalg_lu_factor_ex",
    "Q R": "linalg_qr qr",
    "sign logabsdet": "linalg_slogdet slogdet",
    "result info": "linalg_solve_ex",
    "U S Vh": "linalg_svd",
    "U S V": "svd",
    "solution cloned_coefficient": "triangular_solve",
}


def _text(self: Any) -> str:
    fields = ",\n".join(f"{name}={value!r}" for name, value in zip(self._fields, self, strict=True))
    return f"torch.return_types.{type(self).__name__}(\n{fields})"


def _made(name: str, fields: str) -> type[tuple[Any, ...]]:
    base = namedtuple(name, fields)  # type: ignore[misc]
    own = {"__slots__": (), "__repr__": _text, "__module__": __name__, "__doc__": (
        f"What `torch.{name.replace('linalg_', 'linalg.')}` returns: {', '.join(fields.split())}."
    )}  # fmt: skip
    return type(name, (base,), own)


TYPES = {name: _made(name, fields) for fields, names in _FIELDS.items() for name in names.split()}
__all__ = sorted(TYPES)
globals().update(TYPES)
