"""Where lanes may be missing of a subgroup that holds matrices together.

Each lane of a subgroup holds a part of a matrix (`ir.matrices`, `ir.opaque`). Of a lane that is not
there, or has returned, nothing is known: the product of what is left is wrong. Other subgroup
operations go on without lanes that returned (`passes.predicate`), those on matrices do not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import numpy as np

from treadle.core.dim3 import Dim3
from treadle.core.errors import LaunchError
from treadle.ir import nodes as n
from treadle.ir.matrices import WIDTH
from treadle.ir.passes.uniformity import Level, analyze, refusal
from treadle.ir.traverse import statements_in, walk

_OPERATIONS = n.MATRIX_OPERATIONS.keys() | n.OPAQUE_OPERATIONS.keys()


def has_matrices(kernel: n.Kernel) -> bool:
    """Whether a kernel, or a function that it calls, works on matrices of whole subgroups."""
    bodies = (kernel.body, *(function.body for function in kernel.functions))
    return any(_is_of_matrices(node) for body in bodies for node in statements_in(body))


def _is_of_matrices(node: object) -> bool:
    if isinstance(node, n.OpaqueStore):
        return True
    return isinstance(node, n.Subgroup) and node.op in _OPERATIONS


def needs_whole_subgroups(name: str, given: str) -> LaunchError:
    """The error for a launch without some of a subgroup's threads; `given` says what was asked,
    as in ", not 20"."""
    return LaunchError(
        f"kernel {name} has matrix fragments, which whole subgroups of {WIDTH} threads hold: "
        f"launch it with a multiple of {WIDTH} threads{given}"
    )


def splits_subgroups(threads: Sequence[int], block: Dim3) -> bool:
    """Whether some subgroup of a launch of `threads` (x first), in blocks, has only some of its
    threads.

    >>> splits_subgroups((64, 3), Dim3(32, 4, 1)), splits_subgroups((40,), Dim3(256, 1, 1))
    (False, True)
    """
    # Whole blocks have all threads; of the last ones along each axis, some.
    axes = zip(threads, block, strict=False)
    counts = [{min(extent, size), extent % size or size} for extent, size in axes]
    counts += [{1}] * (3 - len(counts))
    for x, y, z in product(*counts):
        inside = np.zeros(tuple(block)[::-1], bool)
        inside[:z, :y, :x] = True
        flat = np.pad(inside.ravel(), (0, -inside.size % WIDTH)).reshape(-1, WIDTH)
        if np.any(flat.any(1) & ~flat.all(1)):
            return True
    return False


def check_block(kernel: n.Kernel) -> None:
    """LaunchError for a block whose last subgroup lacks lanes that hold a part of a matrix."""
    count = kernel.block.count if kernel.block else WIDTH
    if count % WIDTH and has_matrices(kernel):
        raise needs_whole_subgroups(kernel.name, f" in a block, not {count}")


def check_lanes(kernel: n.Kernel, also_written: frozenset[str] = frozenset()) -> None:
    """Refuse an operation on matrices that some lanes of a subgroup may not reach, because of a
    branch, of a loop, or because they have returned.

    Raises CompileError at its place, which names what divides the lanes. The return of a launch's
    threads beyond the extent that was asked for is left out: launches see to these. `also_written`
    is as in `uniformity.analyze`.
    """
    nodes = [node for node in statements_in(kernel.body) if _is_of_matrices(node)]
    if not nodes:
        return
    kernel = replace(kernel, body=_without_launch_guard(kernel))
    analysis = analyze(kernel, also_written=also_written)
    for node in nodes:
        flow = analysis.flow(node)
        if flow.level > Level.WARP:
            raise refusal(node, flow)


def _without_launch_guard(kernel: n.Kernel) -> n.Block:
    """The body without the return of threads outside the extent of a launch, at its start."""
    extents = {p.name for p in kernel.parameters if p.origin[:1] == ("threads",)}
    for at, node in enumerate(kernel.body):
        if not isinstance(node, n.If) or not all(isinstance(one, n.Return) for one in node.then):
            continue
        if any(isinstance(one, n.Variable) and one.name in extents for one in walk(node.condition)):
            return (*kernel.body[:at], *kernel.body[at + 1 :])
    return kernel.body
