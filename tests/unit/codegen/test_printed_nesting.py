"""What is printed for deep code is not deep, whatever was written."""

from __future__ import annotations

import re

import pytest

from tests.support.deep_kernels import CASES, kernel_of

_DEEPEST = 31


def depth_of(text: str) -> int:
    """Braces inside of each other; each link of a chain of else ifs counts as one, too."""
    chains, deepest, links = [0], 0, 0  # the links above, of each brace that is open
    for sign in re.findall(r"} else if|[{}]", text):
        if sign == "{":
            chains.append(links)
            links = 0
        elif sign == "}":
            chains.pop()
        else:
            links = chains.pop() + 1
        deepest = max(deepest, len(chains) - 1 + sum(chains))
    return deepest


def test_depth_of() -> None:
    assert depth_of("f { if { } else { while { } } }") == 3
    assert depth_of("f { if { } else if { } else if { if { } } else { } }") == 5


@pytest.mark.parametrize("target", ["wgsl", "cuda"])  # Metal's is printed as CUDA's
@pytest.mark.parametrize(("make", "count"), CASES, ids=lambda value: getattr(value, "__name__", ""))
def test_printed_nesting(make, count, target, tmp_path) -> None:
    text = kernel_of(make(count), tmp_path).source(target, block=64)
    assert 2 <= depth_of(text) <= _DEEPEST
