"""What differs from PyTorch on purpose: samples that are not compared, each with the reason.

An entry that fits no sample is an error of the test, so that the list stays short.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

FLOAT_MEANS = "means of integers are floats"


@dataclass(frozen=True)
class Unlike:
    """A reason, the dtypes of the samples that it is about (none: all), and which of them."""

    reason: str
    dtypes: tuple[str, ...] = ()
    when: Callable[[Any], bool] = lambda sample: True


def _complex(reason: str) -> Unlike:
    return Unlike(reason, ("complex128",))


def _drawn(sample: Any) -> bool:
    return sample.kwargs.get("dropout_p", 0) > 0 or bool(sample.kwargs.get("training"))


_LEGACY = "PyTorch takes arrays without elements for arrays of any number of axes, as it did once"
_SCALAR_SCORES = Unlike("scores of classes have an axis for them", (), lambda s: not s.input.ndim)

UNLIKE: dict[str, tuple[Unlike, ...]] = {
    "nn.functional.rms_norm": (
        _complex("takes real numbers, and says so: PyTorch takes squares for magnitudes"),
    ),
    **{
        name: (Unlike("drawn numbers differ", (), _drawn),)
        for name in ("nn.functional.rrelu", "nn.functional.scaled_dot_product_attention")
    },
    **{
        f"{name}-with_dtype": (_complex("no imaginary part is dropped by a cast"),)
        for name in ("softmax", "log_softmax", "nn.functional.softmin")
    },
    **{
        name: (Unlike(FLOAT_MEANS, ("int64",)),)
        for name in (
            "nn.functional.avg_pool1d", "nn.functional.avg_pool2d", "nn.functional.avg_pool3d",
            "nn.functional.local_response_norm",
        )
    },
    "nn.functional.multi_margin_loss": (_SCALAR_SCORES,),
    "nn.functional.multilabel_margin_loss": (_SCALAR_SCORES,),
    "nn.functional.batch_norm": (
        Unlike("a batch without channels", (), lambda s: s.input.ndim < 2),
    ),
    "searchsorted": (
        Unlike("the standard's has one sorted row", (), lambda s: s.input.ndim != 1),
    ),
    "nonzero": (
        Unlike("the standard refuses arrays without axes", (),
               lambda s: not s.input.ndim and s.kwargs.get("as_tuple", False)),
    ),
    "bincount": (
        Unlike("weights that are integers are added up in the default float", ("int64",),
               lambda s: s.kwargs.get("weights") is not None),
    ),
    "gather": (Unlike(_LEGACY, (), lambda s: s.args[1].ndim > max(s.input.ndim, 1)),),
    "cat": (Unlike(_LEGACY, (), lambda s: len({x.ndim for x in s.input}) > 1),),
    "arange": (
        Unlike("NumPy counts before it cuts floats to integers", ("int64",),
               lambda s: any(isinstance(x, float) for x in (s.input, *s.args, *s.kwargs.values()))),
    ),
    "linspace": (Unlike("NumPy rounds down, PyTorch towards 0", ("int64",)),),
    "tensordot": (
        Unlike("axes that are added up have one extent", (),
               lambda s: tuple(s.input.shape) == (1, 1, 1)),
    ),
    "linalg.solve": (
        Unlike("the standard's right side of one axis is a vector, others are matrices", (),
               lambda s: s.args[0].ndim == s.input.ndim - 1 > 1),
    ),
}  # fmt: skip
