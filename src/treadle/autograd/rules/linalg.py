"""Derivatives of factorizations, solutions, eigenvalues and norms.

Those of `tensor.linalg.operations` are rules of stacks of matrices, with one axis in front. Where
vectors have a sign or a phase that nothing says, the gradients are those of functions that do not
depend on it, as PyTorch's are; of complex numbers that is checked.
"""

from __future__ import annotations

from typing import Any

from treadle.autograd.derivative import Rule
from treadle.autograd.rules.elementwise import conj
from treadle.core.errors import AutogradError
from treadle.tensor.assembly import concat
from treadle.tensor.elementwise_functions import FUNCTIONS
from treadle.tensor.linalg import operations
from treadle.tensor.linalg.powers import exponential
from treadle.tensor.linalg.stacks import adjoint, is_recording
from treadle.tensor.manipulation import broadcast_to, diagonal
from treadle.tensor.products import matmul
from treadle.tensor.ranges import eye, tril, triu
from treadle.tensor.reductions import max as largest
from treadle.tensor.reductions import prod
from treadle.tensor.reductions import sum as total
from treadle.tensor.searching import take_along_axis
from treadle.tensor.sorting import argsort
from treadle.tensor.tensor import Tensor

_abs, _sign, _where, _imag = (FUNCTIONS[name] for name in ("abs", "sign", "where", "imag"))
_MOST_TURNED = 1e-2  # of what a phase may change, PyTorch's limit


# --- matrices ------------------------------------------------------------------------------------


def _main(x: Tensor) -> Tensor:
    """Where the main diagonal of matrices is."""
    return eye(x.shape[-2], x.shape[-1], dtype="bool", device=x.device)


def _as_diagonal(x: Tensor) -> Tensor:
    """Matrices with these numbers in their diagonals."""
    return _where(eye(x.shape[-1], dtype="bool", device=x.device), x[..., None], 0)


def _half_diagonal(x: Tensor) -> Tensor:
    return _where(_main(x), x * 0.5, x)


def _differences(x: Tensor) -> Tensor:
    """x[j] - x[i] in row i and column j; 1 in the diagonal."""
    found: Tensor = x[..., None, :] - x[..., None]
    return _where(_main(found), 1, found)


def _without(x: Tensor, part: Tensor, other: Tensor) -> Tensor:
    """What a projection `part @ other` leaves of x."""
    return x - matmul(part, other)


# --- factors -------------------------------------------------------------------------------------


def _cholesky(g: Any, out: Any) -> Any:
    turned = adjoint(out[0])
    inner = tril(matmul(turned, g[0]))
    inner = _half_diagonal(inner + adjoint(inner)) * 0.5
    # L^-H @ inner @ L^-1, of which the first half is solved for columns, the second for rows.
    left = operations.solve_triangular(turned, inner, False, False)
    return adjoint(operations.solve_triangular(turned, adjoint(left), False, False))


def _qr(g: Any, a: Any, out: Any, complete: bool) -> Any:
    rows, columns = a.shape[1:]
    if complete and rows > columns:
        raise AutogradError(
            'qr has no derivative for mode="complete" of matrices with more rows than columns: '
            'nothing says what the further columns of Q are. Use mode="reduced"'
        )
    (gq, gr), (q, r) = g, out
    if rows >= columns:
        return _square_qr(gq, gr, q, r)
    # The columns behind the square are Q^H @ those of a, so that Q has a gradient by them.
    first, rest = (slice(None), slice(None), slice(None, rows)), a[:, :, rows:]
    if gr is None:
        behind = rest * 0
    else:
        behind = matmul(q, gr[:, :, rows:])
        more = matmul(rest, adjoint(gr[:, :, rows:]))
        gq, gr = more if gq is None else gq + more, gr[first]
    return concat([_square_qr(gq, gr, q, r[first]), behind], axis=2)


def _square_qr(gq: Any, gr: Any, q: Tensor, r: Tensor) -> Tensor:
    """Of matrices with at least as many rows as columns (M. Seeger et al., "Auto-differentiating
    linear algebra", 2017)."""
    inner: Any = 0
    if gr is not None:
        inner = matmul(gr, adjoint(r))
    if gq is not None:
        inner = inner - matmul(adjoint(q), gq)
    inner = triu(inner)
    found = matmul(q, _half_diagonal(inner + adjoint(inner)))
    if gq is not None:
        found = found + gq
    # found @ R^-H is the adjoint of R^-1 @ found^H.
    return adjoint(operations.solve_triangular(r, adjoint(found), False, False))


