"""`torch.backends.cuda`: how products are computed on cards."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from treadle.tensor.precision import (
    get_float32_matmul_precision,
    set_float32_matmul_precision,
)


class _Products:
    """`matmul.allow_tf32`: whether factors of float32 products are rounded to TF32 where that is
    faster, as `torch.set_float32_matmul_precision("high")` says."""

    allow_fp16_reduced_precision_reduction = True
    allow_bf16_reduced_precision_reduction = True
    allow_fp16_accumulation = False

    @property
    def allow_tf32(self) -> bool:
        return get_float32_matmul_precision() != "highest"

    @allow_tf32.setter
    def allow_tf32(self, value: bool) -> None:
        set_float32_matmul_precision("high" if value else "highest")

    @property
    def fp32_precision(self) -> str:
        return "tf32" if self.allow_tf32 else "ieee"

    @fp32_precision.setter
    def fp32_precision(self, value: str) -> None:
        self.allow_tf32 = value == "tf32"


matmul = _Products()


def is_built() -> bool:
    """Whether NVIDIA's cards can be used: they can, where there are some."""
    return True


def flash_sdp_enabled() -> bool:
    """Attention has one kernel, which never stores the scores."""
    return True


mem_efficient_sdp_enabled = math_sdp_enabled = cudnn_sdp_enabled = flash_sdp_enabled


def enable_flash_sdp(enabled: bool) -> None:
    """Accepted: attention has one kernel."""


enable_mem_efficient_sdp = enable_math_sdp = enable_cudnn_sdp = enable_flash_sdp


@contextmanager
def sdp_kernel(**enabled: bool) -> Iterator[None]:
    """Accepted: attention has one kernel."""
    yield
