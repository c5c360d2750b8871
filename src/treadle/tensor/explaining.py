"""`td.explain`: which kernels an expression becomes."""

from __future__ import annotations

from treadle.graph.explain import Explanation
from treadle.graph.explain import explain as explain_nodes
from treadle.tensor.tensor import Tensor


def explain(*tensors: Tensor) -> Explanation:
    """The kernels that computing these tensors would take, as text; nothing is computed.

    Each kernel says what it reads and computes, and why its result goes to memory. The environment
    variable `TREADLE_EXPLAIN=1` prints the same of every kernel that runs.

    >>> import treadle as td
    >>> x = td.asarray([1.0, 2.0], device="cpu")
    >>> print(td.explain((x + 1) * x))
    1 kernel
    1. add_multiply: t1 = float32[2] on cpu, computed because it is asked for
         reads x1 float32[2]
         t1 = (x1 + 1.0) * x1
    """
    return explain_nodes([tensor._cell.value for tensor in tensors])
