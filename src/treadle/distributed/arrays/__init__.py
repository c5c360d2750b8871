"""Arrays over a mesh of devices: each rank has a piece, and each operation chooses what travels.

Which piece a rank has is a `Layout` (`layout.py`); the collectives between two layouts are planned
as data (`steps.py`) and carried out on pieces (`moving.py`). Functions compute on pieces
(`elementwise.py`, `reductions.py`, `products.py`, `shapes.py`); `sharded.py` has them as methods.
"""
