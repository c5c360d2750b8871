"""Modules that are a function of tensors with settings, and nothing to learn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from treadle.nn.module import Module


class FunctionModule(Module):
    """A function, called with the module's arguments and its settings, which are attributes.

    `_text` says how the settings appear in the module's text; `inplace` appears if it is True.
    """

    _function: ClassVar[Callable[..., Any]]
    _text: ClassVar[str] = ""
    _settings: tuple[str, ...]

    def __init__(self, **settings: Any) -> None:
        super().__init__()
        self._settings = tuple(settings)
        for name, value in settings.items():
            setattr(self, name, value)

    def _values(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self._settings}

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The function's result."""
        return type(self)._function(*args, **kwargs, **self._values())

    def extra_repr(self) -> str:
        """The settings."""
        values = self._values()
        text = self._text.format(**{name: repr(value) for name, value in values.items()})
        if values.get("inplace") and "inplace" not in text:
            text = f"{text}, inplace=True" if text else "inplace=True"
        return text
