"""`torch.backends.cpu`."""


def get_cpu_capability() -> str:
    """How kernels use the CPU's vector units: LLVM decides it for this machine."""
    return "DEFAULT"
