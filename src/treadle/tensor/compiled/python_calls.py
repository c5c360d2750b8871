"""Calls of a function's Python without a recording, with tensors for the arrays of arguments.

NumPy arrays, and those of other libraries, are tensors inside a function whether it is traced or
not. What it writes into them is copied back to NumPy's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from treadle.tensor.compiled.arguments import Arguments, Content
from treadle.tensor.compiled.structure import with_leaves
from treadle.tensor.creation import asarray
from treadle.tensor.tensor import Tensor


def in_python(function: Callable[..., Any], arguments: Arguments) -> Any:
    """The function's result for the arguments of a call."""
    args, kwargs, leaves = arguments.args, arguments.kwargs, arguments.leaves
    given = [value for _, value in arguments.named()]
    hosts = [at for at, leaf in enumerate(leaves) if type(leaf) is np.ndarray]
    tensors = list(leaves)
    for at in hosts:
        tensors[at] = asarray(leaves[at], device=arguments.device, copy=True)
    rest = iter(tensors)
    made: list[tuple[Any, Any]] = []
    given = [with_leaves(value, lambda _: next(rest), made) for value in given]
    contents = [Content(mine) for _, mine in made]
    try:
        result = function(*given[: len(args)], **dict(zip(kwargs, given[len(args) :], strict=True)))
    finally:
        for at in hosts:
            _copy_back(tensors[at], leaves[at])
    for (theirs, mine), before in zip(made, contents, strict=True):
        now = Content(mine)
        if theirs is not mine and not now.same(before):
            now.put(theirs, now.values)
    return next((theirs for theirs, mine in made if mine is result), result)


def _copy_back(tensor: Tensor, host: np.ndarray[Any, Any]) -> None:
    """Copy elements back to NumPy's array if they have changed. (A kernel may have written them,
    which nothing but the elements shows.)"""
    if not host.flags.writeable:
        return
    now = tensor.numpy()
    if now.tobytes() != np.ascontiguousarray(host).astype(now.dtype, copy=False).tobytes():
        host[...] = now
