"""What moves data between ranks: one module each, and the protocol in `base.py`."""

# The modules that make backends, by their names.
BACKENDS = {
    "mpi": "treadle.distributed.backends.mpi",
    "nccl": "treadle.distributed.backends.nccl",
}