def _lu(g: Any, a: Any, out: Any) -> Any:
    """Of P L U: what reaches the triangles is solved through both factors (the
    differentials satisfy L^-1 dL + dU U^-1 = L^-1 P^T dA U^-1, whose two terms are strictly lower
    and upper)."""
    factors, _, order, _ = out
    rows, columns = a.shape[1:]
    least = min(rows, columns)
    square = factors[:, :least, :least]
    lower, upper = factors[:, :, :least], factors[:, :least, :]
    whole_lower = tril(lower, k=-1) + eye(rows, least, dtype=a.dtype, device=a.device)
    g_lower, g_upper = tril(g[0][:, :, :least], k=-1), triu(g[0][:, :least, :])
    inner_lower = matmul(adjoint(whole_lower), g_lower)
    inner_upper = matmul(g_upper, adjoint(triu(upper)))
    if rows > columns:
        top = tril(g_lower[:, :least], k=-1) + operations.solve_triangular(
            adjoint(square), triu(inner_upper - inner_lower), False, True
        )
        found = _behind(square, concat([top, g_lower[:, least:]], axis=1))
    else:
        left = _behind(square, tril(inner_lower - inner_upper, k=-1))
        left = left + g_upper[:, :, :least]
        both = concat([left, g_upper[:, :, least:]], axis=2)
        found = operations.solve_triangular(adjoint(square), both, False, True)
    back = argsort(order, axis=1)
    places = broadcast_to(back[..., None], found.shape)
    return take_along_axis(found, places, axis=1)


def _behind(square: Tensor, x: Tensor) -> Tensor:
    """X @ U^-H, where U is the upper triangle."""
    return adjoint(operations.solve_triangular(square, adjoint(x), False, False))


def _det(g: Any, a: Any, out: Any) -> Any:
    found, status = operations.inverse(a)
    if is_recording(a.device) or not status.numpy().any():
        return (g * conj(out))[:, None, None] * adjoint(found)
    # Of singular matrices it is made of the products of all singular values but one.
    u, s, vh = operations.svd(a, False)
    others = prod(_where(_main(found), 1, s[:, None, :]), axis=-1)
    turned = operations.det(u) * operations.det(vh)
    return (g * conj(turned))[:, None, None] * matmul(u * others[:, None, :], vh)


def _slogdet(g: Any, a: Any, out: Any) -> Any:
    (by_sign, by_log), (sign, _) = g, out
    if sign.dtype.kind == "complex" and by_sign is not None:
        turned = _imag(conj(by_sign) * sign) * -1j
        by_log = turned if by_log is None else by_log + turned
    if by_log is None:
        return a * 0
    found, _ = operations.inverse(a)
    return by_log[:, None, None] * adjoint(found)


# --- solutions -----------------------------------------------------------------------------------


def _solve(g: Any, a: Any, out: Any) -> Any:
    right, _ = operations.solve(adjoint(a), g[0])
    return {"a": -matmul(right, adjoint(out[0])), "b": right}


def _inverse(g: Any, out: Any) -> Any:
    turned = adjoint(out[0])
    return -matmul(turned, matmul(g[0], turned))


def _solve_triangular(g: Any, a: Any, out: Any, lower: bool, unitriangular: bool) -> Any:
    right = operations.solve_triangular(adjoint(a), g, not lower, unitriangular)
    found = -matmul(right, adjoint(out))
    within = int(unitriangular)
    found = tril(found, k=-within) if lower else triu(found, k=within)
    return {"a": found, "b": right}


def _pseudo_inverse(g: Any, a: Any, out: Any) -> Any:
    """G. H. Golub and V. Pereyra, "The differentiation of pseudo-inverses and nonlinear least
    squares problems whose variables separate", 1973."""
    turned, back = adjoint(out), adjoint(g)
    if a.shape[1] <= a.shape[2]:
        inner = matmul(back, out)
        along = matmul(inner, turned)
        found = along - adjoint(matmul(out, inner)) - matmul(matmul(a, out), along)
        return found + matmul(matmul(turned, out), _without(back, inner, a))
    inner = matmul(out, back)
    along = matmul(turned, inner)
    found = along - adjoint(matmul(inner, out)) - matmul(matmul(along, out), a)
    return found + matmul(matmul(_without(back, a, inner), out), turned)


# --- eigenvalues and singular values -------------------------------------------------------------


def _check_phase(name: str, turned: Tensor) -> None:
    """AutogradError if a function depends on the phases of complex vectors, so that its gradient
    depends on which were found."""
    if turned.dtype.kind != "complex" or is_recording(turned.device) or not turned.size:
        return
    along = _imag(diagonal(turned.detach(), axis1=-2, axis2=-1))
    if float(largest(_abs(along)).item()) > _MOST_TURNED:
        raise AutogradError(
            f"{name} of complex matrices gives vectors up to a factor of magnitude 1, and what is "
            "differentiated depends on this factor: use the vectors in ways that do not, such as "
            "their magnitudes or the products v @ v^H"
        )


def _eigh(g: Any, out: Any) -> Any:
    (by_values, by_vectors), (values, vectors) = g, out
    turned = adjoint(vectors)
    if by_vectors is None:
        return matmul(vectors * by_values[:, None, :], turned)
    inner = matmul(turned, by_vectors)
    _check_phase("eigh", inner)
    diagonals = 0 if by_values is None else by_values[:, None, :]
    inner = _where(_main(inner), diagonals, inner / _differences(values))
    found = matmul(matmul(vectors, inner), turned)
    return (found + adjoint(found)) * 0.5  # a step along it leaves the matrix Hermitian


