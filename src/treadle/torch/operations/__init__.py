"""What PyTorch's functions compute, on tensors of treadle: one file a theme.

A function has PyTorch's parameters and defaults, but for `out`; it takes and returns treadle's
tensors. `treadle.torch.table` says under which names it is a function and a method.
"""
