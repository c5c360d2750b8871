# Written by tools/stubs.py: change the tables or docstrings that it reads instead.
"""Linear algebra, `td.linalg`: the Array API's extension, and further functions of NumPy and
PyTorch.

Matrices are the last two axes; leading axes are a stack. Factors, singular values and eigenvalues
of symmetric matrices are computed on the device (on the CPU by NumPy's LAPACK, but for small
factors); singular values and eigenvalues of complex matrices, and `eig`, by LAPACK on the host, to
which a GPU's elements are copied. float16 and bfloat16 are computed in float32 and rounded once.
"""

from numpy.linalg import LinAlgError as LinAlgError

from treadle.tensor.linalg.factors import QRResult as QRResult
from treadle.tensor.linalg.factors import SlogdetResult as SlogdetResult
from treadle.tensor.linalg.factors import cholesky as cholesky
from treadle.tensor.linalg.factors import det as det
from treadle.tensor.linalg.factors import qr as qr
from treadle.tensor.linalg.factors import slogdet as slogdet
from treadle.tensor.linalg.norms import matrix_norm as matrix_norm
from treadle.tensor.linalg.norms import norm as norm
from treadle.tensor.linalg.norms import vector_norm as vector_norm
from treadle.tensor.linalg.powers import cross as cross
from treadle.tensor.linalg.powers import diagonal as diagonal
from treadle.tensor.linalg.powers import matrix_exp as matrix_exp
from treadle.tensor.linalg.powers import matrix_power as matrix_power
from treadle.tensor.linalg.powers import multi_dot as multi_dot
from treadle.tensor.linalg.powers import trace as trace
from treadle.tensor.linalg.spectra import EighResult as EighResult
from treadle.tensor.linalg.spectra import EigResult as EigResult
from treadle.tensor.linalg.spectra import SVDResult as SVDResult
from treadle.tensor.linalg.spectra import cond as cond
from treadle.tensor.linalg.spectra import eig as eig
from treadle.tensor.linalg.spectra import eigh as eigh
from treadle.tensor.linalg.spectra import eigvals as eigvals
from treadle.tensor.linalg.spectra import eigvalsh as eigvalsh
from treadle.tensor.linalg.spectra import matrix_rank as matrix_rank
from treadle.tensor.linalg.spectra import pinv as pinv
from treadle.tensor.linalg.spectra import svd as svd
from treadle.tensor.linalg.spectra import svdvals as svdvals
from treadle.tensor.linalg.systems import LstsqResult as LstsqResult
from treadle.tensor.linalg.systems import inv as inv
from treadle.tensor.linalg.systems import lstsq as lstsq
from treadle.tensor.linalg.systems import solve as solve
from treadle.tensor.linalg.systems import solve_triangular as solve_triangular
from treadle.tensor.manipulation import matrix_transpose as matrix_transpose
from treadle.tensor.products import matmul as matmul
from treadle.tensor.products import outer as outer
from treadle.tensor.products import tensordot as tensordot
from treadle.tensor.products import vecdot as vecdot

__all__ = [
    "EigResult",
    "EighResult",
    "LinAlgError",
    "LstsqResult",
    "QRResult",
    "SVDResult",
    "SlogdetResult",
    "cholesky",
    "cond",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "inv",
    "lstsq",
    "matmul",
    "matrix_exp",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "multi_dot",
    "norm",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "solve_triangular",
    "svd",
    "svdvals",
    "tensordot",
    "trace",
    "vecdot",
    "vector_norm",
]
