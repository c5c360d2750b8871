"""Weights with orthogonal rows or columns, by maps from all matrices to these."""

from __future__ import annotations

from typing import Any

from treadle.graph.history import recorded
from treadle.torch import functions, linalg
from treadle.torch.nn.module import Module
from treadle.torch.nn.utils import parametrize

_torch: Any = functions
_linalg: Any = linalg
_MAPS = ("matrix_exp", "cayley", "householder")


def _made_orthogonal(a: Any) -> Any:
    """A matrix near one, by its factors."""
    x, tau = _torch.geqrf(a)
    q = _linalg.householder_product(x, tau)
    return q * _torch.sgn(x.diagonal(dim1=-2, dim2=-1)).unsqueeze(-2)


class _Orthogonal(Module):
    """An orthogonal matrix, as the map of a lower triangle; with `use_trivialization` times `base`,
    from which it begins."""

    def __init__(self, kind: str, use_trivialization: bool) -> None:
        super().__init__()
        self.kind = kind
        self.is_relative = use_trivialization
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, x: Any) -> Any:
        """The matrix."""
        rows, columns = x.shape[-2:]
        is_wide = rows < columns
        if is_wide:
            x, rows, columns = x.mT, columns, rows
        q = self._reflected(x) if self.kind == "householder" else self._turned(x, rows, columns)
        if self.is_relative:
            q = self.base @ q
        return q.mT if is_wide else q

    def _reflected(self, x: Any) -> Any:
        below = x.tril(diagonal=-1)
        tau = 2.0 / (1.0 + (below * below).sum(dim=-2))
        q = _linalg.householder_product(below, tau)
        return q * x.diagonal(dim1=-2, dim2=-1).int().unsqueeze(-2)

    def _turned(self, x: Any, rows: int, columns: int) -> Any:
        x = x.tril()
        if rows != columns:
            x = _torch.cat([x, x.new_zeros(*x.shape[:-1], rows - columns)], dim=-1)
        skew = x - x.mH
        if self.kind == "matrix_exp":
            q = _linalg.matrix_exp(skew)
        else:
            one = _torch.eye(rows, dtype=skew.dtype, device=skew.device)
            q = _linalg.solve(one - skew / 2, one + skew / 2)
        return q[..., :columns]

    def right_inverse(self, q: Any) -> Any:
        """What gives a matrix that is orthogonal; of another one, the nearest by its factors."""
        start = q
        rows, columns = q.shape[-2:]
        is_wide = rows < columns
        if is_wide:
            q, rows, columns = q.mT, columns, rows
        with recorded(False):
            if not self.is_relative:
                if self.kind != "householder":
                    raise NotImplementedError(
                        "It is not possible to assign to the matrix exponential or the Cayley "
                        "parametrizations when use_trivialization=False."
                    )
                found, tau = _torch.geqrf(q)
                signs = _torch.sgn(found.diagonal(dim1=-2, dim2=-1))
                found = _with_diagonal(found, _torch.where(tau == 0, -signs, signs), columns)
                return found.mT if is_wide else found
            if rows != columns:
                drawn = _torch.randn(*q.shape[:-1], rows - columns, dtype=q.dtype, device=q.device)
                q = _torch.cat([q, drawn], dim=-1)
            self.base = _made_orthogonal(q)
            return (
                -_torch.eye(
                    start.shape[-2], start.shape[-1], dtype=start.dtype, device=start.device
                )
                .expand(start.shape)
                .clone()
            )


def _with_diagonal(x: Any, diagonal: Any, columns: int) -> Any:
    """A tall matrix with another diagonal."""
    top = x[..., :columns, :]
    own = top.diagonal(dim1=-2, dim2=-1)
    return _torch.cat([top - _torch.diag_embed(own - diagonal), x[..., columns:, :]], dim=-2)


def orthogonal(
    module: Any,
    name: str = "weight",
    orthogonal_map: str | None = None,
    *,
    use_trivialization: bool = True,
) -> Any:
    """Have a module use a weight with orthogonal columns, or rows if there are fewer: a map
    ("matrix_exp", "cayley" or "householder") of the matrix that it learns.

    >>> import treadle.torch as torch
    >>> layer = torch.nn.utils.parametrizations.orthogonal(torch.nn.Linear(4, 3))
    >>> bool((layer.weight @ layer.weight.T - torch.eye(3)).abs().max() < 1e-4)
    True
    """
    weight = getattr(module, name, None)
    if weight is None or not hasattr(weight, "_inner"):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    if weight.dim() < 2:
        raise ValueError(
            f"Expected a matrix or batch of matrices. Got a tensor of {weight.dim()} dimensions."
        )
    is_square = weight.shape[-2] == weight.shape[-1]
    if orthogonal_map is None:
        usual = is_square or weight.is_complex()
        orthogonal_map = "matrix_exp" if usual else "householder"
    if orthogonal_map not in _MAPS:
        raise ValueError(
            'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". Got: '
            f"{orthogonal_map}"
        )
    if orthogonal_map == "householder" and weight.is_complex():
        raise ValueError("The householder parametrization does not support complex tensors.")
    made = _Orthogonal(orthogonal_map, use_trivialization)
    return parametrize.register_parametrization(module, name, made, unsafe=True)
