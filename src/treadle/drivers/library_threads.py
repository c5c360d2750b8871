"""How many threads the BLAS has by which NumPy multiplies matrices for treadle."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from treadle.drivers.machine import threads_wanted

# A library's own variable, by threadpoolctl's names for libraries.
_OWN_VARIABLES = {
    "openblas": "OPENBLAS_NUM_THREADS",
    "mkl": "MKL_NUM_THREADS",
    "blis": "BLIS_NUM_THREADS",
}
_FOLDERS = frozenset({"numpy", "numpy.libs"})


def limit_library_threads() -> None:
    """Give NumPy's BLAS as many threads as TREADLE_CPU_THREADS says, unless that is not set or the
    library's own variable is. Where another library has brought a BLAS, that one keeps its own."""
    wanted = threads_wanted()
    if wanted is None or sys.platform == "emscripten":  # which has no threads
        return
    from threadpoolctl import ThreadpoolController

    found = ThreadpoolController().select(user_api="blas").lib_controllers
    # NumPy's wheels bring their own; other distributions of NumPy share one with all.
    own = [each for each in found if _FOLDERS.intersection(Path(each.filepath).parts)]
    for each in own or found:
        if not os.environ.get(_OWN_VARIABLES.get(each.internal_api, "")):
            each.set_num_threads(wanted)
