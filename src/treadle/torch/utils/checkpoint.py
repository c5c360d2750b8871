"""`torch.utils.checkpoint`: values that are computed again in the backward pass instead of kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from treadle.autograd.checkpoint import checkpoint as _checkpoint
from treadle.torch.func.transforms import inner
from treadle.torch.tensors import unwrapped, wrapped


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    context_fn: Any = None,
    determinism_check: str = "default",
    debug: bool = False,
    preserve_rng_state: bool = True,
    **kwargs: Any,
) -> Any:
    """What `function` returns, without its intermediate values kept for the backward pass, which
    computes them again. `use_reentrant`, `determinism_check` and `debug` are accepted.

    >>> import treadle.torch as torch
    >>> from treadle.torch.utils.checkpoint import checkpoint
    >>> x = torch.tensor(0.0, requires_grad=True)
    >>> checkpoint(lambda x: torch.exp(torch.sin(x)), x, use_reentrant=False).backward()
    >>> x.grad.item()
    1.0
    """
    if context_fn is not None:
        raise NotImplementedError("checkpoint: context_fn is not supported, leave it out")
    saved = _checkpoint(inner(function), preserve_rng_state=preserve_rng_state)
    return wrapped(saved(*unwrapped(args), **unwrapped(kwargs)))


def checkpoint_sequential(
    functions: Any, segments: int, input: Any, use_reentrant: bool | None = None, **kwargs: Any
) -> Any:
    """What modules in a row return, with only the values between `segments` parts kept."""
    listed = list(functions)
    size = max(len(listed) // segments, 1)
    starts = [k * size for k in range(segments)]
    for start, end in zip(starts, [*starts[1:], len(listed)], strict=True):
        part = listed[start:end]

        def run(x: Any, part: list[Any] = part) -> Any:
            for each in part:
                x = each(x)
            return x

        is_last = end == len(listed)
        input = run(input) if is_last else checkpoint(run, input, use_reentrant=use_reentrant)
    return input
