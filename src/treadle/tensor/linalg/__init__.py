"""Linear algebra, `td.linalg`: the Array API's extension, and further functions of NumPy and
PyTorch.

Matrices are the last two axes; leading axes are a stack. Cholesky, LU and QR are computed on the
device (on the CPU large ones by NumPy's LAPACK); singular values and eigenvalues by LAPACK on the
host, to which a GPU's elements are copied. float16 and bfloat16 are computed in float32 and rounded
once.
"""

from numpy.linalg import LinAlgError

from treadle.tensor.linalg import factors, norms, powers, spectra, systems
from treadle.tensor.linalg.factors import *  # noqa: F403  what its __all__ names
from treadle.tensor.linalg.norms import *  # noqa: F403  what its __all__ names
from treadle.tensor.linalg.powers import *  # noqa: F403  what its __all__ names
from treadle.tensor.linalg.spectra import *  # noqa: F403  what its __all__ names
from treadle.tensor.linalg.systems import *  # noqa: F403  what its __all__ names
from treadle.tensor.manipulation import matrix_transpose
from treadle.tensor.products import matmul, outer, tensordot, vecdot

__all__ = ["LinAlgError", "matmul", "matrix_transpose", "outer", "tensordot", "vecdot"]
__all__ += factors.__all__
__all__ += norms.__all__
__all__ += powers.__all__
__all__ += spectra.__all__
__all__ += systems.__all__
