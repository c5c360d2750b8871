"""A kernel

Each thread computes one element. Change the kernel, and run it again.
"""

import numpy as np
import treadle as td


@td.kernel
def saxpy(a, x, y):
    i = td.grid(1)  # the index of this thread
    y[i] = a * x[i] + y[i]


n = 1 << 16
x = td.arange(n, dtype=td.float32)
y = td.ones(n)
saxpy.launch(n, 2.0, x, y)

result = await y.numpy_async()
print("on", y.device.name)
print("y =", result)
print("largest error:", np.abs(result - (2 * np.arange(n) + 1)).max())
