"""What programs in the playground have beside Python and treadle: a canvas, a chart, a box.

Each of these is an element of the page, below the program's text. The page's thread owns the
elements; the program runs in a worker, so all that passes between them are messages, except for a
canvas: that is handed to the worker, and drawn there by the GPU that computes.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import _playground
import numpy as np
from pyodide.ffi import JsException, to_js

import treadle as td

_targets: dict[int, Any] = {}


def begin() -> None:
    """Forget what an earlier program showed."""
    _targets.clear()


def end() -> None:
    """Let the page know that events have no receiver any more."""
    _targets.clear()


def event(target: int, fields: dict[str, Any]) -> None:
    """Hand an event of the page to the object it is for."""
    if target in _targets:
        _targets[target]._event(fields)


def _fields(**fields: Any) -> Any:
    import js

    return to_js(fields, dict_converter=js.Object.fromEntries)


def _number(of: Any) -> int:
    number = len(_targets) + 1
    _targets[number] = of
    return number


class Canvas:
    """A picture of a two-dimensional float32 array, drawn straight from the GPU's memory.

    `pointer` is where the visitor's finger or mouse is while it is pressed, as (row, column) of
    the array, and None otherwise. `frame` counts the pictures drawn.
    """

    def __init__(self, height: int, width: int) -> None:
        self.height, self.width = height, width
        self.pointer: tuple[float, float] | None = None
        self.frame = 0
        self._painter: Any = None
        self._surface: Any = None  # an OffscreenCanvas

    def draw(
        self, array: td.Tensor, low: float = -1.0, high: float = 1.0, colors: str = "diverging"
    ) -> None:
        """Draw the array. Values from `low` to `high` become colours: "diverging" or
        "sequential"."""
        if array.shape != (self.height, self.width) or array.dtype != td.float32:
            raise ValueError(
                f"this canvas shows float32 arrays of {self.height} by {self.width}, and this one "
                f"is {array.dtype} of {' by '.join(map(str, array.shape))}"
            )
        if colors not in ("diverging", "sequential"):
            raise ValueError(f'colors is "diverging" or "sequential", not {colors!r}')
        if array.device.kind == "cpu":
            self._draw_from_host(array, low, high, colors)
        else:
            self._draw_from_device(array, low, high, colors)
        self.frame += 1

    def _draw_from_device(self, array: td.Tensor, low: float, high: float, colors: str) -> None:
        held = array.__treadle_array__()
        if held.strides[1] != 1:
            held = td.copy(array).__treadle_array__()
        driver = array.device.handle
        if self._painter is None:
            self._painter = _playground.painter(driver.helper, self._surface)
        driver.flush()  # what computes it comes first
        buffer = held.storage.buffer
        self._painter.draw(buffer.number, held.offset, held.strides[0], low, high, colors)

    def _draw_from_host(self, array: td.Tensor, low: float, high: float, colors: str) -> None:
        if self._painter is None:
            self._painter = _playground.painter(None, self._surface)
        values = to_js(np.ascontiguousarray(array.numpy()).ravel())
        self._painter.draw(values, low, high, colors)

    async def frames(self, count: int | None = None) -> AsyncIterator[int]:
        """Wait for the screen to show a picture, again and again: 0, 1, 2, … (up to `count`)."""
        number = 0
        while count is None or number < count:
            await _playground.nextFrame()
            yield number
            number += 1

    def _event(self, fields: dict[str, Any]) -> None:
        at = fields["at"]
        self.pointer = (at[1] * self.height, at[0] * self.width) if at else None


async def canvas(height: int, width: int) -> Canvas:
    """A new canvas for arrays of this many rows and columns."""
    made = Canvas(height, width)
    made._surface = await _playground.ask(
        "canvas", _fields(target=_number(made), height=height, width=width)
    )
    return made


class Chart:
    """A curve that grows: `add` appends a value. With `log=True` its axis is logarithmic."""

    def __init__(self, title: str, log: bool = False) -> None:
        self._target = _number(self)
        _playground.post("chart", _fields(target=self._target, title=title, log=log))

    def add(self, value: float) -> None:
        """Append a value to the curve."""
        _playground.post("point", _fields(target=self._target, value=float(value)))

    def _event(self, fields: dict[str, Any]) -> None:
        return


class Sketch:
    """A box to draw in, with a pointer or a finger. `strokes` yields what is in it, each time
    something was drawn: a float32 array of `size` by `size`, from 0 to 1."""

    def __init__(self, size: int, title: str) -> None:
        self.size = size
        self._changed = asyncio.Event()
        self._pixels = np.zeros((size, size), np.float32)
        self._target = _number(self)
        _playground.post("sketch", _fields(target=self._target, size=size, title=title))

    async def strokes(self) -> AsyncIterator[np.ndarray]:
        """What is in the box, each time it has changed."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            yield self._pixels.copy()

    def say(self, text: str) -> None:
        """Show a text beside the box."""
        _playground.post("say", _fields(target=self._target, text=text))

    def _event(self, fields: dict[str, Any]) -> None:
        pixels = np.asarray(fields["pixels"], np.float32)
        self._pixels = pixels.reshape(self.size, self.size)
        self._changed.set()


def columns(texts: dict[str, str]) -> None:
    """Show texts in columns: `columns({"CUDA C++": source, "WGSL": printed})`, coloured as C++."""
    _playground.post("columns", _fields(texts=list(texts.items())))


async def file(url: str) -> str:
    """The path of a file that is fetched once, with its progress shown, and then stays in this
    browser's storage. It is read from there as it is needed, not loaded into memory."""
    path = "/files/" + url.rpartition("/")[2]
    try:
        await _playground.store(url, path)
    except JsException as error:
        raise OSError(error.message) from None
    return path


async def digits() -> tuple[np.ndarray, np.ndarray]:
    """scikit-learn's 1797 handwritten digits: pictures of 8 by 8 from 0 to 1, and their labels."""
    from pyodide.http import pyfetch

    response = await pyfetch(_playground.base + "digits.bin")
    rows = np.frombuffer(await response.bytes(), np.uint8).reshape(-1, 65)
    pictures = rows[:, :64].astype(np.float32).reshape(-1, 8, 8) / 16
    return pictures, rows[:, 64].astype(np.int32)
