"""Modules without initial values."""

from __future__ import annotations

from typing import Any

__all__ = ["skip_init"]


def skip_init(module_cls: type, *args: Any, **kwargs: Any) -> Any:
    """A module on a device, whose parameters are to be given values by the caller. (They have their
    usual ones, which cost little.)"""
    return module_cls(*args, **kwargs)
