"""The printer of Python: a kernel as NumPy's operations on vectors of threads."""
