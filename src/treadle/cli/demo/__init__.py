"""`treadle demo`: kernels on every device, compared, and a network that learns to read digits."""
