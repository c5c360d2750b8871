"""Products that compute their activations themselves, where kernels have 8 arrays: some matrices
have too many planes for that, and some too many to be in one launch."""

from __future__ import annotations

from tests.device.quant.test_products_after import fused, test_norms_of_a_stream

__all__ = ["fused", "test_norms_of_a_stream"]

THREADS = 64
