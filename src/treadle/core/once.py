"""Things of which a process has one, made at first use."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import wraps
from typing import Any, TypeVar

from treadle.core import forks

Made = TypeVar("Made")


def once(make: Callable[..., Made]) -> Callable[..., Made]:
    """`functools.cache` for functions whose result must exist once: threads that come first at the
    same time wait for one of them to make it. (With `cache` each would make its own, and what only
    one of them keeps would be freed under the other's feet.)
    """
    lock = forks.lock()
    known: dict[Hashable, Made] = {}

    @wraps(make)
    def get(*arguments: Hashable, **keywords: Any) -> Made:
        key = (arguments, tuple(sorted(keywords.items())))
        if key not in known:
            with lock:
                if key not in known:
                    known[key] = make(*arguments, **keywords)
        return known[key]

    return get
