"""`torch.signal.windows`: weights of the elements of a stretch of a signal."""

from treadle.torch.namespaces import namespace

__all__, __getattr__, __dir__ = namespace("signal.windows")
