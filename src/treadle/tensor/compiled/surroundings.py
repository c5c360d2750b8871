"""What traces depend on and no guard finds by a name: which states optimizers and scalers have."""

from __future__ import annotations

# Goes on when something changes that traces of training steps depend on: which states an optimizer
# has, its switches, a scaler's factors.
structure = [0]
