"""The names of `torch.linalg`, `torch.fft`, `torch.special` and `torch.signal.windows`: tables as
that of `torch` itself."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from treadle.torch.table import HERE, entries, function_of

TABLES: dict[str, dict[str, str]] = {
    "linalg": {
        f"{HERE}.arithmetic": "matmul:fo",
        f"{HERE}.linear_algebra": (
            "cholesky:fo cholesky_ex:fo cond:fo cross:fo det:fo diagonal eig:fo eigh:fo eigvals:fo "
            "eigvalsh:fo householder_product:fo inv:fo inv_ex:fo lstsq matrix_exp matrix_norm:fo "
            "matrix_power:fo matrix_rank:fo multi_dot:fo norm:fo pinv:fo qr:fo slogdet:fo solve:fo "
            "solve_ex:fo solve_triangular:fo svd:fo svdvals:fo tensorinv:fo tensorsolve:fo vander "
            "vecdot:fo vector_norm:fo"
        ),
    },
    "fft": {
        f"{HERE}.fourier:FUNCTIONS": (
            "fft:fo fft2:fo fftn:fo hfft:fo hfft2:fo hfftn:fo ifft:fo ifft2:fo ifftn:fo ihfft:fo "
            "ihfft2:fo ihfftn:fo irfft:fo irfft2:fo irfftn:fo rfft:fo rfft2:fo rfftn:fo"
        ),
        f"{HERE}.fourier": "fftfreq:fo fftshift ifftshift rfftfreq:fo",
    },
    "signal.windows": {
        f"{HERE}.windows": (
            "bartlett blackman cosine exponential gaussian general_cosine general_hamming hamming "
            "hann kaiser nuttall"
        ),
    },
}


def namespace(name: str) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """`__all__`, `__getattr__` and `__dir__` of one of them, whose functions are adapted when they
    are first used."""
    module = f"treadle.torch.{name}"
    known = {entry.name: entry for entry in entries(TABLES[name])}

    def find(each: str) -> Any:
        entry = known.get(each)
        if entry is None:
            raise AttributeError(
                f"module {module!r} has no attribute {each!r}", name=each, obj=sys.modules[module]
            )
        from treadle.torch.adapting import adapted, with_out

        function = function_of(entry)
        found = with_out(function) if "o" in entry.flags else adapted(function)
        setattr(sys.modules[module], each, found)
        return found

    def shown() -> list[str]:
        special = [each for each in vars(sys.modules[module]) if each.startswith("__")]
        return sorted({*special, *known})

    return sorted(known), find, shown
