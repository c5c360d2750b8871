"""`torch.special`: special functions."""

from treadle.torch.namespaces import namespace

__all__, __getattr__, __dir__ = namespace("special")
