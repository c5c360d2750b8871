"""The signatures of `td.nn.functional` are PyTorch's."""

from __future__ import annotations

import inspect

import pytest

import treadle.nn.functional as F

try:
    import torch
except ImportError:
    torch = None

OURS = {"geglu", "packed_attention", "reglu", "swiglu", "swish"}
DIM = {"dim": "axis"}
# What is deprecated there, or has no meaning here; and what only we have.
LEFT_OUT, MORE = {"_stacklevel", "out"}, {"generator"}


def described(function, left_out):
    found = inspect.signature(function).parameters.values()
    return [(DIM.get(p.name, p.name), p.default) for p in found if p.name not in left_out]


if torch is not None:

    @pytest.mark.parametrize("name", sorted(set(F.__all__) - OURS))
    def test_arguments(name):
        theirs = getattr(torch.nn.functional, name)
        try:
            wanted = described(theirs, LEFT_OUT)
        except ValueError:  # written in C++, where no signature is to be seen
            return
        if wanted[0][0] == "args":  # chosen by return_indices
            wanted = described(getattr(torch.nn.functional, f"{name}_with_indices"), LEFT_OUT)
        if name in ("log_softmax", "softmax", "softmin"):  # there a warning, and several axes
            wanted[1] = ("axis", -1)
        assert described(getattr(F, name), MORE) == wanted


def test_names_are_there_once():
    assert len(F.__all__) == len(set(F.__all__))
    assert all(callable(getattr(F, name)) for name in F.__all__)
