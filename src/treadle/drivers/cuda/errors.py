"""The driver's error codes, as treadle's errors.

Most faults of a kernel are found after its launch returned, and then the whole context is broken:
each later call answers with the same code. Those are the sticky ones; they lose the device.
"""

from __future__ import annotations

from collections.abc import Iterable

SUCCESS = 0
INVALID_VALUE = 1
OUT_OF_MEMORY = 2
NOT_READY = 600
LAUNCH_OUT_OF_RESOURCES = 701

# A fault of a kernel: its code did this.
KERNEL_FAULTS = {
    700: "a kernel read or wrote memory that it does not have",
    702: "a kernel ran longer than the system's watchdog allows",
    710: "an assertion in a kernel failed",
    714: "a kernel's stack overflowed",
    715: "a kernel ran into an illegal instruction",
    716: "a kernel used an address that is not aligned to the size of the access",
    717: "a kernel used an address outside of the memory space that the instruction is for",
    718: "a kernel jumped to an address that is no code",
    719: "a kernel failed while it ran",
}
# The device or the process's connection to it is gone.
DEVICE_FAULTS = {
    4: "the driver is shutting down",
    46: "the device is busy or unavailable",
    201: "the context is gone",
    214: "the device's memory had an error that could not be corrected",
    220: "the device's link had an error that could not be corrected",
    226: "the device's memory had an error that was contained",
    709: "the context was destroyed by somebody else in this process",
    721: "the device's tensor memory was left in use",
    999: "the driver failed for a reason that it does not know",
}


def is_sticky(code: int) -> bool:
    """Whether nothing works in the context from here on."""
    return code in KERNEL_FAULTS or code in DEVICE_FAULTS


def loss_reason(code: int, description: str, recent: Iterable[str]) -> str:
    """Why a device was lost, and by which kernels perhaps.

    >>> print(loss_reason(700, "CUDA_ERROR_ILLEGAL_ADDRESS (700)", ["add", "scale", "add"]))
    a kernel read or wrote memory that it does not have (CUDA_ERROR_ILLEGAL_ADDRESS (700)). It was \
one of those launched since the last wait: add, scale. Kernels with checked=False and CUDA C++ can \
do that
    """
    if code not in KERNEL_FAULTS:
        return f"{DEVICE_FAULTS[code]} ({description})"
    names = ", ".join(dict.fromkeys(recent))
    suspects = (
        f"It was one of those launched since the last wait: {names}"
        if names
        else "Nothing of treadle's was launched since the last wait, so it was another library's"
    )
    return (
        f"{KERNEL_FAULTS[code]} ({description}). {suspects}. "
        "Kernels with checked=False and CUDA C++ can do that"
    )