def _eig(g: Any, out: Any) -> Any:
    """C. Boeddeker et al., "On the computation of complex-valued gradients with application to
    statistically optimum beamforming", 2017; with vectors of norm 1."""
    (by_values, by_vectors), (values, vectors) = g, out
    turned = adjoint(vectors)
    if by_vectors is None:
        inner = _as_diagonal(by_values)
    else:
        inner = matmul(turned, by_vectors)
        _check_phase("eig", inner)
        along = FUNCTIONS["real"](diagonal(inner, axis1=-2, axis2=-1))
        inner = inner - matmul(turned, vectors * along[:, None, :])
        diagonals = 0 if by_values is None else by_values[:, None, :]
        inner = _where(_main(inner), diagonals, inner / conj(_differences(values)))
    return operations.solve(turned, matmul(inner, turned))[0]


def _svd(g: Any, out: Any) -> Any:
    """J. Townsend, "Differentiating the singular value decomposition", 2016. Of full matrices the
    vectors without a singular value are nothing's derivatives, as in PyTorch."""
    (gu, gs, gvh), (u, s, vh) = g, out
    rows, columns, least = u.shape[1], vh.shape[2], s.shape[1]
    u, vh = u[:, :, :least], vh[:, :least]
    gu = None if gu is None else gu[:, :, :least]
    gvh = None if gvh is None else gvh[:, :least]
    if gu is None and gvh is None:
        return matmul(u * gs[:, None, :], vh)
    left = None if gu is None else matmul(adjoint(u), gu)
    right = None if gvh is None else matmul(vh, adjoint(gvh))
    parts = [x - adjoint(x) for x in (left, right) if x is not None]
    _check_phase("svd", sum(parts[1:], parts[0]) * 0.5)
    squares = _differences(s * s)
    inner: Any = 0 if gs is None else _as_diagonal(gs)
    if left is not None:
        skew = left - adjoint(left)
        inner = inner + skew / squares * s[:, None, :]
        if skew.dtype.kind == "complex":
            inner = inner + _as_diagonal(diagonal(skew, axis1=-2, axis2=-1) / (s * 2))
    if right is not None:
        inner = inner + s[:, :, None] * ((right - adjoint(right)) / squares)
    found = matmul(u, inner)
    if gu is not None and left is not None and rows > least:
        found = found + _without(gu, u, left) / s[:, None, :]
    found = matmul(found, vh)
    if gvh is not None and right is not None and columns > least:
        found = found + matmul(u / s[:, None, :], _without(gvh, adjoint(right), vh))
    return found


# --- functions and norms -------------------------------------------------------------------------


def _exponential(g: Any, a: Any) -> Any:
    """The exponential of [[a^H, g], [0, a^H]] has the gradient in its corner (N. J. Higham,
    "Functions of matrices", 2008, section 3.1)."""
    turned, size = adjoint(a), a.shape[-1]
    upper = concat([turned, g], axis=2)
    lower = concat([g * 0, turned], axis=2)
    return exponential(concat([upper, lower], axis=1))[:, :size, size:]


def _norm_along(g: Any, x: Any, out: Any, axes: Any, keepdims: bool, ord: float) -> Any:
    """0 where the norm is, as PyTorch has it."""
    if not keepdims:
        for axis in sorted(axes):
            before = (slice(None),) * axis
            g, out = g[(*before, None)], out[(*before, None)]
    if ord == 0:
        return x * 0
    if ord == 1:
        return g * _sign(x)
    if ord == 2:
        return x * _quotient(g, out)
    sizes = _abs(x)
    if ord in (float("inf"), float("-inf")):
        found = (sizes == out).to(out.dtype)
        return _sign(x) * found * (g / total(found, axis=axes, keepdims=True))
    slopes = _where(sizes == 0, 0, _where(sizes == 0, 1, sizes) ** (ord - 1.0))
    return _sign(x) * slopes * _quotient(g, out, ord - 1.0)


def _quotient(g: Any, out: Any, power: float = 1.0) -> Any:
    nothing = out == 0
    safe = _where(nothing, 1, out)
    return _where(nothing, 0, g / (safe if power == 1.0 else safe**power))


RULES: dict[str, Rule] = {
    "cholesky": _cholesky,
    "det": _det,
    "eig": _eig,
    "eigh": _eigh,
    "exponential": _exponential,
    "inverse": _inverse,
    "lu": _lu,
    "norm_along": _norm_along,
    "pseudo_inverse": _pseudo_inverse,
    "qr": _qr,
    "slogdet": _slogdet,
    "solve": _solve,
    "solve_triangular": _solve_triangular,
    "svd": _svd,
}
