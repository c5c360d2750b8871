"""`torch.cuda.amp`: `torch.amp` for "cuda"."""

from __future__ import annotations

from typing import Any

from treadle.core.dtypes import DType, float16
from treadle.torch.amp import mixed_precision as _amp
from treadle.torch.amp.mixed_precision import custom_bwd, custom_fwd

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd"]


class autocast(_amp.autocast):
    """`torch.amp.autocast("cuda")`."""

    def __init__(
        self, enabled: bool = True, dtype: DType = float16, cache_enabled: bool = True
    ) -> None:
        super().__init__("cuda", dtype, enabled, cache_enabled)


class GradScaler(_amp.GradScaler):
    """`torch.amp.GradScaler("cuda")`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("cuda", *args, **kwargs)
