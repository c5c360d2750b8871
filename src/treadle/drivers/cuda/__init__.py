"""CUDA: NVIDIA's GPUs, through the driver's library only.

- `backend`: listing and opening devices. `library`: loading the driver's library, and the reason
  if that fails. `properties`: what a card is and can do, and its state.
- `calls`, `calls_in_python`: how the driver is called: by machine code that makes a context
  current for a call.
- `device`, `stream`, `events`, `recording`: the driver protocol.
- `order`: work on several streams that use the same memory.
- `memory`, `staging`: buffers, and pinned memory that data passes through.
- `modules`: PTX or CUDA C++ to machine code, and what a launch needs of it.
- `errors`: the driver's codes as treadle's errors.

A kernel's parameters are one pointer for each of `KernelCode.bindings`, then the slots of
`KernelCode.layout`: the same bytes as the pointers followed by the parameter block, which is how
they are handed to the driver.

`cuda.bindings` is imported only when a driver is installed and its devices are listed.
"""

from treadle.drivers.cuda.backend import CudaBackend

__all__ = ["CudaBackend"]
