"""The names of `torch.linalg`, `torch.fft`, `torch.special` and `torch.signal.windows`: tables as
that of `torch` itself."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from treadle.torch.lacking import within
from treadle.torch.table import HERE, entries, function_of

TABLES: dict[str, dict[str, str]] = {
    "linalg": {
        f"{HERE}.arithmetic": "matmul:fo",
        f"{HERE}.factors": (
            "householder_product:fo lu:fo lu_factor:fo lu_factor_ex:fo lu_solve:fo"
        ),
        f"{HERE}.linear_algebra": (
            "cholesky:fo cholesky_ex:fo cond:fo cross:fo det:fo diagonal eig:fo eigh:fo eigvals:fo "
            "eigvalsh:fo inv:fo inv_ex:fo lstsq matrix_exp matrix_norm:fo "
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
    "special": {
        f"{HERE}.special": (
            "digamma:fo entr:fo log_softmax multigammaln=mvlgamma:fo ndtr:fo polygamma:fo "
            "psi=digamma:fo softmax xlog1py:fo"
        ),
        f"{HERE}.special:FUNCTIONS": (
            "bessel_j0:fo bessel_j1:fo bessel_y0:fo bessel_y1:fo chebyshev_polynomial_t:fo "
            "chebyshev_polynomial_u:fo chebyshev_polynomial_v:fo chebyshev_polynomial_w:fo "
            "erfcx:fo gammainc=igamma:fo gammaincc=igammac:fo hermite_polynomial_h:fo "
            "hermite_polynomial_he:fo i0:fo i0e:fo i1:fo i1e:fo laguerre_polynomial_l:fo "
            "legendre_polynomial_p:fo log_ndtr:fo modified_bessel_i0=i0:fo "
            "modified_bessel_i1=i1:fo modified_bessel_k0:fo modified_bessel_k1:fo ndtri:fo "
            "scaled_modified_bessel_k0:fo scaled_modified_bessel_k1:fo "
            "shifted_chebyshev_polynomial_t:fo shifted_chebyshev_polynomial_u:fo "
            "shifted_chebyshev_polynomial_v:fo shifted_chebyshev_polynomial_w:fo "
            "spherical_bessel_j0:fo zeta:fo"
        ),
        f"{HERE}.pointwise:FUNCTIONS": (
            "erf:fo erfc:fo erfinv:fo exp2:fo expit=sigmoid:fo expm1:fo gammaln=lgamma:fo log1p:fo"
        ),
        f"{HERE}.pointwise": "logit:fo round:fo sinc:fo xlogy:fo",
        f"{HERE}.reductions": "logsumexp:fo",
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
            advice = within(name).get(each)
            raise AttributeError(
                f"module {module!r} has no attribute {each!r}" + (f": {advice}" if advice else ""),
                name=each, obj=sys.modules[module],
            )  # fmt: skip
        from treadle.torch.adapting import public

        function = function_of(entry)
        found = public(function, module, each, has_out="o" in entry.flags)
        setattr(sys.modules[module], each, found)
        return found

    def shown() -> list[str]:
        special = [each for each in vars(sys.modules[module]) if each.startswith("__")]
        return sorted({*special, *known})

    return sorted(known), find, shown
