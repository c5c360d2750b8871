"""Layouts and memory formats: names that programs hand around. Elements of tensors are strided, and
new tensors are row-major, whatever format is asked for."""

from __future__ import annotations


class layout:
    """How elements are stored."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return f"torch.{self._name}"


class memory_format(layout):
    """The order of axes in memory."""


strided = layout("strided")
contiguous_format = memory_format("contiguous_format")
preserve_format = memory_format("preserve_format")
channels_last = memory_format("channels_last")
channels_last_3d = memory_format("channels_last_3d")
