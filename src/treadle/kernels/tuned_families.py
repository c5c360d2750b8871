"""What the tuner knows: a family for each kind of kernels with a choice. Another is a line here.

A family's module stands above what plans its kernels, which asks `machine.choices` for results.
"""

from __future__ import annotations

from treadle.kernels.tuned_attention import ATTENTION
from treadle.kernels.tuned_convolutions import CONVOLUTIONS
from treadle.kernels.tuned_products import PRODUCTS
from treadle.tuning.records import Family

FAMILIES: tuple[Family, ...] = (PRODUCTS, CONVOLUTIONS, ATTENTION)
