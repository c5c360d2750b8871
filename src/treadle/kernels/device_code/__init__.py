"""The kernels themselves. Those that depend on dtypes are made by cached functions."""
