"""What NumPy's functions compute, on tensors of treadle: one file a theme.

A function has NumPy's parameters and defaults, but for `out`; it takes and returns treadle's
tensors, and takes what NumPy makes arrays of, too. `treadle.numpy.table` says under which names it
is a function and a method.
"""
