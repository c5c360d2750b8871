"""`treadle demo`: kernels on a real photograph and a wave, on every device, compared."""
