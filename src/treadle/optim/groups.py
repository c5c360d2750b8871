"""Groups of parameters: dicts whose numbers are on the device, too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Group(dict[str, Any]):
    """The parameters of a group, `params`, and its options by their names. Changing an option
    changes the next step, also in a compiled function that is replayed."""

    __slots__ = ("changed",)

    changed: Callable[[Group], None] | None

    def __init__(self, options: dict[str, Any]) -> None:
        super().__init__(options)
        self.changed = None

    def __setitem__(self, key: str, value: Any) -> None:
        super().__setitem__(key, value)
        self._notify()

    def update(self, *args: Any, **kwargs: Any) -> None:
        """As a dict's."""
        super().update(*args, **kwargs)
        self._notify()

    def __ior__(self, other: Any) -> Group:  # type: ignore[override,misc]
        self.update(other)
        return self

    def _notify(self) -> None:
        if self.changed is not None:
            self.changed(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (dict(self),)
