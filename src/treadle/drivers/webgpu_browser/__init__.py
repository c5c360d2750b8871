"""WebGPU in a web page: Pyodide's Python over the browser's own `navigator.gpu`.

- `backend`: finding an adapter and opening devices; the door.
- `device`, `stream`, `events`, `recording`: the driver protocol.
- `commands`: work collected as 32-bit words, and the block that hands them to JavaScript.
- `kernels`: pipelines, and cached bind groups.
- `waiting`: promises, and whether Python can wait for them.
- `helper.js`: tables of WebGPU's objects, and the code that encodes and submits a block.

The layout of bindings is that of the native driver.
"""

from treadle.drivers.webgpu_browser.backend import BrowserBackend

__all__ = ["BrowserBackend"]
