"""Promises, and whether Python can wait for them.

Where the browser has stack switching (JavaScript Promise Integration) and JavaScript called Python
in the way that allows it, Python's stack is set aside until a promise is settled, and the page goes
on meanwhile. Elsewhere nothing can wait, and only `await` works.
"""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

from treadle.core.errors import WouldBlock
from treadle.core.sizes import is_own_code

_NUMBER = "`await x.item_async()`, and use that number"
_TEXT = "`await x.numpy_async()`, and show that"
_MODULE = (
    'first `state = {name: await x.to_async("cpu") for name, x in module.state_dict().items()}`, '
    "then load_state_dict(state) into a module that was made on the CPU"
)
# What to write instead of a function or method that reads elements.
_FORMS = {
    "numpy": "`await x.numpy_async()`",
    "item": "`await x.item_async()`",
    "tolist": "`await x.tolist_async()`",
    "Tensor.to": '`await x.to_async("cpu")`',
    "QuantizedTensor.to": '`await x.to_async("cpu")`',
    "blocks": "`await x.blocks_async()`",
    "Module.to": _MODULE,
    "Module.cpu": _MODULE,
    "__array__": "`await x.numpy_async()`, and use that array",
    "__bool__": _NUMBER, "__int__": _NUMBER, "__index__": _NUMBER, "__float__": _NUMBER,
    "__complex__": _NUMBER,
    "representation": _TEXT, "__format__": _TEXT,
    "save": 'first `x = await x.to_async("cpu")` for each tensor of the state, then save that',
}  # fmt: skip
# What has no such form, or has it for elements that must be computed first.
_OTHERWISE = (
    'it with tensors on the CPU: first `x = await x.to_async("cpu")` for each; `.to(device)` moves '
    "the result back. It reads elements on its way, or what they are computed from does, as some "
    "functions of td.linalg"
)
_NAMES = {"part_of": "x[...]"}  # of what is called by syntax
_GENERATED = "<plan>"  # the file of code that treadle generates


def can_wait() -> bool:
    """Whether `wait` works here."""
    from pyodide.ffi import can_run_sync

    return bool(can_run_sync())


def check_can_wait(what: str, instead: str) -> None:
    """WouldBlock if Python cannot wait here: `what` needs it, and `instead` does not."""
    if not can_wait():
        raise WouldBlock(
            f"{what} waits for the GPU, and Python cannot wait here: this browser has no stack "
            f"switching, or the code was called in a way without it. Write {instead}"
        )


def check_can_read() -> None:
    """The same for a read of elements, whichever of treadle's functions needs it."""
    if can_wait():
        return
    asked = _asked()
    name = asked.removesuffix("()")
    instead = _FORMS.get(name) or _FORMS.get(name.rpartition(".")[2], _OTHERWISE)
    check_can_wait(asked, instead)


def check_can_synchronize() -> None:
    """The same for waiting until all work is done."""
    if can_wait():
        return
    asked = _asked()
    instead = "`await device.synchronize_async()`"
    if not asked.endswith("synchronize()"):
        instead = '`td.compile(f, device="webgpu")`: "auto" measures how long devices take'
    check_can_wait(asked, instead)


def _asked() -> str:
    """The function of treadle's that was called from outside."""
    frame: FrameType | None = sys._getframe(1)
    name = ""
    while frame is not None:
        code = frame.f_code
        if code.co_filename != _GENERATED:
            if not is_own_code(frame):
                break
            if code.co_name != "wrapper":  # whose name is that of what it calls
                name = _NAMES.get(code.co_name, f"{code.co_qualname}()")
        frame = frame.f_back
    return name


def wait(promise: Any) -> Any:
    """What a promise gives, waited for."""
    from pyodide.ffi import run_sync

    return run_sync(promise)
