"""Linear algebra, `td.linalg`: the Array API's extension, and further functions of NumPy and
PyTorch.

Matrices are the last two axes; leading axes are a stack. Factors, singular values and eigenvalues
of symmetric matrices are computed on the device (on the CPU by NumPy's LAPACK, but for small
factors); singular values and eigenvalues of complex matrices, and `eig`, by LAPACK on the host, to
which a GPU's elements are copied. float16 and bfloat16 are computed in float32 and rounded once.
"""

from treadle.core.deferred_imports import exports

NAMES = {
    "numpy.linalg": "LinAlgError",
    "treadle.tensor.linalg.factors": "cholesky det qr QRResult slogdet SlogdetResult",
    "treadle.tensor.linalg.norms": "matrix_norm norm vector_norm",
    "treadle.tensor.linalg.powers": "cross diagonal matrix_exp matrix_power multi_dot trace",
    "treadle.tensor.linalg.spectra": (
        "cond eig eigh EighResult EigResult eigvals eigvalsh matrix_rank pinv svd SVDResult svdvals"
    ),
    "treadle.tensor.linalg.systems": "inv lstsq LstsqResult solve solve_triangular",
    "treadle.tensor.manipulation": "matrix_transpose",
    "treadle.tensor.products": "matmul outer tensordot vecdot",
}
__all__, __getattr__, __dir__ = exports(__name__, NAMES)
